"""The rules of ``layouts``: which steps may have it, and its values."""

from __future__ import annotations

from perfflow.tools.adapter import Role
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Step
from perfflow.workflow.roles import role_of

AUTO, OFF = "auto", "off"
LEAST = 5
"""Layouts of each side with which a change can be proven at 1% at all."""
MOST = 64
_HINT = f"write a number from {LEAST} to {MOST}, `{AUTO}` or `{OFF}`"
SEED_VARIABLE = "PERFFLOW_LAYOUT_SEED"
"""The number of the layout that a build step is to make, in its environment; 0 is the build as it is."""


def check(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Add the problems of the key of one step."""
    given, place = step.layouts, (*loc, "layouts")
    if given is None:
        return
    # A step in which something is wrong may measure once that is right.
    if role_of(step, stage, draft.workflow) is not Role.MEASURE and not draft.wrong_keys(loc):
        hint = "it goes with a step that measures; write it there"
        draft.complain(place, "`layouts` on a step that measures nothing", hint, key=True)
    elif isinstance(given, str) and given not in (AUTO, OFF):
        draft.complain(place, f"`layouts` is {given!r}", _HINT)
    elif isinstance(given, int) and not LEAST <= given <= MOST:
        draft.complain(place, f"`layouts` is {given}", _HINT)


def uses_seed(step: Step) -> bool:
    """Whether a step builds another layout for each number it is given."""
    texts = [step.run or "", *(step.argv or []), *map(str, step.env.values()), str(step.with_)]
    return any(SEED_VARIABLE in text or "layout.seed" in text for text in texts)
