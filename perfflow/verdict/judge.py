"""Judge a record by criteria: decisions, targets, verdict, gate and evidence, from stored samples alone.

- ``judge`` makes the whole result.
- ``nodes``: the other machines that measured parts of a run, each with its jobs.
- ``ledger``: the rows of the optimization ledger, with each try, its decision at the time, and its final outcome.
- ``detectable_change`` and ``noisier_than_expected`` compare a row with the calibration of this machine: the smallest
  detectable change, and the noise.
- ``warned``: warnings that do not fail a run: concerns, accepted regressions, allowed failures, a run without
  measurements.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.judging import Code
from perfflow.model.metrics import MEMORY, Better
from perfflow.model.plain_data import to_json
from perfflow.model.readings import HOTSPOT, NEARLY_ALL, Design, Side
from perfflow.model.result import (
    SCHEMA,
    AsBuilt,
    Benchmark,
    Bounds,
    ConfirmationOf,
    Expected,
    Gate,
    HotspotResult,
    JobResult,
    LayoutsOf,
    MemoryResult,
    NodeResult,
    Optimization,
    PlannedStep,
    ProfileResult,
    Reason,
    ReasonKind,
    Result,
    RunInfo,
    Sample,
    StepResult,
    TargetResult,
    Verification,
    reason,
)
from perfflow.model.stacks import leads_to_a_part
from perfflow.model.targets import Names
from perfflow.model.units import Dimension, format_change, format_quantity, format_threshold
from perfflow.stats.paired_test import Interval, pair_spread
from perfflow.store.record import GroupJob, MetricSeries, Record, reading_to_json
from perfflow.store.run_facts import StepRecord
from perfflow.tools.adapter import OPTIONAL_ROLES, Role
from perfflow.verdict import acceptance, evidence, gating, out_of_time, row_text, targets, untimed
from perfflow.verdict.acceptance import cheaper_than, trade_off, worst
from perfflow.verdict.attribution import attributions
from perfflow.verdict.comparison import ComparedMetric, Confirmation, SideSummary, speedup, without_inverse_rates
from perfflow.verdict.decide import (
    IDENTICAL_FLOOR,
    Ruling,
    after_rebuild,
    by_cpu,
    not_settled,
    remaining,
    rule,
    rule_unconfirmed,
    together,
)
from perfflow.verdict.device import known_peaks
from perfflow.verdict.findings import Findings
from perfflow.verdict.gating import GatingRows, choose_rows, compared, is_custom, thresholds_for, two_stored
from perfflow.verdict.growth import concerns, grown
from perfflow.verdict.kernels import judged_kernels, on_each_gpu, peak_results, roof_points, without_decisions
from perfflow.verdict.routing import advice_of_tools, recommendations, routes_taken
from perfflow.verdict.row_text import judged, unit_of_row

NOTHING = "nothing was measured"
"""Reason of a run without figures."""
NO_STEP_MEASURES = (
    "no step of the workflow measures; write the program to time into the stage `baseline`, or into a stage with "
    "`role: measure`"
)
_ACROSS = "across machines: the two sides were measured on different machines"
_SPENT = {"budget": "its budget ran out", "total budget": "the run's total budget ran out"}
"""Reason of an unproven row, by the limit that ended its measuring."""
Verdict = Literal["pass", "fail", "unproven", "error"]


def judge(record: Record, criteria: Criteria) -> Result:
    """Return the result of a run. The same record and criteria give the same result, byte for byte."""
    record = record.concluded()
    criteria = criteria.knowing(name for name, _ in record.series)
    comparisons = compared(record, criteria)
    judged = list(targets.judge(criteria, comparisons, record))
    choice = choose_rows(record, comparisons, criteria)
    plain = (_row(record, comparisons[key], record.series[key], criteria, choice) for key in comparisons)
    plain = (untimed.audited(record, row, criteria) for row in plain)
    rows = [
        _ignored(row) if criteria.ignores(row.name) else acceptance.marked_tradeoffs(record, row, criteria)
        for row in plain
    ]
    rows = list(without_decisions(record, rows))
    rows, confirmed = gating.confirmed_scenarios(record, rows)
    growths = list(grown(record, rows, criteria))
    verification = list(_verification(record))
    lost = list(out_of_time.unmeasured(record, criteria))
    measured, rows = rows, [*rows, *untimed.rows(record, criteria), *lost]
    once = without_inverse_rates(rows)
    verdict, reasons = _verdict(record, once, judged, verification, criteria)
    stored = two_stored(record)
    blamed = list(attributions(record, once))
    peaks = known_peaks(record, criteria)
    points = list(roof_points(record, measured, peaks))
    kernels = list(judged_kernels(record, points, peaks))
    findings = Findings(record, criteria, verdict, once, judged, verification, blamed, list(_hotspots(record)))
    findings = replace(findings, kernels=kernels)
    findings = replace(findings, advice=[*recommendations(findings), *advice_of_tools(kernels)])
    # All parts are validated already, and building a validator for the whole result takes time.
    return Result.model_construct(
        schema_=SCHEMA,
        run=_run_info(record),
        verdict=None if stored else verdict,
        gate=None if stored else Gate(status="pass" if verdict == "pass" else "fail"),
        evidence=list(_evidence(rows, criteria)),
        reasons=[*reasons, *concerns(growths)],
        machine=record.machine,
        nodes=list(nodes(record)),
        trees={**record.trees, "candidate": _kept_tree(record) or record.trees.get("candidate")},
        steps=[_step(record, step_id) for step_id in record.planned],
        benchmarks=rows,
        targets=judged,
        growth=growths,
        peaks=list(peak_results(record, criteria, peaks)),
        roofline=points,
        kernels=kernels,
        across_gpus=list(on_each_gpu(kernels, rows, points, peaks)),
        profiles=list(_profiles(record)),
        hotspots=list(findings.hotspots),
        memory=list(_memory(record)),
        optimizations=list(ledger(record)),
        verification=verification,
        attributions=blamed,
        blind=record.blind,
        recommendations=list(findings.advice),
        confirmations=[*_confirmations(measured), *confirmed],
        routes=list(routes_taken(findings)),
        criteria=record.criteria.to_json(),
        data=record.data,
    )


def _kept_tree(record: Record) -> dict[str, Any] | None:
    """Return the tree with the accepted candidates, and the branch that contains it; None if none was kept."""
    accepted = {found.id for found in record.tried() if found.decision == "accepted"}
    kept = [revision for name, revision in record.kept.items() if name in accepted]
    if not kept or record.altered:
        return None
    return {"kind": "kept", "revision": kept[-1], "branch": record.branch.name or None if record.branch else None}


def _run_info(record: Record) -> RunInfo:
    started, finished = record.run.started, record.run.finished
    seconds = None
    if finished:
        # The clock may have been set back between an interruption and the resumed run.
        elapsed = (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
        seconds = max(0.0, elapsed - record.run.paused)
    return record.run.model_copy(update={"seconds": seconds, "interrupted": not record.ended})


def _row(
    record: Record, comparison: ComparedMetric, series: MetricSeries, criteria: Criteria, choice: GatingRows
) -> Benchmark:
    identical = record.outcome_of(comparison.step).identical
    key = (comparison.benchmark, comparison.metric.name)
    gates_by = choice.gating[key].by if key in choice.gating else None
    thresholds, notes = thresholds_for(record, criteria, key, gates_by)
    ruling = rule(comparison, thresholds, identical=identical)
    proven = rule_unconfirmed(comparison, thresholds, identical=identical).decision in ("regressed", "improved")
    if record.outcome_of(comparison.step).rebuilt and comparison.metric.name not in MEMORY:
        ruling = after_rebuild(comparison, ruling, thresholds)
    if key in choice.refuted and ruling.decision == "improved":
        ruling = Ruling("unproven", "ok", note=choice.refuted[key])
    worse = ruling.decision in ("regressed", "unproven")
    known = comparison.change is not None and not math.isnan(comparison.change.estimate)
    expected = record.expected.get(key)
    # Rows that do not gate, such as wall time beside CPU time, get no note about noise.
    note = ruling.note if comparison.layouts is None or key in choice.gating else ""
    noisier = noisier_than_expected(comparison, expected) if key in choice.gating and series.paired else ""
    return Benchmark(
        name=comparison.benchmark,
        step=comparison.step,
        tool=comparison.tool,
        metric=comparison.metric.name,
        statistic=comparison.statistic,
        unit=comparison.metric.dimension.base_unit,
        better=comparison.metric.better.value,
        confidence=comparison.confidence,
        baseline=_sample(comparison.baseline, series, Side.BASELINE),
        candidate=_sample(comparison.candidate, series, Side.CANDIDATE),
        change=_bounds(comparison.change) if comparison.change and known else None,
        speedup=_bounds(speedup(comparison.change, comparison.metric.better)) if comparison.change and known else None,
        decision=ruling.decision,
        level=ruling.level,
        gating=key in choice.gating,
        pairs=comparison.pairs,
        paired=series.comparable,
        design=series.design,
        stopped=record.why_stopped(series),
        layouts=_layouts(comparison, series, is_accident=ruling.is_accident),
        confirmations=list(map(_confirmation, comparison.confirmations)),
        to_confirm=comparison.to_confirm,
        unconfirmed=ruling.decision == "unproven"
        and not comparison.is_confirmed
        and (bool(comparison.confirmations) or proven),
        as_built=record.why_as_built(series),
        leading=key in choice.leading,
        more=ruling.more,
        seconds=series.seconds or None,
        warnings=[
            *comparison.warnings,
            *filter(
                None,
                (
                    note,
                    choice.undecided.get(key, ""),
                    noisier,
                    _as_built(record, comparison, series, ruling, thresholds),
                ),
            ),
            *(notes if worse else []),
            *([_ACROSS] if record.run.across_machines else []),
            *record.lost_before(series),
        ],
        expected=expected,
        node=record.node_of(series),
        same_as=choice.same_as.get(key, ""),
        gates_by=gates_by or (choice.leading[key].by if key in choice.leading else None),
        why=_why(key, choice),
        changed=is_custom(record, comparison) and _differs(comparison),
    )


def _ignored(row: Benchmark) -> Benchmark:
    return row.model_copy(update={"ignored": True, **({"level": "ok"} if row.decision else {})})


def _differs(item: ComparedMetric) -> bool:
    """Return whether the intervals of both sides do not overlap, for a metric without a direction."""
    first, second = item.baseline, item.candidate
    if item.metric.better is not Better.NONE or not first or not second:
        return False
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return False
    return first.high < second.low or second.high < first.low


def _as_built(
    record: Record, item: ComparedMetric, series: MetricSeries, ruling: Ruling, thresholds: Thresholds
) -> str:
    """Return the warning for a change that was measured with one code layout per side; '' if it needs none."""
    why = record.why_as_built(series)
    if not why or item.layouts or ruling.decision not in ("regressed", "improved"):
        return ""
    floor = f"code layout alone can change the result by more than the floor of {format_threshold(thresholds.floor)}"
    return f"measured with one code layout per side: {why}; {floor}"


def _layouts(comparison: ComparedMetric, series: MetricSeries, *, is_accident: bool) -> LayoutsOf | None:
    if comparison.layouts is None or series.built is None:
        return None
    built = comparison.layouts.built
    several = [series.layouts[side] for side in Side] if series.design == Design.FEW_LAYOUTS else None
    known = built.change is not None and not math.isnan(built.change.estimate)
    as_built = AsBuilt(
        design=series.built.design,
        paired=series.built.comparable,
        baseline=_sample(built.baseline, series.built, Side.BASELINE),
        candidate=_sample(built.candidate, series.built, Side.CANDIDATE),
        change=_bounds(built.change) if built.change and known else None,
    )
    return LayoutsOf(
        n=comparison.layouts.n,
        deviation=comparison.layouts.deviation,
        numbers=several,
        built=as_built,
        is_accident=is_accident,
    )


def _why(key: tuple[str, str], choice: GatingRows) -> str:
    why = choice.gating.get(key) or choice.leading.get(key)
    alike = choice.same_as.get(key)
    if why and why.text:
        return why.text
    return f"the same measurement as {alike}" if alike else ""


def _confirmation(found: Confirmation) -> ConfirmationOf:
    change, before = _bounds(found.change), _bounds(found.before)
    return ConfirmationOf(pairs=found.pairs, change=change, p=found.p, before=before, agrees=found.agrees)


def _bounds(interval: Interval) -> Bounds:
    return Bounds(value=interval.estimate, low=interval.low, high=interval.high)


def _sample(summary: SideSummary | None, series: MetricSeries, side: Side) -> Sample | None:
    if summary is None:
        return None
    readings = series.readings(side)
    more = any(item.inner or item.at_most or item.tick or item.statistic for item in readings)
    return Sample(
        value=summary.value,
        low=summary.low,
        high=summary.high,
        n=summary.n,
        samples=list(summary.samples),
        readings=[reading_to_json(item) for item in readings] if more else None,
        confirming=series.confirming[side] if series.confirmations else [],
    )


def _step(record: Record, step_id: str) -> StepResult:
    planned, run = record.planned[step_id], record.steps.get(step_id)
    base = {name: getattr(planned, name) for name in PlannedStep.model_fields} | {"tree": Side.BASELINE.value}
    if run is None:
        reason = "interrupted before it ended" if planned.selected else "not selected"
        status = {"status": "skipped", "reason": reason, "seconds": 0.0, "argv": [], "exit_code": None, "warnings": []}
        return StepResult(**{**base, **status, "ended": False})
    warnings = [*run.warnings, *record.warnings.get(step_id, [])]
    return StepResult(**{**base, **vars(run), "warnings": warnings})


def _profiles(record: Record) -> Iterator[ProfileResult]:
    for step_id, step in record.ended_steps():
        for item in step.profiles:
            benchmark = item.benchmark or record.planned[step_id].benchmark
            found = to_json(item) | {"step": step_id, "benchmark": benchmark}
            yield ProfileResult.model_validate(found)


def _memory(record: Record) -> Iterator[MemoryResult]:
    for step_id, step in record.ended_steps():
        for item in step.memory:
            benchmark = item.benchmark or record.planned[step_id].benchmark
            yield item.model_copy(update={"step": step_id, "benchmark": benchmark})


def _hotspots(record: Record) -> Iterator[HotspotResult]:
    """Yield the hotspots, ranked within each profile, each with the most that its removal can bring.

    Places below the threshold on every side are noise and are left out, as are those that only call all of the rest.
    """
    ranks: dict[tuple[str, str, str, str, Side], int] = {}
    stored = record.hotspots()
    large = {
        (step_id, hotspot.spot.benchmark, hotspot.spot.location)
        for step_id, hotspot in stored
        if hotspot.spot.share > HOTSPOT or leads_to_a_part(hotspot.spot.file, hotspot.spot.inclusive_share or 0.0)
    }
    for step_id, hotspot in stored:
        side, spot, place = hotspot.tree, hotspot.spot, hotspot.place
        if (step_id, spot.benchmark, spot.location) not in large:
            continue
        profile = (step_id, spot.benchmark, spot.source, spot.unit, side)
        ranks[profile] = ranks.get(profile, 0) + 1
        yield HotspotResult(
            rank=ranks[profile],
            step=step_id,
            benchmark=spot.benchmark or record.planned[step_id].benchmark,
            tree=side.value,
            location=spot.location,
            file=spot.file,
            line=spot.line,
            share=spot.share,
            unit=spot.unit,
            source=spot.source,
            cause=spot.cause,
            impact=_impact(spot.share, spot.unit, spot.inclusive_share),
            self_share=spot.self_share,
            inclusive_share=spot.inclusive_share,
            function=place.function,
            begins=place.begins,
            uses=[use.value for use in place.uses],
        )


def _impact(share: float, unit: str, inclusive: float | None = None) -> str:
    """Return the upper bound of the gain by Amdahl's law: this place costs nothing, everything else is unchanged.

    A function that is called less often, or not at all, also saves what it calls: that is the ``inclusive`` share.
    """
    most = max(share, inclusive or 0.0)
    of = f"{most:.0%} with what it calls: " if most - share >= 0.01 else ""
    if unit != "time":
        return f"{of}at most {most:.0%} fewer {unit} without it"
    if most >= NEARLY_ALL:
        return f"{of}{'' if most >= 1 else 'nearly '}all of the time"
    return f"{of}at most {1 / (1 - most):.2f}x faster without it"


def _confirmations(rows: list[Benchmark]) -> Iterator[dict[str, Any]]:
    """Yield each row whose change fresh samples were to confirm, and whether they did; ``open``: none were taken."""
    for row in rows:
        if row.gating and (row.confirmations or row.unconfirmed):
            agrees = row.confirmations and all(item.agrees for item in row.confirmations)
            outcome = "confirmed" if agrees else "refuted" if row.confirmations else "open"
            pairs = sum(item.pairs for item in row.confirmations)
            found = {"benchmark": row.name, "metric": row.metric, "decision": row.decision, "pairs": pairs}
            yield {**found, "outcome": outcome}


def _verification(record: Record) -> Iterator[Verification]:
    for step_id, planned in record.planned.items():
        if planned.role != "check":
            continue
        run = record.steps.get(step_id)
        if run is None:
            yield Verification(id=step_id, status="not run", detail="")
        elif run.status == "skipped":
            yield Verification(id=step_id, status="skipped", detail=run.reason)
        else:
            passed = run.status in ("done", "cached")
            yield Verification(id=step_id, status="passed" if passed else "failed", detail=run.detail or run.reason)


def _verdict(
    record: Record,
    rows: list[Benchmark],
    judged: list[TargetResult],
    checks: list[Verification],
    criteria: Criteria,
) -> tuple[Verdict, list[Reason]]:
    """Return the verdict, in the order fail, error, unproven, pass; and the reasons of all of them, then warnings.

    A run that another program altered is an error whatever its figures are.
    """
    failed = list(_failures(record, rows, judged, checks, criteria))
    altered = list(_alterations(record))
    errors = [*_interruption(record), *_errors(record, rows, judged), *_measured_twice(record)]
    errors += untimed.contradictions(rows)
    unproven = list(_unproven(record, rows, judged))
    reasons = [*altered, *failed, *errors, *unproven, *warned(record, rows, criteria)]
    if altered:
        return "error", reasons
    if failed:
        return "fail", reasons
    if errors:
        return "error", reasons
    return ("unproven" if unproven else "pass"), reasons


def _failures(
    record: Record,
    rows: list[Benchmark],
    judged: list[TargetResult],
    checks: list[Verification],
    criteria: Criteria,
) -> Iterator[Reason]:
    for target in judged:
        if target.status == "not met":
            yield _of_target(ReasonKind.TARGET_NOT_MET, target)
    for row in rows:
        if row.gating and row.decision == "regressed" and row.level == "action":
            yield row_text.failure(row, criteria)
            yield from acceptance.lapsed_tradeoffs(record, row, criteria)
    for check in checks:
        step = record.outcome_of(check.id)
        if check.status == "failed" and not record.planned[check.id].allowed and not _could_not_check(step):
            text = f"correctness step failed: {check.id}: {check.detail}"
            yield reason(ReasonKind.CHECK_FAILED, text, step=check.id)


_ALTERED = {
    "events": "another program changed the samples of this run in events.jsonl, at line",
    "perfflow": "perfflow's own files were changed during the run:",
}
_REMEDIES = {
    "events": "measure again with `isolate: strict`, which keeps the run's folder out of reach of what is measured",
    "perfflow": "install perfflow again before any other run, and use `isolate: strict`",
}
_FEW = 5


def _alterations(record: Record) -> Iterator[Reason]:
    """Yield what another program changed while the run was measured."""
    for item in record.altered:
        more = [f"and {len(item.where) - _FEW} more"] if len(item.where) > _FEW else []
        text = f"{_ALTERED[item.what]} {', '.join([*item.where[:_FEW], *more])}; {_REMEDIES[item.what]}"
        yield reason(ReasonKind.ALTERED, text, what=item.what, where=list(item.where))


def _interruption(record: Record) -> Iterator[Reason]:
    """Yield the error of a run that did not finish."""
    if not record.ended:
        text = "the run was interrupted" if record.interrupted else "the run did not finish (was it killed?)"
        yield reason(ReasonKind.INTERRUPTED, text)


def _could_not_check(step: StepRecord) -> bool:
    """Return whether a check gave no answer. That is an error, not a failure of the program."""
    return step.status == "timeout" or step.not_started


def _errors(record: Record, rows: list[Benchmark], judged: list[TargetResult]) -> Iterator[Reason]:
    # A failed profile is an error only if the run measured and checked nothing else.
    alone = not rows and not any(
        step.status in ("done", "cached") and record.planned[step_id].role in (*OPTIONAL_ROLES, "check")
        for step_id, step in record.ended_steps()
    )
    for step_id, step in record.ended_steps():
        planned = record.planned[step_id]
        if step.status == "skipped" and step.not_started:
            about = _about(step_id, planned, step.reason)
            text = f"step {step_id}{about} was not measured: {step.reason}"
            yield reason(ReasonKind.NOT_STARTED, text, planned.benchmark if about else "", step=step_id)
        if step.status not in ("failed", "timeout") or planned.allowed:
            continue
        if planned.role in OPTIONAL_ROLES and not alone:
            continue
        if planned.role != "check" or _could_not_check(step):
            about = _about(step_id, planned, step.reason)
            text = f"step {step_id}{about}: {step.reason}"
            yield reason(ReasonKind.STEP_FAILED, text, planned.benchmark if about else "", step=step_id)
    yield from _missing(record, rows)
    yield from out_of_time.reasons(record, rows)
    for target in judged:
        if target.status == "not measured":
            yield _of_target(ReasonKind.TARGET_NOT_MEASURED, target)


def _of_target(kind: ReasonKind, target: TargetResult) -> Reason:
    """Return the reason that a target is not met, unproven or not measured."""
    detail = "" if kind == ReasonKind.TARGET_NOT_MET else f" ({target.detail})"
    return reason(
        kind,
        f"target {target.status}: {_name(target)} {target.requirement}{detail}",
        target.benchmark,
        metric=target.metric,
        statistic=target.statistic,
        requirement=target.requirement,
    )


def _measured_twice(record: Record) -> Iterator[Reason]:
    """Yield the steps whose samples were skipped because another step measures the same."""
    for step_id, _ in record.ended_steps():
        for benchmark, metric, other in record.measured_twice.get(step_id, ()):
            text = (
                f"step {step_id}: measured twice: `{metric}` of `{benchmark}` was already measured by step `{other}`; "
                "remove one of them, or give it another `benchmark`"
            )
            yield reason(ReasonKind.MEASURED_TWICE, text, benchmark, metric=metric, step=step_id, other=other)


def _about(step_id: str, planned: PlannedStep, reason: str) -> str:
    """Return the benchmark of a measuring step in parentheses, '' if the step's id or the reason names it."""
    name = planned.benchmark
    told = name in step_id or name in reason or "*" in name
    return "" if told or planned.role != "measure" else f" ({name})"


