"""Durations of benchmarks: the slower side counts, and a resumed run restores them."""

from __future__ import annotations

from perfflow.model.readings import Reading, reading_of_process
from perfflow.session.bench import Paces
from perfflow.store.record import reading_to_json
from perfflow.tools.adapter import Pace, samples_of_pace

FAST, SLOW = (reading_of_process("time", [seconds] * 10, "b") for seconds in (0.01, 0.1))


def test_the_slower_side_counts_and_memory_is_no_pace() -> None:
    paces = Paces()
    assert paces.slowest(["b"]) is None
    for reading in (FAST, SLOW, FAST):
        paces.notice("b", [Reading("rss", 1e9, "b"), reading])
    assert paces.slowest(["b"]) == Pace(0.1, 1.0)


def test_a_resumed_run_takes_the_pace_from_its_first_samples() -> None:
    first = {"pair": 0, "baseline": [reading_to_json(FAST)], "candidate": [reading_to_json(SLOW)]}
    paces = Paces()
    paces.recall([{**first, "pair": 1}, {"event": "stopped"}])
    assert paces.slowest(["b"]) is None
    paces.recall([first])
    assert paces.slowest(["b"]) == Pace(0.1, 1.0)


def test_samples_fit_into_half_a_second() -> None:
    found = [samples_of_pace(Pace(seconds, 0.0), 10, 100) for seconds in (1e-6, 0.005, 0.01, 0.1, 3.0)]
    assert found == [100, 100, 50, 10, 10]
    assert samples_of_pace(None, 3, 20) == 3
