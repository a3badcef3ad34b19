"""Growth with a size: the cells of ``scaling`` as one benchmark, its exponent on each side, and which grows faster.

A target judges the growth that it names. Growth that got worse between two sides without a target is only a concern,
because the largest sizes are rows of their own, which decide whether their change passes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.metrics import Metric, default_statistic, in_words
from perfflow.model.readings import Side
from perfflow.model.result import CONCERN, Benchmark, Grown, Growth
from perfflow.model.result_samples import Bounds, SizePoint
from perfflow.model.units import GROWTH_CLASSES, significant
from perfflow.store.record import Record, Series
from perfflow.store.run_facts import Scaling
from perfflow.verdict import growth_fit
from perfflow.verdict.comparison import VALUE_CONFIDENCE, summarise
from perfflow.verdict.decide import IDENTICAL_FLOOR
from perfflow.verdict.growth_ahead import deciding_size
from perfflow.verdict.growth_curve import curve_of
from perfflow.verdict.growth_fit import Point


@dataclass
class Sizes:
    """One metric of one benchmark at its sizes, smallest first; ``planned`` is the number of planned sizes."""

    key: str
    planned: int = 0
    series: dict[float, Series] = field(default_factory=dict)
    instead: str = ""
    """The metric whose values replace those of the requested metric; '' if none does."""

    @property
    def latest(self) -> Side:
        """The candidate if it was measured, else the baseline."""
        measured = any(series.readings(Side.CANDIDATE) for series in self.series.values())
        return Side.CANDIDATE if measured else Side.BASELINE

    def points(self, side: Side, metric: Metric, confidence: float) -> tuple[list[Point], int]:
        """Return the medians of a side with standard errors, and the samples needed per size if some have no error."""
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        found, needs = [], 0
        for size in sorted(self.series):
            series = self.series[size]
            own = metric if not series.exact else Metric(metric.name, metric.dimension, metric.better, exact=True)
            # The fit includes the scatter of the points, so their intervals are not widened for correlation.
            summary = summarise(series.readings(side), own, default_statistic(own), confidence, widened=False)
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
        """Return the growth of a side; None if there are too few sizes or too few samples."""
        points, needs = self.points(side, metric, confidence)
        if needs or len(points) < growth_fit.LEAST:
            return None
        return growth_fit.fit(points, confidence, **self._how(metric, thresholds))

    def deciding_size(
        self,
        side: Side,
        metric: Metric,
        thresholds: Thresholds,
        confidence: float,
        decided: Callable[[growth_fit.Growth], bool],
    ) -> str:
        """Return which further size would settle a growth, as text; '' if none would."""
        points, _ = self.points(side, metric, confidence)
        how = {"confidence": confidence, **self._how(metric, thresholds)}
        found = growth_fit.fit(points, **how)
        size = deciding_size(points, found, decided, **how)
        if size:
            return f"adding {self.key}={_number(size)} should settle it"
        neighbours = GROWTH_CLASSES.index("linear") <= found.low and found.high <= GROWTH_CLASSES.index("nlogn")
        exact = self._is_exact(metric)
        return _ALIKE if neighbours and not exact else "" if exact else "more samples may settle it"

    def detail(self, side: Side, metric: Metric, thresholds: Thresholds, confidence: float = VALUE_CONFIDENCE) -> str:
        """Return which class fits best over which sizes, or why there is no fit, as text."""
        points, needs = self.points(side, metric, confidence)
        sizes = [point.size for point in points]
        if needs:
            return f"fitting a growth needs {needs} samples of each size"
        if len(points) < growth_fit.LEAST:
            return f"{len(points)} of {self.planned} sizes measured; fitting a growth needs {growth_fit.LEAST}"
        found = growth_fit.fit(points, confidence, **self._how(metric, thresholds))
        said = f"{CLASS_NAMES[found.best]} fits best over {self.key}={_number(sizes[0])}..{_number(sizes[-1])}"
        if self.instead:
            said += f", by {in_words(self.instead)}"
        if len(points) < self.planned:
            said += f", {len(points)} of {self.planned} sizes"
        if found.high == 0:
            return f"{said}: {_rise(found.rise.high)}"
        if found.rise.high <= thresholds.concern:
            return f"{said}: {_rise(found.rise.high)}, but the sizes span less than a factor of {growth_fit.SPAN:g}"
        return said

    def floor(self, metric: Metric, thresholds: Thresholds) -> float:
        """Return the share of a value that is uncertain in addition to its error."""
        return min(thresholds.floor, IDENTICAL_FLOOR) if self._is_exact(metric) else thresholds.floor

    def _how(self, metric: Metric, thresholds: Thresholds) -> dict[str, float]:
        bend = growth_fit.EXACT_BEND if self._is_exact(metric) else growth_fit.BEND
        return {"floor": self.floor(metric, thresholds), "flat": thresholds.concern, "bend": bend}

    def _is_exact(self, metric: Metric) -> bool:
        return metric.exact or any(series.exact for series in self.series.values())


_ALIKE = "times rarely separate linear from n log n; counted instructions do (`uses: callgrind`)"
CLASS_NAMES = {"nlogn": "n log n"} | {name: name for name in ("constant", "log", "linear", "quadratic", "cubic")}


def _rise(share: float) -> str:
    """Return a note on the growth that a flat curve may hide."""
    return f"at most {max(share, 0.0):.1%} above the smallest size; a part of the cost below that may grow faster"


def _number(size: float) -> str:
    return str(int(size)) if size == int(size) and size < 1e15 else significant(size)


def scaled(record: Record, metric: str) -> Mapping[str, Sizes]:
    """Return the benchmarks with a metric that was measured at several sizes, in the order of the run."""
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
    """Use time without queueing for a core if all sizes have it.

    On a busy machine wall time grows faster than the program, because a short process is disturbed less than a long
    one: a linear loop had a measured exponent of 1.15, and its interval excluded 1.
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
    """Return the number of sizes of each benchmark, by the name in its steps."""
    counts: dict[str, set[float]] = defaultdict(set)
    for step in record.planned.values():
        if step.scaling:
            counts[step.scaling.of].add(step.scaling.size)
    return {name: len(sizes) for name, sizes in counts.items()}


def _whole(benchmark: str, about: Scaling) -> str:
    """Return the common name of all sizes, with the suite's own id if the cell's name contains one."""
    before, star, after = about.cell.partition("*")
    if not star:
        return about.of
    return about.of.replace("*", benchmark.removeprefix(before).removesuffix(after), 1)


def grown(record: Record, rows: Iterable[Benchmark], criteria: Criteria) -> Iterator[Growth]:
    """Yield the growth of the gating rows and of rows with a growth target."""
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
    """Return one side as it is stored: its exponent, the measured points, and the fitted curve."""
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
    """Return whether ``one`` is proven to grow faster: a higher class, and a separate interval of the exponent."""
    apart = other.high == 0 or one.exponent.low > other.exponent.high
    return apart and one.low > other.high and math.isfinite(other.high)


def concerns(found: Iterable[Growth]) -> Iterator[str]:
    """Yield a warning for each benchmark that grows faster than before."""
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
