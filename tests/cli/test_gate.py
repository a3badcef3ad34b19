"""``perfflow gate`` as a user's shell runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write
from tests.repositories import git

FLOW = """
name: gate
stages:
  baseline:
    - {id: cost, run: cat costs, parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    root = tmp_path / "project"
    root.mkdir()
    write(root, FLOW)
    git(root, "init", "-q", "-b", "main")
    (root / "costs").write_text("100\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "costs").write_text("120\n")
    return root


def test_a_regression_fails_the_gate(project: Path) -> None:
    done = perfflow("gate", "flow.yaml", "--base", "main", "--json", cwd=project)
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["gate"] == {"name": "review:gate:perf", "status": "fail"}
    assert "perfflow gate flow.yaml --base=main" in (project / ".perfflow/runs/latest/report.md").read_text()
    assert perfflow("run", "flow.yaml", "--base", "main", "--head", "main", cwd=project).returncode == 0


def test_one_benchmark_of_a_gate_is_chosen(project: Path) -> None:
    other = FLOW.splitlines()[-1].replace("id: cost", "id: other").replace("cat costs", "echo 1")
    write(project, f"{FLOW}{other}\n")
    words = ("flow.yaml", "--base", "main", "--benchmark", "other")
    done = perfflow("gate", *words, "--json", cwd=project)
    assert done.returncode == 0
    assert [row["name"] for row in json.loads(done.stdout)["benchmarks"]] == ["other"]
    page = (project / ".perfflow/runs/latest/report.md").read_text()
    assert "perfflow gate flow.yaml --benchmark=other --base=main" in page
    dry = perfflow("gate", *words, "--dry-run", cwd=project)
    assert "other" in dry.stdout
    assert "cat costs" not in dry.stdout
    planned = perfflow("plan", "flow.yaml", "--benchmark", "other", cwd=project)
    assert "echo 1" in planned.stdout
    assert "cat costs" not in planned.stdout
    for name in ("gate", "plan"):
        refused = perfflow(name, "flow.yaml", "--benchmark", "othre", cwd=project)
        assert refused.returncode == 2
        assert "did you mean `other`? (benchmarks: cost, other)" in refused.stderr


def test_the_default_base_is_named_where_there_is_none(project: Path) -> None:
    done = perfflow("gate", "flow.yaml", cwd=project)
    assert done.returncode == 2
    assert "'origin/main' is not a revision" in done.stderr


@pytest.mark.parametrize("words", [["--base", "NONSENSE"], ["--base", "main", "--head", "NONSENSE"]])
def test_a_dry_run_knows_the_revisions_that_a_gate_knows(project: Path, words: list[str]) -> None:
    real = perfflow("gate", "flow.yaml", *words, cwd=project)
    dry = perfflow("gate", "flow.yaml", "--dry-run", *words, cwd=project)
    assert (dry.returncode, dry.stdout, dry.stderr) == (real.returncode, "", real.stderr)
    assert dry.returncode == 2
    assert perfflow("gate", "flow.yaml", "--dry-run", "--base", "main", cwd=project).returncode == 0


@pytest.mark.parametrize("words", [["--head", "main"], ["--base", "main", "--resume"], ["--base", "main", "--apply"]])
def test_what_does_not_go_together_is_refused(project: Path, words: list[str]) -> None:
    assert perfflow("run", "flow.yaml", *words, cwd=project).returncode == 2


def test_a_target_on_a_change_has_its_two_sides_in_a_gate_only(project: Path) -> None:
    write(project, "targets: {cost: {cost change: <50%}}\n" + FLOW)
    for gate in ("gate flow.yaml --base main", "gate flow.yaml --base main --dry-run"):
        assert "one-sided" not in perfflow(*gate.split(), cwd=project).stderr
    for one in ("run flow.yaml", "run flow.yaml --dry-run", "validate flow.yaml", "plan flow.yaml"):
        assert "warning: `change` of `cost` needs two sides" in perfflow(*one.split(), cwd=project).stderr
