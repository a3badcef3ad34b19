"""Every command that runs programs shows the last output and the log of a failed program."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write
from tests.repositories import git

CAUSE = "prog.c:3: error: 'speed' undeclared"
FAILING = f'echo "{CAUSE}" >&2; exit 2'


def require_told(text: str, folder: Path, *, cause: str = CAUSE) -> None:
    """The text contains the cause, and the path of a log with the cause."""
    assert f"| {cause}" in text, text
    logs = re.findall(r"log: +(\S+)", text)
    assert logs, text
    for log in logs:
        assert cause in (folder / log).read_text()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    root.mkdir()
    return root


GATED = """
name: gated
stages:
  build:
    - {id: compile, run: sh build.sh}
  baseline:
    - {id: cost, run: cat costs, parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
"""


def repository(root: Path, flow: str, **files: str) -> None:
    write(root, flow)
    for name, text in {"build.sh": "true\n", "costs": "100\n"}.items():
        (root / name).write_text(text)
    for name, text in files.items():
        (root / name.replace("_", ".")).write_text(text)
    (root / ".gitignore").write_text(".perfflow/\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")


@pytest.mark.parametrize("progress", ["plain", "off"])
def test_a_base_that_does_not_build_says_why(progress: str, project: Path) -> None:
    repository(project, GATED, build_sh=FAILING)
    (project / "build.sh").write_text("true\n")
    done = perfflow("gate", "flow.yaml", "--base", "main", "--progress", progress, cwd=project)
    assert done.returncode == 3
    assert "the base does not build: compile exited with 2" in done.stdout
    require_told(done.stdout, project)
    if progress == "plain":
        require_told(done.stderr, project)
        assert "sh build.sh" in done.stderr
    report = (project / ".perfflow" / "runs" / "latest" / "report.md").read_text()
    assert CAUSE in report


def test_compare_shows_what_a_program_that_fails_said(project: Path) -> None:
    (project / "fail.sh").write_text(FAILING)
    done = perfflow("compare", "--", "true", "sh fail.sh", cwd=project)
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("could not measure\n")
    require_told(done.stdout, project)


PROFILED = """
name: profiled
stages:
  baseline:
    - {id: bench, uses: command, with: {command: "true"}, runs: 6}
  profile:
    - {id: calls, uses: cprofile, with: {command: "python3 broken.py"}}
"""


def test_a_failed_profile_is_named_in_the_summary(project: Path) -> None:
    write(project, PROFILED)
    (project / "broken.py").write_text("raise SystemExit('no model to load')\n")
    done = perfflow("run", "flow.yaml", "--progress", "off", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed: calls: " in done.stdout
    require_told(done.stdout, project, cause="no model to load")


OPTIMIZED = """
name: optimized
stages:
  build:
    - {id: compile, run: sh build.sh}
  baseline:
    - {id: cost, run: cat costs, parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
  profile:
    - {id: calls, uses: cprofile, benchmark: cost, with: {command: python3 -c 1}}
  optimize:
    objective: cost cost
    steps:
      - {id: breaks, technique: algorithm, why: it does not compile, run: "printf '%s' \\"$BROKEN\\" > build.sh"}
      - {id: fails, technique: algorithm, why: its command fails, run: "echo no such flag >&2; exit 3"}
  verify:
    - {id: right, run: "true"}
"""


def test_a_candidate_that_fails_says_why(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", FAILING)
    repository(project, OPTIMIZED)
    done = perfflow("run", "flow.yaml", "--progress", "plain", cwd=project)
    result = json.loads((project / ".perfflow" / "runs" / "latest" / "result.json").read_text())
    breaks, fails = result["optimizations"]
    assert breaks["reason"] == "it does not build: step compile: compile exited with 2"
    assert breaks["tail"] == [CAUSE]
    assert fails["tail"] == ["no such flag"]
    for text in (done.stdout, done.stderr):
        assert f"| {CAUSE}" in text
        assert "| no such flag" in text
        logs = re.findall(r"log: +(\S+)", text)
        assert len(logs) == 2
        assert all((project / log).is_file() for log in logs)
    assert CAUSE in (project / ".perfflow" / "runs" / "latest" / "report.md").read_text()


def test_a_revision_that_does_not_build_says_why_in_a_bisection(project: Path) -> None:
    repository(project, GATED, build_sh=FAILING)
    (project / "costs").write_text("200\n")
    git(project, "commit", "-qam", "two")
    words = ("--good", "main~1", "--bad", "main", "--progress", "off")
    done = perfflow("bisect", "flow.yaml", *words, cwd=project)
    assert done.returncode == 3
    assert CAUSE in done.stdout + done.stderr
    assert re.search(r"\(log: steps/\S+\)", done.stdout + done.stderr)


def test_what_a_program_prints_cannot_command_a_terminal(project: Path) -> None:
    text = "printf '\\\\033[31mred\\\\033[0m ::error::x\\\\n' >&2; exit 1"
    write(project, f'stages: {{baseline: [{{id: x, uses: command, with: {{command: "{text}", shell: true}}}}]}}\n')
    done = perfflow("run", "flow.yaml", "--progress", "off", cwd=project)
    assert done.returncode == 3
    assert "\\x1b[31mred" in done.stdout
    assert "\x1b" not in done.stdout


def test_many_lines_are_bounded(project: Path) -> None:
    write(
        project,
        "stages: {baseline: [{id: x, uses: command, with: {command: 'seq 100000 >&2; exit 1', shell: true}}]}\n",
    )
    done = perfflow("run", "flow.yaml", "--progress", "off", cwd=project)
    assert [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("| ")] == [
        f"| {number}" for number in range(99997, 100001)
    ]
    (step,) = json.loads((project / ".perfflow" / "runs" / "latest" / "result.json").read_text())["steps"]
    assert len(step["tail"]) == 20
