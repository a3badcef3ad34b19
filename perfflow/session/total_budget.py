"""The measuring time that all steps of a run share, and the part of it that a step may use."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class TotalBudget:
    """Seconds of measuring for the whole run, infinite without a limit. Thread-safe.

    A step gets a share of the remaining time in proportion to its benchmarks. Each later step counts as one benchmark,
    because their number is unknown before a suite is built. Later steps share the time that a step leaves unused.
    """

    def __init__(
        self, seconds: float | None = None, steps: Iterable[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._left = math.inf if seconds is None else seconds
        self._to_come = set(steps)
        self._clock = clock
        self._guard = threading.Lock()

    def passed(self, step_id: str) -> None:
        """Stop reserving time for a step that ended, whether it measured or not."""
        with self._guard:
            self._to_come.discard(step_id)

    @contextmanager
    def share(self, step_id: str, benchmarks: int) -> Iterator[float]:
        """Yield the clock time at which a measuring step must end; then subtract the time that it took."""
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
