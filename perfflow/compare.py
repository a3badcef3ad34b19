"""Two samples -> Comparison: effect, interval, warnings. Numbers only; what they mean is the verdict's business."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfflow.measure import CONFIRMING
from perfflow.rundir.record import UNPAIRED, Series
from perfflow.samples.metrics import QUANTILES, TIMES, Better, Metric, default_statistic
from perfflow.samples.readings import Reading, Side
from perfflow.statistics import (
    LOOKS,
    Interval,
    look_confidence,
    mean_interval,
    paired_interval,
    paired_p,
    permutation_interval,
    quantile,
    quantile_interval,
    samples_for_quantile,
    unpaired_interval,
)

VALUE_CONFIDENCE = 0.95
"""Confidence of one side's own interval."""
CHANGE_CONFIDENCE = 0.99
"""Confidence of the interval of a change: at most 1 % false alarms per comparison."""
SCREEN_CONFIDENCE = 0.98
CONFIRM_CONFIDENCES = (0.997, 0.998)
"""At the first look of a confirmation and at its second one: half a percent of false alarms in all."""
_UNKNOWN = Interval(math.nan, -math.inf, math.inf)
_VARIES = "the runs of one side differ, so the figure is not exact here"
_ZEROS = "some values are zero, so there is no relative change"
_AT_MOST = "known only as an upper bound: the process that starts the program is that large itself"
_TOO_FEW = "too few values for an interval of the change; give it more runs"
_CPU_BOUND = 0.9
_ONE_THREAD = 1.05
_ALONE = 0.95


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
    only: Side | None = None
    """The side that alone has this, where two were measured."""


def compare(series: Series, metric: Metric) -> Comparison:
    """Summarise both sides of a series and, where there are two, the change between them."""
    if series.exact:
        metric = replace(metric, exact=True)
    statistic = default_statistic(metric)
    baseline, candidate = (summarise(series.readings(side), metric, statistic) for side in Side)
    alone = Comparison(
        series.benchmark,
        metric,
        statistic,
        series.step,
        series.tool,
        baseline,
        candidate,
        warnings=_warnings(series),
        only=series.one_sided(),
    )
    if not baseline or not candidate or metric.better is Better.NONE or all(_bounded(series, side) for side in Side):
        return alone
    change, confidence, said = _change(series, metric)
    pairs = 0 if series.design == UNPAIRED else min(baseline.n, candidate.n)
    if series.design == "looks" and not metric.exact:
        pairs = min(pairs, LOOKS[-1])
    return replace(alone, change=change, pairs=pairs, confidence=confidence, warnings=(*alone.warnings, *said))


def summarise(
    readings: Sequence[Reading], metric: Metric, statistic: str, confidence: float = VALUE_CONFIDENCE
) -> Summary | None:
    """A statistic of one side with its interval; None without readings.

    Of values taken inside each process the statistic is taken there first, and its interval over the processes.
    """
    if not readings:
        return None
    inner = len(readings[0].inner) > 0 and statistic in readings[0].inner
    values = [item.inner.get(statistic, item.value) if inner else item.value for item in readings]
    interval, needs = _interval(values, metric, "p50" if inner else statistic, confidence)
    low, high = _finite(interval.low), _finite(interval.high)
    if any(item.at_most for item in readings):
        low = 0.0
    samples = tuple(item.value for item in readings)
    return Summary(interval.estimate, low, high, len(values), samples, needs)


