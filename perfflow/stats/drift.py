"""Test whether several changes in one direction are one slow drift: compare steps and a slope by the BIC.

Both fits are judged by the loss of their innovations, which are each residual minus rho times the previous residual.
With long-run weights instead, true steps in dependent noise were taken for a drift in up to half of the series.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from perfflow.stats.partition import Sums

_SHORTEST = 16
"""Fewest points of a slope; a shorter one is a step that is hard to place."""
_MARGIN = 300
"""Points before the first and after the last change that are included in the fit."""
_FEWEST, _MOST = 30, 1500
_GRID = 14


@dataclass(frozen=True, slots=True)
class Drift:
    """A slow change: the level starts to move at point ``begin`` and reaches its new height at point ``end``."""

    begin: int
    end: int
    size: float
    """The whole change, as a difference of logarithms."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Changes in one direction: the index of the first point after each, and the levels between them."""

    places: Sequence[int]
    levels: Sequence[float]
    begin: int
    """Start of the stretch before the first change."""
    end: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """A partitioned series: values, their weights, and one over the variance of their innovations; n each."""

    values: Sequence[float]
    weights: Sequence[float]
    precision: Sequence[float]
    rho: float


def drift_instead(series: Fitted, steps: Steps) -> Drift | None:
    """Return the drift of at least 16 points that explains the series better than ``steps``, or None.

    In the BIC a step has two parameters. A slope has three, and four if it replaces a single step.
    """
    begin = max(steps.begin, steps.places[0] - _MARGIN)
    end = min(steps.end, steps.places[-1] + _MARGIN)
    if not _FEWEST <= end - begin <= _MOST:
        return None
    fitted = _best_slope(series.values[begin:end], series.weights[begin:end])
    if fitted is None or fitted.end - fitted.begin < _SHORTEST:
        return None
    drift = Drift(begin + fitted.begin, begin + fitted.end, fitted.size)
    count = len(steps.places)
    stairs = [steps.levels[bisect_right(steps.places, index)] for index in range(begin, end)]
    price = math.log(end - begin)
    of_steps = _innovation_loss(series, begin, stairs) + 2 * count * price
    of_slope = _innovation_loss(series, begin, _slope(series, begin, end, drift)) + (3 if count > 1 else 4) * price
    return drift if of_slope < of_steps else None


def _slope(series: Fitted, begin: int, end: int, drift: Drift) -> list[float]:
    length = drift.end - drift.begin
    inside = [drift.size * (number / length) for number in range(length)]
    rise = [0.0] * (drift.begin - begin) + inside + [drift.size] * (end - drift.end)
    rest = [value - more for value, more in zip(series.values[begin:end], rise, strict=True)]
    base = Sums.of(rest, series.weights[begin:end]).mean(0, end - begin)
    return [base + more for more in rise]


def _innovation_loss(series: Fitted, begin: int, levels: Sequence[float]) -> float:
    end = begin + len(levels)
    rest = [value - level for value, level in zip(series.values[begin:end], levels, strict=True)]
    return sum(
        precision * (now - series.rho * before) ** 2
        for precision, before, now in zip(series.precision[begin + 1 : end], rest, rest[1:], strict=False)
    )


def _best_slope(values: Sequence[float], weights: Sequence[float]) -> Drift | None:
    """Return the flat-slope-flat line of least weighted loss over a grid of starts and ends, each in closed form."""
    n = len(values)
    step = max(2, n // _GRID)
    moments = _Moments.of(values, weights)
    best: tuple[float, Drift] | None = None
    for begin in range(0, n - 10, step):
        for at in range(begin + 10, n + 1, step):
            end = n if n - at < step else at
            gain, size = moments.gain(begin, end)
            if best is None or gain > best[0]:
                best = (gain, Drift(begin, end, size))
    return best[1] if best else None


@dataclass(frozen=True, slots=True)
class _Moments:
    """Prefix sums of w, w x, w t, w t^2 and w t x, where t is the index; n + 1 each."""

    w: list[float]
    x: list[float]
    t: list[float]
    tt: list[float]
    tx: list[float]

    @classmethod
    def of(cls, values: Sequence[float], weights: Sequence[float]) -> _Moments:
        rows = list(enumerate(zip(values, weights, strict=True)))
        terms = (
            [weight for _, (_, weight) in rows],
            [weight * value for _, (value, weight) in rows],
            [weight * t for t, (_, weight) in rows],
            [weight * t * t for t, (_, weight) in rows],
            [weight * t * value for t, (value, weight) in rows],
        )
        return cls(*([0.0, *accumulate(each)] for each in terms))

    def gain(self, begin: int, end: int) -> tuple[float, float]:
        """Return by how much a slope from ``begin`` to ``end`` lowers the loss of one level, and its height.

        The regressor is 0 before, (t - begin) / (end - begin) inside, and 1 after.
        """
        length = end - begin
        w, t, tt = self.w[end] - self.w[begin], self.t[end] - self.t[begin], self.tt[end] - self.tt[begin]
        after, all_w, all_x = self.w[-1] - self.w[end], self.w[-1], self.x[-1]
        mean = (t - begin * w) / length + after
        square = (tt - 2 * begin * t + begin * begin * w) / length**2 + after
        inside = self.tx[end] - self.tx[begin] - begin * (self.x[end] - self.x[begin])
        product = inside / length + all_x - self.x[end]
        spread = square - mean * mean / all_w
        if spread <= 0:
            return 0.0, 0.0
        covariance = product - mean * all_x / all_w
        return covariance * covariance / spread, covariance / spread
