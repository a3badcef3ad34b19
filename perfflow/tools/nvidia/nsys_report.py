"""What a report of Nsight Systems comes down to: sums by kernel, copy, call and range, and how busy each GPU was.

``nsys.json`` is the form in which it is kept. Unlike the reports themselves it holds neither the environment of the
profiled process nor what it printed, nor which other processes ran.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files

PARTS = ("kernels", "memory", "api", "ranges", "os")
"""The tables of a report."""


@dataclass(frozen=True, slots=True)
class Row:
    """What all events of one name add up to, times in ns.

    ``own`` is the time that no other event on the same thread takes, None where the report does not tell. ``size`` is
    in bytes, and ``launch`` says how a kernel was launched, in most of its time.
    """

    name: str
    calls: int
    total: float
    low: float
    median: float
    high: float
    own: float | None = None
    size: int | None = None
    launch: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU: for how long (ns) something ran on it, from first start to last end, and what the driver says of it.

    ``bandwidth`` is in B/s; None where the report does not tell.
    """

    name: str
    busy: float
    span: float
    bandwidth: float | None = None
    about: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A report; ``threads`` is the time (ns) of all threads with calls or ranges, from their first to their last."""

    kernels: Sequence[Row] = ()
    memory: Sequence[Row] = ()
    api: Sequence[Row] = ()
    ranges: Sequence[Row] = ()
    os: Sequence[Row] = ()
    devices: Sequence[Device] = ()
    threads: float | None = None
    version: str = ""
    notes: Sequence[str] = ()

    @property
    def holds_nothing(self) -> bool:
        """Whether no event is in it."""
        return not any(getattr(self, part) for part in PARTS)


def to_json(report: Report) -> dict[str, object]:
    """The content of ``nsys.json``."""
    return asdict(report)


def of_json(content: object) -> Report:
    """The report that ``to_json`` wrote. Raises ToolOutputError where a figure is missing or cannot be."""
    if not isinstance(content, dict):
        raise ToolOutputError("nsys.json is no map")
    if isinstance(error := content.get("error"), str):
        raise ToolOutputError(tool_files.clean_name(error))
    tables = {part: tuple(_row(item) for item in _list(content, part)) for part in PARTS}
    devices = tuple(_device(item) for item in _list(content, "devices"))
    threads = _or_none(content, "threads")
    notes = tuple(tool_files.clean_name(_text(note)) for note in _list(content, "notes"))
    owned = sum(row.own or 0.0 for part in ("api", "ranges") for row in tables[part])
    if threads is not None and owned > threads * (1 + 1e-9):
        raise ToolOutputError(f"nsys.json is damaged: {owned:g} ns of {threads:g} ns of threads")
    return Report(**tables, devices=devices, threads=threads, version=_text(content.get("version")), notes=notes)


def _row(item: object) -> Row:
    values = _map(item)
    name = tool_files.clean_name(_text(values.get("name")))
    calls = tool_files.whole(values.get("calls"), f"calls of {name[:40]!a}")
    total, low, median, high = (
        tool_files.number(values.get(key), f"{key} of {name[:40]!a}") for key in ("total", "low", "median", "high")
    )
    own, size = _or_none(values, "own"), values.get("size")
    # Averages of rounded figures may lie a little beside them.
    if not calls or not low <= median <= high <= total * (1 + 1e-6) or (own or 0.0) > total:
        raise ToolOutputError(f"nsys.json is damaged: the times of {name[:40]!a} cannot be")
    whole_size = None if size is None else tool_files.whole(size, f"size of {name[:40]!a}")
    return Row(name, calls, total, low, median, high, own, whole_size, _cleaned(values["launch"]))


def _device(item: object) -> Device:
    values = _map(item)
    name = tool_files.clean_name(_text(values.get("name")))
    busy, span = (tool_files.number(values.get(key), f"{key} of {name[:40]!a}") for key in ("busy", "span"))
    if busy > span:
        raise ToolOutputError(f"nsys.json is damaged: {name[:40]!a} was busy for {busy:g} of {span:g} ns")
    return Device(name, busy, span, _or_none(values, "bandwidth"), _cleaned(values.get("about")))


def _map(item: object) -> Mapping[str, object]:
    if not isinstance(item, dict) or "name" not in item or ("calls" in item and "launch" not in item):
        raise ToolOutputError("nsys.json is damaged: a row of it is no such row")
    return item


def _list(content: Mapping[str, object], key: str) -> Sequence[object]:
    found = content.get(key)
    if not isinstance(found, list):
        raise ToolOutputError(f"nsys.json is damaged: it lacks {key}")
    return found


def _or_none(values: Mapping[str, object], key: str) -> float | None:
    if key not in values:
        raise ToolOutputError(f"nsys.json is damaged: it lacks {key}")
    return None if values[key] is None else tool_files.number(values[key], key)


def _cleaned(value: object) -> str:
    return tool_files.clean_name(text) if (text := _text(value)) else ""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ToolOutputError("nsys.json is damaged: a name is no text")
    return value
