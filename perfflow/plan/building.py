"""Which steps build the trees that are measured."""

from __future__ import annotations

from perfflow.plan.plan import Plan
from perfflow.tools.adapter import Role
from perfflow.workflow.roles import stage_role


def building_steps(plan: Plan) -> tuple[str, ...]:
    """Ids of the steps that run in every tree that is measured.

    They are those of the stages between setup and the first that measures, and what prepares the measuring in it.
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
