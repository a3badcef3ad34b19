"""The benchmarks that a run had no time to measure, what took the time, and what helps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import default_statistic
from perfflow.model.readings import PREPARED
from perfflow.model.result import Benchmark, Reason, ReasonKind, reason
from perfflow.model.units import brief_duration
from perfflow.store.record import Record
from perfflow.tools.adapter import OPTIONAL_ROLES, Role
from perfflow.verdict.decide import MOST_NAMED
from perfflow.workflow.roles import AUTO

_WORK = {Role.WORK: "builds", Role.MEASURE: "measuring", Role.CHECK: "checks", Role.PROFILE: "profiles"}
_TOTAL_BUDGET = "total budget"
_LEAST = 0.01
"""Share of the budget below which a kind of work is not named."""


def unmeasured(record: Record, criteria: Criteria) -> Iterator[Benchmark]:
    """Yield a row for each benchmark that was to be measured, but had no turn before the time was over."""
    measured = {name for name, _ in record.series}
    for (step_id, name), why in record.stopped.items():
        if why != _TOTAL_BUDGET or not name or name in measured or (step_id, name) in record.unchanged:
            continue
        planned = record.plan_of(step_id)
        metric = criteria.metric("time" if planned.metric in (None, AUTO) else str(planned.metric))
        is_ignored = criteria.ignores(name)
        yield Benchmark(
            name=name,
            step=step_id,
            tool=planned.tool,
            metric=metric.name,
            statistic=default_statistic(metric),
            unit=metric.dimension.base_unit,
            better=metric.better.value,
            confidence=None,
            baseline=None,
            candidate=None,
            change=None,
            speedup=None,
            decision="not measured",
            level=None,
            gating=not is_ignored,
            ignored=is_ignored,
            pairs=0,
            stopped=why,
            more=None,
            warnings=[],
        )


def reasons(record: Record, rows: Sequence[Benchmark]) -> Iterator[Reason]:
    """Yield the benchmarks without a turn, and what took the time of a run that could not measure everything."""
    lost = [row.name for row in rows if row.gating and row.decision == "not measured"]
    ended = [
        step_id
        for step_id, step in record.ended_steps()
        if step.out_of_time and record.planned[step_id].role not in OPTIONAL_ROLES
    ]
    if lost:
        more = f" and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
        several = "benchmark" if len(lost) == 1 else "benchmarks"
        text = f"not measured: {len(lost)} {several} before the time was over: {', '.join(lost[:MOST_NAMED])}{more}"
        yield reason(ReasonKind.NO_TIME, text, lost[0] if len(lost) == 1 else "", benchmarks=lost)
    if lost or ended:
        budget = _budget(record)
        text = f"the budget of {brief_duration(budget)} ran out: {where_time_went(record)}; {_advice(record)}"
        yield reason(ReasonKind.BUDGET_SPENT, text, budget=budget)


def where_time_went(record: Record) -> str:
    """Return the time of each kind of work of a run, the longest first: ``builds 4m10s, measuring 3m20s``."""
    took = _took(record)
    least = _LEAST * _budget(record)
    shown = [word for word in sorted(took, key=lambda word: -took[word]) if took[word] >= least] or list(took)
    return ", ".join(f"{word} {brief_duration(took[word])}" for word in shown)


def larger_budget(record: Record) -> str:
    """Return the option that gives a run twice the time."""
    return f"--budget {max(1, math.ceil(2 * _budget(record) / 60))}m"


def _took(record: Record) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for step_id, step in record.ended_steps():
        planned = record.planned[step_id]
        # A suite that was ended while it was built has the log of its build.
        role = Role.WORK if step.out_of_time and PREPARED in PurePosixPath(step.log).parts else planned.role
        found[next((word for known, word in _WORK.items() if known == role), planned.stage)] += step.seconds
    return found


def _advice(record: Record) -> str:
    took = _took(record)
    builds = took.get(_WORK[Role.WORK], 0.0)
    first = "keep the build folders between runs" if builds * 2 > sum(took.values()) else "choose with --benchmark"
    return f"{first}, or give {larger_budget(record)}"


def _budget(record: Record) -> float:
    return record.run.budget or 0.0
