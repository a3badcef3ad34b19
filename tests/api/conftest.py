"""Stored runs, shared by all tests of the API in a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.stored import kinds_in, project_in


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a run, which tests do not change."""
    return project_in(tmp_path_factory.mktemp("stored") / "project")


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of a run of each kind, which tests do not change."""
    return kinds_in(tmp_path_factory.mktemp("kinds"))


@pytest.fixture
def here(stored: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make the project the current folder, and give the test its own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(stored)
    return stored
