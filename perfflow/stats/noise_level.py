"""Find where the noise of a series becomes larger or smaller, for example because the machine is busier.

The logarithm of the absolute difference of neighbours has the same variance for any noise level; a change of the noise
shifts its mean (Harvey, Ruiz and Shephard 1994, Review of Economic Studies 61). So the noise is cut into stretches like
the level, by the exact partition, on medians of blocks of five differences, which are robust to steps and outliers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from perfflow.stats.partition import Sums, boundaries

_BLOCK = 5
"""Differences in a block."""
_FEWEST_BLOCKS = 4
"""Fewest blocks of a stretch, 20 points."""
_BLOCK_VARIANCE = 0.45
"""Variance of the logarithm of a block's median.

Simulated: 0.27 for normal noise, up to 0.41 for the others of ``benchmarks.change_experiment``.
"""
_UNSURE = 5
"""Points around the end of a stretch that get the larger noise of both sides, since its place is uncertain."""
_TRIMMED, _TRIMMED_MEAN = 0.1, 0.623
"""The mean of the smaller 90% of squared standard normal values is 0.623."""


def variances(y: Sequence[float], floor: float) -> list[float]:
    """Return the variance of the noise around each point, n values; all are 1 if the noise does not change.

    y: n values; fewer than 41 are one stretch. floor: the smallest variance, above 0.
    """
    n = len(y)
    ends = _ends(y, floor)
    if not ends:
        return [1.0] * n
    edges = [0, *ends, n]
    of_stretch = [max(trimmed_mean(half_squares(y[begin:end], 1)), floor) for begin, end in pairwise(edges)]
    found = []
    for index in range(n):
        first = bisect_right(ends, index - _UNSURE)
        last = bisect_left(ends, index + _UNSURE)
        found.append(max(of_stretch[first : last + 1]))
    return found


def _ends(y: Sequence[float], floor: float) -> list[int]:
    """Return the inner ends of the stretches, as indices of points."""
    sizes = [abs(b - a) for a, b in pairwise(y)]
    count = len(sizes) // _BLOCK
    if count < 2 * _FEWEST_BLOCKS:
        return []
    least = math.sqrt(floor)
    starts = [_BLOCK * number for number in range(count)]
    stops = [*starts[1:], len(sizes)]
    blocks = [math.log(max(median(sizes[a:b]), least)) for a, b in zip(starts, stops, strict=True)]
    sums = Sums.of(blocks, [1 / _BLOCK_VARIANCE] * count)
    cuts = boundaries(sums)
    while cuts:
        edges = [0, *cuts, count]
        length, number = min((b - a, number) for number, (a, b) in enumerate(pairwise(edges)))
        if length >= _FEWEST_BLOCKS:
            break
        # Merge a short stretch with the more similar neighbour.
        near = [one for one in (number - 1, number) if 0 <= one < len(cuts)]
        del cuts[min(near, key=lambda one: sums.gain(edges[one], edges[one + 1], edges[one + 2]))]
    return [_BLOCK * cut for cut in cuts]


def half_squares(y: Sequence[float], lag: int) -> list[float]:
    """Return half the squared differences of points ``lag`` apart; the mean of each is the variance of the noise."""
    return [(b - a) ** 2 / 2 for a, b in zip(y, y[lag:], strict=False)]


def trimmed_mean(squares: Sequence[float]) -> float:
    """Return the mean of the smaller 90% of half squared differences, which excludes steps, scaled for normal noise."""
    kept = max(1, int(len(squares) * (1 - _TRIMMED)))
    return sum(sorted(squares)[:kept]) / kept / _TRIMMED_MEAN
