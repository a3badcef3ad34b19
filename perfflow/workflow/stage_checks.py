"""Check the names of stages: a misspelt name is an error, because its steps would get another role.

In a stage `optimise` a candidate would edit the user's own tree, and in `verfy` a failing command would not be a
failed check.
"""

from __future__ import annotations

from perfflow.model import similar
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import STAGES, Stage, Step
from perfflow.workflow.roles import CANDIDATES_STAGE, STAGE_ROLES

_OF_CANDIDATES = ("technique", "patch", "ref", "propose", "params")
"""Keys of a step that make it a candidate; ``why`` and ``hotspot`` are harmless elsewhere."""
_OF_OPTIMIZE = ("objective", "guard", "accept", "diminishing", "attempts", "forbid", "max_diff", "check", "ruled_out")
_LONG = 8
"""Fewest letters of a name for which two wrong letters still count as misspelt."""


def check(draft: Draft, stage: Stage, loc: Loc) -> None:
    """Check the name and role of a stage, and report candidates outside the optimize stage."""
    name = str(loc[1])
    meant = "" if stage.role else similar.STAGES.get(name.lower(), "")
    near = near_stage(name) or meant
    known = STAGE_ROLES.get(name)
    if near:
        hint = f"write `{near}`, or choose a name that differs more and add a `role`"
        if meant:
            role = STAGE_ROLES[meant]
            hint = f"write `{near}`, or keep the name and add its role: {name}: {{role: {role}, steps: [...]}}"
        draft.complain(loc, f"unknown stage `{name}`; did you mean `{near}`?", hint, key=True)
    elif known is not None and stage.role not in (None, known):
        hint = "remove `role`, or rename the stage"
        draft.complain((*loc, "role"), f"the stage `{name}` has the role {known}, not {stage.role}", hint)
    elif known is None and stage.role is None and not draft.wrong_keys(loc) & {"", "role"}:
        hint = f"{name}: {{role: work, steps: [...]}}; other roles are measure, profile and check"
        draft.warn(loc, f"`{name}` is a stage of your own without a `role`, so its role is work", hint, key=True)
    if name != CANDIDATES_STAGE and not near:
        _refuse_candidates(draft, name, stage, loc)


def near_stage(name: str) -> str:
    """Return the predefined stage that a name misspells, or '' for a predefined or clearly different name.

    A name with a digit or another word is intended: `build2`, `build-base`, `rebuild`, `prefill`.
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
    """Return the edit distance of two words: missing, extra, wrong or swapped letters (Damerau-Levenshtein)."""
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
    """Report candidates outside the optimize stage: they would change the user's tree, and nothing would revert it."""
    hint = f"move it to the stage `{CANDIDATES_STAGE}`, which tries each candidate in a separate tree"
    for key in _OF_OPTIMIZE:
        if getattr(stage, key) is not None:
            written = key.replace("_", "-")
            message = f"`{written}` is not allowed in the stage `{name}`"
            draft.complain((*loc, written), message, hint, key=True)
    for step in stage.steps:
        for key in _candidate_keys(step):
            message = f"`{key}` is not allowed in the stage `{name}`"
            draft.complain((*draft.steps[step.id], key), message, hint, key=True)


def _candidate_keys(step: Step) -> list[str]:
    return [key for key in _OF_CANDIDATES if getattr(step, key) is not None]
