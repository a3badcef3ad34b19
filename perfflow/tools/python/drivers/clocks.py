"""A timer that reads three clocks at once, for benchmark tools that subtract two readings of a timer.

``Clocks().read`` is such a timer. The difference of two readings is a float, the elapsed time in s, with two more
figures in s: ``cpu``, the CPU time of the process, and ``uncontended``, the elapsed time without the time that the
thread waited for a core. ``uncontended`` is NaN if other threads computed as well, or if the kernel does not count that
waiting. Differences can be added, and divided by a number.

Imported by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

from __future__ import annotations

import math
import os
import threading
import time
from typing import Any

ONE_THREAD = 0.95
"""Least share of the CPU time of the process in the thread that reads the clocks, if no other thread computes."""
_NS = 1e-9
# Two clocks of the kernel may differ by so much (s).
_TICK = 20e-6


class Elapsed(float):
    """An elapsed time (s), with the CPU time and the elapsed time without waiting for a core, NaN if unknown."""

    cpu: float = math.nan
    uncontended: float = math.nan

    @classmethod
    def of(cls, wall: float, cpu: float, uncontended: float) -> Elapsed:
        """Return an elapsed time with its parts, all in s."""
        made = cls(wall)
        made.cpu, made.uncontended = cpu, uncontended
        return made

    def __add__(self, other: Any) -> Any:
        """Add another elapsed time."""
        if other == 0:
            return self
        if not isinstance(other, Elapsed):
            return float(self) + other
        return Elapsed.of(float(self) + float(other), self.cpu + other.cpu, self.uncontended + other.uncontended)

    __radd__ = __add__

    def __truediv__(self, other: Any) -> Any:
        """Divide by a number of iterations."""
        return Elapsed.of(float(self) / other, self.cpu / other, self.uncontended / other)


class Reading(float):
    """One reading of the clocks. Its value is the elapsed time (s) at its end.

    The work between two readings lies between the end of the first and the start of the second, so the reading itself
    is not part of their difference.
    """

    begins: tuple[float, float, float]
    """Elapsed time, CPU time of the process and of the thread (s) when the reading began."""
    ends: tuple[float, float, float]
    waited: float | None
    """Time that the thread has waited for a core (s)."""

    def __sub__(self, other: Any) -> Any:
        """Return the time between two readings."""
        if not isinstance(other, Reading):
            return float(self) - other
        wall, cpu, own = (self.begins[clock] - other.ends[clock] for clock in range(3))
        uncontended = math.nan
        if self.waited is not None and other.waited is not None and own + _TICK >= ONE_THREAD * cpu:
            uncontended = max(wall - (self.waited - other.waited), cpu)
        return Elapsed.of(wall, cpu, uncontended)


class Clocks:
    """The clocks of this process. Not for two threads at once: each thread opens its own counter when it reads."""

    def __init__(self) -> None:
        self._counters = threading.local()

    def read(self) -> Reading:
        """Read all clocks."""
        # Wall time first and last; the thread's clock next to the process's.
        begins = time.perf_counter(), time.process_time(), time.thread_time()
        waited = self._waited()
        ended = time.thread_time(), time.process_time(), time.perf_counter()
        made = Reading(ended[2])
        made.begins, made.ends, made.waited = begins, ended[::-1], waited
        return made

    def _waited(self) -> float | None:
        """Return how long this thread has waited for a core (s), None if the kernel does not count it."""
        try:
            counter = self._counters.file
        except AttributeError:
            try:
                counter = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            except (OSError, AttributeError):
                counter = None
            self._counters.file = counter
        if counter is None:
            return None
        try:
            # Two numbers in ns: the time on a core, and the time in which the thread waited for one.
            return int(os.pread(counter, 64, 0).split()[1]) * _NS
        except (OSError, IndexError, ValueError):
            return None


def parts(times: list[Any]) -> dict[str, Any]:
    """Return the CPU times and uncontended times (s) of elapsed times, {} if they were read otherwise.

    ``uncontended`` is left out if one of them is unknown.
    """
    if not times or any(math.isnan(getattr(value, "cpu", math.nan)) for value in times):
        return {}
    found = {"cpu": [value.cpu for value in times]}
    if not any(math.isnan(value.uncontended) for value in times):
        found["uncontended"] = [value.uncontended for value in times]
    return found
