"""Two samples -> Comparison: effect, interval, warnings. Numbers only; what they mean is the verdict's business."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from perfflow.rundir.record import Series
from perfflow.samples.metrics import QUANTILES, TIMES, Better, Metric, default_statistic
from perfflow.samples.readings import Reading, Side
from perfflow.statistics import (
    Interval,
    mean_interval,
    paired_interval,
    quantile,
    quantile_interval,
    samples_for_quantile,
)

VALUE_CONFIDENCE = 0.95
"""Confidence of one side's own interval."""
CHANGE_CONFIDENCE = 0.99
"""Confidence of the interval of a change: at most 1 % false alarms per comparison."""
_CPU_BOUND = 0.9
_ONE_THREAD = 1.05


@dataclass(frozen=True, slots=True)
class Summary:
    """One side: the statistic with its interval (None where the samples cannot bound it), and all values."""

    value: float
    low: float | None
    high: float | None
    n: int
    samples: tuple[float, ...]
    needs: int = 0
    """Samples needed before both bounds exist; 0 when they do."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one benchmark. ``change`` is candidate/baseline - 1, its bounds infinite where nothing is known."""

    benchmark: str
    metric: Metric
    statistic: str
    step: str
    tool: str
    baseline: Summary | None
    candidate: Summary | None
    change: Interval | None = None
    pairs: int = 0
    confidence: float | None = None
    warnings: tuple[str, ...] = field(default=())


def compare(series: Series, metric: Metric) -> Comparison:
    """Summarise both sides of a series and, where there are two, the change between them."""
    statistic = default_statistic(metric)
    sides = {side: summarise(series.sides[side], metric, statistic) for side in Side}
    baseline, candidate = sides[Side.BASELINE], sides[Side.CANDIDATE]
    warnings = _warnings(series)
    if not baseline or not candidate or metric.better is Better.NONE or _hidden(series):
        return Comparison(
            series.benchmark, metric, statistic, series.step, series.tool, baseline, candidate, warnings=tuple(warnings)
        )
    change, confidence = _change(series, metric, warnings)
    return Comparison(
        series.benchmark,
        metric,
        statistic,
        series.step,
        series.tool,
        baseline,
        candidate,
        change,
        min(baseline.n, candidate.n),
        confidence,
        tuple(warnings),
    )


def summarise(readings: Sequence[Reading], metric: Metric, statistic: str) -> Summary | None:
    """A statistic of one side with its 95% interval; None without readings.

    Of values taken inside each process the statistic is taken there first, and its interval over the processes.
    """
    if not readings:
        return None
    inner = len(readings[0].inner) > 0 and statistic in readings[0].inner
    values = [item.inner.get(statistic, item.value) if inner else item.value for item in readings]
    interval, needs = _interval(values, metric, "p50" if inner else statistic)
    low, high = _finite(interval.low), _finite(interval.high)
    if any(item.at_most for item in readings):
        low = 0.0
    samples = tuple(item.value for item in readings)
    return Summary(interval.estimate, low, high, len(values), samples, needs)


def _interval(values: Sequence[float], metric: Metric, statistic: str) -> tuple[Interval, int]:
    if statistic in ("min", "max"):
        # The extreme of these runs is a fact about them; of runs to come it says nothing, so it has no interval.
        extreme = min(values) if statistic == "min" else max(values)
        return Interval(extreme, extreme, extreme), 0
    if metric.exact:
        return Interval(quantile(values, 0.5), min(values), max(values)), 0
    if statistic == "mean":
        return mean_interval(values, VALUE_CONFIDENCE), 0 if len(values) > 1 else 2
    q = QUANTILES.get(statistic, 0.5)
    interval = quantile_interval(values, q, VALUE_CONFIDENCE)
    bounded = math.isfinite(interval.low) and math.isfinite(interval.high)
    return interval, 0 if bounded else samples_for_quantile(q, VALUE_CONFIDENCE)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _change(series: Series, metric: Metric, warnings: list[str]) -> tuple[Interval, float | None]:
    baseline = [item.value for item in series.sides[Side.BASELINE]]
    candidate = [item.value for item in series.sides[Side.CANDIDATE]]
    unknown = Interval(math.nan, -math.inf, math.inf)
    if metric.exact:
        a, b = quantile(baseline, 0.5), quantile(candidate, 0.5)
        change = _ratio(a, b)
        if min(baseline) != max(baseline) or min(candidate) != max(candidate):
            warnings.append("the runs of one side differ, so the figure is not exact here")
        return Interval(change, change, change), None
    if not series.paired:
        return unknown, None
    if min(*baseline, *candidate) <= 0:
        if baseline == candidate:
            return Interval(0.0, 0.0, 0.0), CHANGE_CONFIDENCE
        warnings.append("some values are zero, so there is no relative change")
        return unknown, CHANGE_CONFIDENCE
    interval = paired_interval(baseline, candidate, CHANGE_CONFIDENCE)
    return Interval(*(_growth(bound) for bound in (interval.estimate, interval.low, interval.high))), CHANGE_CONFIDENCE