def _missing(record: Record, rows: list[Benchmark]) -> Iterator[Reason]:
    """Yield an error for each expected measurement that is missing."""
    names = Names(row.name for row in rows)
    for step_id, planned in record.planned.items():
        for glob in planned.expect:
            if step_id in record.steps and not names.matching(glob) and targets.is_looked_at(glob, record):
                text = f"expected benchmark did not appear: {glob} (step {step_id})"
                yield reason(ReasonKind.MISSING, text, glob, step=step_id)
    for row in rows:
        if row.gating and row.decision == "removed":
            yield reason(ReasonKind.REMOVED, f"no longer measured: {row.title}", row.name, metric=row.metric)
    if not rows and not record.run.shard:
        yield from _nothing(record)


def _nothing(record: Record) -> Iterator[Reason]:
    """Yield the error of a run without figures, with the stages that could measure if it chose none of their steps."""
    ran = {record.planned[step_id].role for step_id, step in record.ended_steps() if step.status != "skipped"}
    measuring = [planned for planned in record.planned.values() if planned.role == Role.MEASURE]
    # A profile alone is an answer, but it compares no trees.
    profiles = set() if record.trees.get("candidate") else {*OPTIONAL_ROLES}
    meant = {planned.role for planned in record.planned.values() if planned.selected}
    if Role.MEASURE in meant | ran or (record.ended and meant & profiles and not ran & profiles):
        yield reason(ReasonKind.NOTHING_MEASURED, NOTHING)
    elif record.ended and not ran & {Role.CANDIDATE, Role.COMPARE, *profiles}:
        stages = ", ".join(f"`{name}`" for name in dict.fromkeys(planned.stage for planned in measuring))
        why = f"the steps that measure are in the stage {stages}" if stages else NO_STEP_MEASURES
        yield reason(ReasonKind.NOTHING_MEASURED, f"{NOTHING}: {why}")


