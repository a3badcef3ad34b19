"""The noise of a series with steps in it: its size, how far neighbours depend on each other, and limits for outliers.

All estimates rest on differences of points k apart. A step disturbs only k of them, so the series need not be cut at
its changes first (Tecuapetla-Gómez and Munk 2017, Scandinavian Journal of Statistics 44). The between-run noise is
taken to be an AR(1) process, whose differences k apart have half the mean square tau^2 (1 - rho^k). Where its size
changes (``noise_level``), differences are divided by the local size first, so that a loud past hides nothing that
happens in a quiet present.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import mul, truediv
from statistics import median

from perfflow.stats import noise_level

LARGEST_RHO = 0.85
LARGEST = 1000.0
"""Logarithms of floats lie within +-745."""
_CLIP = 3.0
"""A point counts as at most so many standard deviations from the running median."""
WINDOW = 15
"""Points whose median is the level around the one in the middle."""
_LAGS = 5
_CAUTION = 0.5
"""rho is taken this much divided by sqrt(n) higher: the estimate is about that uncertain, and too low means alarms."""
_LEAST = 1e-6
"""The least standard deviation, also as a share of the range: below, sums of squares lose all their digits."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What ``estimate`` says of a series of n points."""

    clipped: list[float]
    """The values less ``center``, with outliers drawn in towards the running median; n values."""
    errors: list[float]
    """Standard errors of the points; an unknown one is that of the median point."""
    reaches: list[float]
    """How far from its level a point counts; n values."""
    center: float
    between: list[float]
    """Variance between runs around each point, beyond the points' own errors; n values."""
    rho: float
    """Correlation of neighbouring points, 0 to 0.85."""

    @property
    def cautious_rho(self) -> float:
        """The upper end of what rho may well be."""
        return min(LARGEST_RHO, self.rho + _CAUTION / math.sqrt(len(self.clipped)))

    @property
    def inflation(self) -> float:
        """The factor by which dependence raises the variance of a mean of many points, (1 + rho) / (1 - rho)."""
        return (1 + self.cautious_rho) / (1 - self.cautious_rho)

    def weights(self) -> list[float]:
        """One over the long-run variance of each point: the whole correction for dependence is here."""
        wide = self.inflation
        return [1 / (error * error + wide * own) for error, own in zip(self.errors, self.between, strict=True)]


def check(values: Sequence[float], errors: Sequence[float]) -> None:
    """Raise ValueError unless these are finite logarithms, each with a finite standard error of 0 or more."""
    if len(values) != len(errors):
        raise ValueError(f"{len(values)} values have {len(errors)} standard errors; each needs one (0 where unknown)")
    for name, least, numbers in (("value", -LARGEST, values), ("standard error", 0.0, errors)):
        for index, number in enumerate(numbers):
            if not least <= number <= LARGEST:  # so is nan
                remedy = "leave out failed runs, and give logarithms" if name == "value" else "0 means unknown"
                raise ValueError(f"{name} {index} is {number}; it must be from {least:g} to {LARGEST:g}: {remedy}")


def estimate(values: Sequence[float], errors: Sequence[float]) -> Noise:
    """Return the noise of at least 12 values with their standard errors, both as ``check`` asks for."""
    n = len(values)
    center = median(values)
    known = [error for error in errors if error > 0]
    typical = median(known) if known else 0.0
    own = [error or typical for error in errors]
    y = [value - center for value in values]
    floor = _floor(y)
    local = noise_level.variances(y, floor)
    # From here on, variances are shares of the local one. The least share is that of the loudest stretch.
    floor /= max(local)
    scale = _scale(y, local, floor)
    reaches = _reaches(own, [scale * one for one in local])
    clipped = drawn_in(y, running_median(y), reaches)
    known_part = [min(error * error, scale * one) for error, one in zip(own, local, strict=True)]
    within = sum(map(truediv, known_part, local)) / n
    lags = [lag for lag in range(1, _LAGS + 1) if n >= 4 * lag + 8]
    # Squared half differences beyond three standard deviations are steps, not noise.
    most = 9 * scale
    squares = [sum([min(one, most) for one in _shares(clipped, local, lag)]) / (n - lag) for lag in lags]
    share, rho = _fit([max(square - within, 0.05 * square, floor) for square in squares])
    return Noise(clipped, own, reaches, center, _between(local, known_part, share, within), rho)


