from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perfflow.unchanged.native import DRIVER
from tests.unchanged.traced import Tree


@pytest.fixture(scope="session")
def tracer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tracer") / "trace"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", made, DRIVER], check=True)
    return made


@pytest.fixture
def trees(tracer: Path, tmp_path: Path) -> tuple[Tree, Tree]:
    return Tree(tracer, tmp_path / "a"), Tree(tracer, tmp_path / "b")
