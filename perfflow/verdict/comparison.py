"""Compare two samples: effect, interval and warnings. Numbers only; ``decide`` interprets them.

``source_of`` finds rates that are the inverse of a time. Both are one measurement, which is judged and reported once.
``read_count`` reads how often a profiler counted a place (calls, hits, blocks, opens) from the cause that its adapter
writes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import variance

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import METRICS, QUANTILES, TIMES, Better, Metric, default_statistic, is_exact
from perfflow.model.readings import (
    CAPPED,
    MEAN,
    SCHEDULES,
    Design,
    Reading,
    Side,
    fewest_without,
    is_rate,
    log_mean_of,
    serial_factor,
    tick_of,
)
from perfflow.model.result import Benchmark
from perfflow.model.units import format_quantity
from perfflow.stats.paired_test import (
    CONFIRMED,
    FEW_MORE,
    UNLIKELY,
    Interval,
    blocks_of,
    interval_of_log_means,
    look_confidence,
    mean_interval,
    paired_interval,
    paired_p,
    permutation_interval,
    permutation_p,
    quantile,
    quantile_interval,
    samples_for_quantile,
)
from perfflow.store.record import MetricSeries, Record

VALUE_CONFIDENCE = 0.95
"""Confidence of the interval of one side's value."""
CHANGE_CONFIDENCE = 0.99
"""Confidence of the interval of a change: at most 1 % false alarms per comparison."""
SEPARATED = 5
"""Samples on one side of a bound that show where the median is: the chance that all five lie there is 1/32."""
OF_CONFIRMATION = 0.95
"""Confidence of the interval of the fresh pairs of a confirmation alone."""
_UNKNOWN = Interval(math.nan, -math.inf, math.inf)
REPEATS = 2
"""Runs of each side needed to check whether a value repeats."""
TICK = 0.001
"""Runs that differ by at most this share still count as the same value."""
_UNCHECKED = "one run per side, so perfflow could not check that the value repeats; set `runs: 2`"
_TICKS = "the runs of one side differ by up to 0.1%, which widens the interval"
_ZEROS = "some values are zero, so there is no relative change"
_AT_MOST = "only an upper bound is known: "
_OF_STARTER = "the process that starts the program uses that much itself"
_OF_PROCESS = "all waiting of its process is charged to each benchmark"
_TOO_FEW = "too few values for a confidence interval of the change; raise the number of runs"
_TOO_FEW_PAIRS = "too few pairs for a confidence interval of the change; raise `runs` or `budget`"
_EXTREMES = ("min", "max")
_MEDIAN = "p50"
_JUDGED_BY_MEAN = "judged by the mean of all samples: "
_WITH_MEAN = {
    CAPPED: "a few large samples, which the capped mean limits, changed it differently",
    "min": "the fastest sample of each process, which shows no other, changed differently",
}
"""Statistics of a process that leave something out, so that the plain mean is compared too, and why it decided."""
MEAN_SHARE = 0.2
"""Share of the false alarms of a comparison that is allotted to the plain means beside another statistic."""


@dataclass(frozen=True)
class SideSummary:
    """One side: the statistic with its interval (None if the samples do not bound it), and all values."""

    value: float
    low: float | None
    high: float | None
    n: int
    samples: tuple[float, ...]
    needs: int = 0
    """Samples needed for both bounds; 0 if both exist."""
    factor: float = 1.0
    """Factor by which the interval is wider because successive samples are correlated."""
    sure: Interval = _UNKNOWN
    """One-sided bounds: each is exceeded with at most the whole error probability of the interval."""


@dataclass(frozen=True)
class Layouts:
    """Fresh code layouts of both sides, as a part of a comparison.

    ``n``: number of layouts of each side; ``deviation``: their standard deviation without noise, as a share of the
    value; ``built``: the comparison of the programs as built.
    """

    n: int
    deviation: float
    built: ComparedMetric


