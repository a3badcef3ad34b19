"""perfflow as a job of a shell: stopped by ^Z, continued by fg or bg, in the foreground or background."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TextIO


def in_front(stream: TextIO) -> bool:
    """Return whether this job is in the foreground. In the background it must not move the cursor."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True


class Pauses:
    """Calls ``leaving`` before ^Z stops this process, and ``back`` when it continues.

    After ``kill -STOP`` only ``back`` is called. Both run in signal handlers, so they must not wait for a lock.
    """

    def __init__(self, leaving: Callable[[], None], back: Callable[[], None]) -> None:
        self._leaving, self._back = leaving, back
        # Only the main thread can set handlers. Shells without job control, and nohup, ignore ^Z.
        self._usable = threading.current_thread() is threading.main_thread()
        self._stops = self._usable and signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL
        if self._stops:
            signal.signal(signal.SIGTSTP, self._stop)
        if self._usable:
            signal.signal(signal.SIGCONT, self._go_on)

    def close(self) -> None:
        """Restore the default handlers."""
        if self._stops:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        if self._usable:
            signal.signal(signal.SIGCONT, signal.SIG_DFL)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._leaving()
        # The handler that pauses the children of a run calls this handler, and must be restored.
        installed = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # Stop by SIGTSTP, not SIGSTOP, so that the shell reports the signal that was sent.
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, installed)
        self._back()

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        self._back()
