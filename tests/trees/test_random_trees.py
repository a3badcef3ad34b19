"""Random trees after random edits: the slot shows the user's tree, whatever it showed before."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.trees.repository import Repository, open_repository
from perfflow.trees.slots import Slots, open_slots
from perfflow.trees.snapshots import snapshot
from tests.trees.projects import content, fingerprint, git, make

Edits = list[tuple[str, Path, bytes]]

NAMES = st.sampled_from(["a", "b", "-c", 'd"', "e\nf", "g h", "ü", os.fsdecode(b"\xff"), "*", "i.py"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: Path(*parts))
CONTENTS = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b"x\r\ny\n", b"", b"same\n"]),
)
EDITS = st.lists(
    st.tuples(st.sampled_from(["write", "remove", "link", "exec", "stage", "reset", "unstage"]), PATHS, CONTENTS),
    max_size=8,
)


def edit(root: Path, what: str, path: Path, data: bytes) -> None:
    """One edit of a user's tree."""
    place = root / path
    if what == "stage":
        git(root, "add", "-A")
    elif what == "unstage":
        git(root, "reset", "-q")
    elif what == "reset":
        git(root, "stash", "-q", "-u")
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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project")


# Each example takes a quarter of a second.
@settings(
    max_examples=int(os.environ["PERFFLOW_FUZZ_EXAMPLES"]) // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(before=EDITS, after=EDITS, rubbish=EDITS)
def test_a_slot_shows_what_the_user_has(project: Path, before: Edits, after: Edits, rubbish: Edits) -> None:
    repository = open_repository(project)
    with open_slots(repository) as slots:
        for edits in (before, after):
            for one in edits:
                edit(project, *one)
            check(project, repository, slots)
        for what, path, data in rubbish:
            if what in {"write", "remove", "link", "exec"}:
                edit(slots.a.path, what, path, data)
        taken = slots.a.take().tree
        shown = content(slots.a.path)
        slots.b.switch(taken)
        assert content(slots.b.path) == shown
        check(project, repository, slots)


def check(project: Path, repository: Repository, slots: Slots) -> None:
    mark = fingerprint(project)
    state = snapshot(repository)
    slots.a.switch(state.tree)
    assert fingerprint(project) == mark
    assert content(slots.a.path) == content(project)
    assert slots.a.take().tree == state.tree
    assert slots.a.switch(state.tree) == ()
