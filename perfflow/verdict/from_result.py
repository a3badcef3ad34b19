"""Rebuild the record of a run from its result.json, so that the run can be judged again.

This is the inverse of ``judge``: the rebuilt record gives the same result, byte for byte.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from perfflow.model.criteria import criteria_from_json
from perfflow.model.kernels import measured_of
from perfflow.model.metrics import is_exact
from perfflow.model.plain_data import from_json
from perfflow.model.readings import NO_INNER, Reading, Side
from perfflow.model.result import AsBuilt, Benchmark, PlannedStep, ReasonKind, Result, Sample, StepResult, is_untimed
from perfflow.model.tree_facts import tree_of
from perfflow.store.record import MetricSeries, Record, reading_from_json
from perfflow.store.run_facts import Branch, StepRecord, UnchangedBenchmark


def record_of_result(result: Result) -> Record:
    """Return the record of a run."""
    measured = {
        (row.name, row.metric): row
        for row in result.benchmarks
        if row.decision != "not measured" and not is_untimed(row)
    }
    return Record(
        run=result.run,
        machine=result.machine,
        trees=result.trees,
        criteria=criteria_from_json(result.criteria),
        data=result.data,
        attributed=result.attributions,
        blind=result.blind,
        expected={(row.name, row.metric): row.expected for row in result.benchmarks if row.expected},
        planned={step.id: PlannedStep.model_validate(step.model_dump()) for step in result.steps},
        steps=_steps(result),
        series={key: _series(row) for key, row in measured.items()},
        unchanged={
            # The result does not tell native code; what an audit did not contradict is judged as such.
            (row.step, row.name): UnchangedBenchmark(row.step, row.name, row.unchanged, native=row.decision == "same")
            for row in result.benchmarks
            if row.unchanged
        },
        interrupted=result.run.interrupted and result.run.finished is not None,
        ended=not result.run.interrupted,
        ledger=[item.model_copy(update={"revision": None, "cheaper": []}) for item in result.optimizations],
        branch=_branch(result),
        kept={item.id: item.revision or "" for item in result.optimizations if item.decision == "accepted"},
        stopped={(row.step, row.name): row.stopped for row in result.benchmarks if row.stopped},
        measured_twice=_measured_twice(result),
        without_layouts={(row.step, row.name): row.as_built for row in result.benchmarks if row.as_built},
    )


def _measured_twice(result: Result) -> dict[str, list[tuple[str, str, str]]]:
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for item in result.reasons:
        if item.kind == ReasonKind.MEASURED_TWICE:
            found[item.values["step"]].append((item.benchmark, item.values["metric"], item.values["other"]))
    return dict(found)


def _branch(result: Result) -> Branch | None:
    kept = tree_of(result.trees, Side.CANDIDATE)
    return Branch(kept.branch, kept.revision or "") if kept.branch else None


def _steps(result: Result) -> dict[str, StepRecord]:
    """Return the steps that ended, each with its findings."""
    details = {check.id: check.detail for check in result.verification}
    profiles, hotspots, peaks, kernels, memory = (defaultdict(list) for _ in range(5))
    for profile in result.profiles:
        profiles[profile.step].append(profile.model_dump())
    for spot in result.hotspots:
        hotspots[spot.step].append(spot.model_dump())

    for peak in result.peaks:
        peaks[peak.step].append(peak.model_dump())

    for kernel in result.kernels:
        kernels[kernel.step].append(measured_of(kernel))
    for curve in result.memory:
        memory[curve.step].append(curve.model_dump())

    def found(step: StepResult) -> StepRecord:
        more: dict[str, Any] = {
            "detail": details.get(step.id, ""),
            "profiles": profiles[step.id],
            "hotspots": hotspots[step.id],
        }
        more |= {"peaks": peaks[step.id], "kernels": kernels[step.id], "memory": memory[step.id]}
        return from_json(StepRecord, step.model_dump() | more)

    return {step.id: found(step) for step in result.steps if step.ended}


def _series(row: Benchmark) -> MetricSeries:
    """Return the series of a row. Readings that judging does not use are not in the file."""
    alone = row.decision in ("new", "removed")
    series = MetricSeries(
        row.name,
        row.metric,
        row.step,
        row.tool,
        paired=row.paired,
        two_sided=alone or bool(row.baseline and row.candidate),
        design=row.design,
        seconds=row.seconds or 0.0,
        to_confirm=row.to_confirm,
    )
    places = series.lone if alone and series.paired else series.sides
    for side, sample in zip(Side, (row.baseline, row.candidate), strict=True):
        if sample:
            places[side] = _readings(row, sample)
            series.confirming[side] = sample.confirming
    if row.layouts:
        series.built = _built(row, row.layouts.built, series)
        # Pairs that confirmed the change afterwards are of the programs as built.
        counts = (len(series.sides[side]) - sum(map(bool, series.confirming[side])) for side in Side)
        numbers = row.layouts.numbers or [list(range(1, count + 1)) for count in counts]
        series.layouts = dict(zip(Side, numbers, strict=True))
    return series


def _built(row: Benchmark, built: AsBuilt, series: MetricSeries) -> MetricSeries:
    """Return the series of the programs as built, before fresh code layouts."""
    samples = dict(zip(Side, (built.baseline, built.candidate), strict=True))
    sides = {side: _readings(row, sample) if sample else [] for side, sample in samples.items()}
    confirming = {side: sample.confirming if sample else [] for side, sample in samples.items()}
    return replace(series, design=built.design, paired=built.paired, sides=sides, confirming=confirming)


def _readings(row: Benchmark, sample: Sample) -> list[Reading]:
    if sample.readings is not None:
        return [reading_from_json(item) for item in sample.readings]
    exact = is_exact(row.statistic)
    return [Reading(row.metric, value, inner=NO_INNER, exact=exact) for value in sample.samples]
