"""Find changes in a dependent series that show only in its innovations, the part of each point not due to the previous.

The partition treats dependent points as fewer independent ones. So it cannot use the fact that a level changes from one
point to the next, while dependent noise moves slowly. Here each stretch of the partition is searched for one more
change by generalised least squares. This whitens the series like Chakar, Lebarbier, Lévy-Leduc and Robin (2017,
Bernoulli 23), but keeps the point of the change itself. At a correlation of 0.6, it finds 58% of the 5% steps that are
followed by 10 points; the partition alone finds 33%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from perfflow.stats.partition import SHORT, Partition, penalty
from perfflow.stats.series_noise import Noise

_EXTRA = 3.0
"""Gain that a change needs here in addition to the penalty, because the series is searched a second time."""
_FEWEST_AFTER = 4


@dataclass(frozen=True, slots=True)
class Step:
    """A step found in the innovations; its level and size are logarithms, like the series."""

    at: int
    """Index of the first point after it."""
    gain: float
    """Reduction of the loss in units of chi-square: the square of the size in standard errors."""
    before: float
    size: float
    error: float
    """Standard error of ``size`` in the test that found it; for few points far below that of two levels."""


def further_changes(noise: Noise, found: Partition) -> dict[int, Step]:
    """Return additional steps inside the stretches of ``found``, by their boundaries.

    There is at most one step in each stretch, and none if the estimated correlation is 0.
    """
    if not noise.rho:
        return {}
    n = len(noise.clipped)
    series = _Whitened.of(noise, found.weights)
    further: dict[int, Step] = {}
    for begin, end in pairwise([0, *found.boundaries, n]):
        # Only the newest stretch may be short; elsewhere it would be a group of outliers.
        last = end - (SHORT if end < n else _FEWEST_AFTER)
        step = series.best_step(begin, end, range(begin + SHORT, last + 1))
        if step and step.gain > penalty(n) + _EXTRA:
            further[step.at] = step
    return further


@dataclass(frozen=True, slots=True)
class _Whitened:
    """The innovations of a series, and of a constant level of 1; n each."""

    values: list[float]
    level: list[float]
    precision: list[float]
    """One over the variance of the innovation; 0 for an outlier and the point after it."""

    @classmethod
    def of(cls, noise: Noise, weights: Sequence[float]) -> _Whitened:
        x, rho = noise.clipped, noise.cautious_rho
        total = [error * error + own for error, own in zip(noise.errors, noise.between, strict=True)]
        # The variance within runs does not depend on the neighbour.
        shares = [rho * own / whole for own, whole in zip(noise.between, total, strict=True)]
        values = [now - share * before for now, share, before in zip(x, shares, [0.0, *x], strict=False)]
        precision = [
            1 / (whole * (1 - share * share)) if weight and weight_before else 0.0
            for whole, share, weight, weight_before in zip(total, shares, weights, [0.0, *weights], strict=False)
        ]
        return cls(values, [1 - share for share in shares], precision)

    def best_step(self, begin: int, end: int, places: range) -> Step | None:
        """Return the step of the largest gain among ``places`` of a stretch, or None.

        The regressor of a step is 0 before it, 1 at its first point, and that of the level from the next point on.
        """
        rows = list(zip(self.values, self.level, self.precision, strict=True))[begin + 1 : end]
        squares = [0.0, *accumulate(weight * one * one for _, one, weight in rows)]
        products = [0.0, *accumulate(weight * one * value for value, one, weight in rows)]
        if not squares[-1]:
            return None
        mean = products[-1] / squares[-1]
        best = (0.0, begin, 0.0, 0.0)
        for at in places:
            after = at - begin
            value, one, weight = rows[after - 1]
            rest_squares, rest_products = squares[-1] - squares[after], products[-1] - products[after]
            square = rest_squares + weight
            with_level = rest_squares + weight * one
            with_values = rest_products + weight * value
            spread = square - with_level * with_level / squares[-1]
            if spread > 0:
                product = with_values - with_level * mean
                best = max(best, (product**2 / spread, at, product / spread, with_level))
        gain, at, size, with_level = best
        # The gain is the square of the size in standard errors.
        return (
            Step(at, gain, mean - size * with_level / squares[-1], size, abs(size) / math.sqrt(gain)) if gain else None
        )
