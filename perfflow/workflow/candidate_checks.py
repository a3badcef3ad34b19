"""The rules of the optimize stage: each candidate changes the tree in one way, with a patch that is there."""

from __future__ import annotations

from pathlib import Path

from perfflow.model.criteria import read_share
from perfflow.model.units import UnitError
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Stage, Step
from perfflow.workflow.roles import CANDIDATES_STAGE
from perfflow.workflow.yaml_hints import nearest_file

_WAYS = ("patch", "ref", "run", "argv", "propose")
"""Keys of a candidate that change files; ``env`` and ``params`` may stand beside one of them."""
_SHARES = ("accept", "diminishing")
EXAMPLE = "patch: change.patch, ref: BRANCH, run: COMMAND, propose: PROGRAM, env: {...} or params: {...}"


def check(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Add the problems of a candidate; steps of other stages have none here."""
    if stage != CANDIDATES_STAGE:
        return
    if step.uses:
        hint = f"a candidate changes something, what measures it is known; write {EXAMPLE}"
        draft.complain((*loc, "uses"), "`uses` in a candidate of the optimize stage", hint, key=True)
    ways = [key for key in _WAYS if getattr(step, key) is not None]
    for other in ways[1:]:
        # Two of uses, run and argv in one step are wrong in any stage, and said there.
        if {ways[0], other} != {"run", "argv"}:
            hint = "each candidate changes one thing: make it two steps"
            draft.complain((*loc, other), f"`{ways[0]}` and `{other}` in one candidate", hint, key=True)
    _check_patch(draft, step, (*loc, "patch"))


def _check_patch(draft: Draft, step: Step, loc: Loc) -> None:
    """A patch that is missing is known before an hour is spent on what comes before it."""
    if step.patch is None or "${{" in step.patch:
        return
    path = draft.path.parent / step.patch
    if not step.patch.strip() or "\0" in step.patch:
        draft.complain(loc, f"{step.patch!r} is not a path", "name a file: patch: patches/change.patch")
    elif path.is_dir():
        draft.complain(loc, f"the patch {step.patch} is a directory", "name one of its files")
    elif not path.is_file():
        near = nearest_file(path) if draft.readable.holds(path) else None
        hint = f"did you mean {Path(step.patch).with_name(near.name)}?" if near else "it is relative to the workflow"
        draft.complain(loc, f"the patch {step.patch} does not exist", hint)


def check_stage(draft: Draft, stage: Stage, loc: Loc) -> None:
    """Add the problems of the optimize stage's own keys."""
    for key in _SHARES:
        text = getattr(stage, key)
        if text is None:
            continue
        try:
            read_share(text)
        except UnitError as error:
            hint = error.hint if "%" in error.hint else f"write a share: {key}: 5%"
            draft.complain((*loc, key), str(error), hint)