@dataclass(frozen=True)
class Confirmation:
    """Fresh pairs, or runs of each side, that were taken because those before proved a change.

    ``change`` is that of the fresh ones alone, with its p-value; ``before`` that of the earlier ones.
    """

    pairs: int
    change: Interval
    p: float
    before: Interval

    @property
    def agrees(self) -> bool:
        """Whether they show a change in the same direction."""
        up = self.change.estimate > 0
        return self.p <= CONFIRMED and (self.before.low > 0 if up else self.before.high < 0)

    @property
    def seemed_changed(self) -> bool:
        """Whether the interval of the pairs before excludes 0."""
        return self.before.low > 0 or self.before.high < 0

    @property
    def is_unlikely(self) -> bool:
        """Whether more fresh pairs would hardly agree: these prove nothing, and exclude the change shown before."""
        return self.p > UNLIKELY and not self.change.low <= self.before.estimate <= self.change.high


@dataclass(frozen=True)
class ComparedMetric:
    """One metric of one benchmark. ``change`` is candidate/baseline - 1; unknown bounds are infinite."""

    benchmark: str
    metric: Metric
    statistic: str
    step: str
    tool: str
    baseline: SideSummary | None
    candidate: SideSummary | None
    change: Interval | None = None
    pairs: int = 0
    confidence: float | None = None
    warnings: tuple[str, ...] = field(default=())
    blur: float = 0.0
    """How far each end of ``change`` was moved out for the resolution of the values; more pairs do not reduce it."""
    only: Side | None = None
    """The only side that has this metric, if two sides were measured."""
    layouts: Layouts | None = None
    """None if the programs were measured as built."""
    confirmations: tuple[Confirmation, ...] = ()
    to_confirm: bool = False
    """Whether a change counts only if the confirmations agree."""
    bounded: bool = False
    """Whether only upper bounds of the values are known. Then the change is unknown."""

    @property
    def is_confirmed(self) -> bool:
        """Whether all confirmations agree, and there is one if it is needed."""
        return all(item.agrees for item in self.confirmations) and bool(self.confirmations or not self.to_confirm)


def compare(series: MetricSeries, criteria: Criteria, share: float = 1.0) -> ComparedMetric:
    """Summarise both sides of a series and, if there are two, the change between them.

    ``share`` is the part of its benchmark's false alarms that this row may raise, above 0 and at most 1. If fresh code
    layouts of both sides were measured, they decide.
    """
    series = _of_one_statistic(series)
    if series.built is None:
        return _compared(series, criteria, share)
    built = _compared(_of_one_statistic(series.built), criteria, share)
    compared = _compared(series, criteria, share)
    n = min((len(set(series.layouts[side])) for side in Side if series.layouts[side]), default=0)
    return replace(compared, pairs=min(compared.pairs, n), layouts=Layouts(n, _deviation(series), built))


def _compared(series: MetricSeries, criteria: Criteria, share: float) -> ComparedMetric:
    metric = as_found(series, criteria.metric(series.metric))
    default = default_statistic(metric)
    statistic = default if is_exact(default) else series.statistic or default
    baseline, candidate = (summarise(series.readings(side), metric, statistic) for side in Side)
    alone = ComparedMetric(
        series.benchmark,
        metric,
        statistic,
        series.step,
        series.tool,
        baseline,
        candidate,
        warnings=_warnings(series, metric),
        only=series.one_sided(),
        bounded=all(_bounded(series, side) for side in Side),
    )
    if not baseline or not candidate or metric.better is Better.NONE or alone.bounded:
        return alone
    if _has_mean(series, statistic) and series.design not in (Design.FEW, Design.UNPAIRED):
        alone, (change, confidence, warnings) = _own_or_mean(alone, series, share)
    else:
        change, confidence, warnings = _change(series, metric, share)
    blur = _blur(series, metric)
    pairs = 0 if series.design == Design.UNPAIRED else min(baseline.n, candidate.n)
    if not metric.exact:
        pairs = _judged(series.design, pairs)
    return replace(
        alone,
        change=_wider(change, blur),
        pairs=pairs,
        confidence=confidence,
        warnings=(*alone.warnings, *warnings),
        blur=blur,
        confirmations=() if metric.exact else tuple(_confirmations(series, metric, share)),
        to_confirm=series.to_confirm and not metric.exact,
    )


