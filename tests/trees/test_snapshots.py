"""The user's current tree, in every state of git, shown in a slot without changing the project."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.trees.repository import Repository, open_repository
from perfflow.trees.slots import Slots, open_slots
from perfflow.trees.snapshots import at, snapshot
from tests.trees.projects import add_submodule, commit, content, fingerprint, git, make, write

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
    write(root, {"a.txt": "staged\n", "added.txt": "added\n"})
    git(root, "add", "a.txt", "added.txt")
    write(root, {"a.txt": "staged, and then some\n", "new.txt": "untracked\n"})
    (root / "added.txt").unlink()
    git(root, "mv", "src.py", "moved.py")


def branches(root: Path, ours: str = "ours\n", theirs: str = "theirs\n") -> None:
    """Change the same file on the branch ``other`` and on ``main``, which is checked out."""
    git(root, "checkout", "-qb", "other")
    commit(root, "theirs", {"a.txt": theirs})
    git(root, "checkout", "-q", "main")
    commit(root, "ours", {"a.txt": ours})


def merge_in_progress(root: Path) -> None:
    branches(root)
    git(root, "merge", "other", status=1)
    assert b"<<<<<<<" in (root / "a.txt").read_bytes()


def conflict_whose_file_was_deleted(root: Path) -> None:
    git(root, "checkout", "-qb", "other")
    commit(root, "theirs", {"a.txt": "theirs\n"})
    git(root, "checkout", "-q", "main")
    (root / "a.txt").unlink()
    commit(root, "ours")
    git(root, "merge", "other", status=1)
    (root / "a.txt").unlink()


def rebase_in_progress_and_a_stash(root: Path) -> None:
    write(root, {"a.txt": "to stash\n"})
    git(root, "stash")
    branches(root)
    git(root, "checkout", "-q", "other")
    git(root, "rebase", "main", status=1)


def modes_and_links(root: Path) -> None:
    (root / "src.py").chmod(0o755)
    (root / "a.txt").unlink()
    links = {"to file": "a.txt", "outside": str(root.parent), "broken": "/no such place", "a.txt": "src.py"}
    for name, target in links.items():
        (root / name).symlink_to(target)


def ends_of_lines_by_attributes(root: Path) -> None:
    write(root, {".gitattributes": "*.bat eol=crlf\n*.sh eol=lf\n*.bin -text\n"})
    write(root, {"x.bat": "a\r\nb\r\n", "x.sh": "a\nb\n", "x.bin": "a\r\nb\n"})
    git(root, "config", "core.safecrlf", "true")


def bits_that_hide_changes(root: Path) -> None:
    git(root, "update-index", "--assume-unchanged", "a.txt")
    git(root, "update-index", "--skip-worktree", "src.py")
    write(root, {"a.txt": "changed in secret\n", "src.py": "also\n", "later": "named, not added"})
    git(root, "add", "-N", "later")


def split_index_and_file_system_monitor(root: Path) -> None:
    git(root, "update-index", "--split-index")
    for key, value in (("splitIndex", "true"), ("untrackedCache", "true"), ("fsmonitor", "echo no such monitor")):
        git(root, "config", f"core.{key}", value)
    edit(root)


@pytest.mark.parametrize(
    "prepare",
    [
        edit,
        merge_in_progress,
        conflict_whose_file_was_deleted,
        rebase_in_progress_and_a_stash,
        modes_and_links,
        ends_of_lines_by_attributes,
        bits_that_hide_changes,
        split_index_and_file_system_monitor,
    ],
)
def test_a_tree_stands_as_on_disk(root: Path, untouched: Ready, prepare: Callable[[Path], None]) -> None:
    prepare(root)
    untouched()
    assert shown(root) == content(root)


def test_a_clean_tree_is_its_own_commit(root: Path, untouched: Ready) -> None:
    untouched()
    repository = open_repository(root)
    assert snapshot(repository).commit == git(root, "rev-parse", "HEAD")
    assert shown(root) == content(root)


def test_the_commit_of_an_edited_tree_has_the_last_one_as_its_parent(root: Path, untouched: Ready) -> None:
    edit(root)
    untouched()
    repository = open_repository(root)
    state = snapshot(repository)
    assert repository.git().line("rev-parse", f"{state.commit}^") == git(root, "rev-parse", "HEAD")
    git(root, "cat-file", "-e", state.commit, status=1)


def test_ignored_files_stay_behind(root: Path, untouched: Ready) -> None:
    ignored = {"target/out": "built", "x.log": ""}
    write(root, {".gitignore": "target/\n*.log\n!keep.log\n", "keep.log": "kept"} | ignored)
    untouched()
    found = shown(root)
    assert "keep.log" in found
    assert not ignored.keys() & found.keys()


def test_a_linked_working_tree(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-q", "-b", "side", str(linked))
    write(linked, {"a.txt": "linked\n", "only here": ""})
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
    commit(root, "deep", {"deep/x": "x"})
    (root / "a.txt").unlink()
    shutil.rmtree(root / "deep")
    write(root, {"a.txt/inside": "", "deep": "now a file"})
    untouched()
    assert shown(root) == content(root)
    repository = open_repository(root)
    with open_slots(repository) as slots:
        slots.a.switch(at(repository, "HEAD").tree)
        assert (slots.a.path / "deep" / "x").is_file()
        assert (slots.a.path / "a.txt").is_file()


def test_a_change_as_young_as_the_index_is_seen(root: Path) -> None:
    # git compares whole seconds: file, index and change in the same second, and the snapshot in a later one.
    time.sleep(1 - time.time() % 1)
    write(root, {"a.txt": "1111\n"})
    git(root, "add", "a.txt")
    write(root, {"a.txt": "2222\n"})
    time.sleep(1.1)
    assert shown(root)["a.txt"] == ("file", False, b"2222\n")


def test_what_a_sparse_checkout_leaves_out_is_shown(root: Path, untouched: Ready) -> None:
    commit(root, "folders", {"one/file": "one", "two/file": "two"})
    git(root, "sparse-checkout", "set", "--sparse-index", "one")
    write(root, {"one/file": "changed"})
    untouched()
    assert not (root / "two").exists()
    assert shown(root) == content(root) | {"two/file": ("file", False, b"two")}


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
        write(root, {f".git/hooks/{name}": f"#!/bin/sh\necho {name} >> {tmp_path}/ran\n"}, executable=True)
    edit(root)
    (tmp_path / "ran").unlink()  # git's own commands ran them
    untouched()
    assert shown(root) == content(root)
    assert not (tmp_path / "ran").exists()


def test_filters_of_the_user_are_used(root: Path, untouched: Ready) -> None:
    for key, value in {"clean": "tr a-z A-Z", "smudge": "tr A-Z a-z", "required": "true"}.items():
        git(root, "config", f"filter.upper.{key}", value)
    write(root, {".git/info/attributes": "*.up filter=upper\n", "x.up": "text\n"})
    untouched()
    repository = open_repository(root)
    assert shown(root) == content(root)
    assert repository.git().run("cat-file", "blob", f"{snapshot(repository).tree}:x.up") == b"TEXT\n"


@pytest.mark.skipif(not shutil.which("git-lfs"), reason="needs git-lfs")
def test_large_files_of_git_lfs(root: Path, untouched: Ready) -> None:
    git(root, "lfs", "install", "--local", "--skip-repo")
    attributes = "*.big filter=lfs diff=lfs merge=lfs -text\n"
    commit(root, "large", {".gitattributes": attributes, "kept.big": "kept" * 1000})
    write(root, {"new.big": "new" * 1000})
    untouched()
    assert shown(root) == content(root)


def test_a_submodule_is_carried_when_asked_for(root: Path, tmp_path: Path, untouched: Ready) -> None:
    inner, middle = make(tmp_path / "inner", lib_c="int x;\n"), make(tmp_path / "middle")
    add_submodule(middle, inner, "deps/inner")
    add_submodule(root, middle, "deps/mid")
    git(root, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "--recursive")
    write(root, {"deps/mid/a.txt": "changed inside\n", "deps/mid/deps/inner/new": "untracked, deep\n"})
    untouched()
    assert shown(root, with_submodules=True) == content(root)
    assert "deps/mid/a.txt" not in shown(root)
    repository = open_repository(root, with_submodules=True)
    committed = at(repository, "HEAD").tree
    for path, text in (("deps/mid/a.txt", b"one\ntwo\n"), ("deps/mid/deps/inner/lib.c", b"int x;\n")):
        assert repository.git().run("cat-file", "blob", f"{committed}:{path}") == text


def test_a_submodule_that_is_not_on_disk_is_named_with_the_remedy(root: Path, tmp_path: Path) -> None:
    add_submodule(root, make(tmp_path / "inner", lib_c="int x;\n"), "lib")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(root), str(clone))
    with pytest.raises(UserError, match=r"submodule lib: commit .* not on this disk(.|\n)*submodule update --init"):
        snapshot(open_repository(clone, with_submodules=True))


def test_a_file_that_cannot_be_read_is_named(root: Path) -> None:
    git(root, "config", "filter.broken.clean", "false")
    git(root, "config", "filter.broken.required", "true")
    write(root, {".gitattributes": "*.txt filter=broken\n", "a.txt": "changed\n"})
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
    commit(root, "0", {"a.txt": "0\n"})
    git(root, "branch", "side")
    for number in (1, 2):
        commit(root, str(number), {"a.txt": f"{number}\n"})
    git(root, "checkout", "-q", "side")
    side = commit(root, "side", {"b.txt": "side\n"})
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


Edits = list[tuple[str, Path, bytes]]


NAMES = st.sampled_from(["a", "b", "-c", 'd"', "e\nf", "g h", "ü", os.fsdecode(b"\xff"), "*", "i.py"])


PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: Path(*parts))


CONTENTS = st.one_of(st.binary(max_size=6), st.sampled_from([b"x\r\ny\n", b"", b"same\n"]))


WORDS = st.sampled_from(["write", "remove", "link", "exec", "stage", "reset", "unstage"])
EDITS = st.lists(st.tuples(WORDS, PATHS, CONTENTS), max_size=8)


GIT_EDITS = {"stage": ("add", "-A"), "unstage": ("reset", "-q"), "reset": ("stash", "-q", "-u")}


def edit_randomly(root: Path, what: str, path: Path, data: bytes) -> None:
    """One edit of a user's tree."""
    place = root / path
    if what in GIT_EDITS:
        git(root, *GIT_EDITS[what])
    elif what == "remove":
        clear(place)
    elif what == "exec":
        if place.is_file() and not place.is_symlink():
            place.chmod(place.stat().st_mode ^ 0o111)
    else:
        make_way(root, path)
        if what == "link":
            place.symlink_to(data.replace(b"\0", b"0").decode("latin1") or "nowhere")
        else:
            place.write_bytes(data)


