"""Find changes in the history of a benchmark: where its level moved, by how much, and with what confidence.

``changes`` analyses a whole series of log estimates: it estimates the noise, cuts the series into levels
(``partition``, ``further_changes``), places every change, and replaces steps in one direction by a drift if a slope
fits better. ``fresh_suspicion`` tests only the newest points. Both only raise a suspicion; measuring the two commits in
pairs decides. ``python -m benchmarks.changes`` measures the error rates under ten kinds of noise.

``further_changes`` finds changes in a dependent series that show only in its innovations, the part of each point not
due to the previous. The partition treats dependent points as fewer independent ones. So it cannot use the fact that a
level changes from one point to the next, while dependent noise moves slowly. Here each stretch of the partition is
searched for one more change by generalised least squares. This whitens the series like Chakar, Lebarbier, Lévy-Leduc
and Robin (2017, Bernoulli 23), but keeps the point of the change itself. At a correlation of 0.6, it finds 58% of the
5% steps that are followed by 10 points; the partition alone finds 33%.

``drift_instead`` tests whether several changes in one direction are one slow drift: it compares steps and a slope by
the BIC. Both fits are judged by the loss of their innovations, which are each residual minus rho times the previous
residual. With long-run weights instead, true steps in dependent noise were taken for a drift in up to half of the
series.

``fresh_suspicion`` is called after each append: have the newest points of a history left its level? A suspicion is
early and may be wrong: a few disturbed runs at the end look like a change until more points follow.
``review_suspicion`` confirms it if ``changes`` finds the change as well, or withdraws it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise
from operator import mul
from statistics import median

from perfflow.stats import series_noise
from perfflow.stats.partition import SHORT, Partition, PrefixSums, partition, penalty
from perfflow.stats.series_noise import SeriesNoise, drawn_in

FEWEST = 12
"""Fewest points of a series; shorter ones have no changes."""
FEWEST_AFTER = 4
"""Fewest points before and after a change that is reported."""
_REACH = 12
_HELD = 0.95
_STUDENT = 5
"""Degrees of freedom of the noise when a change is placed: heavier tails than normal, as run times have."""
_TWO_SIDED_99 = 2.576
_ALARM_SCALE, _ALARM_RATE = 1.1, 0.36
"""Share of unchanged series of 200 points with a gain of at least g: about 1.1 exp(-0.36 g), fitted to simulations."""


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the level between two points. Levels are natural logarithms, sizes their differences."""

    at: int
    """Index of the first point after the change."""
    earliest: int
    latest: int
    """``earliest`` to ``latest``, both included, contain the true position with 95% probability."""
    before: float
    after: float
    size: float
    low: float
    high: float
    """The 99% interval of ``size``."""
    confidence: float
    """1 - the share of unchanged series of this length in which a change at least as clear is found."""


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """The result of ``changes``."""

    changes: tuple[LevelChange, ...] = ()
    drifts: tuple[Drift, ...] = ()
    rho: float = 0.0
    """Correlation of neighbouring points around their levels, 0 to 0.85; imprecise below 60 points."""
    outliers: tuple[tuple[int, int], ...] = ()
    """Groups of 1 to 7 points off their level, as (first point, first point after the group)."""


def changes(values: Sequence[float], errors: Sequence[float]) -> FoundChanges:
    """Return the changes and drifts of a series, in order.

    values: n natural logarithms of one estimate per run, in order of the commits; within +-1000.
    errors: n standard errors of these logarithms, from within each run; 0 where unknown.
    Fewer than 12 values give no changes. Raises ValueError for numbers outside these ranges or not finite, or if the
    lengths differ.
    """
    series_noise.check(values, errors)
    if len(values) < FEWEST:
        return FoundChanges()
    noise = series_noise.estimate(values, errors)
    cut = _Cut.of(values, noise, partition(noise.clipped, noise.weights()))
    drifts, replaced = _drifts(cut)
    n = len(values)
    kept = tuple(
        cut.change(number)
        for number, place in enumerate(cut.boundaries)
        if number not in replaced and FEWEST_AFTER <= place <= n - FEWEST_AFTER
    )
    return FoundChanges(kept, drifts, noise.rho, tuple(cut.found.outliers))


