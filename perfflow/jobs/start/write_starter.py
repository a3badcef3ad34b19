"""Write a first workflow into a new file, if the workflow can be run."""

from __future__ import annotations

from pathlib import Path

from perfflow.library import search_path
from perfflow.library.starter_for import Start
from perfflow.model.errors import UserError
from perfflow.session.open_workflow import open_workflow


def write(begun: Start, root: Path) -> Path:
    """Write the workflow's file. An existing file is never changed. Raises UserError, and then leaves no new file."""
    folder = root / search_path.FOLDER
    path = folder / f"{begun.name}.yaml"
    taken = [folder / (begun.name + suffix) for suffix in search_path.WORKFLOW_SUFFIXES]
    there = next((other for other in taken if other.exists() or other.is_symlink()), None)
    if there:
        raise UserError.of(f"{there} already exists", "choose another name with --name, or edit that file")
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    stream = path.open("x", encoding="utf-8")
    try:
        with stream:
            stream.write(begun.text)
        open_workflow(str(path)).require_usable(to_run=True)
    except (UserError, OSError):
        # Also on a full disk: an empty file would be refused the next time.
        path.unlink()
        if is_new:
            folder.rmdir()
        raise
    return path
