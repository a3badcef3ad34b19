"""Apply one function to many series on all processors, since hundreds of series take seconds."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

FEWEST = 40
"""The fewest items for each process. With fewer, its start would take longer than it saves."""
_TOGETHER = 8
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


def in_parallel(work: Callable[[_Item], _Made], items: Sequence[_Item]) -> list[_Made]:
    """Return ``work(item)`` for each item, in order. The results travel between processes, so keep them small."""
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    processes = min(free, len(items) // FEWEST)
    if processes < 2:
        return list(map(work, items))

    # A forked process has all modules and items already, and only receives indices. Forking is safe because commands
    # that read a history have no other threads.
    context = get_context("fork")
    with ProcessPoolExecutor(processes, context, _Started.begin, (work, items)) as pool:
        return list(pool.map(_Started.one, range(len(items)), chunksize=_TOGETHER))


class _Started:
    """The function and the items of a worker process, set once when it starts."""

    work: Callable[[Any], Any]
    items: Sequence[Any]

    @classmethod
    def begin(cls, work: Callable[[Any], Any], items: Sequence[Any]) -> None:
        # The terminal interrupts all processes of a command, but only the parent should report it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        cls.work, cls.items = staticmethod(work), items

    @classmethod
    def one(cls, number: int) -> Any:
        return cls.work(cls.items[number])