def _of_one_statistic(series: MetricSeries) -> MetricSeries:
    """Return a series whose readings are all medians if some are and the others are not.

    An adapter may choose the statistic by what a process did, which a change of the code can change.
    """
    statistics = {item.statistic for side in Side for item in series.readings(side)}
    if len(statistics) < 2 or _MEDIAN not in statistics:
        return series
    sides = {side: [_as_median(item) for item in series.sides[side]] for side in Side}
    return replace(series, sides=sides, lone={side: [_as_median(item) for item in series.lone[side]] for side in Side})


def _as_median(reading: Reading) -> Reading:
    return replace(reading, value=reading.inner.get(_MEDIAN, reading.value), statistic=_MEDIAN)


def as_found(series: MetricSeries, metric: Metric) -> Metric:
    """Return the metric, marked exact only if its runs repeat: a tool or a metric name only declares it."""
    declared = metric.exact or series.exact
    found = declared and all(_repeats(series.readings(side)) for side in Side)
    return metric if metric.exact == found else replace(metric, exact=found)


def _repeats(readings: Sequence[Reading]) -> bool:
    values = [item.value for item in readings]
    return not values or max(values) - min(values) <= TICK * max(map(abs, values))


def _exact_change(
    baseline: Sequence[float], candidate: Sequence[float]
) -> tuple[Interval, float | None, tuple[str, ...]]:
    """Return the change of values that repeat. Their small differences, if any, are the width of its interval."""
    varies = min(baseline) != max(baseline) or min(candidate) != max(candidate)
    change = _ratio(quantile(baseline, 0.5), quantile(candidate, 0.5))
    if not varies:
        unchecked = change != 0 and min(len(baseline), len(candidate)) < REPEATS
        return Interval(change, change, change), None, (_UNCHECKED,) if unchecked else ()
    low, high = _ratio(max(baseline), min(candidate)), _ratio(min(baseline), max(candidate))
    return Interval(change, low, high), None, (_TICKS,)


def _has_mean(series: MetricSeries, statistic: str) -> bool:
    """Return whether the plain mean is compared beside a statistic of the process. A rate is judged by its time."""
    readings = [item for side in Side for item in series.readings(side)]
    return statistic in _WITH_MEAN and not is_rate(series.metric) and all(MEAN in item.inner for item in readings)


def _own_or_mean(alone: ComparedMetric, series: MetricSeries, share: float) -> tuple[ComparedMetric, _Change]:
    """Return the change of the processes' own statistic, or of plain means if their intervals do not overlap.

    The two share the false alarms that one comparison may raise. So few runs that the mean cannot prove anything with
    its share, such as five layouts of each side, leave all of it to the statistic.
    """
    change, confidence, warnings = _change(series, alone.metric, share * MEAN_SHARE, MEAN)
    if not math.isfinite(change.low) and not math.isfinite(change.high):
        return alone, _change(series, alone.metric, share)
    own = _change(series, alone.metric, share * (1 - MEAN_SHARE))
    if own[0].low <= change.high and change.low <= own[0].high:
        return alone, own
    baseline, candidate = (summarise(series.readings(side), alone.metric, MEAN) for side in Side)
    by_mean = replace(alone, statistic=MEAN, baseline=baseline, candidate=candidate)
    return by_mean, (change, confidence, (*warnings, _JUDGED_BY_MEAN + _WITH_MEAN[alone.statistic]))


