"""One stored run, shared by all tests of the API in a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.stored import project_in


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a run, which tests do not change."""
    return project_in(tmp_path_factory.mktemp("stored") / "project")


@pytest.fixture
def here(stored: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make the project the current folder, and give the test its own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(stored)
    return stored
