from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.shell import path_of_shells
from tests.kept import kept

LINTER = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"


@pytest.fixture(scope="session")
def linter() -> str:
    found = shutil.which("actionlint")
    if found:
        return found
    if not shutil.which("go"):
        pytest.skip(f"actionlint is not on PATH; install it: go install {LINTER}")
    with kept("actionlint") as folder:
        program = folder / "actionlint"
        if not program.exists():
            env = {**os.environ, "GOBIN": str(folder)}
            subprocess.run(["go", "install", LINTER], env=env, check=True, capture_output=True, timeout=900)
        return str(program)


@pytest.fixture
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs find perfflow of this tree, and neither caches nor a lock of others."""
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "PERFFLOW_LOCK_FILE", "TOX_WORK_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PATH", path_of_shells())
