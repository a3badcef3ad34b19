"""Estimate the noise of a series with steps: its variance, the correlation of neighbours, and limits for outliers.

All estimates use differences of points k apart. A step affects only k of them, so the series need not be cut at its
changes first (Tecuapetla-Gómez and Munk 2017, Scandinavian Journal of Statistics 44). The model of the noise between
runs is an AR(1) process; half the mean square of its differences k apart is tau^2 (1 - rho^k).

``variances`` finds where the noise becomes larger or smaller, for example because the machine is busier. There,
differences are first divided by the local standard deviation, so that a noisy past does not hide changes in a quiet
present. The logarithm of the absolute difference of neighbours has the same variance for any noise level; a change of
the noise shifts its mean (Harvey, Ruiz and Shephard 1994, Review of Economic Studies 61). So the noise is cut into
stretches like the level, by the exact partition, on medians of blocks of five differences, which are robust to steps
and outliers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import mul, truediv
from statistics import median

from perfflow.stats.partition import PrefixSums, boundaries

LARGEST_RHO = 0.85
LARGEST = 1000.0
"""Logarithms of floats lie within +-745."""
_CLIP = 3.0
"""Points are clipped at this many standard deviations from the running median."""
WINDOW = 15
"""Points of the running median."""
_LAGS = 5
_CAUTION = 0.5
"""This divided by sqrt(n), about its uncertainty, is added to rho: a rho that is too low causes false alarms."""
_LEAST = 1e-6
"""Smallest standard deviation, also as a share of the range: below it, sums of squares lose all their digits."""


@dataclass(frozen=True, slots=True)
class SeriesNoise:
    """The result of ``estimate`` for a series of n points."""

    clipped: list[float]
    """The values minus ``center``, with outliers clipped around the running median; n values."""
    errors: list[float]
    """Standard errors of the points; unknown ones are replaced by the median of the known ones; n values."""
    reaches: list[float]
    """Clipping distance of each point from its level; n values."""
    center: float
    between: list[float]
    """Variance between runs around each point, in addition to the squared errors; n values."""
    rho: float
    """Correlation of neighbouring points, 0 to 0.85."""

    @property
    def cautious_rho(self) -> float:
        """An upper bound of rho that allows for its uncertainty."""
        return min(LARGEST_RHO, self.rho + _CAUTION / math.sqrt(len(self.clipped)))

    @property
    def inflation(self) -> float:
        """The factor by which correlation increases the variance of a mean of many points, (1 + rho) / (1 - rho)."""
        return (1 + self.cautious_rho) / (1 - self.cautious_rho)

    def weights(self) -> list[float]:
        """Return one over the long-run variance of each point, which includes the correction for correlation."""
        wide = self.inflation
        return [1 / (error * error + wide * own) for error, own in zip(self.errors, self.between, strict=True)]


def check(values: Sequence[float], errors: Sequence[float]) -> None:
    """Raise ValueError unless all values are within +-1000 and each has a standard error of 0 to 1000."""
    if len(values) != len(errors):
        raise ValueError(
            f"{len(values)} values but {len(errors)} standard errors; give one for each value, 0 if unknown"
        )
    for name, least, numbers in (("value", -LARGEST, values), ("standard error", 0.0, errors)):
        # min and max ignore nan depending on its position, so test for it separately.
        if all(map(math.isfinite, numbers)) and (not numbers or least <= min(numbers) <= max(numbers) <= LARGEST):
            continue
        for index, number in enumerate(numbers):
            if not least <= number <= LARGEST:  # True for nan
                remedy = "leave out failed runs, and give logarithms" if name == "value" else "0 means unknown"
                raise ValueError(f"{name} {index} is {number}; it must be from {least:g} to {LARGEST:g}: {remedy}")


def estimate(values: Sequence[float], errors: Sequence[float]) -> SeriesNoise:
    """Return the noise of at least 12 values with their standard errors, which must satisfy ``check``."""
    n = len(values)
    center = median(values)
    known = [error for error in errors if error > 0]
    typical = median(known) if known else 0.0
    filled = [error or typical for error in errors]
    y = [value - center for value in values]
    floor = _floor(y)
    local = variances(y, floor)
    # From here on, variances are relative to the local one. The floor becomes that of the noisiest stretch.
    floor /= max(local)
    scale = _scale(y, local, floor)
    reaches = _reaches(filled, [scale * one for one in local])
    clipped = drawn_in(y, running_median(y), reaches)
    known_part = [min(error * error, scale * one) for error, one in zip(filled, local, strict=True)]
    within = sum(part / one for part, one in zip(known_part, local, strict=True)) / n
    lags = [lag for lag in range(1, _LAGS + 1) if n >= 4 * lag + 8]
    # Half squared differences beyond three standard deviations are steps, not noise.
    most = 9 * scale
    clips = ([one if one < most else most for one in _shares(clipped, local, lag)] for lag in lags)  # noqa: FURB136 (slow)
    squares = [sum(each) / (n - lag) for each, lag in zip(clips, lags, strict=True)]
    share, rho = _fit([max(square - within, 0.05 * square, floor) for square in squares])
    return SeriesNoise(clipped, filled, reaches, center, _between(local, known_part, share, within), rho)


def _between(local: Sequence[float], known: Sequence[float], share: float, within: float) -> list[float]:
    """Return the variance between runs around each point.

    share, within: variance between and within runs, relative to the local variance. If the noise does not change, the
    result is ``share`` of it; otherwise each stretch has its own variance within runs.
    """
    sums: dict[float, list[float]] = {}
    for one, part in zip(local, known, strict=True):
        sums.setdefault(one, []).append(part)
    if len(sums) == 1:
        return [share * one for one in local]
    total = share + within
    variance_of = {one: max(total * one - sum(parts) / len(parts), 0.05 * total * one) for one, parts in sums.items()}
    return [variance_of[one] for one in local]


def _floor(y: Sequence[float]) -> float:
    """Return the smallest variance: that of rounding, since all differences may be zero if values are tied."""
    different = sorted(set(y))
    tiny = _LEAST * max(1.0, different[-1] - different[0])
    quantum = min((gap for gap in (b - a for a, b in pairwise(different)) if gap > tiny), default=0.0)
    return max(quantum * quantum / 12, tiny * tiny)


def _scale(y: Sequence[float], local: Sequence[float], floor: float) -> float:
    """Return the variance for clipping. With positively correlated noise, differences four apart are larger."""
    near = trimmed_mean(_shares(y, local, 1))
    far = trimmed_mean(_shares(y, local, 4)) if len(y) >= 20 else near
    return max(near, min(far, 4 * near), floor)


def _shares(y: Sequence[float], local: Sequence[float], lag: int) -> list[float]:
    """Return half squared differences of points ``lag`` apart, relative to the local variances of both points."""
    squares = half_squares(y, lag)
    if local.count(1.0) == len(local):
        return squares
    return [one / math.sqrt(a * b) for one, a, b in zip(squares, local, local[lag:], strict=False)]


def _reaches(errors: Sequence[float], scales: Sequence[float]) -> list[float]:
    usual = median(errors) ** 2
    return [
        _CLIP * math.sqrt(max(scale, scale - usual + error * error))
        for error, scale in zip(errors, scales, strict=True)
    ]


def drawn_in(y: Sequence[float], middles: Sequence[float], reaches: Sequence[float]) -> list[float]:
    """Return the values clipped to ``middle`` ± ``reach``, n each."""
    return [
        value if middle - reach <= value <= middle + reach else min(max(value, middle - reach), middle + reach)
        for value, middle, reach in zip(y, middles, reaches, strict=True)
    ]


def running_median(y: Sequence[float]) -> list[float]:
    """Return the running median of 15 points, n values; at the ends the window does not shrink but stops moving."""
    n = len(y)
    half = min(WINDOW, n - (n + 1) % 2) // 2
    window = sorted(y[: 2 * half + 1])
    medians = [window[half]] * half
    for old, new in zip(y, y[2 * half + 1 :], strict=False):
        medians.append(window[half])
        del window[bisect_left(window, old)]
        insort(window, new)
    return medians + [window[half]] * (n - len(medians))


_RHOS = [
    (step * 0.05, [1 - (step * 0.05) ** lag for lag in range(1, _LAGS + 1)])
    for step in range(round(LARGEST_RHO / 0.05) + 1)
]
"""Candidates for rho, each with the factors 1 - rho^k of the variance of differences k = 1, 2, ... apart."""


def _fit(squares: Sequence[float]) -> tuple[float, float]:
    """Return tau^2 and rho of an AR(1) process from half the mean squares of differences at lags 1, 2, ...

    Larger lags get less weight, since they are less certain.
    """
    if len(squares) < 3:
        return squares[0], 0.0
    shares = [1 / lag for lag in range(1, len(squares) + 1)]
    whole = sum(shares)
    best = (math.inf, 0.0, 0.0)
    for rho, rests in _RHOS:
        scaled = list(map(truediv, squares, rests))
        between = sum(map(mul, shares, scaled)) / whole
        lack = sum([share * math.log(one / between) ** 2 for share, one in zip(shares, scaled, strict=True)])
        best = min(best, (lack, rho, between))
    return best[2], best[1]


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
    by_point = []
    for index in range(n):
        first = bisect_right(ends, index - _UNSURE)
        last = bisect_left(ends, index + _UNSURE)
        by_point.append(max(of_stretch[first : last + 1]))
    return by_point


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
    sums = PrefixSums.of(blocks, [1 / _BLOCK_VARIANCE] * count)
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
