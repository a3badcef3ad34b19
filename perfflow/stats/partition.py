"""Cut a series into stretches of constant level by optimal partitioning; short stretches are outliers.

The partition minimizes the weighted squared loss plus a penalty for each boundary (Jackson et al. 2005, IEEE Signal
Processing Letters 12). It is exact up to 400 points. Longer series are cut only at positions where moving sums of
several widths have a local maximum (Eichinger and Kirch 2018, Bernoulli 24).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul

SHORT = 8
"""An inner stretch of fewer points is a group of outliers, not two changes."""
PENALTY = 15.0
"""Gain that a change needs in series of up to 200 points, in units of chi-square."""
WHOLE = 400
"""Most points of a series in which every position is tried."""
_WIDTHS = (5, 10, 20, 40, 80, 160)
_STANDS_OUT = 5.0
_NEWEST = 20
_MOVED = 3
_ONE_BY_ONE = 4
_PRUNED_EVERY = 4
_SURE = 0.999
"""Factor on the distance in the pruning test, so that starts which are equal except for rounding are kept."""
_TINY = 1e-300


def penalty(n: int) -> float:
    """Return the gain that a change needs in a series of ``n`` points; it grows with the number of possible places."""
    return PENALTY + 2 * math.log(max(1.0, n / 200))


@dataclass(frozen=True, slots=True)
class PrefixSums:
    """Prefix sums of weights and weighted values, n + 1 each: every mean in constant time."""

    values: list[float]
    weights: list[float]

    @classmethod
    def of(cls, values: Sequence[float], weights: Sequence[float]) -> PrefixSums:
        """Create the sums of n values and their n weights, which are 0 or positive."""
        return cls([0.0, *accumulate(map(mul, values, weights))], [0.0, *accumulate(weights)])

    def weight(self, begin: int, end: int) -> float:
        """Return the total weight of a stretch."""
        return self.weights[end] - self.weights[begin]

    def mean(self, begin: int, end: int) -> float:
        """Return the weighted mean of a stretch, or 0 if it has no weight."""
        return (self.values[end] - self.values[begin]) / (self.weight(begin, end) + _TINY)

    def gain(self, begin: int, at: int, end: int) -> float:
        """Return by how much a cut at ``at`` lowers the loss of the stretch."""
        left, right = self.weight(begin, at), self.weight(at, end)
        contrast = self.mean(at, end) - self.mean(begin, at)
        return contrast * contrast * left * right / (left + right + _TINY)


@dataclass(frozen=True, slots=True)
class Partition:
    """Inner boundaries (indices of the first points after each cut), and groups of outliers as (first, end)."""

    boundaries: list[int]
    outliers: list[tuple[int, int]]
    weights: list[float]
    """Weight of each point, 0 for an outlier; n values."""


def partition(values: Sequence[float], weights: Sequence[float]) -> Partition:
    """Cut a series so that no inner stretch has fewer than 8 points.

    values: n values. weights: n weights, one over the variance of each value.
    The points of a short stretch get weight 0, and the rest is cut again. The first rounds remove only the shortest
    stretch, since another may no longer be short without it. Each round removes at least one point, so this ends.
    """
    live = list(weights)
    outliers: list[tuple[int, int]] = []
    rounds = 0
    while True:
        sums = PrefixSums.of(values, live)
        cuts = boundaries(sums)
        short = [(begin, end) for begin, end in pairwise(cuts) if sum(weight > 0 for weight in live[begin:end]) < SHORT]
        if not short:
            return Partition(cuts, _merged(outliers), live)
        if len(values) <= WHOLE and rounds < _ONE_BY_ONE:
            short = [min(short, key=lambda group: group[1] - group[0])]
        for begin, end in short:
            outliers.append((begin, end))
            live[begin:end] = [0.0] * (end - begin)
        rounds += 1


def _merged(groups: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the groups in order, with overlapping and adjacent groups merged."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(groups):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def boundaries(sums: PrefixSums) -> list[int]:
    """Return the inner boundaries of the best partition; beyond 400 points, only screened positions are tried."""
    n = len(sums.weights) - 1
    return _cut_screened(sums) if n > WHOLE else cut(sums, range(n + 1))


def cut(sums: PrefixSums, positions: Iterable[int]) -> list[int]:
    """Return the inner boundaries with the least loss plus penalties among ``positions``, which run from 0 to n.

    A start of the last stretch is dropped once another start is better for every level that later points may have: at
    levels far from the mean since the start, a start at ``end`` is better, and at levels near the mean before it, the
    start that it was cut from. So the result stays exact (functional pruning: Maidstone et al. 2017, Statistics and
    Computing 27).
    """
    charge = penalty(len(sums.weights) - 1)
    first, *ends = positions
    before: dict[int, int] = {}
    # Each start: the loss before it, its prefix sums, and the mean and distance within which its predecessor is better.
    starts = [(first, 0.0, sums.values[first], sums.weights[first], 0.0, -1.0)]
    for count, end in enumerate(ends, 1):
        value, weight = sums.values[end], sums.weights[end]
        losses = [f - (apart := value - v) * apart / (weight - w + _TINY) for _, f, v, w, _, _ in starts]
        least = min(losses)
        before[end], _, v, w, _, _ = starts[losses.index(least)]
        since = weight - w + _TINY
        new_start = (end, least + charge, value, weight, (value - v) / since, math.sqrt(charge / since))
        if count % _PRUNED_EVERY == 0:
            starts = [
                start
                for start, loss in zip(starts, losses, strict=True)
                if (rest := least + charge - loss) > 0
                and abs((value - start[2]) / (since := weight - start[3] + _TINY) - start[4]) + math.sqrt(rest / since)
                >= _SURE * start[5]
            ]
        starts.append(new_start)
    boundaries = []
    at = before[ends[-1]]
    while at > 0:
        boundaries.append(at)
        at = before[at]
    return boundaries[::-1]


def _cut_screened(sums: PrefixSums) -> list[int]:
    n = len(sums.weights) - 1
    rough = cut(sums, screened(sums))
    moved = {
        _best_cut(sums, begin, at, end) for begin, at, end in zip([0, *rough], rough, [*rough[1:], n], strict=False)
    }
    return sorted(moved)


def _best_cut(sums: PrefixSums, begin: int, at: int, end: int) -> int:
    near = range(max(begin + 1, at - _MOVED), min(end, at + _MOVED + 1))
    return max(near, key=lambda one: sums.gain(begin, one, end))


def screened(sums: PrefixSums) -> list[int]:
    """Return 0, n, the last 20 positions, and the local maxima of moving sums of 5 to 160 points on either side."""
    n = len(sums.weights) - 1
    kept = {0, n, *range(max(1, n - _NEWEST), n)}
    for width in _WIDTHS:
        if 2 * width > n:
            break
        contrasts = _contrasts(sums, width)
        for index, contrast in enumerate(contrasts):
            if contrast > _STANDS_OUT:
                around = contrasts[max(0, index - width // 2) : index + width // 2 + 1]
                if contrast >= max(around):
                    kept.add(index + width)
    return sorted(kept)


def _contrasts(sums: PrefixSums, width: int) -> list[float]:
    """Return the gain of a cut at ``width``, ``width + 1``, ..., computed from ``width`` points on either side."""
    values, weights = sums.values, sums.weights
    return [
        (step := (c - b) / ((right := w - v) + _TINY) - (b - a) / ((left := v - u) + _TINY))
        * step
        * right
        * left
        / (w - u + _TINY)
        for a, b, c, u, v, w in zip(
            values, values[width:], values[2 * width :], weights, weights[width:], weights[2 * width :], strict=False
        )
    ]