def _unproven(record: Record, rows: list[Benchmark], judged: list[TargetResult]) -> Iterator[Reason]:
    """Yield the undecided targets and rows. A cause that several rows share is told once."""
    for target in judged:
        if target.status == "unproven":
            yield _of_target(ReasonKind.TARGET_UNPROVEN, target)
    by_cause: dict[str, list[Benchmark]] = {}
    for row in rows:
        if row.gating and row.decision == "unproven" and row.level is None:
            by_cause.setdefault(row.stopped, []).append(row)
    for stopped, alike in by_cause.items():
        if len(alike) > 1:
            cpu = sum(bool(by_cpu(row, rows)) for row in alike)
            hint = f"; the CPU time of {cpu} is settled: judge by CPU time (metric: cpu)" if cpu else ""
            text = f"unproven: {len(alike)} rows: {together(alike, record.run.budget)}{hint}"
            names = list(dict.fromkeys(row.name for row in alike))
            yield reason(ReasonKind.UNPROVEN, text, stopped=stopped, benchmarks=names)
            continue
        (row,) = alike
        # First, because a terminal cuts the end of a long line.
        spent = f"{_SPENT[stopped]}; " if stopped in _SPENT else ""
        hints = filter(None, (remaining(row), by_cpu(row, rows), detectable_change(row.expected)))
        text = f"unproven: {row.title}: {spent}{'; '.join([not_settled(row), *hints])}"
        yield reason(ReasonKind.UNPROVEN, text, row.name, metric=row.metric, stopped=stopped)


