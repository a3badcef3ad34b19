"""Locks between perfflow processes. The kernel releases them however the holder ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perfflow.tools.regular_files import opened

_TRIES, _PAUSE = 5, 0.01
"""Number of attempts to take a lock, and seconds between them."""


def lock(number: int, *, wait: bool = False) -> None:
    """Lock an open file or folder for writing. Raises BlockingIOError if another process has locked it.

    ``is_held`` takes the lock for a moment, so this function tries several times. ``wait``: wait without a limit.
    """
    try:
        import fcntl
    except ImportError:  # perfflow does not run anything on systems without it
        return
    if not wait:
        for _ in range(_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_PAUSE)
    fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def is_held(path: Path) -> bool:
    """Return whether another perfflow is writing a file now; False if that cannot be determined."""
    try:
        import fcntl

        stream = opened(path)
    except (ImportError, OSError):
        return False
    with stream:
        try:
            fcntl.flock(stream.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return False
    return False


@contextmanager
def only_writer(folder: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Wait for other perfflow processes to finish changing a folder, then lock it. Raises OSError.

    ``waiting`` is called first if another process holds it.
    """
    if os.name == "nt":  # folders cannot be opened there
        yield
        return
    number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            lock(number)
        except BlockingIOError:
            if waiting:
                waiting()
            lock(number, wait=True)
        yield
    finally:
        os.close(number)
