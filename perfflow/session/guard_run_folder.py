"""A run whose folder can no longer be written stops, and says what is kept and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfflow.model.errors import Exit, UserError
from perfflow.store.folder import EVENTS
from perfflow.store.write_failure import FolderError


@contextmanager
def kept(folder: Path, *, can_resume: bool) -> Iterator[None]:
    """Turn what goes wrong with the files of a run into a UserError with exit 3 and a remedy.

    ``can_resume``: whether the command that made the run takes ``--resume``.
    """
    try:
        yield
    except FolderError as error:
        raise _explained(error, can_resume=can_resume) from error
    except OSError as error:
        raise _explained(FolderError.of(folder, error), can_resume=can_resume) from error


@contextmanager
def calibration_kept(file: Path) -> Iterator[None]:
    """The same of a calibration, which keeps what it finds in ``file``, step by step."""
    try:
        yield
    except (FolderError, OSError) as error:
        problem = error if isinstance(error, FolderError) else FolderError.of(file, error)
        hint = f"{problem.remedy}; what was found of the steps before is in {file}; run `perfflow calibrate` again"
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
    going_on = f", and the same command with --resume={where} goes on" if can_resume else ""
    hint = f"{error.remedy}; `perfflow report {where}` judges what was measured{going_on}"
    return UserError.of(error.reason, hint, Exit.UNMEASURED)
