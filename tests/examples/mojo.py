"""Mojo's compiler, where this machine has one: that of PERFFLOW_MOJO, or the one on PATH."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.examples.trees import copied, run

EXAMPLE = Path("examples", "mojo-kernels")
PATCHES = Path("workflows", "patches", "mojo-kernel")
MOJO = os.environ.get("PERFFLOW_MOJO") or shutil.which("mojo") or ""
needs_mojo = pytest.mark.skipif(not MOJO, reason="needs Mojo's compiler: PERFFLOW_MOJO=$(sh scripts/mojo)")


def path_with_compiler() -> str:
    """PATH with the compiler first, without which it says that it lacks a crash handler."""
    return os.pathsep.join((str(Path(MOJO).parent), os.environ.get("PATH", os.defpath)))


def copy_example(tree: Path) -> Path:
    """Copy the example to where it is in the repository, below ``tree``."""
    return copied(tree, EXAMPLE) / EXAMPLE


def build(source: Path, program: Path) -> Path:
    """Build a program. Raises AssertionError with what the compiler said."""
    done = run([MOJO, "build", "-O3", "-o", program, source], PATH=path_with_compiler())
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    return program
