"""Stop perfflow and its child processes on ^Z, and resume both on ``fg``.

Children have sessions of their own, so the terminal's signal does not reach them by itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from perfflow.machine import lock
from perfflow.session.session import RunSession


@contextmanager
def pausing(session: RunSession) -> Iterator[None]:
    """Pause on SIGTSTP, unless it is ignored (nohup, no job control) or this is not the main thread."""
    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTSTP)
    if not here or before in (signal.SIG_IGN, None):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        session.pause()
        lock.stand_aside()
        # A live progress display stops this process itself, after it has cleared the terminal.
        if callable(before):
            before(number, frame)
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
        session.resume()

    signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)
