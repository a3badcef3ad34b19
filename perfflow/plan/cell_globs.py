"""Render the globs of benchmarks under ``expect`` and ``confirms`` for a cell of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfflow.plan.plan import Planned
from perfflow.workflow.expression_text import OPEN
from perfflow.workflow.expressions import render


def confirmed_by(item: Planned, params: Mapping[str, Any]) -> list[str]:
    """Return the globs that a cell confirms. Raises ExpressionError."""
    said = [item.step.confirms] if isinstance(item.step.confirms, str) else item.step.confirms or []
    return _rendered(item, said, params)


def expected_of(item: Planned, params: Mapping[str, Any]) -> list[str]:
    """Return the globs of the benchmarks that must appear. Raises ExpressionError."""
    return _rendered(item, item.step.expect, params)


def _rendered(item: Planned, globs: Sequence[str], params: Mapping[str, Any]) -> list[str]:
    context = {"params": params, "matrix": item.cell}
    return [str(render(text, context)) if OPEN in text else text for text in globs]
