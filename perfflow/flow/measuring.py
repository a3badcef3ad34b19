"""Steps that measure: fresh processes of both sides in coin-flip pairs, each round an event as soon as it is there."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfflow import measure
from perfflow.errors import ToolOutputError
from perfflow.flow.figures import per_operation, with_work
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run.context import context_of
from perfflow.run.invoke import Failure
from perfflow.run.prepare import Ready, sides_of
from perfflow.run.schedule import StepRun
from perfflow.rundir.record import reading_to_json
from perfflow.samples.readings import Reading, Side
from perfflow.tools import parsed_output
from perfflow.workflow.expressions import render
from perfflow.workflow.model import Parse

PAIRS = 14
"""Pairs of a comparison, and samples of a single measurement, where the workflow does not say."""
WARMUP = 1


def measure_step(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """Sample both sides in coin-flip pairs, or the baseline alone; each round is an event as soon as it is there."""
    sides = sides_of(shop.scene, planned)
    context = context_of(shop.scene, planned)
    rounds = int(render(planned.step.runs, context) or PAIRS)
    warmup = planned.step.warmup
    prepared: dict[Side, Ready] = {}
    warnings: dict[str, None] = {}

    def take(side: Side) -> tuple[Reading, ...]:
        readings, prepared[side], said = _sample(shop, planned, side, run, context)
        warnings.update(dict.fromkeys(said))
        return readings

    taken = measure.rounds(
        take,
        sides,
        seed=shop.scene.seed,
        benchmark=planned.benchmark,
        warmup=WARMUP if warmup is None else int(render(warmup, context)),
        stop=measure.fixed(rounds),
    )
    for item in taken:
        event: dict[str, Any] = {"event": "sample", "step": planned.id, "pair": item.number, "first": item.first.value}
        for side, readings in item.readings.items():
            event[side.value] = [reading_to_json(reading) for reading in readings]
        shop.folder.append(event)
    run.warnings += warnings
    run.exit_code = 0
    if len(prepared) == 2:
        hashes = [executed_files(prepared[side]) for side in Side]
        run.details["identical"] = bool(hashes[0]) and hashes[0] == hashes[1]


def _sample(
    shop: Workshop, planned: Planned, side: Side, run: StepRun, context: dict[str, Any]
) -> tuple[tuple[Reading, ...], Ready, tuple[str, ...]]:
    """One sample: one process, or two with different ``ops`` whose difference drops the fixed part."""
    ops = render(planned.step.ops, context)
    counts = [int(count) for count in ops] if isinstance(ops, list) else [int(ops)] if ops else [None]
    found = []
    said: tuple[str, ...] = ()
    for count in counts:
        prepared, invoked = shop.invoke(planned, side, run, count)
        readings = invoked.parsed.readings
        if planned.tool is None and planned.step.parse:
            stdout = shop.folder.step(planned.id) / "stdout"
            readings = read_figures(planned.step.parse, stdout, prepared.cwd)
        said += invoked.parsed.warnings
        found.append(named(planned, readings))
    figures = per_operation(found, [count for count in counts if count], shop.scene.plan.criteria)
    return with_work(figures, planned.step.work, context), prepared, said


def named(planned: Planned, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Give readings their benchmark: the step's, or a suite's own id with the step's prefix around it."""
    pattern = planned.step.benchmark or "*"
    named = []
    for reading in readings:
        name = pattern.replace("*", reading.benchmark, 1) if reading.benchmark and "*" in pattern else planned.benchmark
        named.append(replace(reading, benchmark=name))
    return tuple(named)


def read_figures(parse: Parse, stdout: Path, cwd: Path) -> tuple[Reading, ...]:
    """Read what ``parse`` asks for from the output or a file. Raises Failure."""
    source = cwd / parse.file if parse.file else stdout
    try:
        text = source.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Failure(f"cannot read {parse.file}: {error.strerror}", log=stdout) from error
    try:
        if parse.json_:
            return parsed_output.from_json(text, parse.json_, parse.units)
        if parse.csv:
            return parsed_output.from_csv(text, parse.csv, parse.units)
        patterns = [parse.regex] if isinstance(parse.regex, str) else parse.regex or []
        return parsed_output.from_regex(text, patterns, parse.units)
    except ToolOutputError as error:
        raise Failure(str(error), exit_code=0, log=stdout) from error


def executed_files(prepared: Ready) -> list[str]:
    """Hashes of the files that a command line names: the program, and scripts among its arguments."""
    argv = prepared.call.command if prepared.call else prepared.argv
    found = []
    for word in argv:
        path = prepared.cwd / word
        if "/" in word and path.is_file():
            with path.open("rb") as stream:
                found.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return found
