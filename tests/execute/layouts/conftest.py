from __future__ import annotations

from pathlib import Path

import pytest

from tests.execute.layouts.builds import Project, project


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def c_project(tmp_path: Path) -> Project:
    return project(tmp_path)
