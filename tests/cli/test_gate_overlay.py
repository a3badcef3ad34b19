"""``gate --overlay``: head's benchmark files on both sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow, write
from tests.repositories import git

FLOW = """
name: overlay
stages:
  baseline:
    - id: cost
      run: python3 bench/cost.py
      runs: 10
      parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
"""
BENCH = "import pathlib; print(int(pathlib.Path('costs').read_text()) * 2)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project whose benchmark is younger than the change that it measures."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    root = tmp_path / "project"
    root.mkdir()
    write(root, FLOW)
    git(root, "init", "-q", "-b", "main")
    (root / "costs").write_text("100\n")
    (root / "bench").mkdir()
    (root / "bench" / "own.py").write_text("of the base\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "checkout", "-qb", "topic")
    (root / "costs").write_text("120\n")
    (root / "bench" / "cost.py").write_text(BENCH)
    git(root, "add", ".")
    git(root, "commit", "-qm", "two")
    return root


def gate(project: Path, *words: str) -> tuple[int, dict[str, Any]]:
    done = perfflow("gate", "flow.yaml", "--base", "main", "--json", *words, cwd=project)
    return done.returncode, json.loads(done.stdout)


def test_a_benchmark_that_base_lacks_is_compared(project: Path) -> None:
    status, without = gate(project)
    assert [row["decision"] for row in without["benchmarks"]] != ["regressed"]
    status, result = gate(project, "--overlay", "bench")
    assert status == 1
    (row,) = result["benchmarks"]
    assert (row["decision"], row["baseline"]["value"], row["candidate"]["value"]) == ("regressed", 200, 240)
    base = result["trees"]["baseline"]
    assert (base["overlay"], base["replaced"]) == (["bench"], 1)
    assert base["tree"] != without["trees"]["baseline"]["tree"]
    page = (project / ".perfflow/runs/latest/report.md").read_text()
    assert "base is measured with head's bench: 1 file differs from its own" in page
    assert "--overlay=bench" in page


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing", "--overlay missing: head has no such file or folder"),
        ("..", "--overlay ..: not a path inside"),
        ("/etc", "--overlay /etc: not a path inside"),
        (".", "--overlay .: not a path inside"),
        (".git/hooks", "--overlay .git/hooks: not a path inside"),
        ("out", "--overlay out: out is a link"),
        ("out/passwd", "--overlay out/passwd: out is a link"),
    ],
)
def test_a_path_that_is_not_of_head_is_refused(project: Path, path: str, said: str) -> None:
    (project / "out").symlink_to("/etc")
    done = perfflow("gate", "flow.yaml", "--base", "main", "--overlay", path, cwd=project)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (project / ".perfflow/runs").exists() or not list((project / ".perfflow/runs").iterdir())


def test_a_path_is_relative_to_the_current_folder(project: Path) -> None:
    inside = project / "bench"
    words = ("gate", "../flow.yaml", "--base", "main", "--json", "--overlay", "cost.py")
    assert json.loads(perfflow(*words, cwd=inside).stdout)["trees"]["baseline"]["overlay"] == ["bench/cost.py"]


def test_a_resumed_gate_keeps_its_overlay(project: Path) -> None:
    gate(project, "--overlay", "bench")
    status, result = gate(project, "--resume")
    assert (status, result["benchmarks"][0]["decision"]) == (1, "regressed")
    refused = perfflow("gate", "flow.yaml", "--resume", "--overlay", "costs", cwd=project)
    assert refused.returncode == 2
    assert "this run was started with another --overlay" in refused.stderr


def test_stored_results_have_no_tree_to_overlay(project: Path) -> None:
    done = perfflow("gate", "flow.yaml", "--base-results", "main", "--overlay", "bench", cwd=project)
    assert done.returncode == 2
    assert "--overlay does not apply to stored results" in done.stderr
