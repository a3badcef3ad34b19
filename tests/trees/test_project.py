"""States of a git working tree, made with git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perfflow.trees import repository


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "topic/a-b")
    (tmp_path / "file").write_text("1\n")
    return tmp_path


def test_a_folder_outside_git_is_a_folder(tmp_path: Path) -> None:
    assert repository.describe_project(tmp_path)["kind"] == "folder"
    assert repository.root_of(tmp_path) is None


def test_a_tree_without_a_commit_has_no_revision(tree: Path) -> None:
    assert repository.describe_project(tree) == {"kind": "folder", "revision": None, "dirty": None}


def test_revision_branch_and_changes_are_told(tree: Path) -> None:
    git(tree, "add", "file")
    git(tree, "commit", "-qm", "one")
    revision = git(tree, "rev-parse", "HEAD")
    clean = {"kind": "working tree", "revision": revision, "branch": "topic/a-b", "dirty": False}
    assert repository.describe_project(tree) == clean
    (tree / "untracked").write_text("")
    assert repository.describe_project(tree) == clean
    (tree / "file").write_text("2\n")
    assert repository.describe_project(tree) == clean | {"dirty": True}


def test_a_detached_head_is_called_head(tree: Path) -> None:
    git(tree, "add", "file")
    git(tree, "commit", "-qm", "one")
    git(tree, "checkout", "-q", "--detach")
    assert repository.describe_project(tree)["branch"] == "HEAD"
    assert repository.root_of(tree / "deeper") == tree