def summarise(
    readings: Sequence[Reading],
    metric: Metric,
    statistic: str,
    confidence: float = VALUE_CONFIDENCE,
    *,
    widened: bool = True,
) -> SideSummary | None:
    """Return a statistic of one side with its interval; None without readings, or if one has too few values for it.

    For values taken inside each process, the statistic is computed per process and its interval over the processes.
    ``widened``: the interval includes the resolution of the values, and correlation of successive samples.
    """
    if not readings or fewest_without(readings, statistic):
        return None
    inner = statistic in readings[0].inner or statistic == readings[0].statistic
    values = [item.inner.get(statistic, item.value) if inner else item.value for item in readings]
    over = "p50" if inner else statistic
    factor = serial_factor(values) if widened and not metric.exact else 1.0
    interval, needs = _interval(values, metric, over, confidence, factor)
    half = 0.0 if over in _EXTREMES or not widened else _tick([readings], metric) / 2
    low, high = _finite(interval.low - half), _finite(interval.high + half)
    if low is not None and low < 0 <= interval.estimate and (metric.name in METRICS or min(values) >= 0):
        low = 0.0  # no time, size or count is negative
    sure = _sure(values, over, half, confidence)
    if any(item.at_most for item in readings):
        low, sure = 0.0, replace(sure, low=-math.inf)
    samples = tuple(item.value for item in readings)
    return SideSummary(interval.estimate, low, high, len(values), samples, needs, factor, sure)


def _interval(
    values: Sequence[float], metric: Metric, statistic: str, confidence: float, factor: float
) -> tuple[Interval, int]:
    if statistic in _EXTREMES:
        # The extreme of these runs is exact, and does not predict that of other runs, so it has no interval.
        extreme = min(values) if statistic == "min" else max(values)
        return Interval(extreme, extreme, extreme), 0
    if metric.exact:
        return Interval(quantile(values, 0.5), min(values), max(values)), 0
    if statistic == "mean":
        return mean_interval(values, confidence, factor), 0 if len(values) > 1 else 2
    q = QUANTILES.get(statistic, 0.5)
    interval = quantile_interval(values, q, confidence, factor)
    bounded = math.isfinite(interval.low) and math.isfinite(interval.high)
    return interval, 0 if bounded else samples_for_quantile(q, confidence)


def _sure(values: Sequence[float], statistic: str, half: float, confidence: float) -> Interval:
    """Return the least and the greatest value, each infinite if the quantile is too likely to lie beyond it."""
    q = QUANTILES.get(statistic)
    if q is None or len(values) < SEPARATED:
        return _UNKNOWN
    error = 1 - confidence
    low = min(values) - half if (1 - q) ** len(values) <= error else -math.inf
    return Interval(math.nan, low, max(values) + half if q ** len(values) <= error else math.inf)


def _tick(sides: Sequence[Sequence[Reading]], metric: Metric) -> float:
    """Return the resolution of the values if it is coarse, else 0."""
    return tick_of(sides, metric.dimension) if not metric.exact else 0.0


def _blur(series: MetricSeries, metric: Metric) -> float:
    """Return how far rounding by half a step on each side may move ln(candidate/baseline); can be infinite."""
    sides = [series.readings(side) for side in Side]
    half = _tick(sides, metric) / 2
    if half == 0:
        return 0.0
    shares = [half / abs(quantile([item.value for item in readings], 0.5)) for readings in sides]
    if max(shares) >= 1:
        return math.inf
    return max(math.log1p(a) - math.log1p(-b) for a, b in (shares, shares[::-1]))


