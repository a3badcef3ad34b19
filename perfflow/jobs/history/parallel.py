"""The same work for each of many series, on all processors: of hundreds it takes seconds."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import TypeVar

FEWEST = 40
"""Items for each process: of fewer, its start would take longer than it saves."""
_TOGETHER = 8
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


def in_parallel(work: Callable[[_Item], _Made], items: Sequence[_Item]) -> list[_Made]:
    """Return what ``work`` makes of each item, in their order. It must be a function of a module, or a partial one."""
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    processes = min(free, len(items) // FEWEST)
    if processes < 2:
        return list(map(work, items))
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # A forked process has all modules at once. Commands that read a history have no threads that it could lack.
    context = get_context("fork")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_leave_to_parent) as pool:
        return list(pool.map(work, items, chunksize=_TOGETHER))


def _leave_to_parent() -> None:
    """The terminal interrupts all processes of a command: one of them says so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
