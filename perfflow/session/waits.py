"""How long the steps of a run waited for the machine, apart from work."""

from __future__ import annotations

import time
from collections.abc import Callable


class Waits:
    """How long the steps of a run waited for the machine so far, in s. One step at a time waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._began: float | None = None

    def begin(self) -> None:
        """A step waits, or still does."""
        self._began = self._clock() if self._began is None else self._began

    def end(self) -> None:
        """It has the machine, or gave up; nothing where it did not wait."""
        if self._began is not None:
            self.seconds += self._clock() - self._began
            self._began = None

    def stopwatch(self) -> Callable[[], float]:
        """Return what tells the seconds from now on, without those of waiting."""
        began, before = self._clock(), self.seconds
        return lambda: self._clock() - began - (self.seconds - before)
