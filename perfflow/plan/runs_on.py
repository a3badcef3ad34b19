"""Where a step's cell is to be measured, ``runs-on``, in the words of the cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfflow.model.later import dataclass
from perfflow.plan.plan import Plan, Planned
from perfflow.tools.adapter import Role
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import render
from perfflow.workflow.load import Draft
from perfflow.workflow.model import RunsOn

_GOES_ALONG = (Role.WORK, Role.CANDIDATE, Role.COMPARE)
"""Roles that run wherever what is measured runs."""


@dataclass(frozen=True)
class Place:
    """What a machine must be: ``labels`` that it offers, GPUs, or one machine by name. ``minutes``: None if not said.

    ``exclusive``: nothing else runs there meanwhile.
    """

    labels: tuple[str, ...] = ()
    gpus: int = 0
    gpu_type: str = ""
    exclusive: bool = True
    minutes: int | None = None
    node: str = ""

    @property
    def shown(self) -> str:
        """The place in a few words; '' for any machine."""
        gpus = f"{self.gpus} {self.gpu_type or 'GPU'}{'' if self.gpu_type or self.gpus == 1 else 's'}"
        return ", ".join([*self.labels, *([gpus] if self.gpus else []), *([f"node {self.node}"] if self.node else [])])


ANYWHERE = Place()


def place_of(item: Planned, plan: Plan) -> Place:
    """Where a step's cell runs; anywhere unless it or the workflow's defaults say. Raises ExpressionError.

    Only ``params`` and ``matrix`` are known before anything has run.
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
        raise ExpressionError(f"`runs-on`: `{key}` is {found!r}", hint="write a whole number") from None


def check(draft: Draft, plan: Plan) -> None:
    """Add to the draft's problems what cannot be known before the run, and steps that no place is for."""
    for item in plan.steps:
        loc = (*draft.steps[item.step.id], "runs-on")
        if item.step.runs_on and item.role in _GOES_ALONG:
            if loc not in draft.wrong:
                hint = "say it at the steps that measure, or under `defaults`"
                draft.complain(
                    loc, f"step `{item.step.id}` measures nothing, so it has no place of its own", hint, key=True
                )
            continue
        own = item.step.runs_on is not None
        try:
            place_of(item, plan)
        except ExpressionError as error:
            where = loc if own else ("defaults", "runs-on")
            if not any(place[: len(where)] == where for place in draft.wrong):
                draft.complain(where, str(error), error.hint or "`runs-on` can use params and matrix", find=error.near)
