"""Whether what a step starts is there, found out before the machine is waited for."""

from __future__ import annotations

import os

from perfflow.errors import ToolOutputError
from perfflow.flow.attribution.profiled import profiles_several
from perfflow.flow.gate.presence import missing_side
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.process.child import find_program
from perfflow.run.invoke import Failure
from perfflow.run.prepare import Ready, missing_program, operations
from perfflow.run.schedule import StepRun
from perfflow.tools.adapter import Role


def require_startable(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """Find the program of a step on each side that has one. Raises Failure and PreparationError, as starting it would.

    What the step builds first, or chooses by what was measured, is only known when it has the machine.
    """
    built_first = planned.tool is not None and planned.tool.is_built_first
    if planned.role not in (Role.MEASURE, Role.PROFILE) or built_first or profiles_several(planned):
        return
    absent = missing_side(shop, planned)
    ops = next(iter(operations(shop.scene, planned)), None)
    for side in shop.sides_of(planned):
        if side is absent:
            continue
        prepared = shop.prepare(planned, side, run, ops)
        reason = _not_startable(prepared)
        if reason:
            run.details |= {"failing": list(prepared.shown), "failing_side": side.value}
            raise Failure(f"{shop.where(side)}{reason}")


def _not_startable(prepared: Ready) -> str:
    """Why the first process of a call cannot be started, '' where nothing is known that stands in its way."""
    try:
        first = prepared.invocations()[0]
    except (ToolOutputError, IndexError):
        return ""
    path = {**prepared.env, **first.env}.get("PATH", os.defpath)
    if find_program(first.argv[0], path, prepared.cwd / first.cwd):
        return ""
    return missing_program(prepared.planned, path) or f"{first.argv[0]}: not found or not executable"