def _interval(values: Sequence[float], metric: Metric, statistic: str, confidence: float) -> tuple[Interval, int]:
    if statistic in ("min", "max"):
        # The extreme of these runs is a fact about them; of runs to come it says nothing, so it has no interval.
        extreme = min(values) if statistic == "min" else max(values)
        return Interval(extreme, extreme, extreme), 0
    if metric.exact:
        return Interval(quantile(values, 0.5), min(values), max(values)), 0
    if statistic == "mean":
        return mean_interval(values, confidence), 0 if len(values) > 1 else 2
    q = QUANTILES.get(statistic, 0.5)
    interval = quantile_interval(values, q, confidence)
    bounded = math.isfinite(interval.low) and math.isfinite(interval.high)
    return interval, 0 if bounded else samples_for_quantile(q, confidence)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _change(series: Series, metric: Metric) -> tuple[Interval, float | None, tuple[str, ...]]:
    """The change, its confidence where it has an interval, and what there is to say about it."""
    baseline, candidate = ([item.value for item in series.readings(side)] for side in Side)
    if metric.exact:
        varies = min(baseline) != max(baseline) or min(candidate) != max(candidate)
        change = _ratio(quantile(baseline, 0.5), quantile(candidate, 0.5))
        return Interval(change, change, change), None, (_VARIES,) if varies else ()
    if series.design != UNPAIRED and not series.comparable:
        return _UNKNOWN, None, ()
    if series.design == "looks":
        # More pairs than the last look has are taken for a percentile's sake; the error budget ended with that look.
        baseline, candidate = baseline[: LOOKS[-1]], candidate[: LOOKS[-1]]
    confidence = confidence_of(series.design, len(baseline))
    if min(*baseline, *candidate) <= 0:
        if baseline == candidate:
            return Interval(0.0, 0.0, 0.0), confidence, ()
        return _UNKNOWN, confidence, (_ZEROS,)
    if series.design == UNPAIRED:
        # The mean of logs turns with its sign where rates are turned into times, so rates need no case of their own.
        interval = unpaired_interval(baseline, candidate, confidence)
        if not math.isfinite(interval.low):
            return _UNKNOWN, None, (_TOO_FEW,)
    else:
        interval = _interval_of_change(baseline, candidate, confidence, metric, few=series.design == "few")
    low, high = _growth(interval.low), _growth(interval.high)
    # Of a side known only as "not above", the true value may be anything below.
    if _bounded(series, Side.BASELINE):
        high = math.inf
    if _bounded(series, Side.CANDIDATE):
        low = -1.0
    return Interval(_growth(interval.estimate), low, high), confidence, ()


def _interval_of_change(
    baseline: Sequence[float], candidate: Sequence[float], confidence: float, metric: Metric, *, few: bool
) -> Interval:
    """Interval of ln(candidate/baseline). Of rates the reciprocal is judged: noise makes times long, rates small."""
    invert = permutation_interval if few else paired_interval
    if metric.better is not Better.HIGHER:
        return invert(baseline, candidate, confidence)
    turned = invert([1 / value for value in baseline], [1 / value for value in candidate], confidence)
    return Interval(-turned.estimate, -turned.high, -turned.low)


def confidence_of(design: str, pairs: int) -> float:
    """Confidence of a change's interval, so that all comparisons of a benchmark raise at most 1% false alarms.

    A screening may alarm more often, since what it finds is confirmed with fresh pairs, and those alone decide.
    """
    if design == "looks":
        return look_confidence(pairs)
    if design == "confirm":
        return CONFIRM_CONFIDENCES[0 if pairs <= CONFIRMING[0] else 1]
    return SCREEN_CONFIDENCE if design == "screen" else CHANGE_CONFIDENCE


def p_of_no_change(baseline: Sequence[float], candidate: Sequence[float], metric: Metric) -> float:
    """Two-sided p of "no change" from pairs in coin-flip order; 1 where a value is not positive."""
    if not baseline or min(*baseline, *candidate) <= 0:
        return 1.0
    if metric.better is Better.HIGHER:
        return paired_p([1 / value for value in baseline], [1 / value for value in candidate])
    return paired_p(baseline, candidate)


def _ratio(baseline: float, candidate: float) -> float:
    if baseline == candidate:
        return 0.0
    return math.inf if baseline == 0 else candidate / baseline - 1


def _growth(theta: float) -> float:
    """e^theta - 1; beyond what a float holds it is infinite."""
    return math.expm1(theta) if theta < 700 else math.inf


