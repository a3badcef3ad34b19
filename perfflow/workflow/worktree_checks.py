"""Check ``worktree: {share: [...]}`` as far as the file alone allows: build folders must not be shared."""

from __future__ import annotations

from perfflow.trees.build_folders import is_build_folder
from perfflow.workflow.load import Draft


def check(draft: Draft) -> None:
    """Report build folders: both sides would build into the same folder and run the program that was built last."""
    for index, path in enumerate(draft.workflow.worktree.share):
        if is_build_folder(path):
            message = f"`{path}` is a build folder: if it is shared, both sides run the same program"
            hint = "remove it from the list, and build in each tree by steps of the `build` stage"
            draft.complain(("worktree", "share", index), message, hint)
