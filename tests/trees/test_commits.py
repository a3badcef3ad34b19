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
from tests.trees.projects import commit, fingerprint, git, make

Ready = Callable[[], None]
PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"


def candidate(repository: Repository) -> CodeState:
    base = snapshot(repository)
    return commits.commit(repository, apply(repository, base.tree, PATCH), base, "Say it louder\n\nWhy: it is faster.")


def test_a_commit_is_nowhere_to_be_seen(root: Path, repository: Repository, untouched: Ready) -> None:
    for key, value in {"commit.gpgSign": "true", "gpg.program": "false", "i18n.commitEncoding": "latin1"}.items():
        git(root, "config", key, value)
    hook = root / ".git" / "hooks" / "commit-msg"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
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
    (root / "new.txt").write_text("the tree was not clean\n")
    state = candidate(repository)
    again = commits.commit(repository, at(repository, "HEAD").tree, state, "Back again")
    refs, status = git(root, "for-each-ref"), git(root, "status", "--porcelain")
    commits.branch(repository, "perfflow/run-1/hot", state.commit)
    assert git(root, "rev-parse", "perfflow/run-1/hot") == state.commit
    assert git(root, "show", "perfflow/run-1/hot:a.txt") == "ONE\ntwo"
    assert git(root, "log", "--format=%s", "perfflow/run-1/hot") == "Say it louder\nThe tree as it stood\none"
    git(root, "fsck", "--strict")
    git(root, "cat-file", "-e", again.commit, status=1)
    assert git(root, "status", "--porcelain") == status
    assert refs in git(root, "for-each-ref")
    after = fingerprint(root)
    commits.branch(repository, "perfflow/run-1/hot", state.commit)
    with pytest.raises(UserError, match="already exists at another commit"):
        commits.branch(repository, "perfflow/run-1/hot", again.commit)
    with pytest.raises(UserError, match="make the branch"):
        commits.branch(repository, "perfflow/run-1/hot/deeper", state.commit)
    assert fingerprint(root) == after


@pytest.mark.parametrize("name", ["main", "perfflow/a..b", "perfflow/", "perfflow/x.lock", "perfflow/-/ a", "HEAD"])
def test_only_names_of_its_own(root: Path, repository: Repository, name: str, untouched: Ready) -> None:
    untouched()
    with pytest.raises(UserError, match="not a name for a branch"):
        commits.branch(repository, name, candidate(repository).commit)


def test_many_objects_come_as_one_pack(root: Path, repository: Repository) -> None:
    for number in range(150):
        (root / f"f{number}").write_text(f"{number}\n")
    state = snapshot(repository)
    commits.branch(repository, "perfflow/run/many", state.commit)
    assert git(root, "ls-tree", "--name-only", "perfflow/run/many").count("\n") == 151
    git(root, "fsck", "--strict")
    assert len(list((root / ".git" / "objects" / "pack").glob("*.pack"))) == 1


@pytest.mark.skipif(not shutil.which("git-lfs"), reason="needs git-lfs")
def test_a_branch_brings_its_large_files(root: Path, repository: Repository) -> None:
    git(root, "lfs", "install", "--local", "--skip-repo")
    (root / ".gitattributes").write_text("*.big filter=lfs diff=lfs merge=lfs -text\n")
    (root / "new.big").write_bytes(b"new" * 1000)
    state = snapshot(repository)
    (root / "other.big").write_bytes(b"other" * 1000)
    snapshot(repository)
    (root / "new.big").unlink()
    (root / "other.big").unlink()
    commits.branch(repository, "perfflow/run/large", state.commit)
    git(root, "checkout", "-qf", "perfflow/run/large")
    assert (root / "new.big").read_bytes() == b"new" * 1000
    assert len([path for path in (root / ".git" / "lfs" / "objects").rglob("*") if path.is_file()]) == 1


def test_a_branch_of_a_repository_without_a_commit(tmp_path: Path) -> None:
    root = tmp_path / "unborn"
    root.mkdir()
    git(root, "init", "-q", "--object-format=sha256")
    (root / "a.txt").write_text("one\ntwo\n")
    repository = open_repository(root)
    commits.branch(repository, "perfflow/run/first", candidate(repository).commit)
    assert git(root, "log", "--format=%s", "perfflow/run/first") == "Say it louder\nThe tree as it stood"
    git(root, "rev-parse", "--verify", "-q", "HEAD", status=1)


def test_a_commit_holds_the_link_to_a_submodule_and_not_its_files(root: Path, tmp_path: Path) -> None:
    inner = make(tmp_path / "inner", lib_c="int x;\n")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "lib")
    commit(root, "a submodule")
    (root / "lib" / "lib.c").write_text("int dirty;\n")
    repository = open_repository(root, with_submodules=True)
    base = snapshot(repository)
    state = candidate(repository)
    links = repository.git().line("ls-tree", state.commit, "lib")
    assert links == repository.git().line("ls-tree", "HEAD", "lib")
    assert repository.git().line("rev-parse", f"{state.tree}:lib/lib.c") == git(root, "hash-object", "lib/lib.c")
    reaching = PATCH.replace("a.txt", "lib/a.txt")
    with pytest.raises(UserError, match="affects the submodule lib"):
        commits.commit(repository, apply(repository, base.tree, reaching), base, "too far")
