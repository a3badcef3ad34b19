"""Paths of the repository's own files, beside whose code a service can show annotations."""

from __future__ import annotations

from pathlib import PurePosixPath

from perfflow.tools.python_command import is_own


def path_in_repository(file: str) -> str:
    """Return a source file's path from the repository's root, or '' if it is not known to be in the repository.

    Debug information also names files of libraries and toolchains, and absolute paths in the trees that were built.
    """
    path = PurePosixPath(file)
    inside = file.isprintable() and not path.is_absolute() and not {"..", "~"} & set(path.parts) and "://" not in file
    if not file or not inside or not is_own(file) or "\\" in file or ":" in file or file != file.strip():
        return ""
    return str(path) if path.parts and path.parts[0] != ".git" else ""