@dataclass(frozen=True, slots=True)
class _Place:
    at: int
    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """A partition with its levels, and the places of its changes."""

    values: Sequence[float]
    noise: SeriesNoise
    found: Partition
    further: dict[int, LevelStep]
    """Boundaries in addition to those of the partition, with their steps."""
    boundaries: list[int]
    sums: PrefixSums
    levels: list[float]
    places: list[_Place]

    @classmethod
    def of(cls, values: Sequence[float], noise: SeriesNoise, partition: Partition) -> _Cut:
        sums = PrefixSums.of(noise.clipped, partition.weights)
        further = further_changes(noise, partition)
        boundaries = sorted([*partition.boundaries, *further])
        edges = [0, *boundaries, len(values)]
        levels = [sums.mean(begin, end) for begin, end in pairwise(edges)]
        placer = _Placer([value - noise.center for value in values], noise)
        places: list[_Place] = []
        for number, boundary in enumerate(boundaries):
            first = places[-1].at if places else 0
            levels_here = (levels[number], levels[number + 1])
            places.append(placer.place(first, boundary, edges[number + 2], levels_here))
        return cls(values, noise, partition, further, boundaries, sums, levels, places)

    def _level(self, number: int, begin: int, end: int) -> float:
        """Return the level of a stretch; in a short one, outliers are clipped around its own median.

        For few points next to a large change the running median is the other level, so clipping around it would hide
        the size of the change.
        """
        if end - begin > series_noise.WINDOW:
            return self.levels[number]
        centered = [value - self.noise.center for value in self.values[begin:end]]
        drawn = drawn_in(centered, [median(centered)] * len(centered), self.noise.reaches[begin:end])
        weights = self.found.weights[begin:end]
        return math.fsum(map(mul, drawn, weights)) / math.fsum(weights)

    def change(self, number: int) -> LevelChange:
        step = self.further.get(self.boundaries[number]) or self._step(number)
        reach = _TWO_SIDED_99 * step.error
        alarm = _ALARM_SCALE * max(1.0, len(self.values) / 200) * math.exp(-_ALARM_RATE * step.gain)
        place, before = self.places[number], step.before + self.noise.center
        return LevelChange(
            *(place.at, place.earliest, place.latest),
            *(before, before + step.size, step.size, step.size - reach, step.size + reach),
            1 - min(1.0, alarm),
        )

    def _step(self, number: int) -> LevelStep:
        """Return the step at a boundary of the partition: the difference of the levels on both sides."""
        edges = [0, *self.boundaries, len(self.values)]
        begin, boundary, end = edges[number : number + 3]
        before, after = self._level(number, begin, boundary), self._level(number + 1, boundary, end)
        error = math.sqrt(1 / self.sums.weight(begin, boundary) + 1 / self.sums.weight(boundary, end))
        return LevelStep(boundary, self.sums.gain(begin, boundary, end), before, after - before, error)


@dataclass(frozen=True, slots=True)
class _Placer:
    """Places changes by the Student's t loss of the innovations of the values, which are not clipped."""

    values: list[float]
    noise: SeriesNoise

    def place(self, first: int, boundary: int, end: int, levels: tuple[float, float]) -> _Place:
        """Return the position of least loss within 12 points of ``boundary``, and the smallest range that holds 95%."""
        low, high = max(first + 2, boundary - _REACH), min(end - 2, boundary + _REACH)
        if high < low:
            return _Place(boundary, boundary, boundary)
        old, new = levels
        points = range(low, high + 1)
        if_old = [0.0, *accumulate(self._loss(index, old, old) for index in points)]
        if_new = [0.0, *accumulate(self._loss(index, new, new) for index in points)]
        losses = [if_old[number] + self._loss(at, new, old) - if_new[number + 1] for number, at in enumerate(points)]
        return _held(low, losses)

    def _loss(self, index: int, level: float, level_before: float) -> float:
        rho = self.noise.rho
        error = self.noise.errors[index]
        off = self.values[index] - level - rho * (self.values[index - 1] - level_before)
        # 0.8: the scale of a t distribution with 5 degrees of freedom and about the variance of the normal one.
        spread = 0.8 * (error * error + self.noise.between[index]) * (1 - rho * rho)
        return (_STUDENT + 1) / 2 * math.log1p(off * off / (_STUDENT * spread))


