"""How many samples a brief process takes of one benchmark: fewer of a slow one, so that it ends in about a second.

A first process, which is thrown away, takes the fewest and tells how long an iteration lasts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perfflow.model.readings import BATCH, Reading

SECONDS = 0.5
"""What the samples of one process may take together, s, where that leaves enough of them."""
SLOW = 2.0
"""More seconds in one process are too many where a harness has another way to measure."""
_TIMES = ("time", "cpu")


@dataclass(frozen=True, slots=True)
class Pace:
    """What a first process of a benchmark took: ``seconds`` an iteration, and ``spent`` in all its samples (s)."""

    seconds: float
    spent: float


def pace_of(readings: Iterable[Reading]) -> Pace | None:
    """Return the pace of the one benchmark that a process reported, None where it reported no time."""
    timed = next((item for item in readings if item.metric in _TIMES), None)
    if timed is None:
        return None
    iterations = timed.inner.get("n", 1.0) * timed.inner.get(BATCH, 1.0)
    return Pace(timed.value, timed.value * iterations)


def samples(pace: Pace | None, least: int, most: int) -> int:
    """Return how many samples of at least one iteration to take; ``least`` where nothing is known yet."""
    fit = int(SECONDS / pace.seconds) if pace and pace.seconds * most > SECONDS else most if pace else least
    return max(least, min(most, fit))
