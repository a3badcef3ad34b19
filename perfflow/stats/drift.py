"""Is a run of changes in one direction rather one slow drift? Steps and a slope are compared by the BIC.

Both fits are judged by the loss of their innovations, what is left of each residual after its neighbour's is taken off
rho times: with long-run weights instead, true steps in dependent noise were called a drift in up to half of the series.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import sub

from perfflow.stats.partition import Sums

_SHORTEST = 16
"""Points a slope must last; a shorter one is a step that is hard to place."""
_MARGIN = 300
"""Points beyond the first and the last change that are looked at."""
_FEWEST, _MOST = 30, 1500
_GRID = 14


@dataclass(frozen=True, slots=True)
class Drift:
    """A slow change: the level leaves point ``begin`` and is at its new height from point ``end`` on."""

    begin: int
    end: int
    size: float
    """The whole change, as a difference of logarithms."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Changes in one direction, as indices of the first point after each, and the levels between them."""

    places: Sequence[int]
    levels: Sequence[float]
    begin: int
    """Where the stretch before the first change begins."""
    end: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """A series as it was cut: values, their weights in the cut, and one over the variance of their innovations."""

    values: Sequence[float]
    weights: Sequence[float]
    precision: Sequence[float]
    rho: float


def drift_instead(series: Fitted, steps: Steps) -> Drift | None:
    """Return the drift that explains the series better than ``steps`` do, or None where none of 16 points does.

    A step counts as two numbers. A slope counts as three, and as four where it replaces a single step.
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
    rise = [drift.size * min(max((index - drift.begin) / length, 0.0), 1.0) for index in range(begin, end)]
    rest = list(map(sub, series.values[begin:end], rise))
    base = Sums.of(rest, series.weights[begin:end]).mean(0, end - begin)
    return [base + more for more in rise]


def _innovation_loss(series: Fitted, begin: int, levels: Sequence[float]) -> float:
    end = begin + len(levels)
    rest: list[float] = list(map(sub, series.values[begin:end], levels))
    return sum(
        precision * (now - series.rho * before) ** 2
        for precision, before, now in zip(series.precision[begin + 1 : end], rest, rest[1:], strict=False)
    )


def _best_slope(values: Sequence[float], weights: Sequence[float]) -> Drift | None:
    """The flat-slope-flat line of least weighted loss over a grid of starts and ends, in closed form for each."""
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
        """By how much a slope from ``begin`` to ``end`` lowers the loss of one level, and its height.

        The regressor is 0 before, (t - begin) / (end - begin) inside, and 1 after.
        """
        length = end - begin
        w, t, tt = (each[end] - each[begin] for each in (self.w, self.t, self.tt))
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
