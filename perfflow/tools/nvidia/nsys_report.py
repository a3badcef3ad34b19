"""Summary of a report of Nsight Systems: sums by kernel, copy, call and range, and the busy time of each GPU.

It is stored as ``nsys.json``. Unlike the reports themselves it contains neither the environment and the output of the
profiled process nor other processes. Figures are checked, whatever their source. Events are summed in the order of
their starts; 8 B are kept per event, so that millions fit into memory. Times are in ns.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import ClassVar

from perfflow.model.errors import ToolOutputError
from perfflow.model.stacks import Stack, read_folded, write_folded
from perfflow.stats.paired_test import quantile
from perfflow.tools import tool_files

MOST_STACKS, DEEPEST = 20_000, 200
"""Limits of stacks: programs can give every range another name, and nest ranges as deep as they recurse."""
OTHERS = "(others)"
PARTS = ("kernels", "memory", "api", "ranges", "os")
"""The tables of a report."""
# For pydantic. It is not imported here, because the driver's interpreter may not have it.
_CONFIG: Mapping[str, object] = {"strict": True, "extra": "forbid"}


@dataclass(slots=True)
class EventSums:
    """The sums over all events of one name, times in ns.

    ``own`` is the time without other events on the same thread, None if the report does not have it. ``size`` is in
    bytes. ``launch`` is how a kernel was launched for most of its time.
    """

    __pydantic_config__: ClassVar = _CONFIG
    name: str
    calls: int
    total: float
    low: float
    median: float
    high: float
    own: float | None = None
    size: int | None = None
    launch: str = ""

    def __post_init__(self) -> None:
        """Raise ToolOutputError for figures that cannot be."""
        self.name, self.launch = _clean(self.name), _clean(self.launch)
        tool_files.number(self.size or 0, f"size of {self.name[:40]!a}")
        tool_files.number(self.total, f"time of {self.name[:40]!a}")
        # Averages of rounded figures can be slightly off.
        rising = 0 <= self.low <= self.median <= self.high <= self.total * (1 + 1e-6)
        if self.calls < 1 or not rising or not 0 <= (self.own or 0.0) <= self.total:
            raise ToolOutputError(f"the times of {self.name[:40]!a} are impossible")


@dataclass(slots=True)
class ProfiledGpu:
    """A GPU: its busy time (ns), the time from its first start to its last end (ns), and data of the driver.

    ``bandwidth`` is in B/s, None if the report does not have it.
    """

    __pydantic_config__: ClassVar = _CONFIG
    name: str
    busy: float
    span: float
    bandwidth: float | None = None
    about: str = ""

    def __post_init__(self) -> None:
        """Raise ToolOutputError for figures that cannot be."""
        self.name, self.about = _clean(self.name), _clean(self.about)
        tool_files.number(self.bandwidth or 0.0, f"bandwidth of {self.name[:40]!a}")
        if not 0 <= self.busy <= tool_files.number(self.span, "time of a GPU"):
            raise ToolOutputError(f"{self.name[:40]!a} was busy for {self.busy:g} of {self.span:g} ns")


def _clean(text: str) -> str:
    """Return a text that is safe to show on pages."""
    return tool_files.clean_name(text) if text else ""


@dataclass(frozen=True, slots=True)
class NsysReport:
    """A report; ``threads`` is the time (ns) of all threads with calls or ranges, each from its first to its last.

    ``stacks`` is folded text of their calls and ranges, nested below the thread, with own times in ns. ``error`` is the
    reason why there is no report.
    """

    __pydantic_config__: ClassVar = _CONFIG
    kernels: tuple[EventSums, ...] = ()
    memory: tuple[EventSums, ...] = ()
    api: tuple[EventSums, ...] = ()
    ranges: tuple[EventSums, ...] = ()
    os: tuple[EventSums, ...] = ()
    devices: tuple[ProfiledGpu, ...] = ()
    threads: float | None = None
    version: str = ""
    notes: tuple[str, ...] = ()
    stacks: str = ""
    error: str = ""

    def __post_init__(self) -> None:
        """Raise ToolOutputError for figures that cannot be."""
        owned = sum(row.own or 0.0 for row in (*self.api, *self.ranges))
        if self.threads is not None and owned > tool_files.number(self.threads, "threads") * (1 + 1e-9):
            raise ToolOutputError(
                f"calls and ranges take {owned:g} ns of {self.threads:g} ns of threads, which is impossible"
            )
        try:
            read_folded(self.stacks)
        except ValueError as error:
            raise ToolOutputError(f"stacks of threads: {error}") from error

    @property
    def holds_nothing(self) -> bool:
        """Return whether the report has no event."""
        return not any(getattr(self, part) for part in PARTS)

    def to_json(self) -> str:
        """Return the content of ``nsys.json``."""
        return json.dumps(asdict(self), indent=1) + "\n"


def longest_first(rows: Iterable[EventSums]) -> tuple[EventSums, ...]:
    """Return the rows sorted by total time, the longest first."""
    return tuple(sorted(rows, key=lambda row: (-row.total, row.name)))


@dataclass(slots=True)
class NamedSums:
    """Sums of events by name. ``sized``: events have bytes. ``own`` are their own times if ``nested``."""

    sized: bool = False
    nested: bool = False
    own: Counter[str] = field(default_factory=Counter)
    _lengths: defaultdict[str, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    _sizes: Counter[str] = field(default_factory=Counter)
    _launches: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, name: str, length: int, size: int = 0, launch: str = "") -> None:
        """Count an event. A kernel's row shows the launch with the most time."""
        self._lengths[name].append(length)
        self._sizes[name] += size
        if launch:
            self._launches[name][launch] += length

    def rows(self) -> tuple[EventSums, ...]:
        """Return the sums, the longest first."""
        return longest_first(self._row(name, lengths) for name, lengths in self._lengths.items())

    def _row(self, name: str, lengths: array[int]) -> EventSums:
        launch, *others = [launch for launch, _ in self._launches[name].most_common()] or [""]
        launch += f", and {len(others)} other ways" if others else ""
        own, size = self.own[name] if self.nested else None, self._sizes[name] if self.sized else None
        middle = quantile(lengths, 0.5)
        return EventSums(name, len(lengths), sum(lengths), min(lengths), middle, max(lengths), own, size, launch)


