"""Keep programs inside a project off the PATH, because perfflow must not run them while it only reads the project."""

from __future__ import annotations

import os
from pathlib import Path


def lies_in(place: str, folder: Path | None) -> bool:
    """Return whether a path is in ``folder`` or leads there; a relative path always counts as inside."""
    if not os.path.isabs(place):  # noqa: PTH117 (an empty entry of a PATH is not a path)
        return True
    if folder is None:
        return False
    real = os.path.realpath(folder)
    return any(Path(path).is_relative_to(real) for path in (os.path.normpath(place), os.path.realpath(place)))


def outside(path: str, folder: Path | None) -> str:
    """Return the entries of a PATH that are not in ``folder``, without relative and empty ones."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if not lies_in(entry, folder))
