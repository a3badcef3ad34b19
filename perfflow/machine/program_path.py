"""Programs that lie in a project, which is not to be run while it is looked at, and the PATH without them."""

from __future__ import annotations

import os
from pathlib import Path


def lies_in(place: str, folder: Path | None) -> bool:
    """Whether a path is in ``folder`` or leads there; one that is relative lies wherever it is looked at."""
    if not os.path.isabs(place):  # noqa: PTH117 (an empty entry of a PATH is not a path)
        return True
    if folder is None:
        return False
    real = os.path.realpath(folder)
    return any(Path(path).is_relative_to(real) for path in (os.path.normpath(place), os.path.realpath(place)))


def outside(path: str, folder: Path | None) -> str:
    """Return the entries of a PATH that do not lie in ``folder``; relative and empty ones go."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if not lies_in(entry, folder))