def make_way(root: Path, path: Path) -> None:
    for parent in reversed(path.parents[:-1]):
        if (root / parent).is_symlink() or not (root / parent).is_dir():
            clear(root / parent)
            (root / parent).mkdir()
    clear(root / path)


def clear(place: Path) -> None:
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.is_dir():
        shutil.rmtree(place)


# Each example takes a quarter of a second.
@settings(
    max_examples=int(os.environ["PERFFLOW_FUZZ_EXAMPLES"]) // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(before=EDITS, after=EDITS, rubbish=EDITS)
def test_a_slot_shows_what_the_user_has(root: Path, before: Edits, after: Edits, rubbish: Edits) -> None:
    repository = open_repository(root)
    with open_slots(repository) as slots:
        for edits in (before, after):
            for one in edits:
                edit_randomly(root, *one)
            check(root, repository, slots)
        for what, path, data in rubbish:
            if what not in GIT_EDITS:
                edit_randomly(slots.a.path, what, path, data)
        taken = slots.a.take().tree
        shown = content(slots.a.path)
        slots.b.switch(taken)
        assert content(slots.b.path) == shown
        check(root, repository, slots)


def check(project: Path, repository: Repository, slots: Slots) -> None:
    mark = fingerprint(project)
    state = snapshot(repository)
    slots.a.switch(state.tree)
    assert fingerprint(project) == mark
    assert content(slots.a.path) == content(project)
    assert slots.a.take().tree == state.tree
    assert slots.a.switch(state.tree) == ()
