"""Steps that measure: fresh processes of both sides in coin-flip pairs, each round an event as soon as it is there."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfflow import measure
from perfflow.errors import ToolOutputError
from perfflow.flow.figures import per_operation, with_work
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run.context import context_of
from perfflow.run.invoke import Failure, require_fresh
from perfflow.run.prepare import Ready, operations, rendered, sides_of, whole
from perfflow.run.schedule import StepRun
from perfflow.rundir.record import reading_to_json
from perfflow.samples.readings import Reading, Side
from perfflow.tools import parsed_output
from perfflow.workflow.model import Parse

PAIRS = 14
"""Pairs of a comparison, and samples of a single measurement, where the workflow does not say."""
WARMUP = 1


def measure_step(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """Sample both sides in coin-flip pairs, or the baseline alone; each round is an event as soon as it is there."""
    sides = sides_of(shop.scene, planned)
    context = context_of(shop.scene, planned)
    rounds = _count("runs", planned.step.runs, context, PAIRS, least=1)
    warmup = _count("warmup", planned.step.warmup, context, WARMUP, least=0)
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
        warmup=warmup,
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


def _count(key: str, value: int | str | None, context: dict[str, Any], default: int, *, least: int) -> int:
    return default if value is None else whole(key, rendered(value, context), least=least)


def _sample(
    shop: Workshop, planned: Planned, side: Side, run: StepRun, context: dict[str, Any]
) -> tuple[tuple[Reading, ...], Ready, tuple[str, ...]]:
    """One sample: one process, or two with different ``ops`` whose difference drops the fixed part."""
    counts = operations(shop.scene, planned)
    found = []
    said: tuple[str, ...] = ()
    for count in counts or (None,):
        started = time.time()
        prepared, invoked = shop.invoke(planned, side, run, count)
        readings = invoked.parsed.readings
        if planned.tool is None and planned.step.parse:
            stdout = shop.folder.step(planned.id) / "stdout"
            readings = read_figures(planned.step.parse, stdout, prepared.cwd, started)
        said += invoked.parsed.warnings
        found.append(named(planned, readings))
    figures = per_operation(found, counts)
    return with_work(figures, planned.step.work, context), prepared, said


def named(planned: Planned, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Give readings their benchmark: the step's, or a suite's own id with the step's prefix around it."""
    pattern = planned.step.benchmark or "*"
    named = []
    for reading in readings:
        name = pattern.replace("*", reading.benchmark, 1) if reading.benchmark and "*" in pattern else planned.benchmark
        named.append(replace(reading, benchmark=name))
    return tuple(named)


def read_figures(parse: Parse, stdout: Path, cwd: Path, started: float) -> tuple[Reading, ...]:
    """Read what ``parse`` asks for from the output, or from a file written since ``started``. Raises Failure."""
    source = cwd / parse.file if parse.file else stdout
    if parse.file:
        require_fresh(source, started, stdout, "the command")
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
    """Hashes of the files that a command line names: the program, and scripts among its arguments.

    None where shell text stands between, which may run anything.
    """
    if prepared.call is None or prepared.call.shell_text:
        return []
    found = []
    for word in prepared.call.command:
        try:
            with (prepared.cwd / word).open("rb") as stream:
                found.append(hashlib.file_digest(stream, "sha256").hexdigest())
        except (OSError, ValueError):
            continue  # not a file, or one that may be executed and not read
    return found
