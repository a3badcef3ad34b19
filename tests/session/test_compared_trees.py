"""Files that other trees will lack are reported before anything is built."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perfflow.execute.context import TreeContext
from perfflow.execute.prepare import ready
from perfflow.model.errors import Severity
from perfflow.model.readings import Hotspot, Side
from perfflow.session.code_layouts.sources import executables
from perfflow.session.compared_trees import problems_of
from perfflow.session.missing_side import side_without_program
from perfflow.session.own_code import SourceFiles
from tests.cli.shell import perfflow, write
from tests.repositories import git
from tests.session.project import Project, flow
from tests.workflow.drafts import opened, where

COMMAND = "stages: {baseline: [{id: one, uses: command, with: {command: '%s'}}]}\n"
LACKS = "is ignored by git, so the trees of a gate and of candidates do not have it"


@pytest.fixture
def project(project: Project) -> Path:
    """A repository with an ignored environment, ignored data and an ignored build folder."""
    project.git("init", "-q", "-b", "main")
    for name in (".venv/bin/python", "node_modules/.bin/tool", "data/big.bin", "build/bench", "tools/run", "main.py"):
        project.write(name, "")
    project.commit({".gitignore": ".venv/\nnode_modules/\ndata\nbuild\ntools\n.perfflow\nflow.yaml\n"})
    return project.folder


def said(folder: Path, text: str) -> list[str]:
    found = problems_of(opened(folder, text))
    return [f"{where(item.place)}{item.severity} {item.message} ({item.hint})" for item in found]


def test_a_program_that_no_tree_has_is_an_error(project: Path) -> None:
    (found,) = said(project, COMMAND % ".venv/bin/python main.py")
    assert found == f"2:63 error `.venv/bin/python` {LACKS} (worktree: {{share: [.venv]}})"
    assert said(project, "worktree: {share: [.venv]}\n" + COMMAND % ".venv/bin/python main.py") == []


SHELL = "stages:\n  baseline:\n    - id: one\n      run: |\n        %s\n"
SUITE = "stages: {baseline: [{id: one, uses: pytest-benchmark, with: {python: .venv/bin/python}}]}\n"
IN_FOLDER = "defaults: {working-directory: data}\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (COMMAND % "python3 main.py --input=data/big.bin", ["warning `data/big.bin` is ignored", "share: [data]"]),
        (
            COMMAND % "build/bench",
            ["error `build/bench` is ignored", "(build it in each tree: add a step to the stage `build`)"],
        ),
        (SHELL % "A=1 .venv/bin/python main.py | cat", ["error `.venv/bin/python`"]),
        (SHELL % "cd . && .venv/bin/python main.py", ["warning `.venv/bin/python`"]),
        (SHELL % "wc -l < data/big.bin; echo 'it''s'", ["warning `data/big.bin`"]),
        (SUITE, ["`.venv/bin/python`"]),
        ("data: [data/*.bin]\n" + COMMAND % "python3 main.py", ["warning `data/*.bin`"]),
        (IN_FOLDER + COMMAND % "../.venv/bin/python ../main.py", ["share: [.venv]"]),
    ],
    ids=["file", "build folder", "shell", "shell after &&", "redirected", "interpreter", "data", "working directory"],
)
def test_what_trees_lack_is_told(project: Path, text: str, parts: list[str]) -> None:
    told = said(project, text)
    assert [part for part in parts if part not in told[0]] == []


@pytest.mark.parametrize(
    "text",
    [
        "worktree: {share: [data]}\n" + COMMAND % "python3 main.py data/big.bin",
        SHELL % "echo 'an open quote",
        # It runs once in the user's tree.
        "stages: {setup: [{id: one, run: .venv/bin/python main.py}]}\n",
    ],
    ids=["shared", "open quote", "setup"],
)
def test_what_trees_do_not_lack_is_not_told(project: Path, text: str) -> None:
    assert said(project, text) == []


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
    assert said(project, flow(baseline=f"{{id: one, uses: command, with: {{command: {json.dumps(command)}}}}}")) == []


def test_what_a_build_may_make_is_not_missed(project: Path) -> None:
    build = flow(build="{id: make, run: make}", baseline="{id: one, uses: command, with: {command: %s}}")
    assert said(project, build % "build/bench") == []
    assert said(project, build % "tools/run") == []
    # A build does not make an environment, unless it names it.
    assert "worktree: {share: [.venv]}" in said(project, build % ".venv/bin/python")[0]
    assert said(project, (build % ".venv/bin/python").replace("run: make", "run: python3 -m venv .venv")) == []


@pytest.mark.parametrize("key", ["if: success()", "continue-on-error: true", "requires: {tool: none}"])
def test_a_step_that_may_not_run_or_may_fail_gives_a_warning(key: str, project: Path) -> None:
    text = flow(baseline=f"{{id: one, run: .venv/bin/python main.py, {key}}}")
    assert [item.severity for item in problems_of(opened(project, text))] == [Severity.WARNING]


def test_a_shared_path_that_setup_may_make_is_not_missed_yet(project: Path) -> None:
    flow = "worktree: {share: [cache]}\n" + COMMAND % "python3 main.py"
    assert "error worktree.share: cache does not exist" in said(project, flow)[0]
    with_setup = flow.replace("{baseline:", "{setup: [{id: get, run: mkdir cache}], baseline:")
    assert said(project, with_setup) == []


@pytest.mark.parametrize("text", ["${{ machine.cpu }}", "${{ steps.other.outputs.x }}", "${{ git.branch }}"])
def test_what_only_a_run_knows_is_passed_over(text: str, project: Path) -> None:
    step = f'{{id: one, run: "./x {text}", env: {{A: "{text}"}}}}'
    assert said(project, flow(baseline=["{id: other, run: 'true'}", step])) == []


def test_links_back_into_the_tree_are_told_with_their_place(project: Path) -> None:
    (project / "node_modules" / "own").symlink_to("../main.py")
    (found,) = said(project, "worktree: {share: [node_modules]}\n" + COMMAND % "python3 main.py")
    assert found.startswith("2:20 error worktree.share: node_modules links back into your tree")


def test_a_repository_inside_keeps_nothing_else_from_being_told(project: Path) -> None:
    git(project / "tools", "init", "-q")
    (project / "inner").mkdir()
    git(project / "inner", "init", "-q")
    (project / "inner" / "run").write_text("")
    text = flow(baseline=["{id: one, run: inner/run}", "{id: two, run: .venv/bin/python main.py}"])
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


FORMS = ("run: ./program fast, candidate: [./program, a b]", "argv: [./program, a b], candidate: ./program fast")


def contexts(place: Path, form: str) -> dict[Side, TreeContext]:
    """Return the contexts of two trees, of which only the candidate's has the program."""
    plan = opened(place, f"stages: {{baseline: [{{id: one, {form}, parse: {{regex: x}}}}]}}\n").plan
    found = {side: TreeContext(plan, place / side.value, "run", 0, place) for side in Side}
    for context in found.values():
        context.root.mkdir()
    shutil.copy(shutil.which("true") or "", found[Side.CANDIDATE].root / "program")
    return found


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("form", FORMS)
def test_an_executable_is_found(tmp_path: Path, form: str, side: Side) -> None:
    context = contexts(tmp_path, form)[Side.CANDIDATE]
    prepared = ready(context, context.plan.by_id["one"], side, tmp_path)
    assert list(executables(prepared)) == [context.root / "program"]


