"""Handle a run folder that can no longer be written: rescue its events, and report where they are."""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from perfflow.model.errors import Exit

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
    """The folder of a run cannot be written: the reason, the remedy, and the ``folder`` with its events."""

    reason: str
    remedy: str
    folder: Path

    def __str__(self) -> str:
        return self.reason

    @classmethod
    def of(cls, folder: Path, error: OSError) -> FolderError:
        """Return the error with the folder's path, because an OSError on an open file does not name it."""
        return cls(f"cannot write {error.filename or folder}: {error.strerror or error}", write_remedy(error), folder)


def write_remedy(error: OSError) -> str:
    """Return the remedy for a file system error."""
    return _REMEDIES.get(error.errno or 0, "check what is at that path")


def exit_of_write_failure(error: OSError) -> Exit:
    """Return exit status 2 if another folder would work, 3 if the cause is not the user's request."""
    return Exit.UNMEASURED if error.errno in _FULL else Exit.USAGE


def is_read_only(path: Path) -> bool:
    """Return whether the nearest existing folder of a path cannot be written by this user."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return not os.access(path, os.W_OK)


def is_failure_at(path: Path, state: os.stat_result) -> bool:
    """Return whether the file with this state is still at ``path``."""
    try:
        now = path.stat()
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == (state.st_dev, state.st_ino)


def rescued_text(number: int, folder: Path, name: str) -> FolderError:
    """Rescue the open file with descriptor ``number``, which was ``name`` in a folder, and return the error to raise.

    The kernel keeps a removed file while it is open, so its contents are written again: to the same path, or to a new
    temporary folder. A folder that was moved stays where it is.
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
    # Do not overwrite a file that was created with that name since then.
    with (folder / name).open("xb") as stream:
        at = 0
        while part := os.pread(number, _BLOCK, at):
            stream.write(part)
            at += len(part)


_BLOCK = 1 << 16
