"""Choose the benchmarks that a profiling step profiles, and a profiler for the metric of each.

If two trees are compared, these are the benchmarks that regressed in a gating metric or in exact counts.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from perfflow.execute.context import search_path
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import missing_program, ready
from perfflow.model.criteria import Criteria
from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import METRICS, TIMES
from perfflow.model.readings import Side
from perfflow.model.units import Dimension
from perfflow.plan.plan import Planned, chosen_of, counted_source
from perfflow.session.benchmark_names import benchmark_name
from perfflow.session.session import RunSession
from perfflow.store import run_folder
from perfflow.store.record import Record, record_of
from perfflow.tools import python_command, registry
from perfflow.tools.adapter import Adapter, ProfilingMethod
from perfflow.verdict.acceptance import effect_of
from perfflow.verdict.comparison import Comparison
from perfflow.verdict.decide import rule
from perfflow.verdict.findings import waits_longer, worse_by
from perfflow.verdict.gating import choose_rows, thresholds_for
from perfflow.verdict.judge import judge
from perfflow.verdict.sharing import compared

AUTOMATIC = "attribution"
"""Id of the step that perfflow adds to a gate that fails."""
_TIME = "time"
_UNFOLLOWED = (Dimension.COUNT, Dimension.RATIO, Dimension.BYTES)
"""Dimensions of custom metrics that no profiler follows."""


@dataclass(frozen=True)
class Subject:
    """One benchmark to profile: the metric to explain, the step that measures it, and its id in a suite."""

    benchmark: str
    metric: str
    source: Planned
    only: str = ""

    @property
    def chosen(self) -> tuple[str, ...]:
        """Its id, as a call names the benchmarks to run."""
        return (self.only,) if self.only else ()


@dataclass(frozen=True)
class Choice:
    """A profiler, and a note if a better one could not be used."""

    tool: Adapter
    note: str = ""

    def as_fallback(self, why: str) -> Choice:
        """Return this choice with a note on why it replaces a better profiler."""
        sees = self.tool.profiler.sees if self.tool.profiler else "time"
        return replace(self, note=f"{why}; {self.tool.name} is used instead, which records {sees}")


def subjects(session: RunSession, planned: Planned) -> list[Subject]:
    """Return the benchmarks that the step's glob matches; in a gate, only those that regressed."""
    record = record_of(run_folder.events(session.folder.path))
    found: dict[tuple[str, tuple[str, ...]], Subject] = {}
    by_id = session.context.plan.by_id
    for benchmark, metric in rows_to_explain(session, planned, record):
        counting = by_id.get(record.series[benchmark, metric].step)
        source = (counting and counted_source(by_id, counting)) or counting
        if source is None or source.id == planned.id:
            continue
        measured = {name for (name, _), series in record.series.items() if series.step == source.id}
        if benchmark not in chosen_of(planned.benchmark, source, measured | {benchmark}):
            continue
        # One profile explains every metric that the same profilers follow, and a rate by the profile of its time.
        followers = () if planned.tool else tuple(tool.name for tool in _following(metric))
        found.setdefault((benchmark, followers), Subject(benchmark, metric, source, _alone(session, source, benchmark)))
    return list(found.values())


def failing(record: Record, criteria: Criteria) -> list[tuple[str, str]]:
    """Return the benchmark and metric of each row that fails a gate and that no step profiled, the worst first.

    A custom number that is neither a time nor a rate is left out, and a time that is longer because the program waits:
    no profiler follows them.
    """
    result = judge(record, criteria)
    missed = {(item.benchmark, item.metric) for item in result.targets if item.status == "not met"}
    profiled = {entry.benchmark for _, step in record.ended_steps() for entry in step.costs}
    rows = [
        row
        for row in result.benchmarks
        if row.decision == "regressed"
        and ((row.gating and row.level == "action") or (row.name, row.metric) in missed)
        and row.name not in profiled
        and (row.metric in METRICS or criteria.metric(row.metric).dimension not in _UNFOLLOWED)
        and not waits_longer(row, result.benchmarks)
    ]
    return [(row.name, row.metric) for row in sorted(rows, key=lambda row: -(worse_by(row) or 0.0))]


