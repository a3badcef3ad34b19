"""``perfflow export`` as a user's shell runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write
from tests.repositories import git

FILES = ["summary.md", "comment.md", "check_run.json", "junit.xml", "metrics.txt", "codequality.json", "evidence.txt"]
# Programs that print made-up times: 20% slower, independent of the machine.
SLOWER = """
name: slower
stages:
  baseline:
    - id: bench
      run: echo time 100 us
      candidate: {command: echo time 120 us}
      parse: {regex: "time (?P<time>[0-9.]+)", units: {time: us}}
      runs: 10
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write(folder, SLOWER)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    done = perfflow("run", "flow.yaml", cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return folder


@pytest.fixture
def project(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "project", symlinks=True))


def hops(comment: Path) -> list[str]:
    return [line for line in comment.read_text().splitlines() if line.startswith("- `2")]


def test_all_files_are_written_and_the_run_stays_as_it_is(project: Path) -> None:
    run = (project / ".perfflow/runs/latest").resolve()
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    done = perfflow("export", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    out = project / ".perfflow" / "export" / run.name
    assert done.stdout.splitlines() == [f".perfflow/export/{run.name}/{name}" for name in FILES]
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    (request,) = json.loads((out / "check_run.json").read_text())
    assert (request["conclusion"], request["head_sha"]) == ("failure", git(project, "rev-parse", "HEAD").strip())
    assert "perf: bench: 120 μs; Δ vs baseline: +20.0%\n" in (out / "evidence.txt").read_text()
    assert git(project, "status", "--porcelain") == ""


def test_a_result_alone_is_enough(project: Path, tmp_path: Path) -> None:
    artifact = tmp_path / "elsewhere"
    artifact.mkdir()
    shutil.copy(project / ".perfflow/runs/latest/result.json", artifact / "perf.json")
    done = perfflow("export", "perf.json", "--out", "ci", "--format", "junit", "--format", "junit", cwd=artifact)
    assert (done.returncode, done.stdout) == (0, "ci/junit.xml\n")
    assert [path.name for path in (artifact / "ci").iterdir()] == ["junit.xml"]


def test_the_comment_so_far_is_carried_on(project: Path) -> None:
    assert perfflow("export", "--out", "ci", cwd=project).returncode == 0
    assert perfflow("run", "flow.yaml", cwd=project).returncode == 1
    words = ("export", "--out", "ci", "--format", "comment", "--previous", "ci/comment.md")
    assert perfflow(*words, cwd=project).returncode == 0
    assert len(hops(project / "ci" / "comment.md")) == 2
    assert perfflow(*words, cwd=project).returncode == 0
    assert len(hops(project / "ci" / "comment.md")) == 2


def test_a_killed_run_is_exported_as_not_measured(project: Path) -> None:
    run = (project / ".perfflow/runs/latest").resolve()
    (run / "result.json").unlink()
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    (run / "events.jsonl").write_text("".join(line for line in lines if '"event":"end"' not in line))
    done = perfflow("export", cwd=project)
    assert done.returncode == 2
    assert "`perfflow report" in done.stderr
    perfflow("report", "latest", cwd=project)
    assert perfflow("export", "--out", "ci", cwd=project).returncode == 0
    (request,) = json.loads((project / "ci" / "check_run.json").read_text())
    assert request["conclusion"] == "failure"
    assert "the run did not finish" in (project / "ci" / "summary.md").read_text()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["nothing"], 2, "the newest in"),
        (["--format", "yaml"], 2, "'summary', 'comment', 'check-run'"),
        (["--anchor", "a"], 2, "No such option"),
        (["--previous", "nothing.md"], 2, "leave it out for the first comment"),
        (["--out", "flow.yaml/x"], 3, "--out DIR"),
        (["--out", "flow.yaml"], 2, "is a file"),
    ],
)
def test_bad_usage_is_told_with_a_remedy(words: list[str], status: int, said: str, project: Path) -> None:
    done = perfflow("export", *words, cwd=project)
    assert done.returncode == status
    assert said in done.stderr
    assert not (project / ".perfflow" / "export").exists()
