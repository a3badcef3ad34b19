"""Errors of a run whose folder can no longer be written: which data exist, and how to resume."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfflow.model.errors import Exit, UserError
from perfflow.store.run_folder import EVENTS, RunFolder, events
from perfflow.store.write_failure import FolderError


@contextmanager
def explaining_folder_errors(folder: Path, *, can_resume: bool) -> Iterator[None]:
    """Turn errors with the files of a run into a UserError with exit 3 and a remedy.

    ``can_resume``: whether the command that made the run accepts ``--resume``.
    """
    try:
        yield
    except FolderError as error:
        raise _explained(error, can_resume=can_resume) from error
    except OSError as error:
        raise _explained(FolderError.of(folder, error), can_resume=can_resume) from error


@contextmanager
def discarding_unmeasured(folder: RunFolder) -> Iterator[None]:
    """Remove the folder of a run that a wrong name stopped before it took a sample."""
    try:
        yield
    except UserError as error:
        taken = any(event.get("event") == "sample" for event in events(folder.path))
        if error.exit is Exit.USAGE and not taken:
            folder.discard()
        raise


@contextmanager
def calibration_kept(file: Path) -> Iterator[None]:
    """Do the same for a calibration, which saves its findings in ``file`` after each step."""
    try:
        yield
    except (FolderError, OSError) as error:
        problem = error if isinstance(error, FolderError) else FolderError.of(file, error)
        hint = f"{problem.remedy}; {file} has the findings of the earlier steps; run `perfflow calibrate` again"
        raise UserError.of(problem.reason, hint, Exit.UNMEASURED) from error


def _holds_something(folder: Path) -> bool:
    try:
        return (folder / EVENTS).stat().st_size > 0
    except OSError:
        return False


def _explained(error: FolderError, *, can_resume: bool) -> UserError:
    if not _holds_something(error.folder):
        return UserError.of(error.reason, f"{error.remedy}; nothing was measured yet", Exit.UNMEASURED)
    where = shlex.quote(str(error.folder))
    going_on = f"; the same command with --resume={where} resumes it" if can_resume else ""
    hint = f"{error.remedy}; `perfflow report {where}` judges the samples so far{going_on}"
    return UserError.of(error.reason, hint, Exit.UNMEASURED)
