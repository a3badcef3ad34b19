"""The user's current tree, in every state of git, shown in a slot without changing the project."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.trees.repository import open_repository
from perfflow.trees.slots import open_slots
from perfflow.trees.snapshots import at, snapshot
from tests.trees.projects import commit, content, fingerprint, git, make

Ready = Callable[[], None]


def shown(root: Path, *, with_submodules: bool = False) -> dict[str, tuple[object, ...]]:
    """The contents of a slot after the user's tree was recorded and shown there."""
    repository = open_repository(root, with_submodules=with_submodules)
    with open_slots(repository) as slots:
        slots.a.switch(snapshot(repository).tree)
        assert slots.a.take().tree == snapshot(repository).tree
        return content(slots.a.path)


def edit(root: Path) -> None:
    """Staged, unstaged, both in one file, untracked, deleted, moved."""
    (root / "a.txt").write_text("staged\n")
    git(root, "add", "a.txt")
    (root / "a.txt").write_text("staged, and then some\n")
    (root / "new.txt").write_text("untracked\n")
    (root / "added.txt").write_text("added\n")
    git(root, "add", "added.txt")
    (root / "added.txt").unlink()
    git(root, "mv", "src.py", "moved.py")


def test_a_clean_tree_is_its_own_commit(root: Path, untouched: Ready) -> None:
    untouched()
    repository = open_repository(root)
    assert snapshot(repository).commit == git(root, "rev-parse", "HEAD")
    assert shown(root) == content(root)


def test_staged_and_unstaged_changes_stand_as_on_disk(root: Path, untouched: Ready) -> None:
    edit(root)
    untouched()
    assert shown(root) == content(root)
    repository = open_repository(root)
    state = snapshot(repository)
    assert repository.git().line("rev-parse", f"{state.commit}^") == git(root, "rev-parse", "HEAD")
    git(root, "cat-file", "-e", state.commit, status=1)


def test_ignored_files_stay_behind(root: Path, untouched: Ready) -> None:
    (root / ".gitignore").write_text("target/\n*.log\n!keep.log\n")
    (root / "target").mkdir()
    (root / "target" / "out").write_text("built")
    (root / "x.log").write_text("")
    (root / "keep.log").write_text("kept")
    untouched()
    found = shown(root)
    assert "keep.log" in found
    assert not {"x.log", "target/out"} & set(found)


def test_a_merge_in_progress(root: Path, untouched: Ready) -> None:
    git(root, "checkout", "-qb", "other")
    (root / "a.txt").write_text("theirs\n")
    commit(root, "theirs")
    git(root, "checkout", "-q", "main")
    (root / "a.txt").write_text("ours\n")
    commit(root, "ours")
    git(root, "merge", "other", status=1)
    untouched()
    assert b"<<<<<<<" in (root / "a.txt").read_bytes()
    assert shown(root) == content(root)


def test_a_conflict_whose_file_was_deleted(root: Path, untouched: Ready) -> None:
    git(root, "checkout", "-qb", "other")
    (root / "a.txt").write_text("theirs\n")
    commit(root, "theirs")
    git(root, "checkout", "-q", "main")
    (root / "a.txt").unlink()
    commit(root, "ours")
    git(root, "merge", "other", status=1)
    (root / "a.txt").unlink()
    untouched()
    assert shown(root) == content(root)


def test_a_rebase_in_progress_and_a_stash(root: Path, untouched: Ready) -> None:
    (root / "a.txt").write_text("to stash\n")
    git(root, "stash")
    git(root, "checkout", "-qb", "topic")
    (root / "a.txt").write_text("topic\n")
    commit(root, "topic")
    git(root, "checkout", "-q", "main")
    (root / "a.txt").write_text("main\n")
    commit(root, "main")
    git(root, "checkout", "-q", "topic")
    git(root, "rebase", "main", status=1)
    untouched()
    assert shown(root) == content(root)
    assert git(root, "stash", "list")