def _name(target: TargetResult) -> str:
    return f"{target.benchmark} {target.metric}" + ("" if target.statistic == "value" else f" {target.statistic}")


def _evidence(rows: list[Benchmark], criteria: Criteria) -> Iterator[str]:
    for row in rows:
        side = row.candidate or row.baseline
        # A row that only the baseline has does not have a current value.
        if row.gating and row.decision != "removed" and side and side.value is not None:
            what = row.name if row.metric == "time" else f"{row.name} {row.metric}"
            change = row.change.value if row.change else None
            if change is None and row.candidate:  # compared, but without a relative change
                change = math.nan
            at_most = any(item.get("at_most") for item in side.readings or [])
            dimension, unit = criteria.metric(row.metric).dimension, unit_of_row(row, criteria)
            yield evidence.line(what, side.value, dimension, change, at_most=at_most, unit=unit)


def nodes(record: Record) -> Iterator[NodeResult]:
    """Yield the machines, sorted by name."""
    by_name: dict[str, list[GroupJob]] = defaultdict(list)
    for job in record.jobs.values():
        by_name[job.node].append(job)
    for name, jobs in sorted(by_name.items()):
        machine = next((job.machine for job in jobs if job.machine), {})
        yield NodeResult(
            name=name,
            identity=str(machine.get("identity", "")),
            machine=dict(machine),
            jobs=[_job(job) for job in jobs],
        )


