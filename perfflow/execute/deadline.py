"""The time of a command: when it must have ended, how long it waited, and how measuring steps divide it.

When it is over, its processes are ended, with a short grace for cleanup.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping

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

    def restart(self, seconds: float | None) -> None:
        """Begin anew with this time, None for no limit."""
        self.seconds = math.inf if seconds is None else seconds
        self._began = self._clock() - self._waited()

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


KEPT_SHARE = 0.1
"""Share of the time of a command that measuring leaves: for checks that follow, and for profiles of what failed."""


class TotalBudget:
    """The measuring time of a run: what builds, tests and other steps have left of the time of the whole command.

    A step gets a share of the remaining time in proportion to its benchmarks. A later step counts as one benchmark if
    the number of its benchmarks is unknown. Later steps share the time that a step leaves unused.
    """

    def __init__(
        self,
        deadline: Deadline | None = None,
        steps: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
        kept: float = 0.0,
        *,
        whole: bool = False,
    ) -> None:
        """``kept``: seconds that measuring leaves to other steps. ``whole``: see the attribute."""
        self._deadline, self._kept, self._clock = deadline or Deadline(), kept, clock
        self._to_come = set(steps)
        self._guard = threading.Lock()
        self.whole = whole and math.isfinite(self._deadline.seconds)
        """Whether benchmarks without a budget of their own are measured as long as their share of it lasts."""

    def passed(self, step_id: str) -> None:
        """Stop reserving time for a step that ended, whether it measured or not."""
        with self._guard:
            self._to_come.discard(step_id)

    def ends(self, step_id: str, benchmarks: int, known: Mapping[str, int] | None = None) -> float:
        """Return the clock time at which a measuring step must end. ``known``: numbers of benchmarks of other steps."""
        self.passed(step_id)
        with self._guard:
            part = benchmarks / (benchmarks + sum((known or {}).get(name, 1) for name in self._to_come))
            seconds = max(0.0, self._deadline.left - self._kept) * part
        return self._clock() + seconds
