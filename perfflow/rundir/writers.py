"""Two perfflows at once: which of them may write. The kernel lets go of these locks however their holder ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def lock(number: int, *, wait: bool = False) -> None:
    """Keep a second perfflow from writing an open file or folder. Raises BlockingIOError where one does already."""
    try:
        import fcntl
    except ImportError:  # nothing is run where there is none
        return
    fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


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
