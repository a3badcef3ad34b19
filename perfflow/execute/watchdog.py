"""Looks now and then at a child that runs: how much it has printed, and whether its spawner was stopped.

The spawner itself does nothing while a child runs, and could not notice its own stop. A look takes some microseconds
in the process that waits for the answer; a child of less than ``_FIRST`` seconds is not looked at.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from signal import SIGCONT

from perfflow.machine.orphans import end_below

_FIRST, _USUAL, _SOON = 0.2, 1.0, 0.1
"""Seconds until the first look, between two, and between two while something is about to go wrong."""
_MUCH = 16
"""Of a limit, the part after which the next look comes soon."""
_PATIENCE = 5
"""Looks that may find the spawner stopped again before what runs below it is ended."""


class Lookout:
    """What is seen of one child. ``limits`` are bytes of files that it prints to."""

    def __init__(self, spawner: int, limits: Mapping[Path, int]) -> None:
        self._spawner, self._limits = spawner, limits
        self._stops = 0
        self.pause = _FIRST
        """Seconds until the next look."""
        self.too_long: Path | None = None
        """A file that is longer than its limit."""
        if is_stopped(spawner):
            let_go_on(spawner)
        is_continued(spawner)

    def look(self) -> bool:
        """Let a stopped spawner go on; whether a file has just become longer than its limit."""
        self.pause = _USUAL
        if is_stopped(self._spawner):
            self.pause = _SOON
            self._stops += 1
            if self._stops > _PATIENCE:
                end_below(self._spawner)
            let_go_on(self._spawner)
        if self.too_long:
            return False
        for path, limit in self._limits.items():
            size = _size(path)
            if size > limit:
                self.too_long = path
            elif size > limit // _MUCH:
                self.pause = _SOON
        return self.too_long is not None

    def was_stopped(self) -> bool:
        """Whether the spawner was stopped at any time since this began, however briefly."""
        return is_continued(self._spawner) or self._stops > 0


def is_stopped(pid: int) -> bool:
    """Whether a child of this process is stopped by a signal."""
    return _has(pid, os.WSTOPPED | os.WNOWAIT)


def is_continued(pid: int) -> bool:
    """Whether a child of this process went on after a stop, since the last time this was asked."""
    return _has(pid, os.WCONTINUED)


def let_go_on(pid: int) -> None:
    """Continue a child of this process that is stopped."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, SIGCONT)


def _has(pid: int, what: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, what | os.WNOHANG) is not None
    except OSError:  # it is gone, or the kernel does not tell
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
