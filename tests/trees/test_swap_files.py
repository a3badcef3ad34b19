"""Replaced files: the originals are restored, whatever was written meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfflow.trees.slots import InPlace


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
