"""Judge targets against the measured values: met, not met, unproven or not measured."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.metrics import COMPARED_STATISTICS, OF_SIZES, QUANTILES, statistic_dimension
from perfflow.model.peaks import key_of
from perfflow.model.readings import BATCH, Reading, Side, fewest_without
from perfflow.model.result import PlannedStep, TargetResult, TargetStatus
from perfflow.model.targets import Names, Target, crossing_hint, is_chosen, matches
from perfflow.model.tree_facts import are_two_revisions
from perfflow.model.units import Relation, Requirement
from perfflow.stats.paired_test import Interval
from perfflow.store.record import MetricSeries, Record
from perfflow.verdict.comparison import VALUE_CONFIDENCE, ComparedMetric, SideSummary, speedup, summarise, sure_change
from perfflow.verdict.device import RanOn, known_peaks
from perfflow.verdict.growth import Sizes, scaled

NOT_TIMED = "not timed: base and head execute the same, so the gate cannot have changed it"


def judge(
    criteria: Criteria,
    comparisons: Mapping[tuple[str, str], ComparedMetric],
    record: Record,
    confidence: float = VALUE_CONFIDENCE,
) -> Iterator[TargetResult]:
    """Yield one result per target and matching benchmark, and one for a target that matches nothing.

    ``confidence`` applies to the intervals of values. Intervals of changes have their own confidence. Where two trees
    are compared, a limit on a value holds for head only if base meets it: otherwise it says nothing about the change.
    """
    by_metric = names_by_metric(comparisons)
    peaks, ran, two = known_peaks(record, criteria), RanOn(record), are_two_revisions(record.trees)
    for target in criteria.targets:
        if target.statistic in OF_SIZES:
            yield from _judge_growth(target, criteria, record, confidence)
            continue
        known = by_metric.get(target.metric.name)
        names = known.matching(target.benchmark) if known else []
        if not names:
            yield _unmeasured(target, record)
        for name in names:
            if criteria.ignores(name):
                continue
            key = (name, target.metric.name)
            series = record.series[key]
            in_two = two and not record.plan_of(comparisons[key].step).in_one_tree
            if not target.requirement.of_peak:
                yield _judge(target, target.requirement, comparisons[key], series, confidence, in_two=in_two)
                continue
            side = _latest(series)
            precision, device = ran.precision(series, side), ran.device(series, side)
            peak = peaks.of(target.metric.name, precision, device)
            if peak is None:
                peak_key = key_of(target.metric.name, precision if target.metric.name == "flops" else "", device)
                yield _result(target, name, None, "not measured", _why_no_peak(peak_key, record))
                continue
            requirement = target.requirement.scaled(peak.peak.value)
            result = _judge(target, requirement, comparisons[key], series, confidence, in_two=in_two)
            yield result.model_copy(update={"peak": peak.peak.value, "peak_source": peak.source})


def names_by_metric(keys: Iterable[tuple[str, str]]) -> dict[str, Names]:
    """Return the names of the benchmarks that have each metric. ``keys`` are pairs (benchmark, metric)."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, metric in keys:
        found[metric].append(name)
    return {metric: Names(names) for metric, names in found.items()}


def _unmeasured(target: Target, record: Record) -> TargetResult:
    """Return the result of a target without figures: not measured, or not looked at if the run measured others."""
    if any(matches(target.benchmark, name) for _, name in record.unchanged):
        return _result(target, target.benchmark, None, "not looked at", NOT_TIMED)
    if _judges_patches_alone(record):
        return _result(target, target.benchmark, None, "not looked at", "this run measured candidates only")
    if is_looked_at(target.benchmark, record):
        return _result(target, target.benchmark, None, "not measured", _why_not(target, record))
    why = "no benchmark of this part" if record.run.shard else "--benchmark chose other benchmarks"
    return _result(target, target.benchmark, None, "not looked at", why)


def _judges_patches_alone(record: Record) -> bool:
    """Return whether the run was to try candidates and to measure nothing else."""
    roles = {planned.role for planned in record.planned.values() if planned.selected}
    return "candidate" in roles and not roles & {"measure", "profile"}


def is_looked_at(glob: str, record: Record) -> bool:
    """Return whether a glob may stand for a benchmark that the run measured, or that the user chose."""
    chosen = record.run.chosen
    # A benchmark that was chosen but could not be measured has no figures.
    measured = [name for name, _ in record.series] + [name for _, name in record.unchanged]
    if record.run.shard:
        return any(matches(glob, name) for name in measured)
    return is_chosen(chosen, glob) or any(matches(glob, name) for name in (*chosen, *measured))


def _why_not(target: Target, record: Record) -> str:
    """Return why a target was not measured, from the steps that measure or expect its benchmark."""
    about = [(step_id, item) for step_id, item in record.planned.items() if _is_about(target, item)]
    for step_id, planned in sorted(about, key=lambda each: ("measure", "profile").index(each[1].role)):
        run = record.steps.get(step_id)
        if run is None:
            return f"step {step_id} " + ("did not end" if planned.selected else "was not selected")
        if run.status not in ("done", "cached"):
            return f"step {step_id}: {run.reason}"
    return "no step measured this" + _crossing(target, record)


