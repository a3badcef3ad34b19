"""A writer that is killed at any moment loses no run that it reported, damages nothing, and the rest can be added."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfflow.store.history.database import History
from tests.store.history.databases import has_server, server
from tests.store.history.summaries import summary
from tests.store.history.writer import connection

ROOT = Path(__file__).parents[3]
LONGEST = 0.4
"""Maximum seconds that a writer lives after its first run is stored."""


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "history.sqlite")
        return
    if not has_server():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with server() as address:
        yield address


def _killed(place: str, first: int, seconds: float) -> list[int]:
    """Start a writer, kill it some time after its first run is stored, and return the runs that it reported."""
    argv = [sys.executable, "-m", "tests.store.history.writer", place, str(first)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        begun = writer.stdout.readline()
        time.sleep(seconds)
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read()
    assert writer.returncode == -signal.SIGKILL
    # A truncated number does not count as reported.
    return [int(line) for line in (begun + rest).split(b"\n")[:-1]]


def _check(place: str, said: set[int]) -> int:
    """Check the history, add the missing runs, and return the number of the next run."""
    history = History(connection(place))
    stored = {int(name.removeprefix("run-")) for name in history.runs()}
    assert said <= stored
    # A stored run is complete and counted.
    for series in history.series():
        assert series.points == len(history.points(series.id)) == len(stored)
    # Unreported runs are added again, and no run is stored twice.
    wanted = range(max(stored) + 2)
    assert history.add(summary(number, benchmarks=20) for number in wanted) == len(set(wanted) - stored)
    assert {series.points for series in history.series()} == {len(wanted)}
    history.close()
    if not place.startswith("postgresql:"):
        with sqlite3.connect(place) as bare:
            assert bare.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert bare.execute("PRAGMA foreign_key_check").fetchall() == []
        bare.close()
    return len(wanted)


@pytest.mark.parametrize("times", [3, pytest.param(100, marks=pytest.mark.long)])
def test_nothing_that_was_added_is_lost_however_often_its_writer_is_killed(place: str, times: int) -> None:
    luck = random.Random()
    said: set[int] = set()
    first = 0
    for _ in range(times):
        said.update(_killed(place, first, luck.uniform(0, LONGEST)))
        first = _check(place, said)
    assert len(said) >= times
