"""Check that the programs of steps exist, before anything runs and before waiting for the machine."""

from __future__ import annotations

import os
from collections.abc import Collection

from perfflow.execute import programs
from perfflow.execute.child import find_program
from perfflow.execute.context import TreeContext, search_path
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import Ready, first_count, missing_program
from perfflow.execute.schedule import StepRun
from perfflow.execute.states import StepStatus
from perfflow.model.errors import StepError
from perfflow.plan.plan import Planned, profiles_several
from perfflow.plan.requirements import requires_of
from perfflow.session.missing_side import missing_side
from perfflow.session.session import RunSession
from perfflow.tools.adapter import OPTIONAL_ROLES, Role


def require_startable(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Find the program of a step on each side that has one. Raises Failure and PreparationError, as starting it would.

    Programs that the step builds first, or chooses from earlier results, are not checked here.
    """
    built_first = planned.tool is not None and planned.tool.is_built_first
    if planned.role not in (Role.MEASURE, Role.PROFILE) or built_first or profiles_several(planned):
        return

    absent = missing_side(session, planned)
    ops = first_count(session.context, planned)
    for side in session.sides_of(planned):
        if side is absent:
            continue
        prepared = session.prepare(planned, side, run, ops)
        reason = _not_startable(prepared)
        if reason:
            run.failing, run.failing_side = list(prepared.shown), side
            raise Failure(f"{session.where(side)}{reason}")


def _not_startable(prepared: Ready) -> str:
    """Return why the first process of a call cannot start, '' if no reason is known."""
    try:
        first = prepared.invocations()[0]
    except (StepError, IndexError):
        return ""
    path = {**prepared.env, **first.env}.get("PATH", os.defpath)
    if find_program(first.argv[0], path, prepared.cwd / first.cwd):
        return ""
    return missing_program(prepared.planned, path) or f"{first.argv[0]}: not found or not executable"


def not_startable(context: TreeContext, selected: Collection[str]) -> list[StepRun]:
    """Return the selected steps as failed or skipped if a program is missing, else an empty list."""
    plan = context.plan
    found = {}
    for item in plan.steps:
        if item.id not in selected or item.tool is None or item.role in OPTIONAL_ROLES or item.step.continue_on_error:
            continue
        path = search_path(context, item)
        if path is not None and not programs.unmet(requires_of(item, plan.params), path):
            problem = missing_program(item, path)
            if problem:
                found[item.id] = StepRun(item, StepStatus.FAILED, problem, not_started=True)
    if not found:
        return []
    reason = "nothing was run, because a tool is missing"
    return [
        found.get(item.id) or StepRun(item, StepStatus.SKIPPED, reason) for item in plan.steps if item.id in selected
    ]
