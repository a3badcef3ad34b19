"""The workflow that gates what perfflow itself costs: it is valid, and of the same code it finds no change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, perfflow
from tests.repositories import git

WORKFLOW = "workflows/own-cost.yaml"
COUNTED = {"perfflow --help", "perfflow validate", "perfflow plan", "perfflow run"}


def test_it_is_valid() -> None:
    done = perfflow("validate", WORKFLOW, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not on PATH")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")
def test_the_same_code_costs_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    git(tmp_path, "clone", "-q", "--no-hardlinks", str(ROOT), "clone")
    done = perfflow(
        *("gate", WORKFLOW, "--base", "HEAD", "--head", "HEAD", "--set", "planned=20", "--set", "runs=5"),
        *("--budget", "30s", "--allow-unproven", "--progress", "off", "--json"),
        cwd=tmp_path / "clone",
        measured=True,
        timeout=1200,
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert done.returncode == 0, result["reasons"]
    counts = {row["name"]: row for row in result["benchmarks"] if row["metric"] == "instructions"}
    assert set(counts) == COUNTED
    assert {row["decision"] for row in counts.values()} == {"same"}
    assert {row["name"] for row in result["benchmarks"]} == {*COUNTED, "timed runs"}
