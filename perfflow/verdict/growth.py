"""Growth with a size: the cells of ``scaling`` as one benchmark, its exponent on each side, and which grows faster.

A growth that a target asks for is judged by it. One that got worse between two sides without a target is a concern: the
largest sizes are rows of their own, and whether their change passes is decided there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from statistics import NormalDist
from typing import Literal

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.later import dataclass
from perfflow.model.metrics import Metric, default_statistic
from perfflow.model.readings import Side
from perfflow.model.result import CONCERN, Benchmark, Grown, Growth
from perfflow.model.result_samples import Bounds, SizePoint
from perfflow.model.rules import FIRST
from perfflow.model.units import GROWTH_CLASSES, significant
from perfflow.store.record import Record, Series
from perfflow.store.run_facts import Scaling
from perfflow.verdict import growth_fit
from perfflow.verdict.comparison import VALUE_CONFIDENCE, summarise
from perfflow.verdict.decide import IDENTICAL_FLOOR
from perfflow.verdict.growth_ahead import size_that_tells
from perfflow.verdict.growth_curve import curve_of
from perfflow.verdict.growth_fit import Point


@dataclass
class Sizes:
    """One metric of one benchmark at its sizes, smallest first; ``planned`` is how many there should be."""

    key: str
    planned: int = 0
    series: dict[float, Series] = field(default_factory=dict)
    instead: str = ""
    """The metric whose values stand for the one asked for."""

    @property
    def latest(self) -> Side:
        """The candidate, where there is one."""
        measured = any(series.readings(Side.CANDIDATE) for series in self.series.values())
        return Side.CANDIDATE if measured else Side.BASELINE

    def points(self, side: Side, metric: Metric, confidence: float) -> tuple[list[Point], int]:
        """The medians of a side with their standard errors, and the samples that one would need to have an error."""
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        found, needs = [], 0
        for size in sorted(self.series):
            series = self.series[size]
            own = metric if not series.exact else Metric(metric.name, metric.dimension, metric.better, exact=True)
            # How far the points of a curve scatter about it is part of the fit, so theirs are not widened.
            summary = summarise(series.readings(side), own, default_statistic(own), confidence, rules=FIRST)
            if summary is None:
                continue
            if summary.low is None or summary.high is None:
                needs = max(needs, summary.needs)
                continue
            found.append(Point(size, summary.value, (summary.high - summary.low) / (2 * z)))
        return found, needs

    def fit(
        self, side: Side, metric: Metric, thresholds: Thresholds, confidence: float = VALUE_CONFIDENCE
    ) -> growth_fit.Growth | None:
        """How a side grows; None where there are too few sizes, or too few samples of them."""
        points, needs = self.points(side, metric, confidence)
        if needs or len(points) < growth_fit.LEAST:
            return None
        return growth_fit.fit(points, confidence, **self._how(metric, thresholds))

    def size_that_tells(
        self,
        side: Side,
        metric: Metric,
        thresholds: Thresholds,
        confidence: float,
        decided: Callable[[growth_fit.Growth], bool],
    ) -> str:
        """Which further size would decide, as words; '' where none would."""
        points, _ = self.points(side, metric, confidence)
        how = {"confidence": confidence, **self._how(metric, thresholds)}
        found = growth_fit.fit(points, **how)
        size = size_that_tells(points, found, decided, **how)
        if size:
            return f"adding {self.key}={_number(size)} should settle it"
        neighbours = GROWTH_CLASSES.index("linear") <= found.low and found.high <= GROWTH_CLASSES.index("nlogn")
        exact = self._is_exact(metric)
        return _ALIKE if neighbours and not exact else "" if exact else "more samples may settle it"

    def detail(self, side: Side, metric: Metric, thresholds: Thresholds, confidence: float = VALUE_CONFIDENCE) -> str:
        """Which class fits best over which sizes, or why there is no fit."""
        points, needs = self.points(side, metric, confidence)
        sizes = [point.size for point in points]
        if needs:
            return f"fitting a growth needs {needs} samples of each size"
        if len(points) < growth_fit.LEAST:
            return f"{len(points)} of {self.planned} sizes measured; fitting a growth needs {growth_fit.LEAST}"
        found = growth_fit.fit(points, confidence, **self._how(metric, thresholds))
        said = f"{CLASS_NAMES[found.best]} fits best over {self.key}={_number(sizes[0])}..{_number(sizes[-1])}"
        if self.instead:
            said += f", by {self.instead} time"
        if len(points) < self.planned:
            said += f", {len(points)} of {self.planned} sizes"
        if found.high == 0:
            return f"{said}: {_rise(found.rise.high)}"
        if found.rise.high <= thresholds.concern:
            return f"{said}: {_rise(found.rise.high)}, but the sizes span less than a factor of {growth_fit.SPAN:g}"
        return said

    def floor(self, metric: Metric, thresholds: Thresholds) -> float:
        """The share of a value that is uncertain beside its error."""
        return min(thresholds.floor, IDENTICAL_FLOOR) if self._is_exact(metric) else thresholds.floor

    def _how(self, metric: Metric, thresholds: Thresholds) -> dict[str, float]:
        bend = growth_fit.EXACT_BEND if self._is_exact(metric) else growth_fit.BEND
        return {"floor": self.floor(metric, thresholds), "flat": thresholds.concern, "bend": bend}

    def _is_exact(self, metric: Metric) -> bool:
        return metric.exact or any(series.exact for series in self.series.values())


_ALIKE = "times rarely separate linear from n log n; counted instructions do (`uses: callgrind`)"
CLASS_NAMES = {"nlogn": "n log n"} | {name: name for name in ("constant", "log", "linear", "quadratic", "cubic")}


def _rise(share: float) -> str:
    """What a flat curve may hide."""
    return f"at most {max(share, 0.0):.1%} above the smallest size; a part of the cost below that may grow faster"


def _number(size: float) -> str:
    return str(int(size)) if size == int(size) and size < 1e15 else significant(size)


def scaled(record: Record, metric: str) -> Mapping[str, Sizes]:
    """The benchmarks of which a metric was measured at sizes, in the order of the run."""
    found: dict[str, Sizes] = {}
    planned = _planned(record)
    for series in record.series.values():
        about = record.plan_of(series.step).scaling
        if about and series.metric == metric:
            name = _whole(series.benchmark, about)
            sizes = found.setdefault(name, Sizes(about.key, planned[about.of]))
            sizes.series[about.size] = series
    if metric == "time":
        for sizes in found.values():
            _undisturbed(record, sizes)
    return found


def _undisturbed(record: Record, sizes: Sizes) -> None:
    """Take time without the waiting for a core, where all sizes have it.

    A short process fits between those that disturb it and a long one does not, so on a busy machine wall time grows
    faster than the program: of a loop that is linear an exponent of 1.15 was read, which its interval left proven.
    """
    found = {size: record.series.get((series.benchmark, "uncontended")) for size, series in sizes.series.items()}
    known = {size: series for size, series in found.items() if series}
    if len(known) == len(sizes.series) and all(
        len(known[size].readings(side)) == len(series.readings(side))
        for size, series in sizes.series.items()
        for side in Side
    ):
        sizes.series, sizes.instead = known, "uncontended"


def _planned(record: Record) -> Mapping[str, int]:
    """How many sizes the steps of a benchmark have, by its name as they give it."""
    counts: dict[str, set[float]] = defaultdict(set)
    for step in record.planned.values():
        if step.scaling:
            counts[step.scaling.of].add(step.scaling.size)
    return {name: len(sizes) for name, sizes in counts.items()}


def _whole(benchmark: str, about: Scaling) -> str:
    """The name of all sizes, with a suite's own id where the cell's name has it."""
    before, star, after = about.cell.partition("*")
    if not star:
        return about.of
    return about.of.replace("*", benchmark.removeprefix(before).removesuffix(after), 1)


def grown(record: Record, rows: Iterable[Benchmark], criteria: Criteria) -> Iterator[Growth]:
    """Yield the growth of what a verdict rests on, and of what has a target."""
    wanted = {row.metric for row in rows if row.gating or row.leading}
    wanted |= {target.metric.name for target in criteria.targets if target.statistic == "growth"}
    gating = {(row.name, row.metric) for row in rows if row.gating or row.leading}
    for name in sorted(wanted):
        metric = criteria.metric(name)
        targeted = any(target.statistic == "growth" and target.metric.name == name for target in criteria.targets)
        for benchmark, sizes in scaled(record, name).items():
            if targeted or any((series.benchmark, name) in gating for series in sizes.series.values()):
                yield _growth(benchmark, metric, sizes, criteria.thresholds_of(benchmark))


def _growth(benchmark: str, metric: Metric, sizes: Sizes, thresholds: Thresholds) -> Growth:
    found = {side: sizes.fit(side, metric, thresholds) for side in Side}
    told = {
        side: _grown(item, sizes.points(side, metric, VALUE_CONFIDENCE)[0], sizes.floor(metric, thresholds))
        for side, item in found.items()
        if item
    }
    before, after = found[Side.BASELINE], found[Side.CANDIDATE]
    decision = _decision(before, after) if before and after else None
    return Growth(
        benchmark=benchmark,
        metric=metric.name,
        key=sizes.key,
        baseline=told.get(Side.BASELINE),
        candidate=told.get(Side.CANDIDATE),
        decision=decision,
        detail=sizes.detail(sizes.latest, metric, thresholds),
    )


def _grown(found: growth_fit.Growth, points: Sequence[Point], floor: float) -> Grown:
    """One side as it is stored: its exponent, what was measured, and the curve through it."""
    z = NormalDist().inv_cdf(0.5 + VALUE_CONFIDENCE / 2)
    measured = [(item.size, item.value, item.value - z * item.error, item.value + z * item.error) for item in points]
    curve = [(size, own.estimate, own.low, own.high) for size, own in curve_of(points, found, floor)]
    points_of, curve_told = (
        [SizePoint(size=size, value=value, low=low, high=high) for size, value, low, high in each]
        for each in (measured, curve)
    )
    return Grown(
        exponent=Bounds(value=found.exponent.estimate, low=found.exponent.low, high=found.exponent.high),
        best=found.best,
        sizes=[point.size for point in points],
        points=points_of,
        curve=curve_told,
    )


def _decision(before: growth_fit.Growth, after: growth_fit.Growth) -> Literal["worse", "better", "same", "unproven"]:
    if _beyond(after, before):
        return "worse"
    if _beyond(before, after):
        return "better"
    told = before.low == before.high == after.low == after.high
    return "same" if told else "unproven"


def _beyond(one: growth_fit.Growth, other: growth_fit.Growth) -> bool:
    """Whether one is proven to grow faster: in a higher class, and with an exponent of its own."""
    apart = other.high == 0 or one.exponent.low > other.exponent.high
    return apart and one.low > other.high and math.isfinite(other.high)


def concerns(found: Iterable[Growth]) -> Iterator[str]:
    """Say what grows faster than it did."""
    for item in found:
        if item.decision == "worse" and item.baseline and item.candidate:
            sides = " → ".join(_told(side) for side in (item.baseline, item.candidate))
            yield f"{CONCERN}{item.benchmark} {item.metric} grows faster with {item.key}: {sides}"


def _told(side: Grown) -> str:
    value = side.exponent.value
    return (
        CLASS_NAMES[side.best]
        if side.best == "constant" or value is None
        else f"{CLASS_NAMES[side.best]} (n^{value:.2f})"
    )
