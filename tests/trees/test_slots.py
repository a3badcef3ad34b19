"""Slots: changed files are written, build outputs stay, leftovers are removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.trees.repository import Repository
from perfflow.trees.slots import PAIRS, InPlace, Kept, Slots, open_slots
from perfflow.trees.snapshots import at, snapshot
from tests.trees.projects import commit, content, fingerprint, git, write

Ready = Callable[[], None]


def two_trees(root: Path, repository: Repository) -> tuple[str, str]:
    """Before and after a commit that changes, removes, adds and renames files."""
    old = commit(root, "old", {".gitignore": "target/\n__pycache__/\n"})
    git(root, "mv", "src.py", "lib.py")
    new = commit(root, "new", {"a.txt": "changed\n", "new.txt": "new\n"})
    return repository.tree(old), repository.tree(new)


def times(folder: Path) -> dict[str, int]:
    return {name: (folder / name).lstat().st_mtime_ns for name in content(folder)}


def test_paths_are_of_equal_length_and_outside(root: Path, repository: Repository, slots: Slots) -> None:
    assert len(str(slots.a.path)) == len(str(slots.b.path))
    assert len(str(slots.a.build)) == len(str(slots.b.build))
    assert not slots.a.path.is_relative_to(root)
    assert (repository.home / "project").read_text() == f"{root}\n"


def test_only_what_differs_is_written_and_times_move_forward(root: Path, repository: Repository, slots: Slots) -> None:
    old, new = two_trees(root, repository)
    slots.a.switch(old)
    first = times(slots.a.path)
    assert slots.a.switch(new) == ("a.txt", "lib.py", "new.txt", "src.py")
    second = times(slots.a.path)
    assert second[".gitignore"] == first[".gitignore"]
    assert second["a.txt"] > first["a.txt"]
    slots.a.switch(old)
    third = times(slots.a.path)
    assert third["a.txt"] > second["a.txt"]
    assert third["src.py"] > first["src.py"]
    assert set(third) == set(first)
    assert slots.a.switch(old) == ()
    assert times(slots.a.path) == third


@pytest.mark.long  # writes ten thousand files
def test_ten_thousand_files_are_not_written_again(root: Path, repository: Repository, slots: Slots) -> None:
    write(root, {f"d{folder}/f{file}": f"{folder} {file}\n" for folder in range(100) for file in range(100)})
    assert len(slots.a.switch(snapshot(repository).tree)) == 10002
    write(root, {"d7/f7": "changed\n"})
    before = times(slots.a.path)
    assert slots.a.switch(snapshot(repository).tree) == ("d7/f7",)
    after = times(slots.a.path)
    assert [name for name in after if after[name] != before.get(name)] == ["d7/f7"]


def test_builds_stay_and_rubbish_goes(root: Path, repository: Repository, slots: Slots) -> None:
    old, new = two_trees(root, repository)
    slots.a.switch(old)
    write(slots.a.path, {"target/bin": "built", "left.txt": "rubbish", "a.txt": "edited by a step\n"})
    write(slots.a.build, {"object": "built"})
    locked, nested = slots.a.path / "locked", slots.a.path / "nested"
    (locked / "in").mkdir(parents=True)
    locked.chmod(0o500)
    nested.mkdir()
    git(nested, "init", "-q")
    git(slots.a.path, "init", "-q")
    slots.a.switch(new)
    assert (slots.a.path / "target" / "bin").read_text() == "built"
    assert (slots.a.build / "object").exists()
    assert content(slots.a.path, "target") == content(root)
    assert not (slots.a.path / ".git").is_dir()
    assert not nested.exists()
    assert not slots.b.path.joinpath("target").exists()


def test_links_in_a_slot_are_not_followed_out_of_it(
    root: Path, repository: Repository, slots: Slots, tmp_path: Path
) -> None:
    write(root, {"deep/x": "x\n"})
    tree = snapshot(repository).tree
    slots.a.switch(tree)
    outside = tmp_path / "outside"
    write(outside, {"x": "precious\n", "y": "precious\n"})
    shutil.rmtree(slots.a.path / "deep")
    (slots.a.path / "deep").symlink_to(outside)
    before = fingerprint(outside)
    slots.a.switch(at(repository, "HEAD").tree)
    (slots.a.path / "deep").symlink_to(outside)
    slots.a.switch(tree)
    assert fingerprint(outside) == before
    assert content(slots.a.path) == content(root)


def test_an_ignored_file_in_the_way_of_a_tracked_one_goes(root: Path, slots: Slots) -> None:
    old = commit(root, "ignore", {".gitignore": "out*\n"})
    write(root, {"out": "tracked\n"})
    git(root, "add", "-f", "out")
    new = commit(root, "track it all the same")
    slots.a.switch(old)
    write(slots.a.path, {"out/file": "built"})
    slots.a.switch(new)
    assert (slots.a.path / "out").read_text() == "tracked\n"


def test_what_a_command_edits_is_taken(root: Path, repository: Repository, slots: Slots, untouched: Ready) -> None:
    write(root, {".gitignore": "*.o\n"})
    untouched()
    base = snapshot(repository).tree
    slots.b.switch(base)
    script = "sed -i s/one/ONE/ a.txt; rm src.py; mkdir n; echo new > n/new; echo built > x.o; chmod +x a.txt"
    subprocess.run(["bash", "-ec", script], cwd=slots.b.path, check=True)
    taken = slots.b.take().tree
    shown = content(slots.b.path)
    slots.a.switch(taken)
    assert content(slots.a.path) == {name: facts for name, facts in shown.items() if name != "x.o"}
    assert slots.b.switch(taken) == ()
    slots.b.switch(base)
    assert content(slots.b.path) == content(root) | {"x.o": shown["x.o"]}


def test_compiled_python_of_another_tree_is_never_run(root: Path, repository: Repository, slots: Slots) -> None:
    write(root, {".gitignore": "__pycache__/\n"})
    trees = []
    for number in range(2):
        write(root, {"src.py": f"x = {number}\n"})
        trees.append(snapshot(repository).tree)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    argv = [sys.executable, "-c", "import src; print(src.x)"]
    for number in (0, 1, 0, 1):
        slots.a.switch(trees[number])
        # The same second for all, as between two fast candidates.
        os.utime(slots.a.path / "src.py", (10**9, 10**9))
        done = subprocess.run(argv, cwd=slots.a.path, env=env, capture_output=True, text=True, check=True)
        assert int(done.stdout) == number
        assert (slots.a.path / "__pycache__").is_dir()


def test_shared_paths_are_links(root: Path, repository: Repository, untouched: Ready) -> None:
    write(
        root, {".gitignore": ".venv/\n/data/*\n!/data/kept\nodd*/\n", ".venv/bin/tool": "tool", "data/kept": "tracked"}
    )
    (root / "odd[1] #").mkdir()
    (root / "data" / "big[1]").mkdir()
    untouched()
    state = snapshot(repository)
    assert "data/kept" in repository.git().run("ls-tree", "-r", "--name-only", state.tree).decode()
    with open_slots(repository, [".venv", "data/big[1]/", "odd[1] #"]) as slots:
        (slots.a.path / ".venv").mkdir()
        for _ in range(2):
            slots.a.switch(state.tree)
            assert (slots.a.path / ".venv" / "bin" / "tool").read_text() == "tool"
            for name in ("data/big[1]", "odd[1] #"):
                assert (slots.a.path / name).readlink() == root / name
            assert "odd[1] #" not in slots.a.switch(state.tree)
            assert slots.a.take().tree == state.tree
    with open_slots(repository) as slots:
        slots.a.switch(state.tree)
        assert not (slots.a.path / ".venv").exists()


def test_a_link_in_the_way_of_a_shared_path_is_not_followed(root: Path, repository: Repository, tmp_path: Path) -> None:
    write(root, {".gitignore": "data\n", "data/big/file": ""})
    outside = tmp_path / "outside"
    write(outside, {"big/precious": ""})
    tree = snapshot(repository).tree
    before = fingerprint(outside)
    with open_slots(repository, ["data/big"]) as slots:
        slots.a.path.joinpath("data").symlink_to(outside)
        slots.a.switch(tree)
        assert (slots.a.path / "data" / "big").readlink() == root / "data" / "big"
        assert not (slots.a.path / "data").is_symlink()
    assert fingerprint(outside) == before


def test_wrong_shared_paths_are_all_named(root: Path, repository: Repository, tmp_path: Path) -> None:
    (root / "away").symlink_to(tmp_path)
    with pytest.raises(UserError) as caught:
        open_slots(repository, ["../x", "/etc", "missing", "away/cache", ".git/hooks", "."])
    assert len(caught.value.problems) == 6
    (root / "src.py").unlink()
    write(root, {"src.py/below": ""})
    for path in ("a.txt", "src.py/below"):
        with open_slots(repository, [path]) as slots, pytest.raises(UserError, match="is tracked, or not ignored"):
            slots.a.switch(at(repository, "HEAD").tree)


def test_a_second_run_gets_a_pair_of_its_own(repository: Repository, slots: Slots) -> None:
    with open_slots(repository) as second:
        assert second.a.path != slots.a.path
        assert len(str(second.a.path)) == len(str(slots.a.path))
        others = [open_slots(repository) for _ in range(PAIRS - 2)]
        with pytest.raises(UserError, match=f"{PAIRS} runs already use trees"):
            open_slots(repository)
        for other in others:
            other.close()
    with open_slots(repository) as third:
        assert third.a.path == second.a.path


def test_a_broken_index_costs_the_slot_and_nothing_else(root: Path, repository: Repository, untouched: Ready) -> None:
    untouched()
    tree = snapshot(repository).tree
    with open_slots(repository) as slots:
        slots.a.switch(tree)
        index = slots.a.path.with_suffix(".index")
    index.write_bytes(index.read_bytes()[:40])
    index.with_name("a.index.lock").write_text("")
    with open_slots(repository) as slots:
        slots.a.switch(tree)
        assert content(slots.a.path) == content(root)


def test_what_a_killed_run_left_is_swept_when_it_is_old(repository: Repository) -> None:
    object_, scratch = repository.objects / "ab" / "tmp_obj_1", repository.home / "scratch"
    write(object_.parent, {object_.name: "half"})
    for name in ("young", "old"):
        (scratch / name).mkdir(parents=True)
    for path in (object_, scratch / "old"):
        os.utime(path, (10**9, 10**9))
    open_slots(repository).close()
    assert [path.exists() for path in (object_, scratch / "old", scratch / "young")] == [False, False, True]


def test_files_that_a_cache_of_ci_brought_back_are_not_written_again(repository: Repository, slots: Slots) -> None:
    tree = repository.tree("HEAD")
    slots.a.switch(tree)
    before = times(slots.a.path)
    kept = slots.a.path.with_name("copy")
    # A copy has other inodes and change times, as after unpacking an archive.
    subprocess.run(["cp", "-a", str(slots.a.path), str(kept)], check=True)
    shutil.rmtree(slots.a.path)
    kept.rename(slots.a.path)
    assert slots.a.shows(tree)
    assert slots.a.switch(tree) == ()
    assert times(slots.a.path) == before


def test_any_slot_may_be_that_of_the_base(root: Path, repository: Repository, slots: Slots) -> None:
    trees = [repository.tree(commit(root, f"{number}", {"number": str(number)})) for number in range(5)]

    letters = {slot.path.name: letter for slot, letter in zip(slots.every, "abc", strict=True)}

    def pair(base: int, head: int) -> str:
        found = slots.pair(Kept(trees[base], "baseline", str(base)), Kept(trees[head], "candidate", str(head)))
        for slot, number, side in zip(found, (base, head), ("baseline", "candidate"), strict=True):
            slot.switch(trees[number])
            slot.keep(Kept(trees[number], side, str(number), "2026-01-01T00:00:00Z"))
        return "".join(letters[slot.path.name] for slot in found)

    # A series: the head is the next base, and the next head is built where the first base was.
    assert [pair(0, 1), pair(1, 2), pair(2, 3)] == ["ab", "ba", "ab"]
    # Another base gets a slot of its own, and both stay.
    assert [pair(4, 3), pair(2, 1), pair(4, 1)] == ["cb", "ab", "cb"]
    assert slots.every[2].kept.built
    slots.every[2].switch(trees[0])
    assert slots.every[2].kept == Kept()


def test_a_damaged_note_is_no_note(repository: Repository, slots: Slots) -> None:
    tree = repository.tree("HEAD")
    slots.a.switch(tree)
    slots.a.keep(Kept(tree, "baseline", "key"))
    for text in ("", "{", "[]", '{"tree": {}}', '{"outputs": 5}'):
        slots.a.path.with_suffix(".kept").write_text(text)
        assert slots.a.kept.key == ""
    slots.a.clear()
    assert not slots.a.used
    assert slots.a.switch(tree)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / name).write_text(f"{name} as built")
        os.utime(folder / name, ns=(10**18, 10**18))
        (tmp_path / f"other-{name}").write_text(f"{name} otherwise")
    return folder


def contents(tree: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in tree.iterdir()}


BUILT = {"one": "one as built", "two": "two as built"}


def test_only_what_is_put_differs_and_all_comes_back_with_its_times(tree: Path, tmp_path: Path) -> None:
    places = InPlace(tmp_path / "aside")
    places.put({tree / "one": tmp_path / "other-one"})
    assert contents(tree) == BUILT | {"one": "one otherwise"}
    places.put({tree / "two": tmp_path / "other-two"})
    assert contents(tree) == BUILT | {"two": "two otherwise"}
    places.restore()
    assert contents(tree) == BUILT
    assert {path.stat().st_mtime_ns for path in tree.iterdir()} == {10**18}
    assert not (tmp_path / "aside" / "places.json").exists()


def test_what_a_killed_process_left_is_put_back_by_the_next_one(tree: Path, tmp_path: Path) -> None:
    killed = os.fork()
    if killed == 0:
        InPlace(tmp_path / "aside").put({tree / "one": tmp_path / "other-one", tree / "new": tmp_path / "other-two"})
        os._exit(0)
    os.waitpid(killed, 0)
    assert set(contents(tree)) == {"one", "two", "new"}
    InPlace(tmp_path / "aside").restore()
    assert contents(tree) == BUILT


def test_what_a_live_process_holds_stays_with_it(tree: Path, tmp_path: Path) -> None:
    places = InPlace(tmp_path / "aside")
    places.put({tree / "one": tmp_path / "other-one"})
    InPlace(tmp_path / "aside").restore()
    assert contents(tree)["one"] == "one otherwise"
    with pytest.raises(BlockingIOError, match="another run has layouts there"):
        InPlace(tmp_path / "aside").put({tree / "two": tmp_path / "other-two"})
    places.restore()
    assert contents(tree) == BUILT


def test_what_is_written_in_a_place_is_not_written_into_what_is_held(tree: Path, tmp_path: Path) -> None:
    places = InPlace(tmp_path / "aside")
    places.hold([tree / "one"])
    for _ in range(2):
        (tree / "one").write_text("built once more")
        places.reset()
        assert contents(tree) == BUILT