def test_a_linked_working_tree(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-q", "-b", "side", str(linked))
    (linked / "a.txt").write_text("linked\n")
    (linked / "only here").write_text("")
    before = fingerprint(root, linked)
    assert shown(linked) == content(linked)
    assert fingerprint(root, linked) == before


def test_names_of_every_kind(root: Path, untouched: Ready) -> None:
    names = [
        b"-dash", b"new\nline", b'qu"ote', b"\xff\xfe bytes", b"tab\t", b"back\\slash", b" space ", b"*", b"[a]",
        b":(top)x", "ü".encode(), b"#hash", b"!bang",
    ]  # fmt: skip
    for name in names:
        (root / os.fsdecode(name)).write_bytes(name)
    (root / "-dash").chmod(0o755)
    for name in names[::2]:
        git(root, "--literal-pathspecs", "add", "--", os.fsdecode(name))
    untouched()
    assert shown(root) == content(root)
    assert len(shown(root)) == len(names) + 2


def test_a_file_that_became_a_folder_and_the_reverse(root: Path, untouched: Ready) -> None:
    (root / "deep").mkdir()
    (root / "deep" / "x").write_text("x")
    commit(root, "deep")
    (root / "a.txt").unlink()
    (root / "a.txt").mkdir()
    (root / "a.txt" / "inside").write_text("")
    shutil.rmtree(root / "deep")
    (root / "deep").write_text("now a file")
    untouched()
    assert shown(root) == content(root)
    repository = open_repository(root)
    with open_slots(repository) as slots:
        slots.a.switch(at(repository, "HEAD").tree)
        assert (slots.a.path / "deep" / "x").is_file()
        assert (slots.a.path / "a.txt").is_file()


def test_modes_and_links(root: Path, tmp_path: Path, untouched: Ready) -> None:
    (root / "src.py").chmod(0o755)
    (root / "to file").symlink_to("a.txt")
    (root / "outside").symlink_to(tmp_path)
    (root / "broken").symlink_to("/no such place")
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to("src.py")
    untouched()
    assert shown(root) == content(root)


def test_ends_of_lines_follow_the_attributes(root: Path, untouched: Ready) -> None:
    (root / ".gitattributes").write_text("*.bat eol=crlf\n*.sh eol=lf\n*.bin -text\n")
    (root / "x.bat").write_bytes(b"a\r\nb\r\n")
    (root / "x.sh").write_bytes(b"a\nb\n")
    (root / "x.bin").write_bytes(b"a\r\nb\n")
    git(root, "config", "core.safecrlf", "true")
    untouched()
    assert shown(root) == content(root)


def test_bits_that_hide_changes_hide_nothing_here(root: Path, untouched: Ready) -> None:
    git(root, "update-index", "--assume-unchanged", "a.txt")
    git(root, "update-index", "--skip-worktree", "src.py")
    (root / "a.txt").write_text("changed in secret\n")
    (root / "src.py").write_text("also\n")
    (root / "later").write_text("named, not added")
    git(root, "add", "-N", "later")
    untouched()
    assert shown(root) == content(root)


def test_a_change_as_young_as_the_index_is_seen(root: Path) -> None:
    # git compares whole seconds: file, index and change in the same second, and the snapshot in a later one.
    time.sleep(1 - time.time() % 1)
    (root / "a.txt").write_text("1111\n")
    git(root, "add", "a.txt")
    (root / "a.txt").write_text("2222\n")
    time.sleep(1.1)
    assert shown(root)["a.txt"] == ("file", False, b"2222\n")


def test_what_a_sparse_checkout_leaves_out_is_shown(root: Path, untouched: Ready) -> None:
    for folder in ("one", "two"):
        (root / folder).mkdir()
        (root / folder / "file").write_text(folder)
    commit(root, "folders")
    git(root, "sparse-checkout", "set", "--sparse-index", "one")
    (root / "one" / "file").write_text("changed")
    untouched()
    assert not (root / "two").exists()
    assert shown(root) == content(root) | {"two/file": ("file", False, b"two")}


def test_a_split_index_and_a_file_system_monitor(root: Path, untouched: Ready) -> None:
    git(root, "update-index", "--split-index")
    git(root, "config", "core.splitIndex", "true")
    git(root, "config", "core.untrackedCache", "true")
    git(root, "config", "core.fsmonitor", "echo no such monitor")
    edit(root)
    untouched()
    assert shown(root) == content(root)


def test_no_commit_yet(tmp_path: Path) -> None:
    root = tmp_path / "unborn"
    root.mkdir()
    git(root, "init", "-q")
    before = fingerprint(root)
    repository = open_repository(root)
    assert shown(root) == {}
    assert fingerprint(root) == before
    (root / "file").write_text("first\n")
    assert shown(root) == content(root)
    assert repository.git().attempt("rev-parse", f"{snapshot(repository).commit}^").status != 0
    with pytest.raises(UserError, match="'HEAD' is not a revision"):
        at(repository, "HEAD")


def test_sha256(tmp_path: Path) -> None:
    root = make(tmp_path / "long", "--object-format=sha256")
    edit(root)
    before = fingerprint(root)
    assert shown(root) == content(root)
    assert len(snapshot(open_repository(root)).commit) == 64
    assert fingerprint(root) == before


def test_a_repository_inside_is_left_out_and_named(
    root: Path, untouched: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root / "vendor" / "lib")
    (root / "vendor" / "empty").mkdir()
    git(root / "vendor" / "empty", "init", "-q")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(root)
        listening.bind("socket")
    untouched()
    state = snapshot(open_repository(root))
    assert sorted(state.left_out) == ["vendor/empty/", "vendor/lib/"]
    assert "vendor/lib/a.txt" not in shown(root)


def test_inside_a_hook_the_files_of_the_hook_are_left_alone(
    root: Path, untouched: Ready, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = make(tmp_path / "other")
    edit(root)
    untouched()
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(root / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert shown(root) == content(root)


def test_hooks_do_not_run(root: Path, tmp_path: Path, untouched: Ready) -> None:
    for name in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction", "post-commit"):
        hook = root / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\n")
        hook.chmod(0o755)
    edit(root)
    (tmp_path / "ran").unlink()  # git's own commands ran them
    untouched()
    assert shown(root) == content(root)
    assert not (tmp_path / "ran").exists()


def test_filters_of_the_user_are_used(root: Path, untouched: Ready) -> None:
    git(root, "config", "filter.upper.clean", "tr a-z A-Z")
    git(root, "config", "filter.upper.smudge", "tr A-Z a-z")
    git(root, "config", "filter.upper.required", "true")
    (root / ".git" / "info" / "attributes").write_text("*.up filter=upper\n")
    (root / "x.up").write_text("text\n")
    untouched()
    repository = open_repository(root)
    assert shown(root) == content(root)
    tree = snapshot(repository).tree
    assert repository.git().run("cat-file", "blob", f"{tree}:x.up") == b"TEXT\n"


@pytest.mark.skipif(not shutil.which("git-lfs"), reason="needs git-lfs")
def test_large_files_of_git_lfs(root: Path, untouched: Ready) -> None:
    git(root, "lfs", "install", "--local", "--skip-repo")
    (root / ".gitattributes").write_text("*.big filter=lfs diff=lfs merge=lfs -text\n")
    (root / "kept.big").write_bytes(b"kept" * 1000)
    commit(root, "large")
    (root / "new.big").write_bytes(b"new" * 1000)
    untouched()
    assert shown(root) == content(root)


def test_a_submodule_is_carried_when_asked_for(root: Path, tmp_path: Path, untouched: Ready) -> None:
    inner = make(tmp_path / "inner", lib_c="int x;\n")
    middle = make(tmp_path / "middle")
    for outer, name, source in ((middle, "inner", inner), (root, "mid", middle)):
        git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), f"deps/{name}")
        commit(outer, "a submodule")
    git(root, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "--recursive")
    (root / "deps" / "mid" / "a.txt").write_text("changed inside\n")
    (root / "deps" / "mid" / "deps" / "inner" / "new").write_text("untracked, deep\n")
    untouched()
    assert shown(root, with_submodules=True) == content(root)
    assert "deps/mid/a.txt" not in shown(root)
    repository = open_repository(root, with_submodules=True)
    committed = at(repository, "HEAD")
    assert repository.git().run("cat-file", "blob", f"{committed.tree}:deps/mid/a.txt") == b"one\ntwo\n"
    assert repository.git().run("cat-file", "blob", f"{committed.tree}:deps/mid/deps/inner/lib.c") == b"int x;\n"


def test_a_submodule_that_is_not_on_disk_is_named_with_the_remedy(root: Path, tmp_path: Path) -> None:
    inner = make(tmp_path / "inner", lib_c="int x;\n")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "lib")
    commit(root, "a submodule")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(root), str(clone))
    with pytest.raises(UserError, match=r"submodule lib: commit .* not on this disk(.|\n)*submodule update --init"):
        snapshot(open_repository(clone, with_submodules=True))


