"""Killed, interrupted, or out of space: the project is unchanged, and the next run starts clean."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from perfflow.model.errors import Exit, UserError
from perfflow.trees.patches import apply
from perfflow.trees.repository import Repository, open_repository
from perfflow.trees.slots import Slots, open_slots
from perfflow.trees.snapshots import at, snapshot
from tests.trees.projects import commit, content, fingerprint, git, write
from tests.trees.walk import PATCH

HOME = Path(__file__).parents[2]


@pytest.fixture
def busy(root: Path) -> Path:
    """A tree in every state at once: staged, unstaged, untracked and ignored files, a stash, a merge in progress."""
    write(root, {".gitignore": "build/\n.venv/\n", ".venv/tool": "tool"})
    commit(root, "more", {f"f{number}": f"{number}\n" for number in range(200)})
    write(root, {"f1": "stashed\n"})
    git(root, "stash")
    git(root, "checkout", "-qb", "other")
    commit(root, "theirs", {"f2": "theirs\n"})
    git(root, "checkout", "-q", "main")
    commit(root, "ours", {"f2": "ours\n"})
    git(root, "merge", "other", status=1)
    write(root, {f"f{number}": "changed\n" for number in range(10, 100)} | {"untracked": ""})
    return root


def walking(root: Path, *share: str, begun: bool = False) -> subprocess.Popen[str]:
    """A running walk in its own session; ``begun``: it has gone through all operations once."""
    env = {**os.environ, "PYTHONPATH": str(HOME)}
    argv = [sys.executable, "-m", "tests.trees.walk", str(root), *share]
    running = subprocess.Popen(argv, cwd=HOME, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
    if begun:
        assert running.stdout
        assert running.stdout.readline() == "0\n"
    return running


def first_pair(repository: Repository, share: tuple[str, ...] = ()) -> Slots:
    """The pair of slots that was used before, once all its holders have ended."""
    for _ in range(300):
        slots = open_slots(repository, share)
        if slots.folder.name == "1":
            return slots
        slots.close()
        time.sleep(0.1)
    raise AssertionError("somebody still holds the slots")


def assert_clean_start(root: Path) -> None:
    """The next run shows the right tree, and still has the build outputs."""
    repository = open_repository(root)
    state = snapshot(repository)
    with first_pair(repository, (".venv",)) as slots:
        for slot in (slots.a, slots.b):
            for tree in (state.tree, at(repository, "HEAD").tree, state.tree):
                slot.switch(tree)
            found = content(slot.path, "build", ".venv")
            assert found == content(root, ".venv")
            assert slot.take().tree == state.tree
        assert (slots.b.path / "build" / "kept").read_text() == "built"


@pytest.mark.parametrize("kills", [8, pytest.param(30, marks=pytest.mark.long)])
def test_killed_at_any_moment(busy: Path, kills: int) -> None:
    before = fingerprint(busy)
    worktrees = git(busy, "worktree", "list")
    moments = random.Random(7)
    first = walking(busy, ".venv", begun=True)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    for number in range(kills):
        running = walking(busy, ".venv")
        time.sleep(moments.uniform(0.15, 1.5))
        # Every second time only perfflow is killed, and its git runs on for a moment.
        if number % 2:
            os.killpg(running.pid, signal.SIGKILL)
        else:
            running.kill()
        running.communicate()
        assert fingerprint(busy) == before
    assert_clean_start(busy)
    assert git(busy, "worktree", "list") == worktrees
    assert fingerprint(busy) == before


def test_a_git_that_outlives_perfflow_keeps_the_slots(root: Path, tmp_path: Path) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    write(root, {".git/info/attributes": "src.py filter=slow\n"})
    git(root, "config", "filter.slow.smudge", f"touch {started}; while [ ! -e {go} ]; do sleep 0.05; done; cat")
    running = walking(root)
    while not started.exists():
        time.sleep(0.05)
    running.kill()
    running.communicate()
    repository = open_repository(root)
    with open_slots(repository) as slots:
        assert slots.folder.name == "2"
    go.write_text("")
    with first_pair(repository) as slots:
        slots.a.switch(snapshot(repository).tree)
        assert content(slots.a.path) == content(root)


def _interrupt(running: subprocess.Popen[str]) -> None:
    """Press ^C, and again if it had no effect: Python drops one that arrives during a finalizer."""
    for _ in range(3):
        os.killpg(running.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            running.communicate(timeout=900)
            return
    pytest.fail("three interrupts did not end it")


def test_interrupted_as_from_the_keyboard(busy: Path) -> None:
    before = fingerprint(busy)
    moments = random.Random(8)
    for _ in range(5):
        running = walking(busy, ".venv", begun=True)
        time.sleep(moments.uniform(0, 0.4))
        _interrupt(running)
        assert running.returncode != 0
        assert fingerprint(busy) == before
    assert_clean_start(busy)


@pytest.mark.parametrize("ignored", [False, True])
def test_a_switch_that_was_cut_short_leaves_nothing_of_its_tree(
    root: Path, repository: Repository, *, ignored: bool
) -> None:
    old = snapshot(repository).tree
    files = {".gitignore": "gen*\n" if ignored else "", "gen": "generated, and tracked\n"}
    write(root, files)
    git(root, "add", "-f", "gen")
    new = snapshot(repository).tree
    with open_slots(repository) as slots:
        slots.a.switch(old)
        # As kill -9 leaves it: the files exist, but the index does not have them yet.
        slots.a.path.with_suffix(".switching").write_text(new)
        write(slots.a.path, files)
        (slots.a.path / "a.txt").unlink()
    with open_slots(repository) as slots:
        slots.a.switch(old)
        assert set(content(slots.a.path)) == {"a.txt", "src.py"}


def test_a_patch_that_does_not_apply_leaves_everything(busy: Path) -> None:
    repository = open_repository(busy)
    state = snapshot(repository)
    before = fingerprint(busy)
    with open_slots(repository) as slots:
        slots.a.switch(state.tree)
        shown = fingerprint(slots.a.path)
        with pytest.raises(UserError, match=r"does not apply to a\.txt, hunk 1"):
            apply(repository, state.tree, PATCH.replace("-one", "-eins"))
        assert fingerprint(slots.a.path) == shown
    assert fingerprint(busy) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes, which requires permission to mount."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "perfflow-test", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk(root: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_disk))
    repository = open_repository(root)
    old = snapshot(repository).tree
    big = random.Random(1)
    # Tracked but also ignored, so its partly written file looks like a build output.
    write(root, {"big": big.randbytes(1_200_000), ".git/info/exclude": "big\n"})
    git(root, "add", "-Nf", "big")
    before = fingerprint(root)
    with open_slots(repository) as slots:
        slots.a.switch(old)
        # The object fits on the disk, but the file that is made from it does not.
        large = snapshot(repository).tree
        with pytest.raises(UserError, match=r"no space left(.|\n)*XDG_CACHE_HOME") as caught:
            slots.a.switch(large)
        assert caught.value.exit is Exit.UNMEASURED
        slots.a.switch(old)
        assert set(content(slots.a.path)) == {"a.txt", "src.py"}
    assert fingerprint(root) == before
    write(root, {"bigger": big.randbytes(2_500_000)})
    before = fingerprint(root)
    with pytest.raises(UserError, match="no space left"):
        snapshot(repository)
    assert fingerprint(root) == before
    with pytest.raises(OSError, match="No space left"), (small_disk / "fill").open("wb") as file:
        file.write(bytes(3_000_000))
    with open_slots(repository) as slots, pytest.raises(UserError, match="no space left"):
        slots.b.switch(old)
    with pytest.raises(UserError, match="no space left"):
        snapshot(repository)
    assert fingerprint(root) == before
    (small_disk / "fill").unlink()
    with open_slots(repository) as slots:
        slots.a.switch(old)
        assert set(content(slots.a.path)) == {"a.txt", "src.py"}
