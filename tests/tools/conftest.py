"""The C programs under programs/, compiled once per test session."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.tools.harness import PROGRAMS


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return the path of each compiled program by its name."""
    folder = tmp_path_factory.mktemp("built")
    return {source.stem: _compile(source, folder / source.stem) for source in sorted(PROGRAMS.glob("*.c"))}


def _compile(source: Path, target: Path) -> str:
    # Without optimisation crash.c would not crash and leaks.c would not allocate.
    level = "-O2" if source.stem == "hot" else "-O0"
    subprocess.run(["cc", "-g", level, "-w", "-o", str(target), str(source)], check=True)
    return str(target)