class Covered:
    """The time that events cover together: overlapping events count once."""

    def __init__(self, start: int) -> None:
        self.busy, self._first, self._last = 0, start, start

    def add(self, start: int, end: int) -> None:
        """Add the next event. Its start must not be before that of the previous event."""
        self.busy += max(0, end - max(start, self._last))
        self._last = max(self._last, end)

    @property
    def span(self) -> int:
        """Return the time from the first start to the last end."""
        return self._last - self._first


@dataclass(slots=True)
class Threads:
    """Events that nest on each thread: own time is an event's length minus that of the events directly inside it."""

    names: Mapping[object, str] = field(default_factory=dict)
    """The program's names of its threads."""
    _open: dict[object, list[tuple[int, NamedSums, str, Stack]]] = field(default_factory=dict)
    _covered: dict[object, Covered] = field(default_factory=dict)
    _stacks: Counter[Stack] = field(default_factory=Counter)

    def add(self, thread: object, start: int, end: int, sums: NamedSums, name: str) -> None:
        """Add the next event to ``sums``. Of two events with the same start, the longer must come first."""
        sums.add(name, end - start)
        self._covered.setdefault(thread, Covered(start)).add(start, end)
        around = self._open.setdefault(thread, [])
        while around and around[-1][0] <= start:
            around.pop()
        stack: Stack = (*(around[-1][3] if around else (self._name(thread),)), name)
        if stack not in self._stacks and (len(stack) > DEEPEST or len(self._stacks) >= MOST_STACKS):
            # Beyond the limits, time counts for the event around it.
            stack = around[-1][3] if around else (stack[0], OTHERS)
        if around:
            # The outer event ended first: the profiler's end cut it off, or the two do not nest.
            outer, outer_sums, outer_name, above = around[-1]
            end = min(end, outer)
            outer_sums.own[outer_name] -= end - start
            self._stacks[above] -= end - start
        sums.own[name] += end - start
        self._stacks[stack] += end - start
        around.append((end, sums, name, stack))

    def _name(self, thread: object) -> str:
        """Return the thread's name or its position: system thread ids differ from run to run."""
        return self.names.get(thread) or f"thread {list(self._open).index(thread) + 1}"

    @property
    def folded(self) -> str:
        """Return folded text of all events with own time, in ns, each below its thread and the events around it."""
        return write_folded({stack: own for stack, own in self._stacks.items() if own > 0})

    @property
    def length(self) -> int:
        """Return the time of all threads, each from its first event to its last."""
        return sum(covered.span for covered in self._covered.values())
