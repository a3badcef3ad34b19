"""Reader of tables of ``nsys stats`` as CSV or JSON, named ``gpukernsum`` (2022) or ``cuda_gpu_kern_sum`` (later).

They can be used without the report itself. The columns determine the kind of a table; if two kinds have the same
columns, the file name does. Progress, ``SKIPPED`` and the program's output may precede the table. A table without data
is a file of 0 bytes.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from perfflow.model.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.nvidia.nsys_report import (
    PARTS,
    Covered,
    EventSums,
    NamedSums,
    NsysReport,
    ProfiledGpu,
    longest_first,
)

_TIMES: Mapping[str, float] = {"ns": 1.0, "us": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9}
# nsys's MB are 10^6 bytes.
_SIZES: Mapping[str, float] = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}
_NAMES = ("Name", "Range", "Operation")
# The sizes of a launch are one column in a table of sums, and three columns in a trace.
_SHAPES = {"grid": ("GridXYZ", "GrdX", "GrdY", "GrdZ"), "block": ("BlockXYZ", "BlkX", "BlkY", "BlkZ")}
_LARGEST = 256 << 20
_DATALESS = re.compile(r"SKIPPED: .{0,300}does not contain [\w /()+-]{1,60}", re.ASCII)


def read(paths: Sequence[Path]) -> NsysReport:
    """Combine the tables of one report. Raises ToolOutputError if one is truncated, empty or unknown."""
    tables: dict[str, tuple[EventSums, ...]] = {}
    devices: tuple[ProfiledGpu, ...] = ()
    for path in paths:
        part, rows = _rows(path)
        parts, devices = _trace(rows) if part == "trace" else ({part: _sums(rows, part)}, devices)
        for name, table in parts.items():
            if name in tables:
                raise ToolOutputError(
                    f"{path.name} is a second table of {name}: set `report` to the tables of one report"
                )
            tables[name] = table
    if sizes := {row.name: row.size for row in tables.pop("sizes", ())}:
        if {row.name for row in tables.get("memory", ())} != sizes.keys():
            raise ToolOutputError("a table of sizes has no times: add the table with the times of the same copies")
        tables["memory"] = tuple(replace(row, size=sizes[row.name]) for row in tables["memory"])
    kernels, memory, api, ranges, system = (tables.get(part, ()) for part in PARTS)
    return NsysReport(kernels, memory, api, ranges, system, devices)


class _Cells:
    """A row of a table; ``cells`` has the value and the unit by the column's name without the unit."""

    def __init__(self, file: str, row: Mapping[str, object]) -> None:
        heads = {head: _head(head) for head in row}
        self._file, self.cells = file, {heads[head][0]: (value, heads[head][1]) for head, value in row.items()}

    def first(self, *keys: str) -> tuple[str, object, str]:
        """Return name, value and unit of the first of these columns that exists. Raises ToolOutputError without any."""
        key = next((key for key in keys if key in self.cells), None)
        if key is None:
            raise ToolOutputError(f"{self._file} has no column {' or '.join(keys)}")
        return key, *self.cells[key]

    def name(self, *keys: str) -> str:
        """Return the name of the row's kernel, operation, range or call."""
        return tool_files.clean_name(str(self.first(*keys or _NAMES)[1]))

    def figure(self, units: Mapping[str, float], *keys: str) -> float:
        """Return a figure in the base unit of ``units``."""
        key, value, unit = self.first(*keys)
        figure = tool_files.number_in(value, key) if isinstance(value, str) else tool_files.number(value, key)
        return figure * tool_files.scale_of(unit, units, f"{self._file}: {key}")

    def said(self, *keys: str) -> str:
        """Return the joined text of those of these columns that exist; '' if they are empty."""
        values = (self.cells[key][0] for key in keys if key in self.cells)
        return " ".join(str(value) for value in values if value not in (None, "", "None", "-"))

    def calls(self) -> int:
        """Return the number of events."""
        return tool_files.whole(self.figure({"": 1.0}, "Instances", "Num Calls", "Count"), "Instances")

    def launch(self) -> str:
        """Return how a kernel was launched, ``grid 256x1x1``; '' if the table has no sizes."""
        shapes = {what: "x".join(self.said(*keys).split()) for what, keys in _SHAPES.items()}
        words = [f"{what} {shape}" for what, shape in shapes.items() if shape]
        words += [f"{registers} registers"] if (registers := self.said("Reg/Trd")) else []
        return ", ".join(words)


