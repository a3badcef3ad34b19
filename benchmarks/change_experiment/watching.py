"""How often the newest points raise an alarm that is wrong, and after how many points one that is right."""

from __future__ import annotations

from typing import Any

from benchmarks.change_experiment.series import CHANGING, STEP, History, history
from perfflow.stats.change_points import SAME, fresh_suspicion

POINTS = 1000
BEFORE, AFTER = 100, 100
_ALARM_SERIES, _DELAY_SERIES = 30, 3
"""One quiet series of 1,000 points for each 30 of the other series, and one with a step for each 3."""


def watch(noise: str, version: str, count: int) -> dict[str, Any]:
    """Ask ``fresh`` after every point that is appended, of as many series as go with ``count`` in the other cells.

    ``alarms`` are the suspicions in ``points`` quiet points, those of one place counted once. ``delays`` are the points
    after a step of 5% until it is suspected, None where it was not within 100; none where the noise changes.
    """
    quiet, points = max(1, count // _ALARM_SERIES), min(POINTS, 50 * count)
    steps = 0 if noise in CHANGING else max(1, count // _DELAY_SERIES)
    return {
        "program": "perfflow",
        "version": version,
        "shape": "watched",
        "noise": noise,
        "series": count,
        "points": quiet * points,
        "alarms": sum(_alarms(history("quiet", noise, seed, points)) for seed in range(quiet)),
        "delays": [_delay(history("quiet", noise, 10_000 + seed)) for seed in range(steps)],
    }


def _alarms(quiet: History) -> int:
    """Suspicions while the series grows; within 15 points of the last one it is the same suspicion."""
    count, last = 0, -2 * SAME
    for end in range(1, len(quiet.values) + 1):
        told = fresh_suspicion(quiet.values[:end], quiet.errors[:end])
        if told is None:
            continue
        count += abs(told.at - last) > SAME
        last = told.at
    return count


def _delay(quiet: History) -> int | None:
    values = [value + STEP * (index >= BEFORE) for index, value in enumerate(quiet.values)]
    for after in range(1, AFTER + 1):
        if fresh_suspicion(values[: BEFORE + after], quiet.errors[: BEFORE + after]) is not None:
            return after
    return None