def _job(job: GroupJob) -> JobResult:
    return JobResult(
        group=job.group, id=job.job, attempt=job.attempt, state=job.state, seconds=job.seconds, lost=job.lost
    )


_OTHER = "another alternative is better"
_LOST = "the run ended before it was kept"


def ledger(record: Record) -> Iterator[Optimization]:
    """Yield the tries in the order of the plan. A try that was accepted but not kept is reported as rejected."""
    kept_steps = {name.partition("[")[0] for name in record.kept}
    before: list[Optimization] = []
    for tried in map(_as_altered, record.tried()) if record.altered else record.tried():
        found, name = tried, tried.id
        if found.decision == "accepted" and name not in record.kept:
            lost = name.partition("[")[0] in kept_steps
            code = Code.OUTDONE if lost else Code.OUT_OF_TIME
            why = f"{_OTHER if lost else _LOST}: {found.reason}"
            update = {"decision": "rejected", "reason": why, "outcome": code.outcome, "code": code, "flags": []}
            found = found.model_copy(update=update)
        revision = record.kept.get(name) if found.decision == "accepted" else None
        cheaper = cheaper_than(tried, before, record.run.ruled_out or {})
        before.append(found)
        yield found.model_copy(update={"revision": revision, "cheaper": cheaper})
    if not record.ledger:
        yield from _untried(record)


