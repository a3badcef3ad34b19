"""git in read-only mode: the answers are right, and no configured program runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.trees import git as own_git
from perfflow.trees import repository
from tests.trees.test_project import git


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "file").write_text("1\n")
    (root / ".gitattributes").write_text("* filter=own\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    return root


def test_inspecting_finds_what_a_run_finds(tree: Path) -> None:
    assert repository.describe_project(tree, inspecting=True) == repository.describe_project(tree)
    (tree / "file").write_text("2\n")
    assert repository.describe_project(tree, inspecting=True)["dirty"] is True


def test_no_filter_runs_and_no_object_is_fetched(tree: Path, tmp_path: Path) -> None:
    trip = tmp_path / "trip"
    for key in ("filter.own.clean", "filter.own.process", "core.fsmonitor", "core.sshCommand"):
        git(tree, "config", key, f"touch {trip}; cat")
    git(tree, "config", "filter.own.required", "true")
    (tree / "file").write_text("2\n")
    assert repository.describe_project(tree, inspecting=True)["dirty"] is True
    assert not trip.exists()
    repository.describe_project(tree)
    assert trip.exists()


def test_a_run_asks_with_hardened_settings_too(tree: Path, tmp_path: Path) -> None:
    trip = tmp_path / "trip"
    git(tree, "config", "core.fsmonitor", f"touch {trip}; false")
    (tree / "other").write_text("")
    assert repository.describe_project(tree)["dirty"] is False
    assert repository.has_untracked(tree)
    assert not trip.exists()


def test_git_is_given_up_on_after_a_while(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / ".git/index").unlink()
    os.mkfifo(tree / ".git/index")
    monkeypatch.setattr(own_git, "_READ_TIMEOUT", 0.3)
    assert repository.describe_project(tree, inspecting=True) == {"kind": "folder", "revision": None, "dirty": None}


def test_revisions_are_known_without_a_trace(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    looked = repository.look_at(tree)
    assert looked.revision("main") == git(tree, "rev-parse", "HEAD") == looked.head()
    assert looked.merge_base("main", "HEAD") == looked.head()
    with pytest.raises(UserError, match=r"'maim' is not a revision of (.|\n)*did you mean main"):
        looked.revision("maim")
    assert not (tmp_path / "cache").exists()
    with pytest.raises(UserError, match="is not a git working tree"):
        repository.look_at(tmp_path)


def test_a_link_in_a_project_makes_no_other_folder_the_project(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tree / "link").symlink_to(other)
    assert repository.root_of(tree / "link" / "deep") == tree


def test_a_home_folder_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert repository.project_around(home) is None
    assert repository.project_around(tmp_path) is None
    assert repository.project_around(home / "work") == home / "work"
    git(home, "init", "-q")
    assert repository.project_around(home / "work") == home
