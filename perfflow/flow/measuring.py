"""Steps that measure: fresh processes of both sides in coin-flip pairs, each round an event as soon as it is there."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from perfflow.errors import ToolOutputError
from perfflow.flow.figures import per_operation, with_work
from perfflow.flow.stopping import BUDGET, Decider, Stop
from perfflow.flow.workshop import Workshop
from perfflow.measure import EXPENSIVE, FEW, SCREENED, Design, Round, Sampler, Subject, Take
from perfflow.plan.plan import Planned
from perfflow.run.context import context_of
from perfflow.run.invoke import Failure, Written, written
from perfflow.run.prepare import Ready, operations, rendered, sides_of, whole
from perfflow.run.schedule import StepRun
from perfflow.rundir.record import reading_to_json
from perfflow.samples.readings import Reading, Side
from perfflow.tools import parsed_output
from perfflow.units import Dimension, duration, format_quantity
from perfflow.workflow.model import Parse

WARMUP = 1
SCREENING, CONFIRMING = 10, 20
"""Pairs of the screening of many benchmarks, and of the confirmation of what stands out."""
FOR_SCREENING = 2 / 3
"""Share of a step's time that its screening may take, where the run's budget is short."""


def measure_step(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """Sample all benchmarks of a step until each is decided; each round is an event as soon as it is there."""
    bench = Bench(shop, planned, run)
    subjects = bench.subjects()
    with shop.budget.share(planned.id, len(subjects)) as bench.ends:
        if planned.step.runs is not None or bench.deterministic:
            bench.take_rounds(subjects, Design.FIXED, bench.fixed_rounds(), bench.ends)
        elif len(subjects) > SCREENED and len(bench.sides) == 2:
            bench.screen(subjects)
        else:
            bench.take_until_decided(subjects)
    bench.tell_why_stopped(subjects)
    run.warnings += bench.warnings
    run.exit_code = 0
    if len(bench.prepared) == 2:
        run.details["identical"] = bench.identical


class Bench:
    """The measuring of one step: its benchmarks, its sampler, and what was read so far."""

    def __init__(self, shop: Workshop, planned: Planned, run: StepRun) -> None:
        self.shop, self.planned, self.run = shop, planned, run
        self.context = context_of(shop.scene, planned)
        self.sides = sides_of(shop.scene, planned)
        self.deterministic = bool(planned.tool and planned.tool.DETERMINISTIC)
        # A deterministic tool is not warmed up: its figures have no caches behind them, and it is slow.
        least = 0 if self.deterministic else WARMUP
        warmup = _count("warmup", planned.step.warmup, self.context, least, least=0)
        self.sampler = Sampler(shop.scene.seed, warmup=warmup)
        self.budget = _budget(planned, self.context)
        self.decider = Decider(shop.scene.plan.criteria, planned, self.budget, lambda: self.identical)
        self.prepared: dict[Side, Ready] = {}
        self.warnings: dict[str, None] = {}
        self.ends = math.inf
        """The moment at which the step's share of the run's budget is spent."""
        self.stopped = self.decider.stopped

    @cached_property
    def identical(self) -> bool:
        """Whether both sides execute the same files, which is known once both have been run."""
        hashes = [executed_files(self.prepared[side]) for side in Side]
        return bool(hashes[0]) and hashes[0] == hashes[1]

    def subjects(self) -> list[Subject]:
        """One for each benchmark of a suite that can run it alone, else one for the step."""
        ids = self.shop.benchmarks(self.planned) if self.planned.step.runs is None else ()
        if not ids:
            return [Subject(self.planned.benchmark, self.sides, self._taker(""))]
        return [Subject(benchmark_name(self.planned, name), self.sides, self._taker(name)) for name in ids]

    def _taker(self, only: str) -> Take:
        def take(side: Side) -> tuple[Reading, ...]:
            readings, self.prepared[side], said = _sample(self, side, only)
            self.warnings.update(dict.fromkeys(said))
            return readings

        return take

    def fixed_rounds(self) -> int:
        """The number of rounds the workflow asks for; one of what is the same every time."""
        return _count("runs", self.planned.step.runs, self.context, 1, least=1)

    def take_rounds(
        self, subjects: Sequence[Subject], design: Design, rounds: int, ends: float, start: int = 0
    ) -> None:
        """Take as many rounds of each subject, or until the moment ``ends``, but one at the least."""

        def enough(subject: Subject, finished: int) -> bool:
            if finished >= rounds:
                self.stopped.pop(subject.name, None)
                return True
            if finished and time.monotonic() >= ends:
                self.stopped[subject.name] = Stop.TOTAL_BUDGET
            return subject.name in self.stopped and finished > 0

        for subject in subjects:
            if start == 0:
                self.sampler.warm_up(subject)
        for item in self.sampler.rounds(subjects, enough, start):
            self._happened(item, design)

    def take_until_decided(self, subjects: Sequence[Subject]) -> None:
        """Look at the data after 10, 14, 20, 28, 40 and 64 pairs; few runs in random order where one is expensive."""
        quick = []
        for subject in subjects:
            seconds = self.sampler.warm_up(subject)
            if seconds > EXPENSIVE and len(subject.sides) == 2:
                self._take_few(subject, seconds)
            else:
                quick.append(subject)
        self.decider.start(quick, self.ends)
        for item in self.sampler.rounds(quick, self.decider.decided):
            self._happened(item, Design.LOOKS)

    def _take_few(self, subject: Subject, seconds: float) -> None:
        """Take a few runs in random order; where the run's budget cannot hold them, one a side, and say so."""
        began, needed = time.monotonic(), FEW * len(subject.sides) * seconds
        fits = began + needed <= self.ends
        for item in self.sampler.few(subject, FEW if fits else 1):
            self._happened(item, Design.FEW)
        if not fits:
            self.stopped[subject.name] = Stop.TOTAL_BUDGET
            about = format_quantity(needed, Dimension.TIME)
            self.warnings[f"{FEW} runs a side would take about {about}, more than is left: one was taken"] = None
        elif self.planned.step.budget and time.monotonic() - began > self.budget:
            budget = format_quantity(self.budget, Dimension.TIME)
            self.warnings[f"{FEW} runs a side, the least that can prove a change, took longer than {budget}"] = None

    def screen(self, subjects: Sequence[Subject]) -> None:
        """Take a few pairs of each, and fresh ones of those that stand out; the fresh ones alone decide."""
        self.decider.start(subjects)
        now = time.monotonic()
        self.take_rounds(subjects, Design.SCREEN, SCREENING, now + (self.ends - now) * FOR_SCREENING)
        standing_out = [subject for subject in subjects if self.decider.stands_out(subject)]
        for subject in standing_out:
            self.stopped.pop(subject.name, None)
        self.take_rounds(standing_out, Design.CONFIRM, CONFIRMING, self.ends, start=SCREENING)

    def tell_why_stopped(self, subjects: Sequence[Subject]) -> None:
        """An event for each benchmark of which it is known; one process of a single subject may have reported many."""
        for subject in subjects:
            if subject.name in self.stopped:
                name = subject.name if len(subjects) > 1 else ""
                why = self.stopped[subject.name].value
                event = {"event": "stopped", "step": self.planned.id, "benchmark": name, "reason": why}
                self.shop.folder.append(event)

    def _happened(self, item: Round, design: Design) -> None:
        event: dict[str, Any] = {"event": "sample", "step": self.planned.id, "design": design.value}
        event |= {"pair": item.number, "first": item.first.value}
        for side, readings in item.readings.items():
            event[side.value] = [reading_to_json(reading) for reading in readings]
        self.shop.folder.append(event)
        self.decider.happened(event)


