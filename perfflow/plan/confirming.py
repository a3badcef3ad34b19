"""``confirms``: the benchmarks that a realistic one confirms, in the words of its cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfflow.plan.plan import Planned
from perfflow.workflow.expressions import OPEN, render


def confirmed_by(item: Planned, params: Mapping[str, Any]) -> list[str]:
    """The globs that a step's cell confirms. Raises ExpressionError."""
    said = [item.step.confirms] if isinstance(item.step.confirms, str) else item.step.confirms or []
    context = {"params": params, "matrix": item.cell}
    return [str(render(text, context)) if OPEN in text else text for text in said]
