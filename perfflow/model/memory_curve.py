"""Heap memory of a process over its run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

MOST = 200
"""Most points of one curve: more cannot be told apart in a chart."""


@dataclass(frozen=True)
class MemoryCurve:
    """Bytes ``held`` on the heap ``at`` points of the run, in order, at most MOST of them.

    ``axis`` is the unit of ``at`` since the start of the process: ``instructions``, allocated ``bytes``, or ``time`` in
    s.
    """

    axis: Literal["instructions", "bytes", "time"]
    at: tuple[float, ...]
    held: tuple[float, ...]


def memory_curve(
    axis: Literal["instructions", "bytes", "time"], points: Iterable[tuple[float, float]]
) -> MemoryCurve | None:
    """Return a curve of (at, bytes held) points, each at least 0, in any order; None if no memory was ever held.

    Points before the first allocation are left out, because they include the profiler's own start. Of points close to
    each other the highest is kept, so the peak is always included.
    """
    ordered = sorted(points)
    first = next((number for number, (_, held) in enumerate(ordered) if held), None)
    if first is None:
        return None
    kept = _thinned(ordered[max(0, first - 1) :])
    return MemoryCurve(axis, tuple(at for at, _ in kept), tuple(held for _, held in kept))


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(points) <= MOST:
        return list(points)
    inner, groups = points[1:-1], MOST - 2
    edges = [len(inner) * number // groups for number in range(groups + 1)]
    highest = [max(inner[start:end], key=lambda point: point[1]) for start, end in pairwise(edges)]
    # The first and the last point are always kept, because they may be the peak.
    return [points[0], *highest, points[-1]]