@pytest.mark.parametrize("form", FORMS)
def test_a_tree_without_the_program_is_found(tmp_path: Path, form: str) -> None:
    found = contexts(tmp_path, form)
    planned = found[Side.CANDIDATE].plan.by_id["one"]
    assert side_without_program(found, planned, tmp_path) is Side.BASELINE


@pytest.mark.parametrize(
    ("file", "placed"),
    [
        ("{root}/crates/a/src/lib.rs", "crates/a/src/lib.rs"),
        ("src/only.rs", "crates/a/src/only.rs"),
        ("src/lib.rs", "crates/b/src/lib.rs"),
        ("src/main.rs", "src/main.rs"),
        ("/rustc/59/library/core/src/lib.rs", "/rustc/59/library/core/src/lib.rs"),
        ("../src/only.rs", "../src/only.rs"),
    ],
)
def test_placed(file: str, placed: str, tmp_path: Path) -> None:
    for name in ("crates/a/src/lib.rs", "crates/a/src/only.rs", "crates/b/src/lib.rs", "target/src/only.rs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    spot = Hotspot("f", 0.5, "time", "perf", file.format(root=tmp_path), 3)
    assert SourceFiles(tmp_path, [tmp_path / "crates" / "b"]).placed(spot).file == placed


def test_one_of_several_keeps_its_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "src" / "lib.rs").touch()
    assert SourceFiles(tmp_path).placed(Hotspot("f", 0.5, "time", "perf", "src/lib.rs", 3)).file == "src/lib.rs"
