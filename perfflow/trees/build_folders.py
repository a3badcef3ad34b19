"""Recognize build folders and environments by their usual names."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePosixPath

_BUILD_FOLDERS = ("target", "build", "dist", "out", "_build", "cmake-build-*")
ENVIRONMENTS = (".venv", "venv", "node_modules")
"""Usual names of folders with installed dependencies, which trees share."""


def is_build_folder(path: str) -> bool:
    """Return whether a path of the project is a build folder, or inside one."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] not in ENVIRONMENTS and any(map(_is_one, parts))


def _is_one(part: str) -> bool:
    return any(fnmatchcase(part, pattern) for pattern in _BUILD_FOLDERS)
