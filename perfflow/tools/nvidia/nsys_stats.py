"""Tables of ``nsys stats`` as CSV or JSON, under the names of 2022 (``gpukernsum``) and later (``cuda_gpu_kern_sum``).

They are what is left where a report itself is not at hand. Which table a file is, its columns say, and of two with the
same columns its name. Progress, ``SKIPPED`` and the program's own output may stand before the table; a table without
data is a file of 0 bytes.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
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
Cells = Mapping[str, tuple[object, str]]
"""A row: the value and the unit of its column by the column's name without the unit."""


def read(paths: Sequence[Path]) -> Report:
    """Put the tables of one report together. Raises ToolOutputError if one is cut, holds nothing or is unknown."""
    tables: dict[str, tuple[Row, ...]] = {}
    devices: tuple[Device, ...] = ()
    for path in paths:
        rows = list(_rows(path))
        part = _part(path, rows[0])
        found, devices = _trace(path, rows) if part == "trace" else ({part: _sums(path, rows, part)}, devices)
        for name, table in found.items():
            if name in tables:
                raise ToolOutputError(f"{path.name} is a second table of {name}: name those of one report")
            tables[name] = table
    if sizes := tables.pop("sizes", ()):
        tables["memory"] = _joined(tables.get("memory", ()), sizes)
    kernels, memory, api, ranges, system = (tables.get(name, ()) for name in PARTS)
    return Report(kernels, memory, api, ranges, system, devices)


def _rows(path: Path) -> Iterator[Cells]:
    """The rows of a table. Raises ToolOutputError for a file without one."""
    if path.stat().st_size > _LARGEST:
        raise ToolOutputError(f"{path.name} is larger than {_LARGEST >> 20} MiB: read the report itself")
    text = tool_files.read_text(path, "nsys writes an empty table where the report holds no such events")
    if match := _DATALESS.search(text):
        raise ToolOutputError(f"{path.name} holds no table: {tool_files.clean_name(match[0])}")
    start = text.find("[\n") if path.suffix == ".json" else -1
    listed = _of_json(path, text[start:]) if start >= 0 else _of_csv(path, text)
    if not listed:
        raise ToolOutputError(f"{path.name} holds no row of a table of `nsys stats`")
    for row in listed:
        yield {name: (value, unit) for head, value in row.items() for name, unit in [_head(head)]}


def _of_json(path: Path, text: str) -> list[dict[str, object]]:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"{path.name} is cut short or no JSON") from error
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ToolOutputError(f"{path.name} is no list of rows")
    return found


