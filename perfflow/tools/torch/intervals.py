"""Intervals of time: (start, end) in any one unit; what they cover together, and how long that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return what the intervals cover together, as ones that do not overlap, in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def length(intervals: Iterable[Interval]) -> float:
    """Sum of the lengths; of overlapping ones take the union first."""
    return sum(end - start for start, end in intervals)


def within(intervals: Iterable[Interval], windows: Sequence[Interval]) -> list[Interval]:
    """Return the parts of what the intervals cover that lie in what the windows cover."""
    return list(_both(union(intervals), union(windows)))


def _both(first: Sequence[Interval], second: Sequence[Interval]) -> Iterator[Interval]:
    one = other = 0
    while one < len(first) and other < len(second):
        start, end = max(first[one][0], second[other][0]), min(first[one][1], second[other][1])
        if start < end:
            yield start, end
        if first[one][1] <= second[other][1]:
            one += 1
        else:
            other += 1
