"""The rules of ``worktree: {share: [...]}`` that the file alone can tell: nobody shares what a build makes."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from perfflow.workflow.load import Draft

_BUILD_FOLDERS = ("target", "build", "dist", "out", "_build", "cmake-build-*")
ENVIRONMENTS = (".venv", "venv", "node_modules")
"""Folders with what a project needs and others have made, by their usual names: these are shared."""


def is_build_folder(path: str) -> bool:
    """Whether a path of the project is, or lies in, a folder that builds write into."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] not in ENVIRONMENTS and any(map(_is_one, parts))


def _is_one(part: str) -> bool:
    return any(fnmatchcase(part, pattern) for pattern in _BUILD_FOLDERS)


def check(draft: Draft) -> None:
    """Complain about build folders: both sides would write into one, and run whichever was built last."""
    for index, path in enumerate(draft.workflow.worktree.share):
        if is_build_folder(path):
            message = f"`{path}` is a build folder: both sides would build into it, and run the same program"
            hint = "take it out of the list; each tree has a build folder of its own, which steps in `build` fill"
            draft.complain(("worktree", "share", index), message, hint)