def _held(low: int, losses: Sequence[float]) -> _Place:
    least = min(losses)
    likely = [math.exp(least - loss) for loss in losses]
    left = right = losses.index(least)
    at, held = low + left, likely[left]
    while held < _HELD * sum(likely):
        on_left = likely[left - 1] if left > 0 else -1.0
        on_right = likely[right + 1] if right + 1 < len(likely) else -1.0
        if on_left >= on_right:
            left -= 1
        else:
            right += 1
        held += max(on_left, on_right)
    return _Place(at, low + left, low + right)


def _drifts(cut: _Cut) -> tuple[tuple[Drift, ...], set[int]]:
    """Test each run of changes in one direction; return the drifts and the numbers of the changes they replace."""
    rho = cut.noise.rho
    precision = [
        1 / ((error * error + between) * (1 - rho * rho)) if weight else 0.0
        for error, between, weight in zip(cut.noise.errors, cut.noise.between, cut.found.weights, strict=True)
    ]
    series = Fitted(cut.noise.clipped, cut.found.weights, precision, rho)
    places = [place.at for place in cut.places]
    edges = [0, *places, len(precision)]
    levels = [
        cut.sums.mean(begin, end) if cut.sums.weight(begin, end) else level
        for begin, end, level in zip(edges, edges[1:], cut.levels, strict=False)
    ]
    rises = [after > before for before, after in pairwise(levels)]
    drifts: list[Drift] = []
    replaced: set[int] = set()
    first = 0
    while first < len(rises):
        last = first
        while last + 1 < len(rises) and rises[last + 1] == rises[first]:
            last += 1
        steps = LevelSteps(places[first : last + 1], levels[first : last + 2], edges[first], edges[last + 2])
        drift = drift_instead(series, steps)
        if drift:
            drifts.append(drift)
            replaced.update(range(first, last + 1))
        first = last + 1
    return tuple(drifts), replaced


_EXTRA = 3.0
"""Gain that a change needs here in addition to the penalty, because the series is searched a second time."""
_FEWEST_AFTER = 4


@dataclass(frozen=True, slots=True)
class LevelStep:
    """A step found in the innovations; its level and size are logarithms, like the series."""

    at: int
    """Index of the first point after it."""
    gain: float
    """Reduction of the loss in units of chi-square: the square of the size in standard errors."""
    before: float
    size: float
    error: float
    """Standard error of ``size`` in the test that found it; for few points far below that of two levels."""


def further_changes(noise: SeriesNoise, cuts: Partition) -> dict[int, LevelStep]:
    """Return additional steps inside the stretches of ``cuts``, by their boundaries.

    There is at most one step in each stretch, and none if the estimated correlation is 0.
    """
    if not noise.rho:
        return {}
    n = len(noise.clipped)
    series = _Whitened.of(noise, cuts.weights)
    further: dict[int, LevelStep] = {}
    for begin, end in pairwise([0, *cuts.boundaries, n]):
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
    def of(cls, noise: SeriesNoise, weights: Sequence[float]) -> _Whitened:
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

    def best_step(self, begin: int, end: int, places: range) -> LevelStep | None:
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
            LevelStep(at, gain, mean - size * with_level / squares[-1], size, abs(size) / math.sqrt(gain))
            if gain
            else None
        )


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
class LevelSteps:
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


def drift_instead(series: Fitted, steps: LevelSteps) -> Drift | None:
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
    base = PrefixSums.of(rest, series.weights[begin:end]).mean(0, end - begin)
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


TOLD = 4.0
"""Size in standard errors from which a suspicion is reported.

In unchanged series this happens after one append in 8,000 if the noise is normal, and after one in 1,200 if
neighbours have a correlation of 0.6.
"""
SAME = 15
"""Suspicions at most this many points apart are the same one."""
_LEAST_SHIFT, _MOST_SHIFT = 3, 60
_REFERENCE = 100
_FEWEST_BEFORE = 12
_GONE = 2.0
_FOR_FEW = 10


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The newest points may have left the level before them. Levels are logarithms."""

    at: int
    """Index of the first point of the new level."""
    since: int
    """Index of the first point of the reference before it."""
    before: float
    size: float
    z: float
    """The size in standard errors, corrected for dependence and for few points."""


class SuspicionStatus(StrEnum):
    """Status of a suspicion after later points."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    WITHDRAWN = "withdrawn"


