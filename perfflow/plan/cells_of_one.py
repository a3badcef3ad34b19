"""Cells of one benchmark: ``scaling: KEY`` fits growth over a matrix key, ``compare: KEY`` compares its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfflow.model.result import Axis, Scaling
from perfflow.plan import plan
from perfflow.plan.plan import Planned, cell_name
from perfflow.workflow.expression_text import ExpressionError


def scaling_of(item: Planned, params: Mapping[str, Any]) -> Scaling | None:
    """Return the key, the size and the name of a cell, and the name of the benchmark of all sizes; None without a size.

    The benchmark has the name of its cells without the size: ``decode[n=10]`` belongs to ``decode``, and ``decode/10``,
    whose name contains the size, to ``decode/{n}``. ``*`` stands for the id of a suite.
    """
    key = item.step.scaling
    size = item.cell.get(key) if key else None
    if not key or isinstance(size, bool) or not isinstance(size, int | float):
        return None
    return Scaling(key=key, size=float(size), cell=item.pattern, of=_whole(item, key, params))


def axis_of(item: Planned, params: Mapping[str, Any]) -> Axis | None:
    """Return what a cell of ``compare: KEY`` is compared by; None for other steps."""
    key = item.step.axis
    if key not in item.cell:
        return None
    value, first = (plan.cell_text(cell[key]) for cell in (item.cell, item.against or item.cell))
    return Axis(key=key, value=value, first=first, cell=item.pattern, of=_whole(item, key, params))


def _whole(item: Planned, key: str, params: Mapping[str, Any]) -> str:
    """Return the name of the benchmark of all values of a key."""
    if item.step.benchmark is None:
        bare = {name: value for name, value in item.cell.items() if name != key}
        return ("*" if item.pattern.startswith("*") else item.step.id) + plan.suffix(bare)
    try:
        return cell_name(item.step.benchmark, {**item.cell, key: f"{{{key}}}"}, params, unsaid=key)
    except ExpressionError:
        # The name computes with the size, so a placeholder cannot be rendered.
        return item.step.id
