"""The workflow that gates what perfflow itself costs, and the script that compares it with the last release."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, perfflow
from tests.examples.trees import run
from tests.repositories import git

WORKFLOW = "workflows/own-cost.yaml"
SCRIPT = ROOT / "scripts" / "own-cost"
COUNTED = {"perfflow --help", "perfflow run"}
needs_clone = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")


def test_it_is_valid() -> None:
    done = perfflow("validate", WORKFLOW, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not on PATH")
@needs_clone
def test_the_same_code_costs_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    git(tmp_path, "clone", "-q", "--no-hardlinks", str(ROOT), "clone")
    done = perfflow(
        *("gate", WORKFLOW, "--base", "HEAD", "--head", "HEAD", "--set", "runs=5"),
        *("--budget", "120s", "--unproven=pass", "--progress", "off", "--json"),
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


def own_cost(clone: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script as it stands here in a clone, with the interpreter of these tests."""
    shutil.copy(SCRIPT, clone / "scripts" / SCRIPT.name)
    shutil.copy(ROOT / WORKFLOW, clone / WORKFLOW)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return run(["sh", f"scripts/{SCRIPT.name}", *words], clone, PATH=path, **environment)


@pytest.mark.long  # clones
@needs_clone
def test_a_clone_without_the_release_compares_nothing_and_says_so(tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", ROOT.as_uri(), "clone")
    done = own_cost(tmp_path / "clone")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("own cost: not compared, since this clone has no history up to ")


@pytest.mark.long
@needs_clone
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not on PATH")
def test_an_import_that_every_command_pays_for_fails(tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--no-hardlinks", str(ROOT), "clone")
    main = tmp_path / "clone" / "perfflow" / "cli" / "main.py"
    main.write_text(main.read_text().replace("import gc\n", "import asyncio\nimport gc\n"))
    done = own_cost(tmp_path / "clone", "HEAD", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 1, done.stderr
    assert re.search(r"perfflow --help +instructions .* regressed", done.stdout), done.stdout
