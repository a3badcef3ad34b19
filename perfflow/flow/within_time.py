"""A limit to what may be computed while a workflow is looked at, whatever it holds: the last of several."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from perfflow.errors import UserError

SECONDS = 3.0
"""Seconds of computing for one workflow. The largest that was seen takes a tenth of it."""
_AGAIN = 0.2
"""Seconds after which it is said again, where the first time was taken for the mistake of one part."""


@contextmanager
def within_time(what: str, seconds: float = SECONDS) -> Iterator[None]:
    """Raise UserError from whatever computes for more than so many seconds of processor time.

    Only the main thread can be interrupted; elsewhere, and where the system has no such timer, there is no limit.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise UserError.of(f"{what} takes more than {seconds:g} s of computing", "is this file really a workflow?")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
