"""The time that the steps of a run waited for the machine."""

from __future__ import annotations

import time
from collections.abc import Callable


class Waits:
    """Seconds that the steps of a run waited for the machine so far. Only one step at a time waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._began: float | None = None

    def begin(self) -> None:
        """Note that a step waits; repeated calls change nothing."""
        self._began = self._clock() if self._began is None else self._began

    def end(self) -> None:
        """Note that the step has the machine or gave up."""
        if self._began is not None:
            self.seconds += self._clock() - self._began
            self._began = None

    def stopwatch(self) -> Callable[[], float]:
        """Return a function that gives the seconds since this call, without those of waiting."""
        began, before = self._clock(), self.seconds
        return lambda: self._clock() - began - (self.seconds - before)
