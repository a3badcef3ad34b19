"""Find the steps whose outputs a step uses, and the steps that depend on a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfflow.plan.plan import Plan, Planned
from perfflow.workflow.expressions import Expression, pieces
from perfflow.workflow.model import Step


def read_by(plan: Plan, item: Planned) -> Iterator[str]:
    """Yield the ids of the steps whose outputs a step uses."""
    used = {name for text in _expressions(item.step) for name in text.names() if name[0] == "steps" and len(name) > 1}
    for _, name, *_ in used:
        yield from (name,) if name in plan.by_id else (cell.id for cell in plan.cells_of(name))


def users_of(plan: Plan, name: str) -> frozenset[str]:
    """Return the ids of the steps that depend on a step directly or indirectly, without the step itself."""
    direct = {
        item.id: {*item.needs, *read_by(plan, item), *((item.watches,) if item.watches else ())} for item in plan.steps
    }
    found = {name}
    while more := {item for item, used in direct.items() if used & found} - found:
        found |= more
    return frozenset(found - {name})


def _expressions(step: Step) -> Iterator[Expression]:
    condition = step.if_
    if isinstance(condition, str) and "steps" in condition:
        yield Expression(condition)
    for text in _texts(step.model_dump(by_alias=True, exclude_unset=True, exclude={"if_", "id"})):
        if "${{" in text:
            yield from (part for part in pieces(text) if isinstance(part, Expression))


def _texts(value: Any) -> Iterator[str]:
    """Yield every string inside nested data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