def _between(local: Sequence[float], known: Sequence[float], share: float, within: float) -> list[float]:
    """The variance between runs around each point, from its ``share`` of the local variance and the part within runs.

    Where the noise does not change, this is the share itself. Where it does, each stretch has its own part within runs.
    """
    sums: dict[float, list[float]] = {}
    for one, part in zip(local, known, strict=True):
        sums.setdefault(one, []).append(part)
    if len(sums) == 1:
        return [share * one for one in local]
    total = share + within
    found = {one: max(total * one - sum(parts) / len(parts), 0.05 * total * one) for one, parts in sums.items()}
    return [found[one] for one in local]


def _floor(y: Sequence[float]) -> float:
    """The least variance: that of rounding, where values are tied, since their differences may all be zero."""
    different = sorted(set(y))
    tiny = _LEAST * max(1.0, different[-1] - different[0])
    quantum = min((gap for gap in (b - a for a, b in pairwise(different)) if gap > tiny), default=0.0)
    return max(quantum * quantum / 12, tiny * tiny)


def _scale(y: Sequence[float], local: Sequence[float], floor: float) -> float:
    """Variance of the noise for clipping. Differences four apart are wider where the noise is positively correlated."""
    near = noise_level.trimmed_mean(_shares(y, local, 1))
    far = noise_level.trimmed_mean(_shares(y, local, 4)) if len(y) >= 20 else near
    return max(near, min(far, 4 * near), floor)


def _shares(y: Sequence[float], local: Sequence[float], lag: int) -> list[float]:
    """Half squared differences of points ``lag`` apart, as shares of the local variances of both."""
    squares = noise_level.half_squares(y, lag)
    return [one / math.sqrt(a * b) for one, a, b in zip(squares, local, local[lag:], strict=False)]


def _reaches(errors: Sequence[float], scales: Sequence[float]) -> list[float]:
    usual = median(errors) ** 2
    return [
        _CLIP * math.sqrt(max(scale, scale - usual + error * error))
        for error, scale in zip(errors, scales, strict=True)
    ]


def drawn_in(y: Sequence[float], middles: Sequence[float], reaches: Sequence[float]) -> list[float]:
    """Return values that are no further from their middles than they reach."""
    return [
        min(max(value, middle - reach), middle + reach)
        for value, middle, reach in zip(y, middles, reaches, strict=True)
    ]


def running_median(y: Sequence[float]) -> list[float]:
    """Return the median of the 15 points around each point; the window stays whole at the ends. As many as ``y``."""
    n = len(y)
    half = min(WINDOW, n - (n + 1) % 2) // 2
    window = sorted(y[: 2 * half + 1])
    medians = [window[half]] * half
    for old, new in zip(y, y[2 * half + 1 :], strict=False):
        medians.append(window[half])
        del window[bisect_left(window, old)]
        insort(window, new)
    return medians + [window[half]] * (n - len(medians))


def _fit(squares: Sequence[float]) -> tuple[float, float]:
    """tau^2 and rho of an AR(1) process from the mean squares of 1, 2, ... lags; far lags are less certain."""
    if len(squares) < 3:
        return squares[0], 0.0
    shares = [1 / lag for lag in range(1, len(squares) + 1)]
    best = (math.inf, 0.0, 0.0)
    for step in range(round(LARGEST_RHO / 0.05) + 1):
        rho = step * 0.05
        scaled = [square / (1 - rho**lag) for lag, square in enumerate(squares, 1)]
        between = sum(map(mul, shares, scaled)) / sum(shares)
        lack = sum(share * math.log(one / between) ** 2 for share, one in zip(shares, scaled, strict=True))
        best = min(best, (lack, rho, between))
    return best[2], best[1]