def _rows(path: Path) -> tuple[str, list[_Cells]]:
    """Return which table a file is, and its rows, at least one. Raises ToolOutputError for a file without a table."""
    if path.stat().st_size > _LARGEST:
        raise ToolOutputError(f"{path.name} is larger than {_LARGEST >> 20} MiB: read the report itself")
    text = tool_files.read_text(path, "nsys writes an empty table if the report has no such events")
    if match := _DATALESS.search(text):
        raise ToolOutputError(f"{path.name} contains no table: {tool_files.clean_name(match[0])}")
    start = text.find("[\n") if path.suffix == ".json" else -1
    try:
        listed = json.loads(text[start:]) if start >= 0 else _of_csv(path.name, text)
    except (ValueError, RecursionError, csv.Error) as error:
        raise ToolOutputError(f"{path.name} is cut short or damaged") from error
    is_table = bool(listed) and isinstance(listed, list) and all(isinstance(item, dict) for item in listed)
    if not is_table or not (part := _part(path.name, listed[0])):
        raise ToolOutputError(f"{path.name} contains no known table of `nsys stats`: use `--format csv` or `json`")
    return part, [_Cells(path.name, row) for row in listed]


def _of_csv(file: str, text: str) -> list[dict[str, str]]:
    """Return the rows from the line of columns to the next blank line; [] if there is no such line."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if _part(file, next(csv.reader([line]), []))), None)
    if start is None:
        return []
    if not text.endswith("\n"):
        raise ToolOutputError(f"{file} is cut short")
    end = next((at for at in range(start, len(lines)) if not lines[at].strip()), len(lines))
    head, *rest = csv.reader(lines[start:end])
    if bad := next((cells for cells in rest if len(cells) != len(head)), None):
        raise ToolOutputError(f"{file} is damaged: {len(bad)} cells under {len(head)} columns")
    return [dict(zip(head, cells, strict=True)) for cells in rest]


def _head(text: str) -> tuple[str, str]:
    """Return a column's name and its unit."""
    name, _, unit = text.partition("(")
    return name.strip(), unit.strip(" )")


def _part(file: str, heads: Iterable[str]) -> str:
    """Return which table it is, by its columns; '' for an unknown one."""
    columns = {_head(head)[0] for head in heads}
    if {"Start", "Duration", "Name", "Device"} <= columns:
        return "trace"
    if {"Total", "Operation"} <= columns:
        return "sizes"
    calls = "os" if "osrt" in file.lower() else "api"
    parts = {"Operation": "memory", "Range": "ranges", "Num Calls": calls, "Name": "kernels"}
    return next((part for column, part in parts.items() if "Total Time" in columns and column in columns), "")


def _sums(rows: Sequence[_Cells], part: str) -> tuple[EventSums, ...]:
    together: dict[str, EventSums] = {}
    for cells in rows:
        row = _sum(cells, part)
        # A kernel has a row for each way in which it was launched. Their common median is unknown.
        if so_far := together.get(row.name):
            longest = max(so_far, row, key=lambda row: row.total)
            sums = {key: getattr(so_far, key) + getattr(row, key) for key in ("calls", "total")}
            own_time = None if row.own is None else (so_far.own or 0.0) + row.own
            row = replace(longest, **sums, low=min(so_far.low, row.low), high=max(so_far.high, row.high), own=own_time)
        together[row.name] = row
    return longest_first(together.values())


def _sum(row: _Cells, part: str) -> EventSums:
    if part == "sizes":
        return EventSums(row.name(), row.calls(), 0.0, 0.0, 0.0, 0.0, size=round(row.figure(_SIZES, "Total")))
    total, low, high = (row.figure(_TIMES, key) for key in ("Total Time", "Min", "Max"))
    # Ranges nest; calls of CUDA hardly do.
    own = total if part in ("api", "os") else None
    return EventSums(
        row.name(), row.calls(), total, low, row.figure(_TIMES, "Med", "Avg"), high, own, launch=row.launch()
    )


def _trace(rows: Sequence[_Cells]) -> tuple[dict[str, tuple[EventSums, ...]], tuple[ProfiledGpu, ...]]:
    """Return kernels, copies and GPUs with their busy time, from a table of all events (gputrace, cuda_gpu_trace)."""
    kernels, memory, covered = NamedSums(), NamedSums(sized=True), dict[str, Covered]()
    spans = []
    for row in rows:
        start, length = (round(row.figure(_TIMES, key)) for key in ("Start", "Duration"))
        spans.append((start, start + length, row.name("Device"), row))
    for start, end, device, row in sorted(spans, key=lambda span: span[:3]):
        covered.setdefault(device, Covered(start)).add(start, end)
        if (name := row.name()).startswith("[CUDA mem"):
            memory.add(name, end - start, round(row.figure(_SIZES, "Bytes")) if row.said("Bytes") else 0)
        else:
            kernels.add(name, end - start, launch=row.launch())
    devices = tuple(ProfiledGpu(name, times.busy, times.span) for name, times in sorted(covered.items()))
    return {"kernels": kernels.rows(), "memory": memory.rows()}, devices
