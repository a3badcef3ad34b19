"""The time for measuring that all steps of a run share, and how much of it a step may take."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class TotalBudget:
    """Seconds of measuring for the whole run, endless without a limit. May be asked from several threads.

    A step gets what is left in proportion to its benchmarks; each step to come counts as one, since nobody knows how
    many a suite has before it is built. What a step leaves is shared by those after it.
    """

    def __init__(
        self, seconds: float | None = None, steps: Iterable[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._left = math.inf if seconds is None else seconds
        self._to_come = set(steps)
        self._clock = clock
        self._guard = threading.Lock()

    def passed(self, step_id: str) -> None:
        """A step ended, measured or not: nothing is kept for it any more."""
        with self._guard:
            self._to_come.discard(step_id)

    @contextmanager
    def share(self, step_id: str, benchmarks: int) -> Iterator[float]:
        """The moment by the clock at which a step that measures now is to end; what it takes is taken off the rest."""
        self.passed(step_id)
        with self._guard:
            part = benchmarks / (benchmarks + len(self._to_come))
            seconds = max(0.0, self._left) * part
        began = self._clock()
        try:
            yield began + seconds
        finally:
            with self._guard:
                self._left -= self._clock() - began
