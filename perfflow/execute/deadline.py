"""The time by which a command must have ended: its processes are ended then, with a short grace for cleanup."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from perfflow.model.units import brief_duration

GRACE_SHARE = 0.02
"""Share of the time that processes get to end themselves when it is over."""


class Deadline:
    """The time of a whole command (s), infinite without a limit. Thread-safe.

    Time in which it waits for the machine does not count: another perfflow uses it, and the lock timeout limits it.
    """

    def __init__(
        self,
        seconds: float | None = None,
        waited: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``waited`` returns the seconds of waiting for the machine so far."""
        self.seconds = math.inf if seconds is None else seconds
        self._waited, self._clock = waited, clock
        self._began = clock()

    @property
    def left(self) -> float:
        """Seconds that are left; 0 when the time is over."""
        if math.isinf(self.seconds):
            return math.inf
        return max(0.0, self.seconds - (self._clock() - self._began - self._waited()))

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.left <= 0

    @property
    def grace(self) -> float:
        """Seconds that a process gets to end itself."""
        return self.seconds * GRACE_SHARE

    @property
    def reason(self) -> str:
        """Why a process was ended or not started."""
        return f"the budget of {brief_duration(self.seconds)} ran out"