def fresh_suspicion(values: Sequence[float], errors: Sequence[float], start: int = 0) -> Suspicion | None:
    """Return a suspicion if the newest 3 to 60 points have left the level of up to 100 points before them, else None.

    values, errors: as for ``changes``. start: index of the first point after the last reported change; earlier points
    are not used. Fewer than 15 points from ``start`` on give None. Raises ValueError like ``changes``, and for a start
    outside the series.
    """
    series_noise.check(values, errors)
    if not 0 <= start <= len(values):
        raise ValueError(f"start is {start}; it must be from 0 to {len(values)}, the number of values")
    since = max(start, len(values) - _REFERENCE - _MOST_SHIFT)
    if len(values) - since < _LEAST_SHIFT + _FEWEST_BEFORE:
        return None
    ends = _Ends.of(values[since:], errors[since:])
    tried = range(_LEAST_SHIFT, min(_MOST_SHIFT, ends.count - _FEWEST_BEFORE) + 1)
    z, count = max((ends.z(count), -count) for count in tried)
    at = ends.count + count
    if z < TOLD:
        return None
    return Suspicion(since + at, since, ends.center + ends.sums.mean(0, at), ends.size(at), z)


def review_suspicion(
    suspicion: Suspicion, result: FoundChanges, values: Sequence[float], errors: Sequence[float]
) -> SuspicionStatus:
    """Return the status of a suspicion for a series with more points.

    values, errors: as for ``changes``, whose result for them is ``result``.
    Confirmed: ``result`` has a change within 15 points, or a drift across it, in the same direction. Withdrawn: its
    points are a group of outliers of ``result``, or the mean of 8 or more points since is within two standard errors of
    the level before, or more than 60 points have passed. Otherwise open.
    """
    up, at = suspicion.size > 0, suspicion.at
    steps = any((one.size > 0) == up and abs(one.at - at) <= SAME for one in result.changes)
    if steps or any((one.size > 0) == up and one.begin <= at <= one.end for one in result.drifts):
        return SuspicionStatus.CONFIRMED
    since = len(values) - at
    if since > _MOST_SHIFT or any(begin - SHORT < at < end for begin, end in result.outliers):
        return SuspicionStatus.WITHDRAWN
    if since < SHORT:
        return SuspicionStatus.OPEN
    first = suspicion.since
    ends = _Ends.of(values[first:], errors[first:])
    return SuspicionStatus.WITHDRAWN if ends.z(since) < _GONE else SuspicionStatus.OPEN


@dataclass(frozen=True, slots=True)
class _Ends:
    """A stretch whose last points are compared with the points before them."""

    sums: PrefixSums
    rho: float
    count: int
    center: float

    @classmethod
    def of(cls, values: Sequence[float], errors: Sequence[float]) -> _Ends:
        noise = series_noise.estimate(values, errors)
        return cls(PrefixSums.of(noise.clipped, noise.weights()), noise.cautious_rho, len(values), noise.center)

    def size(self, at: int) -> float:
        return self.sums.mean(at, self.count) - self.sums.mean(0, at)

    def z(self, newest: int) -> float:
        """Return the size of the change ``newest`` points before the end, in standard errors."""
        at = self.count - newest
        inverse = 1 / self.sums.weight(0, at) + self._share(newest) / self.sums.weight(at, self.count)
        return abs(self.size(at)) / math.sqrt(inverse * (1 + _FOR_FEW / self.count))

    def _share(self, count: int) -> float:
        """Return the variance of the mean of ``count`` AR(1) points as a share of the long-run variance, 0 to 1."""
        rho = self.rho
        inflation = (1 + rho) / (1 - rho)
        return 1 - 2 * rho * (1 - rho**count) / (count * (1 - rho) ** 2) / inflation
