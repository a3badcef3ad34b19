"""List the benchmarks of all suites before the first sample, so that a wrong name stops the run before it measures."""

from __future__ import annotations

from collections.abc import Iterable

from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.model.errors import StepError
from perfflow.plan.plan import Plan, Planned
from perfflow.session.known_names import NothingChosenError, SuiteIds, benchmark_name, has_unknown_names, is_source
from perfflow.session.missing_side import missing_side
from perfflow.session.perform import allows, why_not_here
from perfflow.session.session import RunSession
from perfflow.tools.adapter import Role
from perfflow.workflow.expression_text import ExpressionError

_READY = (Role.MEASURE, Role.PROFILE, Role.MACHINE)
"""Roles of steps that change nothing which a suite needs to be listed."""


def list_benchmarks(session: RunSession, planned: Planned, run: StepRun) -> None:
    """List the suites that can be listed before a step measures, its own first, and check the names in the workflow.

    Raises UserError for wrong names, NothingChosenError if no benchmark of the step is chosen, and StepError if the
    step's own suite cannot be listed.
    """
    known, plan = session.names, session.context.plan
    with known.guard:
        if planned.id not in known.by_step and _can_be_listed(planned):
            _list(session, planned, run)
        for step in plan.steps:
            if step.id in known.selected and step.id not in known.by_step and _is_ready(session, step, planned):
                where = session.trees.session_for(step) if session.trees else session
                try:
                    _list(where, step, StepRun(step, StepStatus.DONE))
                except (StepError, OSError):
                    continue  # told when the step itself runs
        if not session.earlier.samples:
            run.warnings += known.require_known(plan)
    if has_unknown_names(planned):
        known.require_some(planned.id)
    elif is_source(planned) and not known.is_chosen(planned.benchmark):
        raise NothingChosenError


def learn(session: RunSession, planned: Planned, names: Iterable[str]) -> list[str]:
    """Note the names in the output of a suite that cannot be listed, and check the names in the workflow.

    Returns warnings. Raises UserError and NothingChosenError like ``list_benchmarks``.
    """
    known = session.names
    if planned.id in known.by_step or not has_unknown_names(planned):
        return []
    with known.guard:
        known.by_step[planned.id] = tuple(names)
        warnings = known.require_known(session.context.plan)
    known.require_some(planned.id)
    return warnings


def _can_be_listed(item: Planned) -> bool:
    return item.role is Role.MEASURE and item.tool is not None and item.tool.can_list


def _is_ready(session: RunSession, item: Planned, planned: Planned) -> bool:
    """Return whether a suite can be listed now: it runs on this machine, its ``if`` holds, and what it needs exists."""
    plan = session.context.plan
    if not _can_be_listed(item) or why_not_here(session, item):
        return False
    builds = {name for name in _before(plan, item) if plan.by_id[name].role not in _READY}
    try:
        return builds <= _before(plan, planned) and allows(session.context, item, blocked=False)
    except ExpressionError:
        return False


def _before(plan: Plan, item: Planned) -> set[str]:
    """Return the ids of all steps that must end before a step starts."""
    found: set[str] = set()
    todo = [item.id]
    while todo:
        step = plan.by_id[todo.pop()]
        new = {*step.needs, *step.after} - found
        found |= new
        todo += new
    return found


def _list(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Build and list a suite on each side. Raises Failure and PreparationError."""
    known, missing = session.names, missing_side(session, planned)
    names: dict[str, None] = {}
    sides = [side for side in session.sides_of(planned) if side is not missing]
    session.build_first(planned, run, sides)
    for side in sides if session.contexts else sides[:1]:
        place = (planned.id, side, session.tree_context_of(side).root)
        ids = known.listed[place] = session.list_ids(planned, side)
        if not ids:
            return
        if planned.step.variants:
            stems = SuiteIds.among(planned.step.variants, ids).both()
            names |= dict.fromkeys(planned.pattern.replace("*", stem, 1) for stem in stems)
        else:
            names |= dict.fromkeys(benchmark_name(planned, name) for name in ids)
    # Only now: in a gate, the names are those of both sides.
    known.built.update((planned.id, side, session.tree_context_of(side).root) for side in sides)
    known.by_step[planned.id] = tuple(names)
