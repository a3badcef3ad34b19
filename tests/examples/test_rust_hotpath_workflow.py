"""The workflow of the Rust example, with two of its candidates: one is proven, the other one wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import perfflow
from tests.examples.trees import committed, copied
from tests.kept import kept
from tests.repositories import git

NEEDED = ("cargo", "valgrind", "perf")
# One of four benchmarks: the others are measured as the first one is.
REDUCED = """
perfflow: 1
extends: ./rust-hotpath.yaml
stages:
  baseline:
    - {id: bench, with: {filter: conductor/overhead}, expect: [conductor/overhead]}
  optimize:
    objective: conductor/overhead time
"""
CRATE, WORKFLOW, PATCHES = "examples/rust-hotpath", "workflows/rust-hotpath.yaml", "workflows/patches/rust-hotpath"


def state(root: Path) -> tuple[str, ...]:
    asked = ("status", "--porcelain"), ("stash", "list"), ("worktree", "list"), ("rev-parse", "HEAD")
    return tuple(git(root, *words) for words in asked)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with the example in it. Its trees, and what is built in them, are kept."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not on PATH: {', '.join(missing)}")
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    with kept("rust-hotpath") as cache:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        yield clone_in(cache)


def clone_in(cache: Path) -> Path:
    root = cache / "clone"
    target = root / CRATE / "target"
    if target.exists():
        target.rename(cache / "target")
    shutil.rmtree(root, ignore_errors=True)
    copied(root, CRATE, PATCHES, WORKFLOW)
    if (cache / "target").exists():
        (cache / "target").rename(target)
    (root / "workflows" / "reduced.yaml").write_text(REDUCED)
    (root / ".gitignore").write_text("target/\n")
    return committed(root)


@pytest.mark.long
def test_what_is_faster_is_kept_and_what_is_wrong_is_not(clone: Path) -> None:
    before = state(clone)
    done = perfflow(
        *("run", "workflows/reduced.yaml", "--set", "quick=true", "--set", "budget=60s", "--progress", "off", "--json"),
        cwd=clone,
        measured=True,
        timeout=1200,  # three builds from nothing
    )
    result = json.loads(done.stdout)
    tried = {item["id"]: item for item in result["optimizations"] if item["decision"] != "skipped"}
    assert set(tried) == {"slab", "simd"}, result["reasons"]
    slab, simd = tried["slab"], tried["simd"]
    assert (simd["decision"], simd["reason"][:26]) == ("rejected", "correctness does not hold:"), simd
    assert slab["decision"] == "accepted", slab
    assert slab["effect"]["low"] > 0.1
    assert "+" in slab["diff"]
    met = {(item["benchmark"], item["metric"]): item for item in result["targets"]}
    assert met["conductor/overhead", "allocs"]["measured"] == 0
    assert {item["status"] for name, item in met.items() if name[0] == "conductor/overhead"} == {"met"}
    assert {"perf", "massif", "dhat"} >= {item["source"] for item in result["hotspots"]} >= {"perf", "massif"}
    kept = result["trees"]["candidate"]
    assert state(clone) == before
    assert git(clone, "diff", "--stat", "main", kept["branch"]).count("src/") == len(slab["files"])
