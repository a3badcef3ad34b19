"""``gate --again``: further samples of what a gate left undecided, and of nothing else."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow, write
from tests.repositories import git

FLOW = """
name: again
stages:
  build:
    - {id: make, run: cp source built}
  baseline:
    - id: exact
      run: cat built
      runs: 10
      parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
    - id: noisy
      run: python3 noisy.py
      parse: {regex: '(?P<cost>[\\d.]+)', units: {cost: '1'}, better: {cost: lower}}
      budget: BUDGET
"""
NOISY = "import random; print(10 ** (4 * random.random()))\n"
"""Too wide to be decided by chance within the budgets here."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of which one benchmark is decided by a few samples, and another one needs many."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    root = tmp_path / "project"
    root.mkdir()
    write(root, FLOW.replace("BUDGET", "1h"))
    (root / ".gitignore").write_text("built\n.perfflow\n")
    (root / "noisy.py").write_text(NOISY)
    (root / "source").write_text("100\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "noisy.py").write_text(f"# changed\n{NOISY}")
    git(root, "commit", "-aqm", "two")
    return root


def gate(project: Path, *words: str) -> tuple[int, dict[str, Any]]:
    done = perfflow("gate", "flow.yaml", "--json", *words, cwd=project)
    return done.returncode, json.loads(done.stdout or "{}")


def taken(project: Path) -> Counter[str]:
    lines = (project / ".perfflow/runs/latest/events.jsonl").read_text().splitlines()
    return Counter(event["step"] for event in map(json.loads, lines) if event["event"] == "sample")


def test_what_is_undecided_is_measured_further_and_nothing_else(project: Path) -> None:
    status, first = gate(project, "--base", "main~1", "--budget", "3s")
    before = taken(project)
    assert status == 4, first["reasons"]
    assert before["exact"] == 10
    assert 0 < before["noisy"] < 60
    status, again = gate(project, "--again", "--budget", "6s")
    after = taken(project)
    assert again["run"]["id"] == first["run"]["id"]
    assert after["exact"] == 10
    assert after["noisy"] > before["noisy"]
    lines = (project / ".perfflow/runs/latest/events.jsonl").read_text().splitlines()
    pairs = [item["pair"] for item in map(json.loads, lines) if item["event"] == "sample" and item["step"] == "noisy"]
    # The plan continues: no pair is taken twice, and none is thrown away.
    assert pairs == list(range(after["noisy"]))
    row = next(row for row in again["benchmarks"] if row["name"] == "noisy" and row["metric"] == "cost")
    assert row["pairs"] == after["noisy"]
    assert len(again["run"]["resumed"]) == 1


def test_a_gate_in_which_all_is_decided_is_not_measured_again(project: Path) -> None:
    words = ("--base", "main~1", "--only", "exact")
    assert gate(project, *words)[0] == 0
    done = perfflow("gate", "flow.yaml", "--again", "--only", "exact", cwd=project)
    assert done.returncode == 2
    assert "everything in this run is decided" in done.stderr


def test_another_head_workflow_or_kind_of_run_is_refused(project: Path) -> None:
    assert gate(project, "--base", "main~1", "--budget", "3s")[0] == 4
    for words, said in (
        (["--again", "--resume"], "--again and --resume exclude each other"),
        (["--again", "--base", "main"], "this run compares with main~1, not with main"),
        (["--again", "nowhere"], "nowhere: no run found"),
        (["--again", "--out", "new"], "leave out --out and --seed"),
    ):
        done = perfflow("gate", "flow.yaml", *words, cwd=project)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    (project / "noisy.py").write_text(f"# again\n{NOISY}")
    done = perfflow("gate", "flow.yaml", "--again", cwd=project)
    assert (done.returncode, "the code has changed" in done.stderr) == (2, True)
    git(project, "checkout", "-q", ".")
    write(project, FLOW.replace("BUDGET", "2h"))
    done = perfflow("gate", "flow.yaml", "--again", cwd=project)
    assert done.returncode == 2
    assert "changed since this run" in done.stderr or "the code has changed" in done.stderr
    git(project, "checkout", "-q", ".")
    assert perfflow("run", "flow.yaml", "--only", "exact", "--only", "make", cwd=project).returncode == 0
    done = perfflow("gate", "flow.yaml", "--again", cwd=project)
    assert (done.returncode, "this run does not compare base and head" in done.stderr) == (2, True)