def _budget(planned: Planned, context: dict[str, Any]) -> float:
    return duration(str(rendered(planned.step.budget, context))) if planned.step.budget else BUDGET


def _count(key: str, value: int | str | None, context: dict[str, Any], default: int, *, least: int) -> int:
    return default if value is None else whole(key, rendered(value, context), least=least)


def _sample(bench: Bench, side: Side, only: str) -> tuple[tuple[Reading, ...], Ready, tuple[str, ...]]:
    """One sample: one process, or two with different ``ops`` whose difference drops the fixed part."""
    shop, planned = bench.shop, bench.planned
    counts = operations(shop.scene, planned)
    found = []
    said: tuple[str, ...] = ()
    for count in counts or (None,):
        parse = planned.step.parse if planned.tool is None else None
        before = written(shop.parsed_file(planned, side)) if parse else None
        prepared, invoked = shop.invoke(planned, side, bench.run, count, only)
        readings = invoked.parsed.readings
        if parse:
            stdout = shop.folder.step(planned.id) / "stdout"
            readings = read_figures(parse, stdout, prepared.cwd, before)
        if only:
            readings = tuple(reading for reading in readings if reading.benchmark == only)
            if not readings:
                raise Failure(f"the suite lists {only!r} and does not report it when it is run alone")
        said += invoked.parsed.warnings
        found.append(named(planned, readings))
    figures = per_operation(found, counts)
    if bench.deterministic:
        figures = tuple(replace(figure, exact=True) for figure in figures)
    return with_work(figures, planned.step.work, bench.context), prepared, said


def benchmark_name(planned: Planned, found: str) -> str:
    """The step's name for its benchmark, or a suite's own id with the step's prefix around it."""
    pattern = planned.step.benchmark or "*"
    return pattern.replace("*", found, 1) if found and "*" in pattern else planned.benchmark


def named(planned: Planned, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Give readings their benchmark."""
    return tuple(replace(reading, benchmark=benchmark_name(planned, reading.benchmark)) for reading in readings)


def read_figures(parse: Parse, stdout: Path, cwd: Path, before: Written) -> tuple[Reading, ...]:
    """Read what ``parse`` asks for from the output, or from a file that is not as it was ``before``. Raises Failure."""
    source = cwd / parse.file if parse.file else stdout
    if parse.file and written(source) in (before, None):
        raise Failure(f"the command did not write {parse.file}", log=stdout)
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
            path = prepared.cwd / word
            # Devices never end, and opening a FIFO waits for a writer.
            if path.is_file():
                with path.open("rb") as stream:
                    found.append(hashlib.file_digest(stream, "sha256").hexdigest())
        except (OSError, ValueError):
            continue  # not a file, or one that may be executed and not read
    return found
