"""Determine the steps that build the trees to measure."""

from __future__ import annotations

from perfflow.plan.plan import Plan
from perfflow.tools.adapter import Role
from perfflow.workflow.roles import stage_role


def building_steps(plan: Plan) -> tuple[str, ...]:
    """Return the ids of the steps that run in every measured tree.

    These are the steps of the stages between setup and the first measuring stage, and the work steps of that stage.
    """
    names = list(plan.workflow.stages)
    kinds = {name: stage_role(plan.workflow, name) for name in names}
    measuring = [name for kind in (Role.MEASURE, Role.CANDIDATE) for name in names if kinds[name] is kind]
    before = set(names[: names.index(measuring[0])] if measuring else []) - {"setup"}
    return tuple(
        item.id
        for item in plan.steps
        if item.stage in before or (kinds[item.stage] is Role.MEASURE and item.role is Role.WORK)
    )
