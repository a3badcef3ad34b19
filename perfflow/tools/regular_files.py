"""Open files from untrusted sources. Only regular files are opened, since others can block or never end."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

LARGEST = 2**30
"""Most bytes that are read into memory: a file with holes has any size and needs no space on the disk."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotRegularError(OSError):
    """The path is a FIFO, a device or a socket, not a file."""


class TooLargeError(OSError):
    """The file is larger than the limit."""


def opened(path: Path | str) -> BufferedReader:
    """Open a regular file for reading bytes.

    Raises OSError, NotRegularError if it is not a regular file, and ValueError for a NUL in its name.
    """
    # Checked before opening, since opening some devices has effects.
    _require_regular(Path(path).stat().st_mode, path)
    number = os.open(path, _FLAGS)
    try:
        _require_regular(os.fstat(number).st_mode, path)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read(path: Path | str, largest: int = LARGEST) -> bytes:
    """Return the bytes of a regular file. A file in /proc has size 0, so the result is empty.

    ``largest``: limit in bytes. Raises TooLargeError, and the errors of ``opened``.
    """
    with opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > largest:
            raise TooLargeError(errno.EFBIG, f"the file is larger than {largest:,} bytes", str(path))
        return stream.read(size)


def _require_regular(mode: int, path: Path | str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise NotRegularError(errno.EINVAL, "not a regular file", str(path))
