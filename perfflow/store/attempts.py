"""The number of candidates that were measured against one state of the code, in all runs of a project.

The best of many attempts looks better than it is, so each of them says how many there were.
"""

from __future__ import annotations

import os
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.store import run_folder

_FOLDER = "attempts"


def note(root: Path, tree: str, workflow: str, count: int = 1) -> int:
    """Count more attempts of a workflow on top of ``tree``; return their number, ``count`` if it cannot be stored."""
    try:
        folder = run_folder.home(root) / _FOLDER
        folder.mkdir(exist_ok=True)
        # One byte for each attempt, so that runs at the same time lose none.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(folder / f"{tree}-{run_folder.file_name(workflow)}", flags, 0o666)
        with os.fdopen(file, "ab") as stream:
            stream.write(b"." * count)
            return stream.tell()
    except (OSError, UserError):
        return count
