"""Two perfflows at once: which of them may write. The kernel lets go of these locks however their holder ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perfflow.tools.regular_files import opened

_TRIES, _PAUSE = 5, 0.01
"""How often, and after how many seconds, a lock that is taken is tried again."""


def lock(number: int, *, wait: bool = False) -> None:
    """Keep a second perfflow from writing an open file or folder. Raises BlockingIOError where one does already.

    Who only asks (``is_held``) holds it for a moment, which is waited out.
    """
    try:
        import fcntl
    except ImportError:  # nothing is run where there is none
        return
    if not wait:
        for _ in range(_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_PAUSE)
    fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def is_held(path: Path) -> bool:
    """Whether another perfflow writes a file at this moment; False where that cannot be told."""
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
def only_writer(folder: Path) -> Iterator[None]:
    """Wait until no other perfflow changes what is in a folder, and keep others from it. Raises OSError."""
    if os.name == "nt":  # where folders cannot be opened
        yield
        return
    number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock(number, wait=True)
        yield
    finally:
        os.close(number)
