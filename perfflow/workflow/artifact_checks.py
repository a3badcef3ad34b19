"""Check ``artifacts``: globs that match only files below the root of the tree."""

from __future__ import annotations

from pathlib import Path

from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Step


def check(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    """Report each glob that can match a path outside the tree."""
    for index, glob in enumerate(step.artifacts):
        wrong = "" if "${{" in glob else glob_mistake(glob)
        if wrong:
            hint = "use paths relative to the root of the tree, such as build/*.json; copy other files there first"
            draft.complain((*loc, "artifacts", index), wrong, hint)


def glob_mistake(glob: str) -> str:
    """Return the message for a glob that can leave the tree or matches nothing, or '' if it is valid."""
    path = Path(glob)
    inside = path.parts and not path.is_absolute() and ".." not in path.parts and "\0" not in glob
    return "" if inside else f"{glob!r} is not below the root of the tree"
