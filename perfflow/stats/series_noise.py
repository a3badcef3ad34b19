"""Estimate the noise of a series with steps: its variance, the correlation of neighbours, and limits for outliers.

All estimates use differences of points k apart. A step affects only k of them, so the series need not be cut at its
changes first (Tecuapetla-Gómez and Munk 2017, Scandinavian Journal of Statistics 44). The model of the noise between
runs is an AR(1) process; half the mean square of its differences k apart is tau^2 (1 - rho^k). Where the variance
changes (``noise_level``), differences are first divided by the local standard deviation, so that a noisy past does not
hide changes in a quiet present.
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
"""Points are clipped at this many standard deviations from the running median."""
WINDOW = 15
"""Points of the running median."""
_LAGS = 5
_CAUTION = 0.5
"""This divided by sqrt(n), about its uncertainty, is added to rho: a rho that is too low causes false alarms."""
_LEAST = 1e-6
"""Smallest standard deviation, also as a share of the range: below it, sums of squares lose all their digits."""


@dataclass(frozen=True, slots=True)
class Noise:
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


def estimate(values: Sequence[float], errors: Sequence[float]) -> Noise:
    """Return the noise of at least 12 values with their standard errors, which must satisfy ``check``."""
    n = len(values)
    center = median(values)
    known = [error for error in errors if error > 0]
    typical = median(known) if known else 0.0
    own = [error or typical for error in errors]
    y = [value - center for value in values]
    floor = _floor(y)
    local = noise_level.variances(y, floor)
    # From here on, variances are relative to the local one. The floor becomes that of the noisiest stretch.
    floor /= max(local)
    scale = _scale(y, local, floor)
    reaches = _reaches(own, [scale * one for one in local])
    clipped = drawn_in(y, running_median(y), reaches)
    known_part = [min(error * error, scale * one) for error, one in zip(own, local, strict=True)]
    within = sum(part / one for part, one in zip(known_part, local, strict=True)) / n
    lags = [lag for lag in range(1, _LAGS + 1) if n >= 4 * lag + 8]
    # Half squared differences beyond three standard deviations are steps, not noise.
    most = 9 * scale
    clips = ([one if one < most else most for one in _shares(clipped, local, lag)] for lag in lags)  # noqa: FURB136 (slow)
    squares = [sum(each) / (n - lag) for each, lag in zip(clips, lags, strict=True)]
    share, rho = _fit([max(square - within, 0.05 * square, floor) for square in squares])
    return Noise(clipped, own, reaches, center, _between(local, known_part, share, within), rho)


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
    found = {one: max(total * one - sum(parts) / len(parts), 0.05 * total * one) for one, parts in sums.items()}
    return [found[one] for one in local]


def _floor(y: Sequence[float]) -> float:
    """Return the smallest variance: that of rounding, since all differences may be zero if values are tied."""
    different = sorted(set(y))
    tiny = _LEAST * max(1.0, different[-1] - different[0])
    quantum = min((gap for gap in (b - a for a, b in pairwise(different)) if gap > tiny), default=0.0)
    return max(quantum * quantum / 12, tiny * tiny)


def _scale(y: Sequence[float], local: Sequence[float], floor: float) -> float:
    """Return the variance for clipping. With positively correlated noise, differences four apart are larger."""
    near = noise_level.trimmed_mean(_shares(y, local, 1))
    far = noise_level.trimmed_mean(_shares(y, local, 4)) if len(y) >= 20 else near
    return max(near, min(far, 4 * near), floor)


def _shares(y: Sequence[float], local: Sequence[float], lag: int) -> list[float]:
    """Return half squared differences of points ``lag`` apart, relative to the local variances of both points."""
    squares = noise_level.half_squares(y, lag)
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
