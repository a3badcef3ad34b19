"""Determine the steps that are measured over several code layouts: from the workflow, else by default."""

from __future__ import annotations

from perfflow.plan.plan import Plan, Planned
from perfflow.tools.adapter import Role
from perfflow.workflow.layout_checks import AUTO, OFF


def layouts_asked(planned: Planned, *, in_trees: bool) -> int | str:
    """Return the number of layouts of each side, ``auto`` or ``off``.

    ``in_trees``: two builds are compared. Tools with deterministic figures use no layouts, which do not affect them.
    """
    if planned.role is not Role.MEASURE or (planned.tool and planned.tool.deterministic):
        return OFF
    given = planned.step.layouts
    return given if given is not None else AUTO if in_trees else OFF


def draws_layouts(plan: Plan, *, in_trees: bool) -> bool:
    """Return whether a step of the plan may need fresh layouts; if so, builds must be recorded."""
    return any(layouts_asked(item, in_trees=in_trees) != OFF for item in plan.steps)
