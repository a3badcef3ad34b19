from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perfflow.trees.git import LOCAL
from perfflow.trees.repository import Repository, open_repository
from perfflow.trees.slots import Slots, open_slots
from tests.trees.projects import fingerprint, git, make


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate user: cache, configuration, identity."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "home" / ".gitconfig"))
    for name in LOCAL:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "project")


@pytest.fixture
def repository(root: Path) -> Repository:
    return open_repository(root)


@pytest.fixture
def slots(repository: Repository) -> Iterator[Slots]:
    with open_slots(repository) as found:
        yield found


@pytest.fixture
def untouched(root: Path) -> Iterator[Callable[[], None]]:
    """Call it when the project is prepared: it must be byte for byte the same at the end of the test."""
    before: dict[str, tuple[object, ...]] = {}
    worktrees: list[str] = []

    def remember() -> None:
        before.update(fingerprint(root))
        worktrees.append(git(root, "worktree", "list"))

    yield remember
    assert worktrees, "the test did not say when the project is ready"
    assert fingerprint(root) == before
    assert git(root, "worktree", "list") == worktrees[0]
