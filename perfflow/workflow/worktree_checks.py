"""The rules of ``worktree: {share: [...]}`` that the file alone can tell: nobody shares what a build makes."""

from __future__ import annotations

from perfflow.trees.build_folders import is_build_folder
from perfflow.workflow.load import Draft


def check(draft: Draft) -> None:
    """Complain about build folders: both sides would write into one, and run whichever was built last."""
    for index, path in enumerate(draft.workflow.worktree.share):
        if is_build_folder(path):
            message = f"`{path}` is a build folder: both sides would build into it, and run the same program"
            hint = "take it out of the list; each tree has a build folder of its own, which steps in `build` fill"
            draft.complain(("worktree", "share", index), message, hint)