def _bounded(series: Series, side: Side) -> bool:
    """Whether a side is known only as an upper bound."""
    return any(item.at_most for item in series.readings(side))


def _warnings(series: Series) -> tuple[str, ...]:
    return (_AT_MOST,) if any(_bounded(series, side) for side in Side) else ()


def speedup(change: Interval, better: Better) -> Interval:
    """How many times better the candidate is; above 1 is better whatever the metric's direction."""

    def times(value: float) -> float:
        ratio = 1 + value
        if better is Better.HIGHER:
            return ratio
        return math.inf if ratio <= 0 else 1 / ratio

    bounds = sorted((times(change.low), times(change.high)))
    return Interval(times(change.estimate), bounds[0], bounds[1])


def timing_metric(by_metric: Mapping[str, Comparison]) -> tuple[str, str]:
    """Which of time, cpu and uncontended a benchmark's verdict rests on, and why.

    CPU time of a program that does nothing but compute is 10 to 100 times finer than its wall time on a busy machine;
    it is refused where the program waits, forks or has threads, and where wall time provably moves the other way.
    """
    timed = {name: by_metric[name] for name in TIMES if name in by_metric}
    # One that a side lacks (`uncontended` of a program that has come to use threads) says nothing of the difference.
    most = max((len(_sides(item)) for item in timed.values()), default=0)
    present = [name for name, item in timed.items() if len(_sides(item)) == most]
    if len(present) < 2:
        return (present[0] if present else ""), ""
    time, cpu, uncontended = (timed[name] if name in present else None for name in TIMES)
    if not time or not cpu:
        return present[0], ""
    if "main_share" in by_metric and any(side.value < _ALONE for side in _sides(by_metric["main_share"])):
        return "time", "the program forks or has threads, so only wall time tells all of it"
    if "uncontended" in timed and not uncontended:
        return "time", "one side has threads or children, so only wall time tells all of it"
    if uncontended and _fewest(uncontended) < _fewest(time):
        return "time", "some runs have threads or children, so only wall time tells all of it"
    if uncontended:
        if _share(cpu, uncontended) < _CPU_BOUND:
            return "uncontended", "the program waits, so time on a core or waiting for work counts, queueing does not"
        chosen = "cpu", "the program only computes, and CPU time is not disturbed by other processes"
    elif _only_computes(cpu, time):
        chosen = "cpu", "the program only computes in one thread, and CPU time is not disturbed by other processes"
    else:
        return "time", "the program waits, forks or has threads, so only wall time tells all of it"
    if _opposite(cpu, time):
        return "time", "wall time provably moves the other way than CPU time"
    return chosen


def _sides(comparison: Comparison) -> list[Summary]:
    return [side for side in (comparison.baseline, comparison.candidate) if side]


def _fewest(comparison: Comparison) -> int:
    return min((side.n for side in _sides(comparison)), default=0)


def _share(part: Comparison, whole: Comparison) -> float:
    """Median share over all processes of the side where it is lower."""
    pairs = zip(_sides(part), _sides(whole), strict=True)
    return min(a.value / b.value if b.value else 1.0 for a, b in pairs)


def _only_computes(cpu: Comparison, time: Comparison) -> bool:
    """Whether both sides compute all the time, in one thread.

    One that waits does so in every process, so the least disturbed one tells; contention only lowers the share. More
    CPU time than wall time in half of the processes are threads.
    """
    for part, whole in zip(_sides(cpu), _sides(time), strict=True):
        shares = [a / b for a, b in zip(part.samples, whole.samples, strict=False) if b > 0]
        if not shares or max(shares) < _CPU_BOUND or quantile(shares, 0.5) > _ONE_THREAD:
            return False
    return True


def _opposite(a: Comparison, b: Comparison) -> bool:
    if a.change is None or b.change is None:
        return False
    return (a.change.low > 0 and b.change.high < 0) or (a.change.high < 0 and b.change.low > 0)
