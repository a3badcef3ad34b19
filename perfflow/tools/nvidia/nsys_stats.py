"""Tables of ``nsys stats`` as CSV or JSON, under the names of 2022 (``gpukernsum``) and later (``cuda_gpu_kern_sum``).

They are what is left where a report itself is not at hand. Which table a file is, its columns say, and of two with the
same columns its name. Progress, ``SKIPPED`` and the program's own output may stand before the table; a table without
data is a file of 0 bytes.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.nvidia.nsys_report import PARTS, Device, Report, Row
from perfflow.tools.nvidia.nsys_spans import Covered, Sums

_TIMES: Mapping[str, float] = {"ns": 1.0, "us": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9}
# nsys's MB are 10^6 bytes.
_SIZES: Mapping[str, float] = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}
_HEAD = re.compile(r"(?P<name>[^()]*?)\s*(?:\((?P<unit>[^()]*)\))?\s*\Z")
_LARGEST = 256 << 20
_DATALESS = re.compile(r"SKIPPED: .{0,300}does not contain [\w /()+-]{1,60}", re.ASCII)


def read(paths: Sequence[Path]) -> Report:
    """Put the tables of one report together. Raises ToolOutputError if one is cut, holds nothing or is unknown."""
    tables: dict[str, tuple[Row, ...]] = {}
    devices: tuple[Device, ...] = ()
    for path in paths:
        rows = _rows(path)
        part = _part(path, rows[0].cells.keys())
        found, devices = _trace(rows) if part == "trace" else ({part: _sums(rows, part)}, devices)
        for name, table in found.items():
            if name in tables:
                raise ToolOutputError(f"{path.name} is a second table of {name}: name those of one report")
            tables[name] = table
    if sizes := {row.name: row.size for row in tables.pop("sizes", ())}:
        if {row.name for row in tables.get("memory", ())} != sizes.keys():
            raise ToolOutputError("a table of sizes says no times: name that of the times of the same copies, too")
        tables["memory"] = tuple(replace(row, size=sizes[row.name]) for row in tables["memory"])
    kernels, memory, api, ranges, system = (tables.get(part, ()) for part in PARTS)
    return Report(kernels, memory, api, ranges, system, devices)


class _Cells:
    """A row of a table: ``cells`` are the value and the unit of its column by the column's name without the unit."""

    def __init__(self, file: str, row: Mapping[str, object]) -> None:
        self._file, self.cells = file, {_head(head)[0]: (value, _head(head)[1]) for head, value in row.items()}

    def first(self, *keys: str) -> str:
        """The first of the columns that is there. Raises ToolOutputError where none is."""
        found = next((key for key in keys if key in self.cells), None)
        if found is None:
            raise ToolOutputError(f"{self._file} has no column {' or '.join(keys)}")
        return found

    def name(self) -> str:
        """What the row is of."""
        return tool_files.clean_name(str(self.cells[self.first("Name", "Range", "Operation")][0]))

    def holds(self, key: str) -> bool:
        """Whether there is something in a column."""
        return self.cells.get(key, ("",))[0] not in (None, "", "None", "-")

    def figure(self, key: str, units: Mapping[str, float] | None = None) -> float:
        """A figure in ns, bytes or as it is."""
        value, unit = self.cells[self.first(key)]
        figure = tool_files.number_in(value, key) if isinstance(value, str) else tool_files.number(value, key)
        if units is not None and unit not in units:
            raise ToolOutputError(f"{self._file}: {key} has the unit {unit[:20]!r}, which perfflow does not know")
        return figure * (units[unit] if units else 1.0)

    def calls(self) -> int:
        """How often it was."""
        return tool_files.whole(self.figure(self.first("Instances", "Num Calls", "Count")), "Instances")

    def sizes(self, *columns: str) -> str:
        """Three sizes in one column or in three, ``256x1x1``; '' where there are none."""
        words = " ".join(str(self.cells[column][0]) for column in columns if column in self.cells)
        return "x".join(words.split())


def _rows(path: Path) -> list[_Cells]:
    """The rows of a table, one at least. Raises ToolOutputError for a file without one."""
    if path.stat().st_size > _LARGEST:
        raise ToolOutputError(f"{path.name} is larger than {_LARGEST >> 20} MiB: read the report itself")
    text = tool_files.read_text(path, "nsys writes an empty table where the report holds no such events")
    if match := _DATALESS.search(text):
        raise ToolOutputError(f"{path.name} holds no table: {tool_files.clean_name(match[0])}")
    start = text.find("[\n") if path.suffix == ".json" else -1
    try:
        listed = json.loads(text[start:]) if start >= 0 else _of_csv(path, text)
    except (ValueError, RecursionError, csv.Error) as error:
        raise ToolOutputError(f"{path.name} is cut short or damaged") from error
    if not listed or not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise ToolOutputError(f"{path.name} holds no row of a table of `nsys stats`")
    return [_Cells(path.name, row) for row in listed]