def rows_to_explain(session: RunSession, planned: Planned, record: Record) -> Iterator[tuple[str, str]]:
    """Yield the benchmark and metric of each series that a profiling step explains; in a gate, the worst first."""
    criteria = session.context.plan.criteria
    if planned.id not in session.context.plan.by_id:
        yield from failing(record, criteria)
        return
    comparisons = compared(record, criteria)
    gating = choose_rows(record, comparisons, criteria).gating
    rows = judge(record, criteria).benchmarks if session.contexts and planned.tool is None else []
    waiting = {(row.name, row.metric) for row in rows if waits_longer(row, rows)}
    for key, item in sorted(comparisons.items(), key=_worst_first) if session.contexts else comparisons.items():
        if not session.contexts:
            if key in gating:
                yield key
            continue
        ruling = rule(item, thresholds_for(record, criteria, key, gating.get(key))[0], identical=False)
        if ruling.is_regression and (key in gating or record.series[key].exact) and key not in waiting:
            yield key


def _worst_first(item: tuple[tuple[str, str], Comparison]) -> float:
    effect = effect_of(item[1])
    return effect.estimate if effect else -math.inf


def _alone(session: RunSession, source: Planned, benchmark: str) -> str:
    """Return the id by which a suite runs one benchmark alone; '' if the step runs one command."""
    if not (source.tool and source.tool.suite):
        return ""
    return next((name for name in session.benchmarks(source) if benchmark_name(source, name) == benchmark), "")


def choices(session: RunSession, planned: Planned, subject: Subject) -> Iterator[Choice]:
    """Yield the installed profilers for a metric, the best first. Raises Failure if none is installed."""
    tools = (planned.tool,) if planned.tool else _fitting(session, subject)
    path = search_path(session.context, subject.source) or os.environ.get("PATH", os.defpath)
    missing: list[str] = []
    for tool in tools:
        if lacking := missing_program(replace(planned, tool=tool), path):
            missing.append(lacking)
            continue
        yield Choice(tool).as_fallback("; ".join(missing)) if missing else Choice(tool)
    if len(missing) == len(tools):
        raise Failure(f"{subject.benchmark} cannot be profiled: {'; '.join(missing)}")


def _fitting(session: RunSession, subject: Subject) -> tuple[Adapter, ...]:
    if found := registry.profilers(subject.metric) if subject.metric not in TIMES else ():
        return found
    # A suite that is built first knows its programs by the files in the folder of its step.
    folder = session.folder_of(subject.source, Side.BASELINE)
    prepared = ready(
        session.tree_context_of(Side.BASELINE), subject.source, Side.BASELINE, folder, chosen=subject.chosen
    )
    if not subject.only:
        return registry.profilers(_TIME, python=_is_python(prepared.argv))
    try:
        started = prepared.invocations()[0].argv
    except ToolOutputError as error:
        raise Failure(str(error)) from error
    if not _is_python(started):
        return registry.profilers(_TIME)
    # Only stacks tell a benchmark's own calls from those of its harness.
    by_stacks = (tool for tool in registry.profilers(_TIME, python=True) if tool.python)
    return tuple(tool for tool in by_stacks if tool.profiler and tool.profiler.method is ProfilingMethod.SAMPLES)


def _following(metric: str) -> tuple[Adapter, ...]:
    return registry.profilers(metric) or registry.profilers(_TIME)


def _is_python(command: tuple[str, ...]) -> bool:
    try:
        python_command.split(command)
    except ToolOutputError:
        return False
    return True


def step_of(planned: Planned, subject: Subject, tool: Adapter) -> Planned:
    """Return the profiling step for one benchmark, which runs the measured program under ``tool``."""
    return replace(planned, tool=tool, benchmark=subject.benchmark, watches=subject.source.id)