def _as_altered(tried: Optimization) -> Optimization:
    """Return a try of an altered run: any of them may have altered it, so none is accepted."""
    if tried.decision != "accepted":
        return tried
    told = {"decision": "rejected", "outcome": Code.RUN_CHANGED.outcome, "code": Code.RUN_CHANGED}
    return tried.model_copy(update={**told, "reason": f"another program altered the run: {tried.reason}"})


def _untried(record: Record) -> Iterator[Optimization]:
    """Yield the candidates whose step was skipped, such as by `if`. The ledger lists all candidates."""
    for step_id, planned in record.planned.items():
        step = record.steps.get(step_id)
        if planned.role == "candidate" and step is not None and not step.optimizations:
            technique, why = planned.technique or "", planned.why or ""
            failed = any(other.status in ("failed", "timeout") for other in record.steps.values())
            code = Code.BASE_FAILS if failed else Code.NOT_NEEDED
            yield Optimization(
                id=step_id,
                decision="skipped",
                outcome=code.outcome,
                code=code,
                reason=step.reason,
                technique=technique,
                why=why,
            )


NOISIER = 2.0
"""Factor on the calibrated noise above which a run counts as noisier."""
FEWEST_PAIRS = 10
"""Number of pairs below which their spread is too uncertain to compare."""


