"""Check periodically, while a child runs, how much it has printed and whether its spawner was stopped.

The spawner itself is idle while a child runs, and cannot notice its own stop. A check takes some microseconds in the
process that waits for the answer. A child that ends within ``_FIRST`` seconds is never checked.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from signal import SIGCONT

from perfflow.machine.orphans import end_below

_FIRST, _BETWEEN, _SOON = 0.2, 1.0, 0.1
"""Seconds until the first check, between checks, and between checks near a limit or after a stop."""
_NEAR_LIMIT = 16
"""Above 1/16 of a limit, the next check comes after ``_SOON``."""
_MOST_STOPS = 5
"""Number of checks that may find the spawner stopped before its descendants are killed."""


class Watchdog:
    """Checks on one child and its spawner. ``limits``: maximum bytes of each file that the child prints to."""

    def __init__(self, spawner: int, limits: Mapping[Path, int]) -> None:
        self._spawner, self._limits = spawner, limits
        self._stops = 0
        self.pause = _FIRST
        """Seconds until the next check."""
        self._too_long = False
        # One call for the usual case, in which nothing happened.
        if _changed_state(spawner, os.WSTOPPED | os.WCONTINUED | os.WNOWAIT):
            if is_stopped(spawner):
                let_go_on(spawner)
            is_continued(spawner)

    def check(self) -> bool:
        """Continue a stopped spawner, and return whether a file has just exceeded its limit."""
        self.pause = _BETWEEN
        if is_stopped(self._spawner):
            self.pause = _SOON
            self._stops += 1
            if self._stops > _MOST_STOPS:
                end_below(self._spawner)
            let_go_on(self._spawner)
        if self._too_long:
            return False
        for path, limit in self._limits.items():
            size = _size(path)
            if size > limit:
                self._too_long = True
            elif size > limit // _NEAR_LIMIT:
                self.pause = _SOON
        return self._too_long

    def was_stopped(self) -> bool:
        """Return whether the spawner was stopped since the start of the child, however briefly."""
        return is_continued(self._spawner) or self._stops > 0


def is_stopped(pid: int) -> bool:
    """Return whether a child of this process is stopped by a signal."""
    return _changed_state(pid, os.WSTOPPED | os.WNOWAIT)


def is_continued(pid: int) -> bool:
    """Return whether a child of this process was continued after a stop since the last call."""
    return _changed_state(pid, os.WCONTINUED)


def let_go_on(pid: int) -> None:
    """Continue a stopped child of this process."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, SIGCONT)


def _changed_state(pid: int, what: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, what | os.WNOHANG) is not None
    except OSError:  # it is gone, or the kernel does not support this
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
