"""Render ``runs-on`` of a step for each cell: the machine to measure on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfflow.plan.plan import Plan, Planned
from perfflow.tools.adapter import Role
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import render
from perfflow.workflow.load import Draft
from perfflow.workflow.model import RunsOn

_GOES_ALONG = (Role.WORK, Role.CANDIDATE, Role.COMPARE)
"""Roles whose steps run on the machine of the measuring steps."""


@dataclass(frozen=True)
class Place:
    """Requirements for a machine: its ``labels``, its GPUs, or its name. ``minutes``: None if not set.

    ``exclusive``: no other job runs on it at the same time.
    """

    labels: tuple[str, ...] = ()
    gpus: int = 0
    gpu_type: str = ""
    exclusive: bool = True
    minutes: int | None = None
    node: str = ""

    @property
    def shown(self) -> str:
        """A short description of the place; '' for any machine."""
        gpus = f"{self.gpus} {self.gpu_type or 'GPU'}{'' if self.gpu_type or self.gpus == 1 else 's'}"
        return ", ".join([*self.labels, *([gpus] if self.gpus else []), *([f"node {self.node}"] if self.node else [])])


ANYWHERE = Place()


def place_of(item: Planned, plan: Plan) -> Place:
    """Return the place of a cell, from the step or the defaults of the workflow, else ANYWHERE.

    Raises ExpressionError: only ``params`` and ``matrix`` are known before the run.
    """
    asked = item.step.runs_on or (None if item.role in _GOES_ALONG else plan.workflow.defaults.runs_on)
    return _rendered(asked, {"params": plan.params, "matrix": item.cell}) if asked else ANYWHERE


def _rendered(asked: RunsOn, context: Mapping[str, Any]) -> Place:
    texts = [asked.labels] if isinstance(asked.labels, str) else asked.labels
    return Place(
        labels=tuple(text for text in (str(render(text, context)).strip() for text in texts) if text),
        gpus=_number(asked.gpus, context, "gpus") or 0,
        gpu_type=str(render(asked.gpu_type, context)).strip(),
        exclusive=asked.exclusive,
        minutes=_number(asked.minutes, context, "minutes"),
        node=str(render(asked.node, context)).strip(),
    )


def _number(value: int | str | None, context: Mapping[str, Any], key: str) -> int | None:
    found = render(value, context) if isinstance(value, str) else value
    if found is None or (isinstance(found, int) and not isinstance(found, bool) and found >= 0):
        return found
    try:
        return int(str(found))
    except ValueError:
        message = f"`runs-on`: `{key}` must be a whole number, not {found!r}"
        raise ExpressionError(message, hint="write a whole number of 0 or more") from None


def check(draft: Draft, plan: Plan) -> None:
    """Report places that cannot be rendered before the run, and steps that cannot have a place."""
    for item in plan.steps:
        loc = (*draft.steps[item.step.id], "runs-on")
        if item.step.runs_on and item.role in _GOES_ALONG:
            if loc not in draft.wrong:
                hint = "set it in the steps that measure, or under `defaults`"
                message = f"step `{item.step.id}` does not measure, so it cannot have `runs-on`"
                draft.complain(loc, message, hint, key=True)
            continue
        own = item.step.runs_on is not None
        try:
            place_of(item, plan)
        except ExpressionError as error:
            where = loc if own else ("defaults", "runs-on")
            if not any(place[: len(where)] == where for place in draft.wrong):
                hint = error.hint or "`runs-on` can use only `params` and `matrix`"
                draft.complain(where, str(error), hint, find=error.near)
