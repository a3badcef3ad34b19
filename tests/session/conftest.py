from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.execute.child import MARK
from perfflow.machine import lock
from tests.session.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project without git, with a measuring lock of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv(lock.HELD, raising=False)
    monkeypatch.delenv(MARK, raising=False)
    return Project(folder)
