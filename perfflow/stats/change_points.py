"""Find changes in the history of a benchmark: where its level moved, by how much, and with what confidence.

``changes`` analyses a whole series of log estimates: it estimates the noise, cuts the series into levels
(``partition``, ``innovations``), places every change, and replaces steps in one direction by a drift if a slope fits
better. ``newest_points`` tests only the newest points. Both only raise a suspicion; measuring the two commits in pairs
decides. ``python -m benchmarks.changes`` measures the error rates under ten kinds of noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul
from statistics import median

from perfflow.stats import series_noise
from perfflow.stats.drift import Drift, Fitted, Steps, drift_instead
from perfflow.stats.innovations import Step, further_changes
from perfflow.stats.partition import Partition, Sums, partition
from perfflow.stats.series_noise import Noise, drawn_in

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
class Change:
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

    changes: tuple[Change, ...] = ()
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
    noise: Noise
    found: Partition
    further: dict[int, Step]
    """Boundaries in addition to those of the partition, with their steps."""
    boundaries: list[int]
    sums: Sums
    levels: list[float]
    places: list[_Place]

    @classmethod
    def of(cls, values: Sequence[float], noise: Noise, found: Partition) -> _Cut:
        sums = Sums.of(noise.clipped, found.weights)
        further = further_changes(noise, found)
        boundaries = sorted([*found.boundaries, *further])
        edges = [0, *boundaries, len(values)]
        levels = [sums.mean(begin, end) for begin, end in pairwise(edges)]
        placer = _Placer([value - noise.center for value in values], noise)
        places: list[_Place] = []
        for number, boundary in enumerate(boundaries):
            first = places[-1].at if places else 0
            levels_here = (levels[number], levels[number + 1])
            places.append(placer.place(first, boundary, edges[number + 2], levels_here))
        return cls(values, noise, found, further, boundaries, sums, levels, places)

    def _level(self, number: int, begin: int, end: int) -> float:
        """Return the level of a stretch; in a short one, outliers are clipped around its own median.

        For few points next to a large change the running median is the other level, so clipping around it would hide
        the size of the change.
        """
        if end - begin > series_noise.WINDOW:
            return self.levels[number]
        own = [value - self.noise.center for value in self.values[begin:end]]
        drawn = drawn_in(own, [median(own)] * len(own), self.noise.reaches[begin:end])
        weights = self.found.weights[begin:end]
        return math.fsum(map(mul, drawn, weights)) / math.fsum(weights)

    def change(self, number: int) -> Change:
        step = self.further.get(self.boundaries[number]) or self._step(number)
        reach = _TWO_SIDED_99 * step.error
        alarm = _ALARM_SCALE * max(1.0, len(self.values) / 200) * math.exp(-_ALARM_RATE * step.gain)
        place, before = self.places[number], step.before + self.noise.center
        return Change(
            *(place.at, place.earliest, place.latest),
            *(before, before + step.size, step.size, step.size - reach, step.size + reach),
            1 - min(1.0, alarm),
        )

    def _step(self, number: int) -> Step:
        """Return the step at a boundary of the partition: the difference of the levels on both sides."""
        edges = [0, *self.boundaries, len(self.values)]
        begin, boundary, end = edges[number : number + 3]
        before, after = self._level(number, begin, boundary), self._level(number + 1, boundary, end)
        error = math.sqrt(1 / self.sums.weight(begin, boundary) + 1 / self.sums.weight(boundary, end))
        return Step(boundary, self.sums.gain(begin, boundary, end), before, after - before, error)


@dataclass(frozen=True, slots=True)
class _Placer:
    """Places changes by the Student's t loss of the innovations of the values, which are not clipped."""

    values: list[float]
    noise: Noise

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
        steps = Steps(places[first : last + 1], levels[first : last + 2], edges[first], edges[last + 2])
        drift = drift_instead(series, steps)
        if drift:
            drifts.append(drift)
            replaced.update(range(first, last + 1))
        first = last + 1
    return tuple(drifts), replaced