def _of_csv(path: Path, text: str) -> list[dict[str, str]]:
    """Find the line of columns, and read up to the next blank line."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if _is_header(next(csv.reader([line]), []))), None)
    if start is None:
        raise ToolOutputError(f"{path.name} is no table of `nsys stats`: use `--format csv` or `json`")
    if not text.endswith("\n"):
        raise ToolOutputError(f"{path.name} is cut short")
    end = next((at for at in range(start, len(lines)) if not lines[at].strip()), len(lines))
    head, *rest = csv.reader(lines[start:end])
    if bad := next((cells for cells in rest if len(cells) != len(head)), None):
        raise ToolOutputError(f"{path.name} is damaged: {len(bad)} cells under {len(head)} columns")
    return [dict(zip(head, cells, strict=True)) for cells in rest]


def _is_header(cells: Sequence[str]) -> bool:
    words = {_head(cell)[0] for cell in cells}
    return bool({"Total Time", "Total", "Duration"} & words) and bool({"Name", "Range", "Operation"} & words)


def _head(text: str) -> tuple[str, str]:
    match = _HEAD.match(text)
    return (match["name"], match["unit"] or "") if match else (text, "")


def _part(path: Path, columns: Collection[str]) -> str:
    """Which table it is, by the columns of a row."""
    if {"Start", "Duration", "Name", "Device"} <= set(columns):
        return "trace"
    if "Total" in columns and "Operation" in columns:
        return "sizes"
    if "Total Time" not in columns:
        raise ToolOutputError(f"{path.name} is a table that perfflow does not read: " + ", ".join(columns)[:120])
    calls = "os" if "osrt" in path.name.lower() else "api"
    parts = {"Operation": "memory", "Range": "ranges", "Num Calls": calls}
    return next((part for column, part in parts.items() if column in columns), "kernels")


def _sums(rows: Sequence[_Cells], part: str) -> tuple[Row, ...]:
    together: dict[str, Row] = {}
    for cells in rows:
        row = _sum(cells, part)
        # A kernel has a row for each way in which it was launched; of their median nothing is known.
        if so_far := together.get(row.name):
            longest = max(so_far, row, key=lambda row: row.total)
            sums = {key: getattr(so_far, key) + getattr(row, key) for key in ("calls", "total")}
            own = None if row.own is None else (so_far.own or 0.0) + row.own
            row = replace(longest, **sums, low=min(so_far.low, row.low), high=max(so_far.high, row.high), own=own)
        together[row.name] = row
    return tuple(sorted(together.values(), key=lambda row: (-row.total, row.name)))


def _sum(row: _Cells, part: str) -> Row:
    if part == "sizes":
        return Row(row.name(), row.calls(), 0.0, 0.0, 0.0, 0.0, None, round(row.figure("Total", _SIZES)))
    total, low, median, high = (
        row.figure(key, _TIMES) for key in ("Total Time", "Min", row.first("Med", "Avg"), "Max")
    )
    grid, block = row.sizes("GridXYZ"), row.sizes("BlockXYZ")
    launch = f"grid {grid}, block {block}" if grid else ""
    # Ranges nest; calls of CUDA hardly do.
    return Row(
        row.name(), row.calls(), total, low, median, high, total if part in ("api", "os") else None, None, launch
    )


def _trace(rows: Sequence[_Cells]) -> tuple[dict[str, tuple[Row, ...]], tuple[Device, ...]]:
    """Kernels, copies and how busy each GPU was, of a table of all of them (gputrace, cuda_gpu_trace)."""
    kernels, memory, covered = Sums(), Sums(sized=True), dict[str, Covered]()
    spans = []
    for row in rows:
        start, length = (round(row.figure(key, _TIMES)) for key in ("Start", "Duration"))
        spans.append((start, start + length, tool_files.clean_name(str(row.cells["Device"][0])), row))
    for start, end, device, row in sorted(spans, key=lambda span: span[:3]):
        covered.setdefault(device, Covered()).add(start, end)
        if (name := row.name()).startswith("[CUDA mem"):
            memory.add(name, end - start, round(row.figure("Bytes", _SIZES)) if row.holds("Bytes") else 0)
        else:
            kernels.add(name, end - start, launch=_launch(row))
    devices = tuple(Device(name, times.busy, times.span) for name, times in sorted(covered.items()))
    return {"kernels": kernels.rows(), "memory": memory.rows()}, devices


def _launch(row: _Cells) -> str:
    sizes = ((what, row.sizes(*(kind + axis for axis in "XYZ"))) for what, kind in (("grid", "Grd"), ("block", "Blk")))
    words = [f"{what} {size}" for what, size in sizes if size]
    return ", ".join([*words, *([f"{row.cells['Reg/Trd'][0]} registers"] if row.holds("Reg/Trd") else [])])
