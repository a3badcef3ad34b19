"""Number of samples that a brief process takes of one benchmark: fewer of a slow one, so that it ends in about 1 s.

A first process takes the fewest samples to find the duration of an iteration. Its samples are discarded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from perfflow.model.readings import BATCH, Reading

SECONDS = 0.5
"""Largest time of all samples of one process in s, if that allows enough samples."""
SLOW = 2.0
"""Time of one process in s above which a harness should use a faster mode, if it has one."""
_TIMES = ("time", "cpu")


@dataclass(frozen=True, slots=True)
class Pace:
    """Durations in a benchmark's first process, in s: ``seconds`` per iteration, and ``spent`` in all its samples."""

    seconds: float
    spent: float


FEWEST = Pace(math.inf, math.inf)
"""Stands for a benchmark that is so slow that a harness takes as few iterations as it can."""


def pace_of(readings: Iterable[Reading]) -> Pace | None:
    """Return the pace of the one benchmark that a process reported, None if it reported no time."""
    timed = next((item for item in readings if item.metric in _TIMES), None)
    if timed is None:
        return None
    iterations = timed.inner.get("n", 1.0) * timed.inner.get(BATCH, 1.0)
    return Pace(timed.value, timed.value * iterations)


def samples(pace: Pace | None, least: int, most: int, seconds: float = SECONDS) -> int:
    """Return the number of samples to take, each of at least one iteration; ``least`` if no pace is known.

    ``seconds``: largest time of all samples.
    """
    fit = int(seconds / pace.seconds) if pace and pace.seconds * most > seconds else most if pace else least
    return max(least, min(most, fit))
