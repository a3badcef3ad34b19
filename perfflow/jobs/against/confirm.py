"""Confirm or withdraw suspicions about the newest points by measuring both revisions in pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from perfflow.jobs.against.best_revision import may_measure
from perfflow.jobs.history.suspicion_report import TrendSuspicion
from perfflow.jobs.run.run import FinishedRun, RunRequest
from perfflow.machine.facts import facts
from perfflow.model.result import Result
from perfflow.model.units import format_interval
from perfflow.session.open_workflow import Opened
from perfflow.store.history.summary import CONFIRMED, OPEN, WITHDRAWN, params_text
from perfflow.tools.adapter import Role

Measure = Callable[[RunRequest], FinishedRun]


@dataclass(frozen=True)
class PairSettings:
    """How the revisions are measured: the workflow's name as typed, the parameters that were set, and times in s.

    ``budget``: for all measurements of one run; None for no limit.
    """

    workflow: str
    lock_timeout: float
    settings: tuple[str, ...] = ()
    budget: float | None = None
    budget_text: str = ""


@dataclass(frozen=True)
class Confirmed:
    """The suspicions with their new states, in the same order.

    ``measured``: how many were to be measured. ``failed``: the ids of runs that could not measure everything.
    ``interrupted``: the last run was interrupted, and its suspicions stay open.
    """

    suspicions: tuple[TrendSuspicion, ...]
    measured: int
    failed: tuple[str, ...]
    interrupted: bool


def confirm(opened: Opened, suspicions: Sequence[TrendSuspicion], pairs: PairSettings, measure: Measure) -> Confirmed:
    """Measure the revisions of each open suspicion in pairs, with one run for suspicions of the same two revisions.

    Only suspicions of this machine, workflow and parameters are settled.
    """
    after, failed, interrupted = list(suspicions), list[str](), False
    by_ends: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, item in enumerate(suspicions):
        if _is_of(opened, item):
            by_ends[item.base, item.head].append(number)
    for (base, head), numbers in by_ends.items():
        names = {suspicions[number].trend.series.benchmark for number in numbers}
        finished = measure(_request(opened, pairs, (base, head), names))
        interrupted = finished.interrupted
        if interrupted:
            break
        for number in numbers:
            after[number] = _judged(after[number], finished.result)
        failed += [finished.result.run.id] if finished.result.unmeasured else []
    return Confirmed(tuple(after), sum(map(len, by_ends.values())), tuple(failed), interrupted)


def _is_of(opened: Opened, item: TrendSuspicion) -> bool:
    series = item.trend.series
    own = (opened.plan.workflow.name, params_text(opened.plan.params), str(facts()["identity"]))
    return item.kept.state == OPEN and bool(item.base) and (series.workflow, series.params, series.machine) == own


def _request(opened: Opened, pairs: PairSettings, ends: tuple[str, str], names: set[str]) -> RunRequest:
    steps, (base, head) = list(_steps(opened, names)), ends
    words = ["perfflow", "gate", pairs.workflow, *(f"--set={setting}" for setting in pairs.settings)]
    words += [f"--budget={pairs.budget_text}"] if pairs.budget_text else []
    command = [*words, *(f"--only={step}" for step in steps), f"--base={base}", f"--head={head}"]
    return RunRequest(
        only=steps, lock_timeout=pairs.lock_timeout, budget=pairs.budget, command=command, base=base, head=head
    )


def _steps(opened: Opened, names: set[str]) -> Iterator[str]:
    for item in opened.plan.steps:
        if item.role is Role.MEASURE and any(may_measure(item, name) for name in names):
            yield item.id


def _judged(item: TrendSuspicion, result: Result) -> TrendSuspicion:
    series = item.trend.series
    row = next((row for row in result.benchmarks if (row.name, row.metric) == (series.benchmark, series.metric)), None)
    if row is None or row.change is None or row.change.value is None or not row.decision:
        return _with(item, OPEN, "could not be measured in pairs", result)
    change = format_interval(row.change.value, row.change.low, row.change.high)
    said = f"measured in pairs: {change}, {row.decision}"
    if row.decision == "unproven":
        return _with(item, OPEN, said, result)
    moved = row.decision in ("regressed", "improved") and (row.change.value > 0) == (item.kept.size > 0)
    return _with(item, CONFIRMED if moved else WITHDRAWN, said, result)


def _with(item: TrendSuspicion, state: str, why: str, result: Result) -> TrendSuspicion:
    return replace(item, kept=replace(item.kept, state=state, why=why, run=result.run.id), is_news=True)
