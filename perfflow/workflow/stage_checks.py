"""The rules of a stage's name: a misspelt one is an error, since its steps would do something else than was meant.

In `optimise` a candidate would edit the user's own tree, and in `verfy` a failing check would not be one.
"""

from __future__ import annotations

from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import STAGES, Stage, Step
from perfflow.workflow.roles import CANDIDATES_STAGE, STAGE_ROLES

_OF_CANDIDATES = ("technique", "patch", "ref", "propose", "params")
"""Keys of a step that make it a candidate; ``why`` and ``hotspot`` do no harm elsewhere."""
_OF_OPTIMIZE = ("objective", "guard", "accept", "diminishing", "attempts", "forbid", "max_diff", "check", "ruled_out")
_LONG = 8
"""Letters of a name in which two may be wrong."""


def check(draft: Draft, stage: Stage, loc: Loc) -> None:
    """Add the problems of a stage's name and role; nothing where it is a known stage used as one."""
    name = str(loc[1])
    near = near_stage(name)
    known = STAGE_ROLES.get(name)
    if near:
        hint = f"write `{near}`, or a name that is less like it, with a `role`"
        draft.complain(loc, f"`{name}` is not a stage; did you mean `{near}`?", hint, key=True)
    elif known is not None and stage.role not in (None, known):
        hint = "leave it out, or give the stage a name of its own"
        draft.complain((*loc, "role"), f"the stage `{name}` is for what its name says, not {stage.role}", hint)
    elif known is None and stage.role is None and not draft.wrong_keys(loc) & {"", "role"}:
        hint = f"{name}: {{role: work, steps: [...]}}; the others are measure, profile and check"
        draft.warn(loc, f"`{name}` is a stage of your own without a `role`: it is taken for work", hint, key=True)
    if name != CANDIDATES_STAGE and not near:
        _refuse_candidates(draft, name, stage, loc)


def near_stage(name: str) -> str:
    """The known stage that a name misspells, '' for a known one and for names of their own.

    A name with a digit, or with a word more, was chosen on purpose: `build2`, `build-base`, `rebuild`, `prefill`.
    """
    if name in STAGES:
        return ""
    plain = name.lower()
    squeezed = plain.replace("-", "").replace("_", "")
    if squeezed in STAGES:
        return squeezed
    return next((known for known in STAGES if plain.isalpha() and _is_near(plain, known)), "")


def _is_near(name: str, known: str) -> bool:
    allowed = 2 if len(known) >= _LONG and name[0] == known[0] else 1
    return abs(len(name) - len(known)) <= allowed and _mistypings(name, known) <= allowed


def _mistypings(one: str, other: str) -> int:
    """Letters that are missing, too many, wrong, or swapped with their neighbour, between two words."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, above = above, row
    return above[-1]


def _refuse_candidates(draft: Draft, name: str, stage: Stage, loc: Loc) -> None:
    """Outside the optimize stage nothing reverts what a candidate changes, and the tree would be the user's own."""
    hint = f"move it into the stage `{CANDIDATES_STAGE}`, which tries candidates in trees of their own"
    for key in _OF_OPTIMIZE:
        if getattr(stage, key) is not None:
            written = key.replace("_", "-")
            draft.complain((*loc, written), f"`{written}` in the stage `{name}`", hint, key=True)
    for step in stage.steps:
        for key in _given(step):
            draft.complain(
                (*draft.steps[step.id], key), f"`{key}` of a candidate in the stage `{name}`", hint, key=True
            )


def _given(step: Step) -> list[str]:
    return [key for key in _OF_CANDIDATES if getattr(step, key) is not None]
