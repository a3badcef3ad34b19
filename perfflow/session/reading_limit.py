"""A limit on the CPU time to read a workflow, whatever it contains: the last of several limits."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from perfflow.model.errors import UserError

SECONDS = 3.0
"""Seconds of CPU time for one workflow. The largest known workflow takes a tenth of it."""
NAME = "PERFFLOW_READING_SECONDS"
"""Environment variable that sets another limit; a workflow cannot change it."""
_AGAIN = 0.2
"""Seconds after which the error is raised again, in case the first one was caught as an error of one part."""


@contextmanager
def within_time(what: str, share: float = 1) -> Iterator[None]:
    """Raise UserError if the code inside takes more CPU time than this share of the limit.

    Only the main thread can be interrupted. Other threads, and systems without this timer, have no limit.
    """
    seconds = share * _limit()
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(_number: int, _frame: FrameType | None) -> None:
        hint = f"is this file really a workflow? Under an emulator or valgrind, set {NAME} to more seconds"
        raise UserError.of(f"{what} takes more than {seconds:g} s of CPU time", hint)

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _limit() -> float:
    text = os.environ.get(NAME, "") or str(SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not (math.isfinite(seconds) and seconds > 0):
        raise UserError.of(f"{NAME}={text} is not a number of seconds", f"unset it, or set it to {SECONDS:g} or more")
    return seconds
