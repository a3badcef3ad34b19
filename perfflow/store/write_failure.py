"""A run's folder that cannot be written any more: what of it is kept, where, and what to do about it."""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from perfflow.model.errors import Exit

_BLOCK = 1 << 16
_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or ask for a larger quota",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    errno.EROFS: "make the file system writable",
    errno.EACCES: "check the permissions",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.EIO: "check the disk",
}


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE)


@dataclass(eq=False)
class FolderError(Exception):
    """The folder of a run cannot be written: why, what to do about it, and the ``folder`` that holds its events."""

    reason: str
    remedy: str
    folder: Path

    def __str__(self) -> str:
        return self.reason

    @classmethod
    def of(cls, folder: Path, error: OSError) -> FolderError:
        """Say which folder an error is about: one of a file that is open names none."""
        return cls(f"cannot write {error.filename or folder}: {error.strerror or error}", remedy(error), folder)


def remedy(error: OSError) -> str:
    """What helps against an error of the file system."""
    return _REMEDIES.get(error.errno or 0, "check what is at that path")


def exit_of(error: OSError) -> Exit:
    """2 where another folder would have done, 3 where nothing is wrong with what the user asked for."""
    return Exit.UNMEASURED if error.errno in _FULL else Exit.USAGE


def is_at(path: Path, state: os.stat_result) -> bool:
    """Whether the file of this state is still found at ``path``."""
    try:
        now = path.stat()
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == (state.st_dev, state.st_ino)


def rescued(number: int, folder: Path, name: str) -> FolderError:
    """What is left of a folder in which the open file ``number`` was called ``name``.

    The kernel keeps an open file that was removed, so it is written again: where it was, else in a new folder among the
    temporary files. One that was moved is left where it is now.
    """
    if os.fstat(number).st_nlink:
        there = Path(f"/proc/self/fd/{number}").readlink().parent
        return FolderError(f"{folder} was moved to {there} during the run", "leave it there", there)
    reason = f"{folder} was removed during the run"
    try:
        _copy(number, folder, name)
    except OSError:
        elsewhere = Path(tempfile.mkdtemp(prefix="perfflow-run-"))
        _copy(number, elsewhere, name)
        return FolderError(reason, f"its samples were saved in {elsewhere}", elsewhere)
    return FolderError(reason, "its samples were written there again", folder)


def _copy(number: int, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Whoever made a file of that name since then keeps it.
    with (folder / name).open("xb") as stream:
        at = 0
        while part := os.pread(number, _BLOCK, at):
            stream.write(part)
            at += len(part)
