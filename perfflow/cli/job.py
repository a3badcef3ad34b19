"""perfflow as a job of a shell: stopped by ^Z, continued by fg or bg, and whether it has the terminal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TextIO


def in_front(stream: TextIO) -> bool:
    """Whether this job has the terminal of a stream; in the background it must not move a cursor that others use."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True


class Pauses:
    """Calls ``leaving`` before ^Z stops this process, and ``back`` when it goes on, which may come alone (kill -STOP).

    Both run between any two instructions of the main thread, so they may wait for no lock.
    """

    def __init__(self, leaving: Callable[[], None], back: Callable[[], None]) -> None:
        self._leaving, self._back = leaving, back
        # Handlers belong to the main thread; a shell without job control, or nohup, has ^Z ignored.
        self._usable = threading.current_thread() is threading.main_thread()
        self._stops = self._usable and signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL
        if self._stops:
            signal.signal(signal.SIGTSTP, self._stop)
        if self._usable:
            signal.signal(signal.SIGCONT, self._go_on)

    def close(self) -> None:
        """Put the defaults back."""
        if self._stops:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        if self._usable:
            signal.signal(signal.SIGCONT, signal.SIG_DFL)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._leaving()
        # What pauses the children of a run has a handler of its own, which calls this one.
        installed = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # The shell is told what stopped the job only where it is the signal that was sent.
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, installed)
        self._back()

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        self._back()
