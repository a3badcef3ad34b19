"""Recorded runs of one program, replayed: suites through perfflow's own sampling, and peers' rules on blocks."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from benchmarks.verdict_experiment.log import Entry
from benchmarks.verdict_experiment.peers import RULES
from perfflow.jobs.compare.compare_stored import Question, workflow_of
from perfflow.model.metrics import TIMES
from perfflow.model.readings import Reading, Side
from perfflow.model.result import PlannedStep, RunInfo
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import BenchmarkToSample, PairScheduler, Request, Take
from perfflow.sampling.sampling import StepSampling
from perfflow.sampling.stop_rule import BUDGET, StopRule
from perfflow.session.open_workflow import open_workflow
from perfflow.store.record import Record
from perfflow.store.run_facts import StepRecord
from perfflow.verdict.judge import judge

Trace = Sequence[Mapping[str, float]]
"""The readings of each process, in the order they were taken."""
BENCHMARKS, CHANGED = 100, 5
BLOCKS = (10, 20, 40)


@cache
def recorded(path: Path) -> Trace:
    """Read what was recorded."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def suite_of(path: Path, factor: float, seed: int) -> Entry:
    """Judge a suite of what was recorded there."""
    return suite(recorded(path), seed, factor)


def suite(trace: Trace, seed: int, factor: float) -> Entry:
    """Judge a suite of 100 benchmarks whose every process is the next one of the trace, from a random place on.

    Five of them cost ``factor`` times as much on the candidate's side.
    """
    cursor = itertools.count(random.Random(seed).randrange(len(trace)))
    names = [f"b{number:02}" for number in range(BENCHMARKS)]
    changed = set(names[:CHANGED]) if factor != 1 else set()

    def taker(name: str) -> Take:
        def take(request: Request) -> tuple[Reading, ...]:
            scale = factor if request.side is Side.CANDIDATE and name in changed else 1.0
            found = trace[next(cursor) % len(trace)]
            return tuple(
                Reading(metric, value * scale if metric in TIMES else value, name) for metric, value in found.items()
            )

        return take

    opened = plan()
    events: list[Mapping[str, object]] = []
    # A clock that stands still: nothing is idle, and no budget ends.
    stop_rule = StopRule(opened.criteria, opened.steps[0], BUDGET, lambda: True, clock=lambda: 0.0)
    scheduler = PairScheduler(seed, clock=lambda: 0.0)
    sampling = StepSampling(opened.steps[0].id, scheduler, stop_rule, events.append, {})
    benchmarks = [BenchmarkToSample(name, tuple(Side), taker(name)) for name in names]
    sampling.take_until_decided(benchmarks, math.inf, math.inf)
    alarmed = set(_called_changed(opened, events))
    return {
        "changed": len(changed),
        "found": len(alarmed & changed),
        "alarms": len(alarmed - changed),
        "pairs": round(len(events) / BENCHMARKS, 2),
    }


def _called_changed(opened: Plan, events: Sequence[Mapping[str, object]]) -> Iterator[str]:
    step = opened.steps[0]
    record = Record(run=RunInfo(id="", workflow="", component="", started="2000-01-01T00:00:00Z", seed=0))
    record.planned[step.id] = PlannedStep(
        id=step.id, stage=step.stage, tool="command", role="measure", metric="auto", benchmark=step.benchmark
    )
    for event in events:
        record.fold(event)
    # The same program on both sides, as after a change of a setting.
    record.steps[step.id] = StepRecord(id=step.id, status="done", identical=True)
    for row in judge(record, opened.criteria).benchmarks:
        if row.gating and row.decision in ("regressed", "improved"):
            yield row.name


@cache
def plan() -> Plan:
    """The plan of a comparison of two commands, whose one step measures."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "suite.yaml"
        path.write_text(json.dumps(workflow_of(Question("old", "new"))))
        return open_workflow(str(path)).plan


def blocks(trace: Trace, factor: float = 1.0) -> Iterator[Entry]:
    """What each rule says of n runs of A followed by n runs of B, cut one after the other out of the trace."""
    times = [found["time"] for found in trace]
    for size in BLOCKS:
        windows = [times[start : start + 2 * size] for start in range(0, len(times) - 2 * size + 1, 2 * size)]
        if not windows:
            continue
        for name, rule in RULES.items():
            called = sum(rule(window[:size], [value * factor for value in window[size:]]) for window in windows)
            yield {"rule": name, "runs": size, "different": called, "trials": len(windows)}
