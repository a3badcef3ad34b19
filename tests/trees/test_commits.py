"""Commits by plumbing, and the only operation that writes to the user's repository: a new branch."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.trees import commits
from perfflow.trees.patches import apply
from perfflow.trees.repository import CodeState, Repository, open_repository
from perfflow.trees.snapshots import at, snapshot
from tests.trees.projects import add_submodule, fingerprint, git, make, write
from tests.trees.walk import PATCH

Ready = Callable[[], None]


def candidate(repository: Repository) -> CodeState:
    base = snapshot(repository)
    return commits.commit(repository, apply(repository, base.tree, PATCH), base, "Say it louder\n\nWhy: it is faster.")


def test_a_commit_is_nowhere_to_be_seen(root: Path, repository: Repository, untouched: Ready) -> None:
    for key, value in {"commit.gpgSign": "true", "gpg.program": "false", "i18n.commitEncoding": "latin1"}.items():
        git(root, "config", key, value)
    write(root, {".git/hooks/commit-msg": "#!/bin/sh\nexit 1\n"}, executable=True)
    untouched()
    state = candidate(repository)
    shown = repository.git().line("show", "-s", "--format=%an <%ae>|%cn|%s|%P", state.commit)
    assert shown == f"Ada <ada@example.org>|Ada|Say it louder|{git(root, 'rev-parse', 'HEAD')}"
    git(root, "cat-file", "-e", state.commit, status=1)


def test_without_an_identity_there_is_a_fallback(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home" / ".gitconfig").write_text("")
    for name in ("EMAIL", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.delenv(name, raising=False)
    shown = repository.git().line("show", "-s", "--format=%an <%ae> %cn <%ce>", candidate(repository).commit)
    assert shown == "perfflow <perfflow@localhost> perfflow <perfflow@localhost>"


def test_a_branch_brings_its_objects_and_moves_nothing(root: Path, repository: Repository) -> None:
    name = "perfflow/run-1/hot"
    write(root, {"new.txt": "the tree was not clean\n"})
    state = candidate(repository)
    again = commits.commit(repository, at(repository, "HEAD").tree, state, "Back again")
    refs, status = git(root, "for-each-ref"), git(root, "status", "--porcelain")
    commits.branch(repository, name, state.commit)
    assert git(root, "rev-parse", name) == state.commit
    assert git(root, "show", f"{name}:a.txt") == "ONE\ntwo"
    assert git(root, "log", "--format=%s", name) == "Say it louder\nThe tree as it stood\none"
    git(root, "fsck", "--strict")
    git(root, "cat-file", "-e", again.commit, status=1)
    assert git(root, "status", "--porcelain") == status
    assert refs in git(root, "for-each-ref")
    after = fingerprint(root)
    commits.branch(repository, name, state.commit)
    with pytest.raises(UserError, match="already exists at another commit"):
        commits.branch(repository, name, again.commit)
    with pytest.raises(UserError, match="make the branch"):
        commits.branch(repository, f"{name}/deeper", state.commit)
    assert fingerprint(root) == after


@pytest.mark.parametrize("name", ["main", "perfflow/a..b", "perfflow/", "perfflow/x.lock", "perfflow/-/ a", "HEAD"])
def test_only_names_of_its_own(root: Path, repository: Repository, name: str, untouched: Ready) -> None:
    untouched()
    with pytest.raises(UserError, match="not a name for a branch"):
        commits.branch(repository, name, candidate(repository).commit)


def test_many_objects_come_as_one_pack(root: Path, repository: Repository) -> None:
    write(root, {f"f{number}": f"{number}\n" for number in range(150)})
    commits.branch(repository, "perfflow/run/many", snapshot(repository).commit)
    assert git(root, "ls-tree", "--name-only", "perfflow/run/many").count("\n") == 151
    git(root, "fsck", "--strict")
    assert len(list((root / ".git" / "objects" / "pack").glob("*.pack"))) == 1


@pytest.mark.skipif(not shutil.which("git-lfs"), reason="needs git-lfs")
def test_a_branch_brings_its_large_files(root: Path, repository: Repository) -> None:
    git(root, "lfs", "install", "--local", "--skip-repo")
    write(root, {".gitattributes": "*.big filter=lfs diff=lfs merge=lfs -text\n", "new.big": "new" * 1000})
    state = snapshot(repository)
    write(root, {"other.big": "other" * 1000})
    snapshot(repository)
    for name in ("new.big", "other.big"):
        (root / name).unlink()
    commits.branch(repository, "perfflow/run/large", state.commit)
    git(root, "checkout", "-qf", "perfflow/run/large")
    assert (root / "new.big").read_text() == "new" * 1000
    assert len([path for path in (root / ".git" / "lfs" / "objects").rglob("*") if path.is_file()]) == 1


def test_a_branch_of_a_repository_without_a_commit(tmp_path: Path) -> None:
    root = tmp_path / "unborn"
    write(root, {"a.txt": "one\ntwo\n"})
    git(root, "init", "-q", "--object-format=sha256")
    repository = open_repository(root)
    commits.branch(repository, "perfflow/run/first", candidate(repository).commit)
    assert git(root, "log", "--format=%s", "perfflow/run/first") == "Say it louder\nThe tree as it stood"
    git(root, "rev-parse", "--verify", "-q", "HEAD", status=1)


def test_a_commit_holds_the_link_to_a_submodule_and_not_its_files(root: Path, tmp_path: Path) -> None:
    add_submodule(root, make(tmp_path / "inner", lib_c="int x;\n"), "lib")
    write(root, {"lib/lib.c": "int dirty;\n"})
    repository = open_repository(root, with_submodules=True)
    base, state, own = snapshot(repository), candidate(repository), repository.git()
    assert own.line("ls-tree", state.commit, "lib") == own.line("ls-tree", "HEAD", "lib")
    assert own.line("rev-parse", f"{state.tree}:lib/lib.c") == git(root, "hash-object", "lib/lib.c")
    reaching = PATCH.replace("a.txt", "lib/a.txt")
    with pytest.raises(UserError, match="affects the submodule lib"):
        commits.commit(repository, apply(repository, base.tree, reaching), base, "too far")
