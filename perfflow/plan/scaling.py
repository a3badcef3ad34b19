"""``scaling: KEY``: the cells of a numeric matrix key are sizes of one benchmark, whose growth is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfflow.plan import matrix
from perfflow.plan.plan import Planned, cell_name
from perfflow.store.run_facts import Scaling
from perfflow.workflow.expression_text import ExpressionError


def scaling_of(item: Planned, params: Mapping[str, Any]) -> Scaling | None:
    """The key, the cell's size, its own name and that of the benchmark whose size it is; None without a size.

    The benchmark is called as its cells are, less the size: ``decode[n=10]`` is one of ``decode``, and where the name
    shows the size, as in ``decode/10``, of ``decode/{n}``. ``*`` in both stands for a suite's own id.
    """
    key = item.step.scaling
    size = item.cell.get(key) if key else None
    if not key or isinstance(size, bool) or not isinstance(size, int | float):
        return None
    return Scaling(key, float(size), item.pattern, _whole(item, key, params))


def _whole(item: Planned, key: str, params: Mapping[str, Any]) -> str:
    """The name of all sizes together."""
    if item.step.benchmark is None:
        bare = {name: value for name, value in item.cell.items() if name != key}
        return ("*" if item.pattern.startswith("*") else item.step.id) + matrix.suffix(bare)
    try:
        return cell_name(item.step.benchmark, {**item.cell, key: f"{{{key}}}"}, params, unsaid=key)
    except ExpressionError:
        # The name calculates with the size.
        return item.step.id
