"""Which folders builds write into, and which hold what a project needs, by their usual names."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePosixPath

_BUILD_FOLDERS = ("target", "build", "dist", "out", "_build", "cmake-build-*")
ENVIRONMENTS = (".venv", "venv", "node_modules")
"""Folders with what a project needs and others have made, by their usual names: these are shared."""


def is_build_folder(path: str) -> bool:
    """Whether a path of the project is, or lies in, a folder that builds write into."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] not in ENVIRONMENTS and any(map(_is_one, parts))


def _is_one(part: str) -> bool:
    return any(fnmatchcase(part, pattern) for pattern in _BUILD_FOLDERS)
