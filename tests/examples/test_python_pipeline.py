"""The example pipeline and its candidates: what applies, what each of them prints, and that its own tests pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.tools.shell.same_output import difference
from tests.examples.trees import apply, copied, sources
from tests.long import rest_long

EXAMPLE = Path("examples", "python-pipeline")
PATCHES = Path("workflows", "patches", "python-optimize")
IN_ORDER = ("sort", "batch", "numpy", "float32", "cache")
KEPT = IN_ORDER[:3]
TOLERANCE = 1e-9


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the example in it."""
    return copied(tmp_path / "tree", EXAMPLE)


def _python(tree: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=tree / EXAMPLE, env=environment, capture_output=True, check=False
    )


def _printed(tree: Path) -> bytes:
    done = _python(tree, "-m", "pipeline", "--rows", "1200")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", IN_ORDER)
def test_a_patch_applies_alone_and_changes_one_source(tree: Path, name: str) -> None:
    before = sources(tree, EXAMPLE, "*.py")
    apply(tree, PATCHES, name)
    changed = {path for path, text in sources(tree, EXAMPLE, "*.py").items() if before[path] != text}
    assert len(changed) == 1
    assert all(path.startswith(f"{EXAMPLE}/pipeline/") for path in changed)


@pytest.mark.parametrize("names", rest_long([(), KEPT, IN_ORDER], one_name=True), ids=["original", "kept", "all"])
def test_the_pipeline_passes_its_tests(tree: Path, names: tuple[str, ...]) -> None:
    """float32 as well: what is wrong with it is found by comparing outputs alone."""
    apply(tree, PATCHES, *names)
    done = _python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert b"12 passed" in done.stdout


def test_what_each_candidate_prints(tree: Path) -> None:
    original = _printed(tree)
    assert len(original.splitlines()) == 96
    for name in ("sort", "batch", "cache"):
        apply(tree, PATCHES, name)
        assert _printed(tree) == original
    apply(tree, PATCHES, "numpy")
    vectorized = _printed(tree)
    assert difference(original, vectorized)
    assert not difference(original, vectorized, TOLERANCE, TOLERANCE)
    apply(tree, PATCHES, "float32")
    single = _printed(tree)
    assert "more than the allowed" in difference(original, single, TOLERANCE, TOLERANCE)
    assert not difference(original, single, 1e-6, 1e-6)


def test_the_benchmarks_run(tree: Path) -> None:
    suite = "benchmarks/speed_parts.py"
    done = _python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--benchmark-disable", suite)
    assert done.returncode == 0, done.stdout
    assert b"3 passed" in done.stdout