def _is_about(target: Target, planned: PlannedStep) -> bool:
    names = (planned.benchmark, *planned.expect)
    return planned.role in ("measure", "profile") and any(matches(target.benchmark, name) for name in names)


def _why_no_peak(wanted: str, record: Record) -> str:
    """Return why there is no peak, from the steps that could have measured it."""
    reasons = [
        f"step {step_id}: {step.reason}"
        for step_id, step in record.ended_steps()
        if record.planned[step_id].role == "machine" and step.reason
    ]
    return "; ".join([f"no peak is known for {wanted}", *reasons])


def _latest(series: MetricSeries) -> Side:
    """Return the side that a target applies to: the candidate if it was measured, else the baseline."""
    return Side.CANDIDATE if series.readings(Side.CANDIDATE) else Side.BASELINE


def _crossing(target: Target, record: Record) -> str:
    """Return how to correct a glob whose ``*`` stops at a ``/``; else ''."""
    measured = (key for key, series in record.series.items() if any(map(series.readings, Side)))
    hint = crossing_hint(target.benchmark, [name for name, metric in measured if metric == target.metric.name])
    return f": {hint}" if hint else ""


def _judge(
    target: Target,
    requirement: Requirement,
    comparison: ComparedMetric,
    series: MetricSeries,
    confidence: float,
    *,
    in_two: bool = False,
) -> TargetResult:
    """Return the result of one target on one benchmark. ``in_two``: the sides are base and head of a gate."""
    name = comparison.benchmark
    if target.statistic in COMPARED_STATISTICS:
        return _judge_change(target, comparison, requirement, series)
    if comparison.only is Side.BASELINE:
        return _result(target, name, None, "not measured", "no longer measured")
    result = _judge_value(target, requirement, comparison, series, _latest(series), confidence)
    if in_two and comparison.only is None and result.status in ("not met", "unproven"):
        base = _judge_value(target, requirement, comparison, series, Side.BASELINE, confidence)
        return _held_by(base.status, result)
    return result


def _held_by(base: TargetStatus, head: TargetResult) -> TargetResult:
    """Return the result on head of a target that head does not meet, given the result on base."""
    if base not in ("not met", "unproven"):
        return head
    told = "also missed on base" if base == "not met" else "not proven on base either"
    return head.model_copy(update={"status": "not held by base", "detail": told})


def _judge_value(
    target: Target,
    requirement: Requirement,
    comparison: ComparedMetric,
    series: MetricSeries,
    side: Side,
    confidence: float,
) -> TargetResult:
    name = comparison.benchmark
    metric = replace(target.metric, exact=comparison.metric.exact)
    summary = summarise(series.readings(side), metric, target.statistic, confidence)
    if summary is None:
        few = fewest_without(series.readings(side), target.statistic)
        why = f"the {few} values of a process are too few for {target.statistic}" if few else "no step measured this"
        return _result(target, name, None, "not measured", why)
    if summary.needs and target.statistic == "value":
        summary = widened(summary)
    low = -math.inf if summary.low is None else summary.low
    high = math.inf if summary.high is None else summary.high
    status = _status(requirement, low, high)
    separated = ""
    if status == "unproven" and (status := _status(requirement, summary.sure.low, summary.sure.high)) != "unproven":
        separated = f"all {summary.n} samples lie on one side of the limit"
    details = (
        separated or _detail(status, summary, target),
        # A target that is met in spite of the correlation needs no explanation.
        _dependence(summary) if status != "met" else "",
        _of_batches(series.readings(side), target.statistic),
    )
    inside = target.statistic in series.readings(side)[0].inner
    value = summary.value if inside or _is_shown(summary, target.statistic, status) else math.nan
    return _result(target, name, Interval(value, low, high), status, "; ".join(filter(None, details)))


def _is_shown(summary: SideSummary, statistic: str, status: TargetStatus) -> bool:
    """Return whether a percentile is shown: with less than one sample beyond it, it would be the largest sample."""
    beyond = 1 - QUANTILES.get(statistic, 0.0)
    return status != "unproven" or summary.high is not None or statistic == "p50" or summary.n * beyond >= 1


def _dependence(summary: SideSummary) -> str:
    if summary.factor == 1 or summary.low is None or summary.high is None:
        return ""
    return f"successive samples are correlated, so the interval is {summary.factor:.1f} times as wide"


def widened(summary: SideSummary) -> SideSummary:
    """Return bounds for a value that should repeat but did not: the range of its runs, extended by itself both ways."""
    low, high = min(summary.samples), max(summary.samples)
    return replace(summary, low=low - (high - low), high=high + (high - low), needs=0) if summary.n > 1 else summary


