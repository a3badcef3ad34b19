"""Sums of the events of a report, taken in the order of their starts: by name, by thread, and of the time they cover.

Times are in ns, as in the file. Of an event 8 B are kept, so that millions fit into memory.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

from perfflow.statistics import quantile
from perfflow.tools.nvidia.nsys_report import Row


@dataclass(slots=True)
class _Sum:
    lengths: array[int] = field(default_factory=lambda: array("q"))
    own: int = 0
    size: int = 0
    launches: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Sums:
    """Events by name. ``sized`` is whether they have bytes, ``nested`` whether own times are known."""

    sized: bool = False
    nested: bool = False
    _sums: dict[str, _Sum] = field(default_factory=dict)

    def add(self, name: str, length: int, size: int = 0, launch: str = "") -> None:
        """Count an event; its own time is added by ``add_own``."""
        found = self._sums.setdefault(name, _Sum())
        found.lengths.append(length)
        found.size += size
        if launch:
            found.launches[launch] += length

    def add_own(self, name: str, length: int) -> None:
        """Change the own time of a name."""
        self._sums[name].own += length

    def rows(self) -> tuple[Row, ...]:
        """The sums, the longest first."""
        found = [self._row(name, item) for name, item in self._sums.items()]
        return tuple(sorted(found, key=lambda row: (-row.total, row.name)))

    def _row(self, name: str, item: _Sum) -> Row:
        launches = item.launches.most_common(1)
        others = f", and {len(item.launches) - 1} other ways" if len(item.launches) > 1 else ""
        return Row(
            name,
            len(item.lengths),
            sum(item.lengths),
            min(item.lengths),
            quantile(item.lengths, 0.5),
            max(item.lengths),
            item.own if self.nested else None,
            item.size if self.sized else None,
            launches[0][0] + others if launches else "",
        )


@dataclass(slots=True)
class Covered:
    """The time that events cover together: those that overlap are united, not summed."""

    busy: int = 0
    first: int | None = None
    last: int = 0

    def add(self, start: int, end: int) -> None:
        """Take the next event, whose start is not before the last one's."""
        if self.first is None:
            self.first = self.last = start
        self.busy += max(0, end - max(start, self.last))
        self.last = max(self.last, end)

    @property
    def span(self) -> int:
        """From the first start to the last end."""
        return self.last - (self.first or 0) if self.first is not None else 0


@dataclass(slots=True)
class Threads:
    """Events that nest on each thread: own time is an event's length less that of those directly inside it."""

    _open: dict[object, list[tuple[int, Sums, str]]] = field(default_factory=dict)
    _covered: dict[object, Covered] = field(default_factory=dict)

    def add(self, thread: object, start: int, end: int, sums: Sums, name: str) -> None:
        """Take the next event; of two with one start the longer comes first."""
        stack = self._open.setdefault(thread, [])
        while stack and stack[-1][0] <= start:
            stack.pop()
        own = end - start
        if stack:
            # What outlasts the one around it was cut by the profiler's end, or is none of its parts.
            outer, outer_sums, outer_name = stack[-1]
            inside = min(end, outer) - start
            outer_sums.add_own(outer_name, -inside)
            own, end = inside, min(end, outer)
        sums.add_own(name, own)
        stack.append((end, sums, name))
        self._covered.setdefault(thread, Covered()).add(start, end)

    @property
    def length(self) -> int:
        """Time of all threads, each from its first event to its last."""
        return sum(covered.span for covered in self._covered.values())
