"""Memory over the run of a process: what it held, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Literal

from perfflow.model.later import dataclass
from perfflow.model.plain_data import FLAT, SPARSE

MOST = 200
"""Points of one curve: more cannot be told apart in a picture."""


@dataclass(frozen=True)
class MemoryCurve:
    """Bytes ``held`` on the heap ``at`` points of the run, in order, at most MOST of them.

    ``axis`` says what ``at`` counts from the start of the process: ``instructions``, ``bytes`` that were asked for, or
    ``time`` in s.
    """

    axis: Literal["instructions", "bytes", "time"]
    at: tuple[float, ...]
    held: tuple[float, ...]


@dataclass(frozen=True)
class MemoryCurveOf:
    """A curve, the side it is of, and its benchmark where the step is about several."""

    curve: MemoryCurve = field(metadata=FLAT)
    tree: str
    benchmark: str = field(default="", metadata=SPARSE)


def memory_curve(
    axis: Literal["instructions", "bytes", "time"], points: Iterable[tuple[float, float]]
) -> MemoryCurve | None:
    """Make a curve of (at, bytes held), each at least 0, in any order; None where nothing was ever held.

    What comes before the first allocation is left out, since a profiler's own start is in it. Of points that stand
    close together the highest one is kept, so the peak always is.
    """
    found = sorted(points)
    first = next((number for number, (_, held) in enumerate(found) if held), None)
    if first is None:
        return None
    kept = _thinned(found[max(0, first - 1) :])
    return MemoryCurve(axis, tuple(at for at, _ in kept), tuple(held for _, held in kept))


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(points) <= MOST:
        return list(points)
    inner, groups = points[1:-1], MOST - 2
    edges = [len(inner) * number // groups for number in range(groups + 1)]
    highest = [max(inner[start:end], key=lambda point: point[1]) for start, end in pairwise(edges)]
    # The first and the last point may be the peak themselves, and stay.
    return [points[0], *highest, points[-1]]
