"""What a report of Nsight Systems comes down to: sums by kernel, copy, call and range, and how busy each GPU was.

``nsys.json`` is the form in which it is kept. Unlike the reports themselves it holds neither the environment of the
profiled process nor what it printed, nor which other processes ran. Figures are checked wherever they come from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files

PARTS = ("kernels", "memory", "api", "ranges", "os")
"""The tables of a report."""
# For pydantic, which is not there where the driver makes a report.
_CONFIG: Mapping[str, object] = {"strict": True, "extra": "forbid"}


def _clean(item: Row | Device, *keys: str) -> None:
    """Make names fit for pages, whoever wrote them."""
    for key in keys:
        if text := getattr(item, key):
            object.__setattr__(item, key, tool_files.clean_name(text))


@dataclass(frozen=True, slots=True)
class Row:
    """What all events of one name add up to, times in ns.

    ``own`` is the time that no other event on the same thread takes, None where the report does not tell. ``size`` is
    in bytes, and ``launch`` says how a kernel was launched, in most of its time.
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
        _clean(self, "name", "launch")
        tool_files.number(self.size or 0, f"size of {self.name[:40]!a}")
        tool_files.number(self.total, f"time of {self.name[:40]!a}")
        # Averages of rounded figures may lie a little beside them.
        rising = 0 <= self.low <= self.median <= self.high <= self.total * (1 + 1e-6)
        if self.calls < 1 or not rising or not 0 <= (self.own or 0.0) <= self.total:
            raise ToolOutputError(f"the times of {self.name[:40]!a} cannot be")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU: for how long (ns) something ran on it, from first start to last end, and what the driver says of it.

    ``bandwidth`` is in B/s; None where the report does not tell.
    """

    __pydantic_config__: ClassVar = _CONFIG
    name: str
    busy: float
    span: float
    bandwidth: float | None = None
    about: str = ""

    def __post_init__(self) -> None:
        """Raise ToolOutputError for figures that cannot be."""
        _clean(self, "name", "about")
        tool_files.number(self.bandwidth or 0.0, f"bandwidth of {self.name[:40]!a}")
        if not 0 <= self.busy <= tool_files.number(self.span, "time of a GPU"):
            raise ToolOutputError(f"{self.name[:40]!a} was busy for {self.busy:g} of {self.span:g} ns")


@dataclass(frozen=True, slots=True)
class Report:
    """A report; ``threads`` is the time (ns) of all threads with calls or ranges, from their first to their last.

    ``error`` is why there is none.
    """

    __pydantic_config__: ClassVar = _CONFIG
    kernels: tuple[Row, ...] = ()
    memory: tuple[Row, ...] = ()
    api: tuple[Row, ...] = ()
    ranges: tuple[Row, ...] = ()
    os: tuple[Row, ...] = ()
    devices: tuple[Device, ...] = ()
    threads: float | None = None
    version: str = ""
    notes: tuple[str, ...] = ()
    error: str = ""

    def __post_init__(self) -> None:
        """Raise ToolOutputError for figures that cannot be."""
        owned = sum(row.own or 0.0 for row in (*self.api, *self.ranges))
        if self.threads is not None and owned > tool_files.number(self.threads, "threads") * (1 + 1e-9):
            raise ToolOutputError(f"{owned:g} ns of {self.threads:g} ns of threads cannot be")

    @property
    def holds_nothing(self) -> bool:
        """Whether no event is in it."""
        return not any(getattr(self, part) for part in PARTS)

    def to_json(self) -> str:
        """Return the content of ``nsys.json``."""
        return json.dumps(asdict(self), indent=1) + "\n"