def detectable_change(expected: Expected | None) -> str:
    """Return ``on this machine changes of 3% or more are detected within 20 s``; '' without a calibration."""
    if expected is None or expected.within is None:
        return ""
    time = format_quantity(expected.within, Dimension.TIME)
    if expected.smallest_change is None:
        return f"in the calibration of this machine, no change up to 100% was detected within {time}"
    return f"on this machine changes of {percent(expected.smallest_change)} or more are detected within {time}"


def noisier_than_expected(row: ComparedMetric, expected: Expected | None) -> str:
    """Return ``noisier than when calibrated: ±4% against ±1%``; '' if it is not noisier or that is not known."""
    if expected is None or expected.noise is None or row.baseline is None or row.candidate is None:
        return ""
    sides = row.baseline.samples, row.candidate.samples
    if len(sides[0]) != len(sides[1]) or len(sides[0]) < FEWEST_PAIRS or min(*sides[0], *sides[1]) <= 0:
        return ""
    spread = pair_spread(*sides)
    # Noise below the smallest change that is ever reported does not matter.
    if spread <= max(NOISIER * expected.noise, IDENTICAL_FLOOR):
        return ""
    shown = (f"±{percent(math.expm1(value))}" for value in (spread, expected.noise))
    return f"noisier than when calibrated: {' against '.join(shown)}"


