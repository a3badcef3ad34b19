"""Observe whether the processes and threads of a program take turns: only then does CPU time cover what it takes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

_PAUSE = 0.001
_FEWEST = 10
"""Fewest observations from which a share is known."""
_PROC = Path("/proc")


class Turns:
    """Counts, during an untimed run, how many threads below a process can run: on a core or waiting for one.

    A share of the time would depend on other programs; the number of threads that can run does not.
    """

    def __init__(self, pid: Callable[[], int]) -> None:
        """``pid``: the process whose only child is the program, which may change when the program starts."""
        self._pid = pid
        self._counts: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._observe, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def share(self) -> float | None:
        """Share of the observations in which exactly one thread could run; None if there are too few."""
        if len(self._counts) < _FEWEST:
            return None
        return self._counts.count(1) / len(self._counts)

    def _observe(self) -> None:
        while not self._ended.wait(_PAUSE):
            seen = [states for child in _children(self._pid()) for states in _states(child)]
            if seen:
                self._counts.append(seen.count("R"))


def _children(pid: int) -> list[int]:
    """Return the children of all threads of a process."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 (called every millisecond)
            found += map(int, (_PROC / str(pid) / "task" / thread / "children").read_text().split())
    except OSError:
        pass  # it has ended
    return found


def _states(pid: int) -> list[str]:
    """Return the states of the threads of a process and of all processes below it: R can run, S sleeps."""
    found: list[str] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 (called every millisecond)
            text = (_PROC / str(pid) / "task" / thread / "stat").read_text()
            found += text.rpartition(") ")[2][:1]
    except OSError:
        pass  # it has ended
    return found + [state for child in _children(pid) for state in _states(child)]
