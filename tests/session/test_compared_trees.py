"""Files that other trees will lack are reported before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.errors import Severity
from perfflow.session.compared_trees import problems_of
from tests.cli.shell import perfflow, write
from tests.repositories import git
from tests.workflow.drafts import opened, where

COMMAND = "stages: {baseline: [{id: one, uses: command, with: {command: '%s'}}]}\n"
LACKS = "is ignored by git, so the trees of a gate and of candidates do not have it"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with an ignored environment, ignored data and an ignored build folder."""
    git(tmp_path, "init", "-q", "-b", "main")
    for name in (".venv/bin/python", "node_modules/.bin/tool", "data/big.bin", "build/bench", "tools/run", "main.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text(".venv/\nnode_modules/\ndata\nbuild\ntools\n.perfflow\nflow.yaml\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    return tmp_path


def said(folder: Path, text: str) -> list[str]:
    found = problems_of(opened(folder, text))
    return [f"{where(item.place)}{item.severity} {item.message} ({item.hint})" for item in found]


def test_a_program_that_no_tree_has_is_an_error(project: Path) -> None:
    (found,) = said(project, COMMAND % ".venv/bin/python main.py")
    assert found == f"2:63 error `.venv/bin/python` {LACKS} (worktree: {{share: [.venv]}})"
    assert said(project, "worktree: {share: [.venv]}\n" + COMMAND % ".venv/bin/python main.py") == []


def test_a_file_that_no_tree_has_is_a_warning(project: Path) -> None:
    (found,) = said(project, COMMAND % "python3 main.py --input=data/big.bin")
    assert "warning `data/big.bin` is ignored" in found
    assert "share: [data]" in found
    assert said(project, "worktree: {share: [data]}\n" + COMMAND % "python3 main.py data/big.bin") == []


@pytest.mark.parametrize(
    "command",
    [
        "python3 main.py",
        "python3 main.py -o data/out --output data/out2",
        "python3 main.py data/none",
        "/usr/bin/python3 ../elsewhere .",
        "python3 -c 'print(\"data\")'",
    ],
)
def test_nothing_is_said_of_what_trees_have_or_is_written(command: str, project: Path) -> None:
    (project / "data" / "out").write_text("")
    found = opened(
        project, f"stages:\n  baseline:\n    - id: one\n      uses: command\n      with:\n        command: {command}\n"
    )
    assert problems_of(found) == ()


def test_what_a_build_may_make_is_not_missed(project: Path) -> None:
    build = "stages:\n  build: [{id: make, run: make}]\n  baseline: [{id: one, uses: command, with: {command: %s}}]\n"
    assert said(project, build % "build/bench") == []
    assert said(project, build % "tools/run") == []
    # A build does not make an environment, unless it names it.
    assert "worktree: {share: [.venv]}" in said(project, build % ".venv/bin/python")[0]
    assert said(project, (build % ".venv/bin/python").replace("run: make", "run: python3 -m venv .venv")) == []


def test_a_build_folder_is_to_be_built_not_shared(project: Path) -> None:
    (found,) = said(project, COMMAND % "build/bench")
    assert "error `build/bench` is ignored" in found
    assert "(build it in each tree: add a step to the stage `build`)" in found


@pytest.mark.parametrize("key", ["if: success()", "continue-on-error: true", "requires: {tool: none}"])
def test_a_step_that_may_not_run_or_may_fail_gives_a_warning(key: str, project: Path) -> None:
    text = f"stages:\n  baseline:\n    - {{id: one, run: .venv/bin/python main.py, {key}}}\n"
    assert [item.severity for item in problems_of(opened(project, text))] == [Severity.WARNING]


def test_programs_in_shell_text_are_found(project: Path) -> None:
    text = "stages:\n  baseline:\n    - id: one\n      run: |\n        %s\n"
    assert "error `.venv/bin/python`" in said(project, text % "A=1 .venv/bin/python main.py | cat")[0]
    assert "warning `.venv/bin/python`" in said(project, text % "cd . && .venv/bin/python main.py")[0]
    assert "warning `data/big.bin`" in said(project, text % "wc -l < data/big.bin; echo 'it''s'")[0]
    assert said(project, text % "echo 'an open quote") == []


def test_a_suites_interpreter_and_declared_data_are_found(project: Path) -> None:
    suite = "stages: {baseline: [{id: one, uses: pytest-benchmark, with: {python: .venv/bin/python}}]}\n"
    assert "`.venv/bin/python`" in said(project, suite)[0]
    assert "warning `data/*.bin`" in said(project, "data: [data/*.bin]\n" + COMMAND % "python3 main.py")[0]


def test_paths_are_those_of_the_working_directory(project: Path) -> None:
    (project / "part").mkdir()
    text = "defaults: {working-directory: part}\n" + COMMAND % "../.venv/bin/python ../main.py"
    assert "share: [.venv]" in said(project, text)[0]


def test_what_runs_once_in_the_users_tree_lacks_nothing(project: Path) -> None:
    assert said(project, "stages: {setup: [{id: one, run: .venv/bin/python main.py}]}\n") == []


def test_a_shared_path_that_setup_may_make_is_not_missed_yet(project: Path) -> None:
    flow = "worktree: {share: [cache]}\n" + COMMAND % "python3 main.py"
    assert "error worktree.share: cache does not exist" in said(project, flow)[0]
    with_setup = flow.replace("{baseline:", "{setup: [{id: get, run: mkdir cache}], baseline:")
    assert said(project, with_setup) == []


@pytest.mark.parametrize("text", ["${{ machine.cpu }}", "${{ steps.other.outputs.x }}", "${{ git.branch }}"])
def test_what_only_a_run_knows_is_passed_over(text: str, project: Path) -> None:
    other = "{id: other, run: 'true'}"
    flow = f'stages:\n  baseline:\n    - {other}\n    - id: one\n      run: ./x {text}\n      env: {{A: "{text}"}}\n'
    assert said(project, flow) == []


def test_links_back_into_the_tree_are_told_with_their_place(project: Path) -> None:
    (project / "node_modules" / "own").symlink_to("../main.py")
    (found,) = said(project, "worktree: {share: [node_modules]}\n" + COMMAND % "python3 main.py")
    assert found.startswith("2:20 error worktree.share: node_modules links back into your tree")


def test_a_repository_inside_keeps_nothing_else_from_being_told(project: Path) -> None:
    git(project / "tools", "init", "-q")
    inner = project / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "run").write_text("")
    text = "stages:\n  baseline:\n    - {id: one, run: inner/run}\n    - {id: two, run: .venv/bin/python main.py}\n"
    assert ["`.venv/bin/python`" in line for line in said(project, text)] == [True]


def test_without_git_there_are_no_other_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".venv").mkdir()
    assert said(tmp_path, COMMAND % ".venv") == []


def test_validate_and_plan_warn_and_a_gate_does_not_start(project: Path) -> None:
    write(project, COMMAND % ".venv/bin/python main.py")
    validated = perfflow("validate", "flow.yaml", cwd=project)
    assert (validated.returncode, validated.stdout) == (0, "flow.yaml: ok, 1 step, 1 warning\n")
    assert f"warning: `.venv/bin/python` {LACKS}" in validated.stderr
    planned = perfflow("plan", "flow.yaml", cwd=project)
    assert planned.returncode == 0
    assert "warning: `.venv/bin/python`" in planned.stderr
    for words in (("gate", "flow.yaml", "--base", "HEAD"), ("gate", "flow.yaml", "--base", "HEAD", "-n")):
        done = perfflow(*words, cwd=project)
        assert done.returncode == 2
        assert f"error: `.venv/bin/python` {LACKS}" in done.stderr
        assert "worktree: {share: [.venv]}" in done.stderr
        assert not (project / ".perfflow").exists()
