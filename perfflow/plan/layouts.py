"""Which steps are measured over several code layouts: what the workflow says, and what holds where it says nothing."""

from __future__ import annotations

from perfflow.plan.plan import Plan, Planned
from perfflow.tools.adapter import Role
from perfflow.workflow.layout_checks import AUTO, OFF


def layouts_asked(planned: Planned, *, in_trees: bool) -> int | str:
    """A number of layouts of each side, ``auto`` or ``off``.

    ``in_trees``: whether two builds are compared, of one program each. Counted figures have no luck with layouts.
    """
    if planned.role is not Role.MEASURE or (planned.tool and planned.tool.deterministic):
        return OFF
    given = planned.step.layouts
    return given if given is not None else AUTO if in_trees else OFF


def draws_layouts(plan: Plan, *, in_trees: bool) -> bool:
    """Whether a step of the plan may have to draw layouts, for which builds are watched."""
    rules = plan.criteria.rules
    return bool(rules.layout_looks) and any(layouts_asked(item, in_trees=in_trees) != OFF for item in plan.steps)