def _of_csv(path: Path, text: str) -> list[dict[str, object]]:
    """Find the line of columns, and read up to the next blank line."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        raise ToolOutputError(f"{path.name} is no table of `nsys stats`: use `--format csv` or `json`")
    if not text.endswith("\n"):
        raise ToolOutputError(f"{path.name} is cut short")
    end = next((at for at in range(start, len(lines)) if not lines[at].strip()), len(lines))
    head, *rest = csv.reader(lines[start:end])
    if bad := next((cells for cells in rest if len(cells) != len(head)), None):
        raise ToolOutputError(f"{path.name} is damaged: {len(bad)} cells under {len(head)} columns")
    return [dict(zip(head, cells, strict=True)) for cells in rest]


def _is_header(line: str) -> bool:
    words = {_head(cell)[0] for cell in line.split(",")}
    return bool({"Total Time", "Total", "Duration"} & words) and bool({"Name", "Range", "Operation"} & words)


def _head(text: str) -> tuple[str, str]:
    match = _HEAD.match(text)
    return (match["name"], match["unit"] or "") if match else (text, "")


def _part(path: Path, row: Cells) -> str:
    """Which table it is, by the columns of a row."""
    columns = row.keys()
    if {"Start", "Duration", "Name", "Device"} <= columns:
        return "trace"
    if "Total" in columns and "Operation" in columns:
        return "sizes"
    if "Total Time" not in columns:
        raise ToolOutputError(f"{path.name} is a table that perfflow does not read: " + ", ".join(columns)[:120])
    if "Operation" in columns:
        return "memory"
    if "Range" in columns:
        return "ranges"
    if "Num Calls" in columns:
        return "os" if "osrt" in path.name.lower() else "api"
    return "kernels"


def _sums(path: Path, rows: Sequence[Cells], part: str) -> tuple[Row, ...]:
    sums = [_size(path, row) if part == "sizes" else _sum(path, row, part) for row in rows]
    together: dict[str, Row] = {}
    for row in sums:
        # A kernel has a row for each way in which it was launched; of their median nothing is known.
        so_far = together.get(row.name)
        together[row.name] = _added(so_far, row) if so_far else row
    return tuple(sorted(together.values(), key=lambda row: (-row.total, row.name)))


def _sum(path: Path, row: Cells, part: str) -> Row:
    name = _name(path, row)
    calls = tool_files.whole(_figure(path, row, _counted(path, row)), "Instances")
    total, low, high = (_figure(path, row, key, _TIMES) for key in ("Total Time", "Min", "Max"))
    median = _figure(path, row, "Med" if "Med" in row else "Avg", _TIMES)
    grid, block = (re.sub(r"\s+", "x", str(row[key][0]).strip()) if key in row else "" for key in _WAYS)
    # Ranges nest; calls of CUDA hardly do.
    own = total if part in ("api", "os") else None
    if not calls or not low <= median <= high <= total * (1 + 1e-6):
        raise ToolOutputError(f"{path.name} is damaged: the times of {name[:60]!a} cannot be")
    return Row(name, calls, total, low, median, high, own, None, f"grid {grid}, block {block}" if grid else "")


_WAYS = ("GridXYZ", "BlockXYZ")


def _added(one: Row, other: Row) -> Row:
    longest = max(one, other, key=lambda row: row.total)
    own = None if one.own is None or other.own is None else one.own + other.own
    return Row(
        one.name, one.calls + other.calls, one.total + other.total, min(one.low, other.low), longest.median,
        max(one.high, other.high), own, None, longest.launch,
    )  # fmt: skip


def _size(path: Path, row: Cells) -> Row:
    calls = tool_files.whole(_figure(path, row, _counted(path, row)), "Count")
    return Row(_name(path, row), calls, 0.0, 0.0, 0.0, 0.0, None, round(_figure(path, row, "Total", _SIZES)))


def _joined(times: Sequence[Row], sizes: Sequence[Row]) -> tuple[Row, ...]:
    """Copies with their times from one table and their sizes from another. Raises ToolOutputError."""
    if {row.name for row in times} != {row.name for row in sizes}:
        raise ToolOutputError("a table of sizes says no times: name that of the times of the same copies, too")
    known = {row.name: row.size for row in sizes}
    return tuple(replace(row, size=known[row.name]) for row in times)


def _trace(path: Path, rows: Sequence[Cells]) -> tuple[dict[str, tuple[Row, ...]], tuple[Device, ...]]:
    """Kernels, copies and how busy each GPU was, of a table of all of them (gputrace, cuda_gpu_trace)."""
    kernels, memory, covered = Sums(), Sums(sized=True), dict[str, Covered]()
    spans = []
    for row in rows:
        start, length = (round(_figure(path, row, key, _TIMES)) for key in ("Start", "Duration"))
        spans.append((start, start + length, tool_files.clean_name(str(row["Device"][0])), row))
    for start, end, device, row in sorted(spans, key=lambda span: span[:3]):
        covered.setdefault(device, Covered()).add(start, end)
        name = _name(path, row)
        if name.startswith("[CUDA mem"):
            size = _figure(path, row, "Bytes", _SIZES) if _there(row, "Bytes") else 0.0
            memory.add(name, end - start, round(size))
        else:
            kernels.add(name, end - start, launch=_launch(row))
    devices = tuple(Device(name, times.busy, times.span) for name, times in sorted(covered.items()))
    return {"kernels": kernels.rows(), "memory": memory.rows()}, devices


def _launch(row: Cells) -> str:
    sizes = ["x".join(str(row[f"{kind}{axis}"][0]) for axis in "XYZ") for kind in ("Grd", "Blk") if f"{kind}X" in row]
    words = [f"{what} {size}" for what, size in zip(("grid", "block"), sizes, strict=False)]
    return ", ".join([*words, *([f"{row['Reg/Trd'][0]} registers"] if _there(row, "Reg/Trd") else [])])


def _there(row: Cells, key: str) -> bool:
    return key in row and row[key][0] not in (None, "", "None", "-")


def _counted(path: Path, row: Cells) -> str:
    found = next((key for key in ("Instances", "Num Calls", "Count") if key in row), None)
    if found is None:
        raise ToolOutputError(f"{path.name} does not say how often: it has no column Instances, Num Calls or Count")
    return found


def _name(path: Path, row: Cells) -> str:
    found = next((row[key][0] for key in ("Name", "Range", "Operation") if key in row), None)
    if not isinstance(found, str):
        raise ToolOutputError(f"{path.name} is damaged: a row has no name")
    return tool_files.clean_name(found)


def _figure(path: Path, row: Cells, key: str, units: Mapping[str, float] | None = None) -> float:
    """A figure in ns, bytes or as it is."""
    if key not in row:
        raise ToolOutputError(f"{path.name} has no column {key}")
    value, unit = row[key]
    figure = tool_files.number_in(value, key) if isinstance(value, str) else tool_files.number(value, key)
    if units is not None and unit not in units:
        raise ToolOutputError(f"{path.name}: {key} has the unit {unit[:20]!r}, which perfflow does not know")
    return figure * (units[unit] if units else 1.0)
