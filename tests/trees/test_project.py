"""States of a git working tree, also in read-only mode, in which no configured program runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.trees import git as own_git
from perfflow.trees import repository
from tests.trees.projects import commit, git


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A clean working tree whose attributes name a filter that is not configured."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "topic/a-b")
    (root / "file").write_text("1\n")
    (root / ".gitattributes").write_text("* filter=own\n")
    commit(root, "one")
    return root


def test_without_git_or_a_commit_there_is_no_revision(tmp_path: Path) -> None:
    folder = {"kind": "folder", "revision": None, "dirty": None}
    assert repository.describe_project(tmp_path) == folder
    assert repository.root_of(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert repository.describe_project(tmp_path) == folder


@pytest.mark.parametrize("inspecting", [False, True])
def test_revision_branch_and_changes_are_told(tree: Path, *, inspecting: bool) -> None:
    revision = git(tree, "rev-parse", "HEAD")
    clean = {"kind": "working tree", "revision": revision, "branch": "topic/a-b", "dirty": False}
    assert repository.describe_project(tree, inspecting=inspecting) == clean
    (tree / "untracked").write_text("")
    assert repository.describe_project(tree, inspecting=inspecting) == clean
    (tree / "file").write_text("2\n")
    assert repository.describe_project(tree, inspecting=inspecting) == clean | {"dirty": True}


def test_a_detached_head_is_called_head(tree: Path) -> None:
    git(tree, "checkout", "-q", "--detach")
    assert repository.describe_project(tree)["branch"] == "HEAD"
    assert repository.root_of(tree / "deeper") == tree


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


def test_revisions_are_known_without_a_trace(tree: Path, tmp_path: Path) -> None:
    looked = repository.look_at(tree)
    assert looked.revision("topic/a-b") == git(tree, "rev-parse", "HEAD") == looked.head()
    assert looked.merge_base("topic/a-b", "HEAD") == looked.head()
    with pytest.raises(UserError, match=r"'topic/b-a' is not a revision of (.|\n)*did you mean topic/a-b"):
        looked.revision("topic/b-a")
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