def _of_batches(readings: Sequence[Reading], statistic: str) -> str:
    """Return a note if a percentile or extreme is one of batch means, which hide single iterations; else ''."""
    batch = readings[0].inner.get(BATCH, 1.0)
    if batch <= 1 or statistic in ("p50", "mean", "value"):
        return ""
    return f"{statistic} of averages over about {batch:.0f} calls each, not of single calls"


def _detail(status: TargetStatus, summary: SideSummary, target: Target) -> str:
    if status != "unproven":
        return ""
    if summary.needs:
        taken = "1 sample" if summary.n == 1 else f"{summary.n} samples"
        return f"{taken}; a 95% interval of {target.statistic} needs {summary.needs}"
    return "the interval includes the limit"


def _judge_change(
    target: Target, comparison: ComparedMetric, requirement: Requirement, series: MetricSeries
) -> TargetResult:
    name = comparison.benchmark
    if comparison.change is None or math.isnan(comparison.change.estimate):
        return _result(target, name, None, "not measured", "there is nothing to compare with")
    better = comparison.metric.better

    def oriented(change: Interval) -> Interval:
        return speedup(change, better) if target.statistic == "speedup" else change

    measured = oriented(comparison.change)
    status = _status(requirement, measured.low, measured.high)
    detail = "the interval includes the limit" if status == "unproven" else ""
    sure = sure_change(comparison, series) if status == "unproven" else None
    if sure and (status := _status(requirement, oriented(sure).low, oriented(sure).high)) != "unproven":
        detail = f"all {comparison.pairs} pairs lie on one side of the limit"
    return _result(target, name, measured, status, detail)


def _judge_growth(target: Target, criteria: Criteria, record: Record, confidence: float) -> Iterator[TargetResult]:
    """Yield one result for each matching benchmark whose sizes are the cells of a matrix key."""
    by_name = scaled(record, target.metric.name)
    names = Names(by_name).matching(target.benchmark)
    if not names:
        yield _unmeasured(target, record)
    for name in names:
        if criteria.ignores(name):
            continue
        sizes, thresholds = by_name[name], criteria.thresholds_of(name)
        result = _judge_growth_of(target, name, sizes, sizes.latest, thresholds, confidence)
        compared = are_two_revisions(record.trees) and sizes.latest is Side.CANDIDATE
        if compared and result.status in ("not met", "unproven"):
            base = _judge_growth_of(target, name, sizes, Side.BASELINE, thresholds, confidence)
            result = result if base.measured is None else _held_by(base.status, result)
        yield result


def _judge_growth_of(
    target: Target, name: str, sizes: Sizes, side: Side, thresholds: Thresholds, confidence: float
) -> TargetResult:
    metric = target.metric
    if target.statistic == "efficiency":
        return _judge_efficiency(target, name, sizes, sizes.efficiency(side, metric, thresholds, confidence))
    growth = sizes.fit(side, metric, thresholds, confidence)
    status: TargetStatus = "unproven"
    if growth:
        status = _status(target.requirement, growth.low, growth.high)
    detail = sizes.detail(side, metric, thresholds, confidence)
    if status == "unproven" and growth:
        larger = sizes.deciding_size(
            side,
            metric,
            thresholds,
            confidence,
            lambda fitted: _status(target.requirement, fitted.low, fitted.high) != "unproven",
        )
        detail = "; ".join(filter(None, ("the interval includes the limit", larger, detail)))
    return _result(target, name, growth.exponent if growth else None, status, detail)


def _judge_efficiency(target: Target, name: str, sizes: Sizes, found: Sequence[tuple[float, Interval]]) -> TargetResult:
    """Judge the efficiency of the largest number of threads."""
    if not found:
        return _result(target, name, None, "unproven", f"the efficiency needs samples of several {sizes.key}")
    number, measured = found[-1]
    status = _status(target.requirement, measured.low, measured.high)
    return _result(target, name, measured, status, f"with {sizes.key}={number:g}")


def _status(requirement: Requirement, low: float, high: float) -> TargetStatus:
    """Return ``met`` if the whole interval fulfils the requirement, ``not met`` if none does, else ``unproven``."""
    if requirement.relation in (Relation.EQUAL, Relation.BETWEEN):
        top = requirement.bound if requirement.high is None else requirement.high
        if requirement.holds_at(low) and requirement.holds_at(high):
            return "met"
        outside = high < requirement.bound or low > top
        return "not met" if outside else "unproven"
    holds = requirement.holds_at(low), requirement.holds_at(high)
    return "met" if all(holds) else "not met" if not any(holds) else "unproven"


def _result(
    target: Target, benchmark: str, measured: Interval | None, status: TargetStatus, detail: str
) -> TargetResult:
    return TargetResult(
        benchmark=benchmark,
        metric=target.metric.name,
        statistic=target.statistic,
        requirement=target.requirement.text,
        measured=measured.estimate if measured else None,
        low=measured.low if measured else None,
        high=measured.high if measured else None,
        unit=statistic_dimension(target.metric, target.statistic).base_unit,
        status=status,
        detail=detail,
    )
