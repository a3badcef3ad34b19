"""Check the optimize stage: each candidate changes the tree in one way, and its patch file exists."""

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
"""Keys of a candidate that change files; ``env`` and ``params`` may be combined with one of them."""
_SHARES = ("accept", "diminishing")
EXAMPLE = "patch: change.patch, ref: BRANCH, run: COMMAND, propose: PROGRAM, env: {...} or params: {...}"


def check(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Check a step of the optimize stage; steps of other stages are skipped."""
    if stage != CANDIDATES_STAGE:
        return
    if step.uses:
        hint = f"a candidate changes the program; other stages measure it. Write one of {EXAMPLE}"
        draft.complain((*loc, "uses"), "a candidate of the optimize stage cannot have `uses`", hint, key=True)
    ways = [key for key in _WAYS if getattr(step, key) is not None]
    for other in ways[1:]:
        # `run` with `argv` is an error in any stage, and reported by the checks of steps.
        if {ways[0], other} != {"run", "argv"}:
            hint = "split it into two candidates, so that each changes one thing"
            message = f"a candidate cannot have both `{ways[0]}` and `{other}`"
            draft.complain((*loc, other), message, hint, key=True)
    _check_patch(draft, step, (*loc, "patch"))


def _check_patch(draft: Draft, step: Step, loc: Loc) -> None:
    """Report a missing patch file now, before the run spends an hour on earlier stages."""
    if step.patch is None or "${{" in step.patch:
        return
    path = draft.path.parent / step.patch
    if not step.patch.strip() or "\0" in step.patch:
        draft.complain(loc, f"invalid path {step.patch!r}", "name a file: patch: patches/change.patch")
    elif path.is_dir():
        draft.complain(loc, f"the patch {step.patch} is a directory", "name one of its files")
    elif not path.is_file():
        near = nearest_file(path) if draft.readable.holds(path) else None
        default = "write a path relative to the workflow file"
        hint = f"did you mean {Path(step.patch).with_name(near.name)}?" if near else default
        draft.complain(loc, f"the patch {step.patch} does not exist", hint)


def check_stage(draft: Draft, stage: Stage, loc: Loc) -> None:
    """Check the keys of the optimize stage itself."""
    for key in _SHARES:
        text = getattr(stage, key)
        if text is None:
            continue
        try:
            read_share(text)
        except UnitError as error:
            hint = error.hint if "%" in error.hint else f"write a percentage: {key}: 5%"
            draft.complain((*loc, key), str(error), hint)