def test_a_file_that_cannot_be_read_is_named(root: Path) -> None:
    git(root, "config", "filter.broken.clean", "false")
    git(root, "config", "filter.broken.required", "true")
    (root / ".gitattributes").write_text("*.txt filter=broken\n")
    (root / "a.txt").write_text("changed\n")
    with pytest.raises(UserError, match=r"record .*a\.txt"):
        snapshot(open_repository(root))


def test_the_users_git_is_not_asked_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="is not a git working tree"):
        open_repository(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "inside" / ".cache"))
    with pytest.raises(UserError, match=r"lies inside the project(.|\n)*XDG_CACHE_HOME"):
        open_repository(make(tmp_path / "inside"))
    (tmp_path / "inside" / "below").mkdir()
    with pytest.raises(UserError, match="not the top"):
        open_repository(tmp_path / "inside" / "below")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="git is not on PATH"):
        open_repository(tmp_path / "inside")


def test_a_shallow_clone_is_told_how_to_get_more(root: Path, tmp_path: Path) -> None:
    base = git(root, "rev-parse", "HEAD")
    for number in range(3):
        (root / "a.txt").write_text(f"{number}\n")
        last = commit(root, str(number))
        if number == 0:
            git(root, "branch", "side", last)
    git(root, "checkout", "-q", "side")
    (root / "b.txt").write_text("side\n")
    side = commit(root, "side")
    assert open_repository(root).merge_base("main", "side") == git(root, "merge-base", "main", "side")
    clone = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", f"file://{root}", str(clone))
    before = fingerprint(clone)
    repository = open_repository(clone)
    with pytest.raises(UserError, match="git fetch --unshallow"):
        repository.revision(base)
    with pytest.raises(UserError, match="git fetch --unshallow"):
        repository.merge_base("origin/main", side)
    assert shown(clone) == content(clone)
    assert fingerprint(clone) == before


def test_an_unknown_revision_gets_the_nearest_name(root: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(root, "branch", "feature")
    git(tmp_path, "clone", "-q", str(root), str(clone))
    repository = open_repository(clone)
    assert repository.revision("main") == git(clone, "rev-parse", "HEAD")
    for name, near in (("feature", "origin/feature"), ("maim", "main")):
        with pytest.raises(UserError, match=f"did you mean {near}"):
            repository.revision(name)
    for name in ("--all", "", "main:a.txt", "-x"):
        with pytest.raises(UserError, match="is not a revision") as raised:
            repository.revision(name)
        assert "mean ?" not in (raised.value.problems[0].hint or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_repository_of_another_user_is_refused_with_the_remedy(root: Path) -> None:
    for path in (root, root / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(UserError, match=rf"safe\.directory {root}"):
        open_repository(root)
    git(root, "config", "--file", os.environ["GIT_CONFIG_GLOBAL"], "safe.directory", str(root))
    assert shown(root) == content(root)