def _ratio(baseline: float, candidate: float) -> float:
    if baseline == candidate:
        return 0.0
    return math.inf if baseline == 0 else candidate / baseline - 1


def _growth(theta: float) -> float:
    """e^theta - 1; beyond what a float holds it is infinite."""
    return math.expm1(theta) if theta < 700 else math.inf


def _hidden(series: Series) -> bool:
    """Whether both sides are only known as upper bounds, so that nothing can be said of their difference."""
    return all(any(item.at_most for item in series.sides[side]) for side in Side)


def _warnings(series: Series) -> list[str]:
    readings = [item for side in Side for item in series.sides[side]]
    floors = [item.value for item in readings if item.at_most]
    if floors:
        return [f"not above {max(floors) / 1e6:.1f} MB: the process that starts it is that large itself"]
    return []


def speedup(change: Interval, better: Better) -> Interval:
    """How many times better the candidate is; above 1 is better whatever the metric's direction."""

    def times(value: float) -> float:
        ratio = 1 + value
        if better is Better.HIGHER:
            return ratio
        return math.inf if ratio <= 0 else 1 / ratio

    bounds = sorted((times(change.low), times(change.high)))
    return Interval(times(change.estimate), bounds[0], bounds[1])


def timing_metric(by_metric: dict[str, Comparison]) -> tuple[str, str]:
    """Which of time, cpu and uncontended a benchmark's verdict rests on, and why.

    CPU time of a program that does nothing but compute is 10 to 100 times finer than its wall time on a busy machine;
    it is refused where the program waits, forks or has threads, and where wall time provably moves the other way.
    """
    present = [name for name in TIMES if name in by_metric]
    if len(present) < 2:
        return (present[0] if present else ""), ""
    time, cpu, uncontended = (by_metric.get(name) for name in TIMES)
    if not time or not cpu:
        return present[0], ""
    if uncontended:
        if _share(cpu, uncontended) < _CPU_BOUND:
            return "uncontended", "the program waits, so time on a core or waiting for work counts, queueing does not"
        chosen = "cpu", "the program only computes, and CPU time is not disturbed by other processes"
    elif _CPU_BOUND <= _largest_share(cpu, time) <= _ONE_THREAD:
        chosen = "cpu", "the program only computes in one thread, and CPU time is not disturbed by other processes"
    else:
        return "time", "the program waits, forks or has threads, so only wall time tells all of it"
    if _opposite(cpu, time):
        return "time", "wall time provably moves the other way than CPU time"
    return chosen


def _sides(comparison: Comparison) -> list[Summary]:
    return [side for side in (comparison.baseline, comparison.candidate) if side]


def _share(part: Comparison, whole: Comparison) -> float:
    """Median share over all processes of the side where it is lower."""
    pairs = zip(_sides(part), _sides(whole), strict=True)
    return min(a.value / b.value if b.value else 1.0 for a, b in pairs)


def _largest_share(part: Comparison, whole: Comparison) -> float:
    """Share in the least disturbed processes: one that waits shows it in every run, contention not."""
    shares = []
    for a, b in zip(_sides(part), _sides(whole), strict=True):
        ratios = [x / y for x, y in zip(a.samples, b.samples, strict=False) if y > 0]
        shares.append(quantile(ratios, 0.9) if ratios else 0.0)
    return min(shares)


def _opposite(a: Comparison, b: Comparison) -> bool:
    if a.change is None or b.change is None:
        return False
    return (a.change.low > 0 and b.change.high < 0) or (a.change.high < 0 and b.change.low > 0)
