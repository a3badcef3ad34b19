"""The log of ``drivers/cpu_clock.c``, by which a benchmark harness times by CPU time instead of elapsed time."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from perfflow.model.readings import Reading, Usage
from perfflow.tools import tool_files

_READING = struct.Struct("=qq")


def environment(library: Path, log: Path, haste: int = 1) -> Mapping[str, str]:
    """Return the variables with which a dynamically linked program uses the clock and writes its log.

    ``haste``: how many times a time of a few microseconds counts; see the library.
    """
    found = {"LD_PRELOAD": str(library), "PERFFLOW_CLOCK_LOG": str(log)}
    return found | ({"PERFFLOW_CLOCK_HASTE": str(haste)} if haste > 1 else {})


class ClockLog:
    """The readings of one process: its CPU time and the elapsed time, in ns since the first reading."""

    def __init__(self, readings: Sequence[tuple[int, int]]) -> None:
        self._readings = readings
        self._intervals: dict[int, list[int]] = defaultdict(list)
        for number, ((before, _), (after, _)) in enumerate(pairwise(readings)):
            self._intervals[after - before].append(number)

    @classmethod
    def read(cls, path: Path) -> ClockLog | None:
        """Return the log, None if the program did not use the clock: it is linked statically, or was killed."""
        content = path.read_bytes() if tool_files.left(path) else b""
        whole = len(content) - len(content) % _READING.size
        readings = list(_READING.iter_unpack(content[:whole]))
        return cls(readings) if len(readings) > 1 and readings[-1][0] > 0 else None

    @property
    def factor(self) -> float:
        """Elapsed time as a multiple of CPU time, over the whole log."""
        (first_cpu, first_wall), (last_cpu, last_wall) = self._readings[0], self._readings[-1]
        return max(1.0, (last_wall - first_wall) / max(1, last_cpu - first_cpu))

    def elapsed(self, cpu: Sequence[float]) -> list[float]:
        """Return the elapsed time (ns) of intervals in the order in which they were timed, given their CPU time (ns).

        A time that is not one interval of the log, such as the sum of several, is multiplied by ``factor``.
        """
        times, last = [], -1
        for time in cpu:
            places = self._intervals.get(round(time), [])
            at = bisect_right(places, last)
            if at == len(places):
                return [each * self.factor for each in cpu]
            last = places[at]
            times.append(float(self._readings[last + 1][1] - self._readings[last][1]))
        return times


def of_both_clocks(readings: Sequence[Reading], log: ClockLog, usage: Usage, *, shares_core: bool) -> Iterator[Reading]:
    """Yield figures of one process that were timed by CPU time, and those by elapsed time.

    These differ by the factor of the log. ``shares_core``: whether the other side's process ran at the same time.
    """
    factor = uncontended_factor(log, usage, len({reading.benchmark for reading in readings}))
    elapsed = factor if shares_core and factor else log.factor
    for reading in readings:
        if reading.metric == "time":
            yield replace(reading, metric="cpu")
            if factor:
                yield replace(reading, metric="uncontended", value=reading.value * factor, at_most=True)
            yield replace(reading, value=reading.value * elapsed)
        else:
            yield replace(reading, value=reading.value / elapsed)


def uncontended_factor(log: ClockLog, usage: Usage, benchmarks: int) -> float | None:
    """Return an upper bound of a benchmark's time without core waits as a multiple of its CPU time, None if unknown.

    ``benchmarks``: how many the process measured.
    """
    computed = (usage.user + usage.system) / max(1, benchmarks)
    return usage.uncontended_factor(computed, computed * log.factor)
