"""Suspicions are stored with their outcome, in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from perfflow.store.history.connections import Connection
from perfflow.store.history.database import History
from perfflow.store.history.summary import CONFIRMED, OPEN, MeasuredState, Point, RunSummary, StoredSuspicion

RUN = RunSummary(
    id="run-1",
    tool="perfflow",
    version="1",
    started="2026-01-01T00:00:00Z",
    machine="m1",
    states=(MeasuredState("baseline", "a" * 40),),
    points=(Point("baseline", "b", "time", "p50", "s", "lower", 1.0, None, None, 1),),
)


def test_what_became_of_one_replaces_it(connect: Callable[[], Connection]) -> None:
    history = History(connect())
    history.add([RUN])
    (series,) = history.series()
    one = StoredSuspicion(series.id, "run-9", "c" * 40, "run-1", "a" * 40, 0.0, 0.25, 4.5, "2026-01-02T00:00:00Z")
    other = replace(one, first="run-20", told="2026-01-09T00:00:00Z")
    history.keep_suspicions([other, one])
    history.keep_suspicions([])
    assert history.suspicions(series.id) == [one, other]
    assert {item.state for item in history.suspicions(series.id)} == {OPEN}
    settled = replace(one, state=CONFIRMED, why="measured in pairs: +25.0%", run="run-30")
    history.keep_suspicions([settled])
    history.close()
    history = History(connect())
    assert history.suspicions(series.id) == [settled, other]
    assert history.suspicions(series.id + 1) == []
    history.close()
