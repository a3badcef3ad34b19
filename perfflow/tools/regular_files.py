"""Opening files that somebody else may have put there: regular ones alone, so that nothing waits or never ends."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotRegularError(OSError):
    """A FIFO, a device or a socket, where a file was to be read."""


class TooLargeError(OSError):
    """A file of more bytes than are read."""


def opened(path: Path | str) -> BufferedReader:
    """Open a regular file to read its bytes.

    Raises OSError, for anything else a NotRegularError; ValueError for a NUL in its name.
    """
    # Looked at first: merely opening some devices does something.
    _require_regular(Path(path).stat().st_mode, path)
    number = os.open(path, _FLAGS)
    try:
        _require_regular(os.fstat(number).st_mode, path)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read(path: Path | str, largest: int | None = None) -> bytes:
    """Return the bytes of a regular file; of one in /proc, which has no size, none.

    ``largest``: bytes, None for any number. Raises OSError as ``opened``, and TooLargeError; ValueError for a NUL.
    """
    with opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if largest is not None and size > largest:
            raise TooLargeError(errno.EFBIG, f"the file is larger than {largest} bytes", str(path))
        return stream.read(size)


def _require_regular(mode: int, path: Path | str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise NotRegularError(errno.EINVAL, "not a regular file", str(path))
