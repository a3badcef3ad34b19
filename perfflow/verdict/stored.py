"""Result -> Record: what a run measured, read back from its result.json, so that it can be judged again.

The inverse of ``judge`` as far as judging can tell: the record that comes out gives the same result, byte for byte.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from perfflow.errors import UserError
from perfflow.result import Benchmark, Result, StepResult
from perfflow.result_kernels import KernelResult
from perfflow.result_samples import AsBuilt, Sample
from perfflow.rundir.record import Record, Series, reading_from_json
from perfflow.samples.metrics import is_exact
from perfflow.samples.readings import NO_INNER, Reading, Side

_OF_RUN = {"seconds", "interrupted"}
"""What judging adds to the facts of a run."""
_OF_PLAN = (
    *("id", "stage", "tool", "role", "benchmark", "metric", "expect", "allowed", "selected", "technique", "why"),
    *("scaling", "scenario", "confirms", "precision", "in_one_tree"),
)
_OF_JUDGING = {"step", "model", "bound", "because", "stalls", "warnings"}
"""What judging adds to a kernel."""
_OF_STEP = {
    "status",
    "reason",
    "seconds",
    "argv",
    "exit_code",
    "warnings",
    "log",
    "tail",
    "outputs",
    "identical",
    "not_started",
    "devices",
}


def can_be_judged_again(result: Result) -> bool:
    """Whether the file says how its samples were taken; those of earlier versions do not."""
    return all(step.expect is not None for step in result.steps) and all(row.design for row in result.benchmarks)


def record_of_result(result: Result) -> Record:
    """Return what a run measured. Raises UserError for a file that does not say how its samples were taken."""
    if not can_be_judged_again(result):
        text = f"run {result.run.id}: its result.json does not say how its samples were taken"
        raise UserError.of(text, "an earlier version wrote it; name the run's folder with its events.jsonl")
    return Record(
        run=result.run.model_dump(exclude=_OF_RUN),
        machine=result.machine,
        trees=result.trees,
        criteria=result.criteria,
        data=result.data,
        attributed=[item.model_dump() for item in result.attributions],
        expected={(row.name, row.metric): row.expected.model_dump() for row in result.benchmarks if row.expected},
        planned={step.id: {key: getattr(step, key) for key in _OF_PLAN} for step in result.steps},
        steps=_steps(result),
        series={(row.name, row.metric): _series(row) for row in result.benchmarks},
        interrupted=result.run.interrupted and result.run.finished is not None,
        ended=not result.run.interrupted,
        ledger=[item.model_dump() for item in result.optimizations],
        branch=_branch(result),
        kept={item.id: item.revision or "" for item in result.optimizations if item.decision == "accepted"},
        stopped={(row.step, row.name): row.stopped for row in result.benchmarks if row.stopped},
        without_layouts={(row.step, row.name): row.as_built for row in result.benchmarks if row.as_built},
    )


def _branch(result: Result) -> dict[str, str]:
    """The branch that holds what was kept; empty where there is none."""
    kept = result.trees.get("candidate") or {}
    return {"name": kept["branch"], "revision": kept["revision"]} if kept.get("branch") else {}


def _steps(result: Result) -> dict[str, dict[str, Any]]:
    """The steps that ended, each with what it found."""
    details = {check.id: check.detail for check in result.verification}
    profiles, hotspots, peaks, kernels = (defaultdict(list) for _ in range(4))
    for profile in result.profiles:
        profiles[profile.step].append(profile.model_dump(exclude={"step"}))
    for spot in result.hotspots:
        hotspots[spot.step].append(spot.model_dump(exclude={"step", "rank", "impact"}))

    for peak in result.peaks:
        peaks[peak.step].append(peak.model_dump(exclude={"step", "unit"}))

    for kernel in result.kernels:
        kernels[kernel.step].append(measured_of(kernel))

    def found(step: StepResult) -> dict[str, Any]:
        more = {"detail": details.get(step.id, ""), "profiles": profiles[step.id], "hotspots": hotspots[step.id]}
        more |= {"peaks": peaks[step.id], "kernels": kernels[step.id]}
        return step.model_dump(include=_OF_STEP) | more

    return {step.id: found(step) for step in result.steps if step.ended}


def measured_of(kernel: KernelResult) -> dict[str, Any]:
    """What a profiler measured of a kernel, as its step's event has it."""
    stalls = {stall.reason: stall.cycles for stall in kernel.stalls}
    return kernel.model_dump(exclude=_OF_JUDGING) | {"stalls": stalls}


def _series(row: Benchmark) -> Series:
    """The readings of a row where judging looks for them; those that it never looked at are not in the file."""
    alone = row.decision in ("new", "removed")
    series = Series(
        row.name,
        row.metric,
        row.step,
        row.tool,
        paired=row.paired,
        two_sided=alone or bool(row.baseline and row.candidate),
        design=str(row.design),
        seconds=row.seconds or 0.0,
    )
    places = series.lone if alone and series.paired else series.sides
    for side, sample in zip(Side, (row.baseline, row.candidate), strict=True):
        if sample:
            places[side] = _readings(row, sample)
            series.screened[side] = [Reading(row.metric, value) for value in sample.screened]
    if row.layouts:
        series.built = _built(row, row.layouts.built, series)
        numbers = row.layouts.numbers or [list(range(1, len(series.sides[side]) + 1)) for side in Side]
        series.layouts = dict(zip(Side, numbers, strict=True))
    return series


def _built(row: Benchmark, built: AsBuilt, series: Series) -> Series:
    """What was seen before fresh code layouts were drawn."""
    samples = zip(Side, (built.baseline, built.candidate), strict=True)
    sides = {side: _readings(row, sample) if sample else [] for side, sample in samples}
    return replace(series, design=built.design, paired=built.paired, sides=sides)


def _readings(row: Benchmark, sample: Sample) -> list[Reading]:
    if sample.readings is not None:
        return [reading_from_json(item) for item in sample.readings]
    exact = is_exact(row.statistic)
    return [Reading(row.metric, value, inner=NO_INNER, exact=exact) for value in sample.samples]
