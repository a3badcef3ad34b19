"""The rules of ``artifacts``: globs that can only match what is below the root of the tree."""

from __future__ import annotations

from pathlib import Path

from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Step


def check(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    """Add a problem for each glob that leaves the tree."""
    for index, glob in enumerate(step.artifacts):
        wrong = "" if "${{" in glob else glob_mistake(glob)
        if wrong:
            hint = "name files from the root of the tree: build/*.json; copy others there first"
            draft.complain((*loc, "artifacts", index), wrong, hint)


def glob_mistake(glob: str) -> str:
    """Why a glob may match what is not below the root, or cannot match at all; '' where it is sound."""
    path = Path(glob)
    inside = path.parts and not path.is_absolute() and ".." not in path.parts and "\0" not in glob
    return "" if inside else f"{glob!r} is not below the root of the tree"
