"""Estimate how long a run takes: from the durations of its steps in earlier runs, else from their limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from perfflow.execute.prepare import PreparationError, rendered
from perfflow.machine.facts import facts
from perfflow.model.units import UnitError, duration
from perfflow.plan.plan import Plan, Planned
from perfflow.report.expected import Expected, Noise, Total, total_of
from perfflow.report.expected import gate_plan as plan_lines
from perfflow.sampling.stop_rule import BUDGET
from perfflow.session.open_workflow import Opened
from perfflow.store.history import durations
from perfflow.store.history.database import History
from perfflow.store.history.durations import RunKind, StepDuration
from perfflow.store.history.places import open_for_reading
from perfflow.store.history.spread import spreads
from perfflow.tools.adapter import Role
from perfflow.workflow.roles import names_its_own_benchmarks


def expected(
    opened: Opened,
    selected: Collection[str],
    *,
    in_trees: bool = False,
    budget: float | None = None,
    ask_server: bool = False,
) -> dict[str, Expected | None]:
    """Return the expected time of each selected step; None if nothing is known. Starts nothing.

    in_trees: the run compares base and head. budget: seconds for the whole command.
    ask_server: also read a history that is on a server.
    """
    plan = opened.plan
    kind = RunKind(plan.workflow.name, dict(plan.params), str(facts()["identity"]), in_trees, budget)
    wanted = [item for item in plan.steps if item.id in selected and not item.step.background]
    with open_for_reading(opened.root, server=ask_server) as history:
        seen = durations.step_durations(opened.root, kind, history)
        names = {item.id: _names(item, seen) for item in wanted}
        noises = _noise(opened, kind, names, history) if history else {}
    found = {item.id: _of(plan, item, seen.get(item.id, StepDuration())) for item in wanted}
    for name, noise in noises.items():
        known = found[name]
        found[name] = replace(known, noise=noise) if known else None
    return found


def _names(item: Planned, seen: Mapping[str, StepDuration]) -> tuple[str, ...]:
    """Return the benchmarks that a step measures, from its last run or its name."""
    if item.role is not Role.MEASURE:
        return ()
    return seen[item.id].names if item.id in seen else (item.benchmark,)


def _noise(opened: Opened, kind: RunKind, names: Mapping[str, tuple[str, ...]], history: History) -> dict[str, Noise]:
    """Return the noise of each measuring step's samples in the history."""
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
    """Return the expected time of all these steps together."""
    measuring = frozenset(item.id for item in plan.steps if item.role is Role.MEASURE and item.id in steps)
    return total_of(steps, measuring, budget)


def gate_plan(opened: Opened, selected: Collection[str], budget: float | None) -> list[str]:
    """Return a few lines with the expected time of a gate. Starts nothing."""
    steps = expected(opened, selected, in_trees=True, budget=budget)
    kinds = {"builds": Role.WORK, "measuring": Role.MEASURE, "checks": Role.CHECK}
    own = {item.id: item.role for item in opened.plan.steps}
    by_kind = {
        kind: {name: found for name, found in steps.items() if own[name] is role} for kind, role in kinds.items()
    }
    return list(plan_lines(by_kind, budget))


def _of(plan: Plan, item: Planned, seen: StepDuration) -> Expected | None:
    if seen.seconds is not None:
        other_budget = seen.other_budget and item.role is Role.MEASURE
        return Expected(seen.seconds, seen.runs, seen.benchmarks or None, other_budget=other_budget)
    if item.role is Role.MEASURE:
        return _limit_of_measuring(plan, item, seen)
    if item.role in (Role.WORK, Role.CHECK):
        seconds = _duration(plan, item, item.step.timeout or plan.stage(item.stage).timeout)
        return Expected(seconds * ((item.step.retries or 0) + 1)) if seconds else None
    return None


def _limit_of_measuring(plan: Plan, item: Planned, seen: StepDuration) -> Expected | None:
    """Return the step's budget for each benchmark. A number of runs or a deterministic tool has no time limit."""
    if item.step.runs is not None or (item.tool and item.tool.deterministic):
        return None
    each = _duration(plan, item, item.step.budget) if item.step.budget else BUDGET
    if each is None:
        return None
    found, number = Expected(None, each=each), _benchmarks(item, seen)
    return found.of(number) if number else found


def _benchmarks(item: Planned, seen: StepDuration) -> int:
    """Return how many benchmarks a step has; 0 if only running the step can tell."""
    if seen.benchmarks:
        return seen.benchmarks
    if item.step.variants is None and not names_its_own_benchmarks(item.step):
        return 1
    named = [name for name in item.step.expect or [] if "${{" not in name]
    # A glob matches any number of benchmarks.
    return len(set(named)) if named and not any(letter in name for name in named for letter in "*?") else 0


def _duration(plan: Plan, item: Planned, text: object) -> float | None:
    """Return a duration of the workflow in seconds; None if there is none, or if it is only known in a run."""
    try:
        return duration(str(rendered(text, {"params": plan.params, "matrix": item.cell}))) if text else None
    except (PreparationError, UnitError):
        return None
