"""Render ``requires`` of a step for each cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfflow.plan.plan import Plan, Planned
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import render
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Requires


def requires_of(item: Planned, params: Mapping[str, Any]) -> Requires | None:
    """Return the requirements of a cell; strings that render to '' are dropped.

    Raises ExpressionError: only ``params`` and ``matrix`` are known before the run.
    """
    asked = item.step.requires
    if asked is None:
        return None
    context = {"params": params, "matrix": item.cell}

    def rendered(value: list[str] | str | None) -> list[str]:
        texts = [value] if isinstance(value, str) else value or []
        return [text for text in (str(render(text, context)).strip() for text in texts) if text]

    return asked.model_copy(update={"tool": rendered(asked.tool), "label": rendered(asked.label)})


def check(draft: Draft, plan: Plan) -> None:
    """Report requirements that cannot be rendered before the run."""
    for item in plan.steps:
        loc = (*draft.steps[item.step.id], "requires")
        try:
            requires_of(item, plan.params)
        except ExpressionError as error:
            if not any(place[: len(loc)] == loc for place in draft.wrong):
                hint = error.hint or "`requires` can use only `params` and `matrix`"
                draft.complain(loc, str(error), hint, find=error.near)