def percent(share: float) -> str:
    """Return a share with two significant digits, such as 3% or 0.25%."""
    if share < 0.0005:
        return "<0.1%"
    return f"{share * 100:.2g}%" if share < 1 else f"{share:.0%}"


def warned(record: Record, rows: list[Benchmark], criteria: Criteria) -> Iterator[Reason]:
    """Yield every warning of a run, in the order of its benchmarks and steps."""
    for row in rows:
        if row.gating:
            yield from _regression(record, row, criteria)
    for row in gating.memory_concerns(rows, criteria):
        yield _concern(row, judged(row, criteria))
    for step_id, step in record.ended_steps():
        planned = record.planned[step_id]
        if planned.allowed and step.status in ("failed", "timeout"):
            detail = step.detail if planned.role == "check" else ""
            text = f"failed (allowed): {step_id}: {detail or step.reason}"
            yield reason(ReasonKind.ALLOWED, text, step=step_id)


def _concern(row: Benchmark, judged_as: str) -> Reason:
    change = row.change.value if row.change else None
    return reason(ReasonKind.CONCERN, f"concern: {row.title} {judged_as}", row.name, metric=row.metric, change=change)


def _regression(record: Record, row: Benchmark, criteria: Criteria) -> Iterator[Reason]:
    """Yield the warning of a regression that passes: below the action threshold, or accepted above it."""
    worse = worst(row)
    if worse is None:
        return
    accepted = trade_off(record, row, criteria)
    if accepted:
        up_to = "" if row.decision == "regressed" else "unproven, up to "
        change = -worse if row.better == "higher" else worse
        text = f"accepted until {accepted.until}: {row.title} {up_to}{format_change(change)}: {accepted.why}"
        yield reason(ReasonKind.ACCEPTED, text, row.name, metric=row.metric, change=change, until=accepted.until)
    elif row.decision == "regressed" and row.level == "concern":
        action = format_threshold(criteria.thresholds_of(row.name, row.metric).action)
        yield _concern(row, f"{judged(row, criteria)} (action threshold {action})")