def _wider(change: Interval, blur: float) -> Interval:
    """Return the interval of a change with each end moved out by ``blur``, in logarithms."""
    if blur == 0 or math.isnan(change.estimate):
        return change
    low = math.exp(-blur) * (1 + change.low) - 1 if blur < math.inf else -math.inf
    return Interval(change.estimate, low, (1 + change.high) * _growth(blur) + change.high)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _confirmations(series: MetricSeries, metric: Metric, share: float) -> Iterator[Confirmation]:
    if not series.confirmations:
        return
    earlier = _part(series, 0)
    before = _change(earlier, metric, share)[0] if all(map(earlier.readings, Side)) else _UNKNOWN
    for number in range(1, series.confirmations + 1):
        part = _part(series, number)
        baseline, candidate = ([item.value for item in part.readings(side)] for side in Side)
        pairs = min(len(baseline), len(candidate))
        few = series.design == Design.FEW
        blocks = (FEW_MORE,) * (pairs // FEW_MORE)
        if pairs < (FEW_MORE if few else 1) or min(*baseline, *candidate) <= 0:
            yield Confirmation(pairs, _UNKNOWN, 1.0, before)
            continue
        if few:
            baseline, candidate = baseline[: sum(blocks)], candidate[: sum(blocks)]
        invert: Invert = partial(permutation_interval, blocks=blocks) if few else paired_interval
        p = permutation_p(baseline, candidate, 0.0, blocks) if few else p_of_no_change(baseline, candidate, metric)
        interval = _interval_of_change(baseline, candidate, OF_CONFIRMATION, metric, invert)
        change = Interval(_growth(interval.estimate), _growth(interval.low), _growth(interval.high))
        yield Confirmation(pairs, change, p, before)


def _part(series: MetricSeries, number: int) -> MetricSeries:
    """Return the readings of one confirmation, or with 0 those before the first."""
    numbered = {side: zip(series.sides[side], series.confirming[side], strict=True) for side in Side}
    sides = {side: [item for item, own in numbered[side] if own == number] for side in Side}
    return replace(series, sides=sides, confirming={side: [] for side in Side})


_Change = tuple[Interval, float | None, tuple[str, ...]]
"""A change, its confidence (None without an interval), and warnings."""


def _change(series: MetricSeries, metric: Metric, share: float, statistic: str = "") -> _Change:
    """Return the change of the readings' values, or of a statistic inside them, at this share of the false alarms."""
    baseline, candidate = (_values(series, side, statistic) for side in Side)
    if metric.exact:
        return _exact_change(baseline, candidate)
    if series.design != Design.UNPAIRED and not series.comparable:
        return _UNKNOWN, None, ()
    baseline, candidate = _of_schedule(series.design, baseline, candidate)
    # Both the pairs before and the fresh ones must prove a change, which bounds the false alarms; all estimate it.
    whole = CHANGE_CONFIDENCE if series.confirmations else confidence_of(series.design, len(baseline))
    confidence = _with_share(whole, share)
    if min(*baseline, *candidate) <= 0:
        if baseline == candidate:
            return Interval(0.0, 0.0, 0.0), confidence, ()
        return _UNKNOWN, confidence, (_ZEROS,)
    if series.design == Design.UNPAIRED:
        # Converting rates into times only changes the sign of the mean of logarithms, so rates need no special case.
        old, new = (log_mean_of(series.readings(side)) for side in Side)
        interval = interval_of_log_means(old, new, confidence)
        if not math.isfinite(interval.low):
            return _UNKNOWN, None, (_TOO_FEW,)
    else:
        # One side may lack readings that some of its runs did not give.
        runs = min(len(baseline), len(candidate))
        blocks = blocks_of(runs) if series.design == Design.FEW else (runs,)
        few = partial(permutation_interval, blocks=blocks)
        in_random_order = series.design in (Design.FEW, Design.FEW_LAYOUTS)
        invert: Invert = few if in_random_order else paired_interval
        interval = _interval_of_change(baseline, candidate, confidence, metric, invert)
    low, high = _growth(interval.low), _growth(interval.high)
    # If a side is known only as an upper bound, its true value may be anything below.
    if _bounded(series, Side.BASELINE):
        high = math.inf
    if _bounded(series, Side.CANDIDATE):
        low = -math.inf
    unbounded = not math.isfinite(interval.low) and not math.isfinite(interval.high)
    return Interval(_growth(interval.estimate), low, high), confidence, (_TOO_FEW_PAIRS,) if unbounded else ()


def _judged(design: str, pairs: int) -> int:
    """Return how many of ``pairs`` pairs (or runs of each side) a change is judged by.

    Pairs after the last interim analysis are only taken for percentiles, because the error budget ends with that
    analysis. The runs of a block count once the block is complete.
    """
    schedule = SCHEDULES.get(design)
    judged = min(pairs, schedule[-1][0]) if schedule else pairs
    return sum(blocks_of(judged)) if design == Design.FEW else judged


def _of_schedule(design: str, baseline: list[float], candidate: list[float]) -> tuple[list[float], list[float]]:
    """Return the values of each side that a change is judged by: all of them before the first interim analysis."""
    schedule, fewest = SCHEDULES.get(design), min(len(baseline), len(candidate))
    if not schedule or fewest < schedule[0][0]:
        return baseline, candidate
    judged = _judged(design, fewest)
    return baseline[:judged], candidate[:judged]


Invert = Callable[[Sequence[float], Sequence[float], float], Interval]
"""(baseline, candidate, confidence) -> the interval of ln(candidate/baseline)."""


def sure_change(comparison: ComparedMetric, series: MetricSeries) -> Interval | None:
    """Return the least and the greatest change of all pairs if there are too few for an interval, but at least five.

    The probability that all of five pairs lie on one side of the true change by chance is 1/32. None otherwise.
    """
    known = comparison.change
    if known is None or math.isfinite(known.high) or not series.paired or comparison.pairs < SEPARATED:
        return None
    sides = ([item.value for item in series.readings(side)] for side in Side)
    ratios = [_ratio(a, b) for a, b in zip(*sides, strict=True)]
    if any(_bounded(series, side) for side in Side):
        return None
    return _wider(Interval(known.estimate, min(ratios), max(ratios)), comparison.blur)


def _values(series: MetricSeries, side: Side, statistic: str = "") -> list[float]:
    """Return one value per pair, or the median of each layout if a few code layouts were run several times each.

    A value is that of the reading, or a ``statistic`` inside it.
    """
    values = [item.inner.get(statistic, item.value) for item in series.readings(side)]
    if series.design != Design.FEW_LAYOUTS:
        return values
    numbered = list(zip(series.layouts[side], values, strict=True))
    by_layout = [[value for layout, value in numbered if layout == number] for number in dict(numbered)]
    # The same number for all layouts, even if the last round was cut short.
    runs = min(map(len, by_layout), default=0)
    return [quantile(values[:runs], 0.5) for values in by_layout]


def _deviation(series: MetricSeries) -> float:
    """Return the standard deviation between code layouts as a share, after subtracting the variance within a layout."""
    excess = []
    for side in Side:
        varied, built = (_variance(values) for values in (_values(series, side), _built_values(series, side)))
        if varied is not None and built is not None:
            runs = len(series.sides[side]) // max(1, len(set(series.layouts[side])))
            excess.append(varied - built / max(1, runs))
    return math.sqrt(max(0.0, math.fsum(excess) / len(excess))) if excess else 0.0


def _built_values(series: MetricSeries, side: Side) -> list[float]:
    return [item.value for item in series.built.readings(side)] if series.built else []


def _variance(values: Sequence[float]) -> float | None:
    """Return the variance of the logarithms without the largest 5% of the values, which other load may have caused.

    None if there are too few values, or if one is not positive.
    """
    kept = sorted(values)[: len(values) - len(values) // 20]
    if len(kept) < 2 or kept[0] <= 0:
        return None
    return variance(map(math.log, kept))


def _with_share(confidence: float, share: float) -> float:
    """Return the confidence that leaves this share of the false alarms; a share of 1 leaves it unchanged."""
    return confidence if share == 1 else 1 - share * (1 - confidence)


def _interval_of_change(
    baseline: Sequence[float], candidate: Sequence[float], confidence: float, metric: Metric, invert: Invert
) -> Interval:
    """Return the interval of ln(candidate/baseline). Rates are judged as times: noise makes times longer."""
    if metric.better is not Better.HIGHER:
        return invert(baseline, candidate, confidence)
    turned = invert([1 / value for value in baseline], [1 / value for value in candidate], confidence)
    return Interval(-turned.estimate, -turned.high, -turned.low)


def confidence_of(design: str, pairs: int) -> float:
    """Return the confidence with which all comparisons of a benchmark together raise at most 1% false alarms."""
    schedule = SCHEDULES.get(design)
    return look_confidence(pairs, schedule) if schedule else CHANGE_CONFIDENCE


def p_of_no_change(baseline: Sequence[float], candidate: Sequence[float], metric: Metric) -> float:
    """Return the two-sided p-value of "no change" from pairs in random order; 1 if a value is not positive."""
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
    """Return e^theta - 1, which is infinite if it overflows, and -inf for theta = -inf (no lower bound)."""
    if theta == -math.inf:
        return -math.inf
    return math.expm1(theta) if theta < 700 else math.inf


def _bounded(series: MetricSeries, side: Side) -> bool:
    """Return whether a side is known only as an upper bound."""
    return any(item.at_most for item in series.readings(side))


def _warnings(series: MetricSeries, metric: Metric) -> tuple[str, ...]:
    why = _OF_PROCESS if metric.name == "uncontended" else _OF_STARTER
    bounded = [f"{_AT_MOST}{why}"] if any(_bounded(series, side) for side in Side) else []
    return (*bounded, *_of_steps([series.readings(side) for side in Side], metric))


def _of_steps(sides: Sequence[Sequence[Reading]], metric: Metric) -> Iterator[str]:
    """Yield a warning with the resolution of the values if it is coarse."""
    tick = _tick(sides, metric)
    if tick:
        share = tick / min(abs(quantile([item.value for item in readings], 0.5)) for readings in sides if readings)
        step = f"values come in steps of {format_quantity(tick, metric.dimension)}, {share:.1%} of the value"
        yield f"{step}, which widens the interval: print more digits, or give each run more work"


def speedup(change: Interval, better: Better) -> Interval:
    """Return how many times better the candidate is. Above 1 is better for every direction of the metric.

    If the change is unbounded on a side, so is the speedup.
    """

    def times(value: float) -> float:
        ratio = 1 + value
        if better is Better.HIGHER:
            return ratio
        return math.inf if ratio <= 0 else 1 / ratio

    if better is Better.HIGHER:
        low, high = times(change.low), times(change.high)
    else:
        unbounded = change.low < change.high == math.inf
        low, high = -math.inf if unbounded else times(change.high), times(change.low)
    return Interval(times(change.estimate), low, high)


RATES = ("throughput", "rate", "flops", "bandwidth")
_CONSTANT = 1e-3
"""Allowed relative spread of time times rate: quantiles inside a process are interpolated."""


def source_of(record: Record, benchmark: str, metric: str) -> str:
    """Return the time metric of which a rate is the inverse (times a constant) in all samples; '' if there is none."""
    return next((time for time in TIMES if metric in RATES and _are_one(record, benchmark, time, metric)), "")


def _are_one(record: Record, benchmark: str, time: str, rate: str) -> bool:
    one, other = (record.series.get((benchmark, metric)) for metric in (time, rate))
    if one is None or other is None or one.step != other.step:
        return False
    pairs = [(one.readings(side), other.readings(side)) for side in Side]
    if any(len(times) != len(rates) for times, rates in pairs):
        return False
    work = [each.value * inverse.value for times, rates in pairs for each, inverse in zip(times, rates, strict=True)]
    return bool(work) and min(work) > 0 and max(work) <= min(work) * (1 + _CONSTANT)


def without_inverse_rates(rows: Sequence[Benchmark]) -> list[Benchmark]:
    """Return the rows without rates whose time metric gates and has the same decision."""
    decisions = {(row.name, row.metric): row for row in rows if row.gating}
    return [row for row in rows if not _is_repeated(row, decisions.get((row.name, row.same_as)))]


def _is_repeated(row: Benchmark, source: Benchmark | None) -> bool:
    if not row.same_as or source is None or source.decision != row.decision:
        return False
    return row.level is not None or source.level is None


_COUNTED = re.compile(
    r"measured: (?:"
    r"(?P<first>[\d,]{1,15}) (?:calls?|hits?)\b"
    r"|(?:opened|run) (?:(?P<times>[\d,]{1,15}) times|(?P<once>once))"
    r"|.* B in (?P<blocks>[\d,]{1,15}) blocks? at)"
)


def read_count(cause: str) -> int:
    """Return the count in a cause such as ``measured: 8,000 calls, ...`` or ``measured: opened 96 times``; else 0."""
    match = _COUNTED.match(cause)
    if not match:
        return 0
    if match["once"]:
        return 1
    text = match["first"] or match["times"] or match["blocks"]
    digits = text.replace(",", "")
    return int(digits) if digits else 0
