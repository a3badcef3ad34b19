"""The time that all steps of a run may measure, and the part of it that a step may use."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from perfflow.execute.deadline import Deadline

KEPT = 0.1
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
