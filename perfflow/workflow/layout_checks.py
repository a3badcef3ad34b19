"""Check ``layouts``: the steps that may have it, and its values."""

from __future__ import annotations

from perfflow.tools.adapter import Role
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Step
from perfflow.workflow.roles import AUTO, role_of

OFF = "off"
LEAST = 5
"""Fewest layouts of each side with which a change can be proven at 1%."""
MOST = 64
_HINT = f"write a number from {LEAST} to {MOST}, `{AUTO}` or `{OFF}`"
SEED_VARIABLE = "PERFFLOW_LAYOUT_SEED"
"""Environment variable of build steps with the number of the code layout to build; 0 is the ordinary build."""


def check(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Check ``layouts`` of one step."""
    given, place = step.layouts, (*loc, "layouts")
    if given is None:
        return
    # A step with a mistake may measure once the mistake is fixed.
    if role_of(step, stage, draft.workflow) is not Role.MEASURE and not draft.wrong_keys(loc):
        hint = "move it to the step that measures"
        draft.complain(place, "`layouts` on a step that does not measure", hint, key=True)
    elif isinstance(given, str) and given not in (AUTO, OFF):
        draft.complain(place, f"invalid `layouts`: {given!r}", _HINT)
    elif isinstance(given, int) and not LEAST <= given <= MOST:
        draft.complain(place, f"invalid `layouts`: {given}", _HINT)


def uses_seed(step: Step) -> bool:
    """Return whether a step uses the layout number, by its variable or by ``layout.seed``."""
    texts = [step.run or "", *(step.argv or []), *map(str, step.env.values()), str(step.with_)]
    return any(SEED_VARIABLE in text or "layout.seed" in text for text in texts)
