"""How long a run may take, before it begins: what its steps took in earlier runs, else the limits they have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from perfflow.execute.prepare import PreparationError, rendered
from perfflow.machine.facts import facts
from perfflow.model.units import UnitError, duration
from perfflow.plan.plan import Plan, Planned
from perfflow.report.expected import Expected, Noise, Total, total_of
from perfflow.sampling.stop_rule import BUDGET
from perfflow.session.opening import Opened
from perfflow.store.history import durations
from perfflow.store.history.durations import RunKind, StepDuration
from perfflow.store.history.places import looked_into
from perfflow.tools.adapter import Role
from perfflow.workflow.roles import names_its_own_benchmarks

if TYPE_CHECKING:
    from perfflow.store.history.database import History


def expected(
    opened: Opened,
    selected: Collection[str],
    *,
    in_trees: bool = False,
    budget: float | None = None,
    ask_server: bool = False,
) -> dict[str, Expected | None]:
    """What is known of the time of each selected step, None where nothing is. Starts nothing.

    ``in_trees``: of a run that compares base and head. ``budget``: seconds for all measuring together. ``ask_server``:
    whether a history that lies on a server is asked, too.
    """
    plan = opened.plan
    kind = RunKind(plan.workflow.name, dict(plan.params), str(facts()["identity"]), in_trees, budget)
    wanted = [item for item in plan.steps if item.id in selected and not item.step.background]
    with looked_into(opened.root, server=ask_server) as history:
        seen = durations.seen(opened.root, kind, history)
        names = {item.id: _names(item, seen) for item in wanted}
        noises = _noise(opened, kind, names, history) if history else {}
    found = {item.id: _of(plan, item, seen.get(item.id, StepDuration())) for item in wanted}
    for name, noise in noises.items():
        known = found[name]
        found[name] = replace(known, noise=noise) if known else None
    return found


def _names(item: Planned, seen: Mapping[str, StepDuration]) -> tuple[str, ...]:
    """The benchmarks that a step measures, as far as its name or its last run tells."""
    if item.role is not Role.MEASURE:
        return ()
    return seen[item.id].names if item.id in seen else (item.benchmark,)


def _noise(opened: Opened, kind: RunKind, names: Mapping[str, tuple[str, ...]], history: History) -> dict[str, Noise]:
    """What the history says of the samples of each step that measures."""
    from perfflow.store.history.spread import spreads

    every = {name for each in names.values() for name in each}
    known = spreads(history, kind.workflow, kind.params, kind.machine, every)
    found: dict[str, Noise] = {}
    for step, of_step in names.items():
        rows = [(known[name], opened.plan.criteria.thresholds_of(name).concern) for name in of_step if name in known]
        if rows:
            spread, change = max(rows, key=lambda row: row[0].noise / row[1])
            found[step] = Noise(spread.noise, spread.pairs(change), change)
    return found


def in_all(plan: Plan, steps: dict[str, Expected | None], budget: float | None = None) -> Total:
    """The time of all these steps together."""
    measuring = frozenset(item.id for item in plan.steps if item.role is Role.MEASURE and item.id in steps)
    return total_of(steps, measuring, budget)


def _of(plan: Plan, item: Planned, seen: StepDuration) -> Expected | None:
    if seen.seconds is not None:
        return Expected(seen.seconds, runs=seen.runs, benchmarks=seen.benchmarks or None)
    if item.role is Role.MEASURE:
        return _limit_of_measuring(plan, item, seen)
    if item.role in (Role.WORK, Role.CHECK):
        seconds = _duration(plan, item, item.step.timeout or plan.stage(item.stage).timeout)
        return Expected(seconds * ((item.step.retries or 0) + 1)) if seconds else None
    return None


def _limit_of_measuring(plan: Plan, item: Planned, seen: StepDuration) -> Expected | None:
    """The step's budget for each benchmark. A number of runs, or a tool that counts, takes what it takes."""
    if item.step.runs is not None or (item.tool and item.tool.deterministic):
        return None
    each = _duration(plan, item, item.step.budget) if item.step.budget else BUDGET
    if each is None:
        return None
    found, number = Expected(None, each=each), _benchmarks(item, seen)
    return found.of(number) if number else found


def _benchmarks(item: Planned, seen: StepDuration) -> int:
    """How many benchmarks a step has, 0 where only it can tell."""
    if seen.benchmarks:
        return seen.benchmarks
    if item.step.variants is None and not names_its_own_benchmarks(item.step):
        return 1
    named = [name for name in item.step.expect or [] if "${{" not in name]
    # A glob stands for any number of them.
    return len(set(named)) if named and not any(letter in name for name in named for letter in "*?") else 0


def _duration(plan: Plan, item: Planned, text: object) -> float | None:
    """Seconds of a duration as it stands in the workflow, None for none, and for one that only a run can tell."""
    try:
        return duration(str(rendered(text, {"params": plan.params, "matrix": item.cell}))) if text else None
    except (PreparationError, UnitError):
        return None
