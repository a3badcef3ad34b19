"""One stored run for all tests of the API in a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.stored import project_in


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a run, which tests do not change."""
    return project_in(tmp_path_factory.mktemp("stored") / "project")


@pytest.fixture
def here(stored: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The same project as the current folder, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(stored)
    return stored
