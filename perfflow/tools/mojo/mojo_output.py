"""What a program prints of its benchmarks with Mojo's standard library: tables of a ``Bench``, and ``Report`` blocks.

A ``Bench`` writes one table in three forms, whichever the program chose: CSV, whose names are quoted and nothing in
them is escaped, the same with aligned columns, and one between bars. Names are not quoted in the latter two, so that
rows are split from their end. An empty line follows each printed table, and tells that it is whole. A ``Report``
bears no name: that is the line right before it, and of a single one may be left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files

_HEAD = re.compile(r"^\.*(?:\| )?(?P<columns>name *(?P<bar> \| |, *)met \(ms\).*)$")
_NONE = "No benchmarks recorded"
_TIME, _ITERATIONS = "met (ms)", "iters"
# A Bench without names of metrics writes their units alone. All are of 10^9.
_RATES: Mapping[str, str] = {
    **dict.fromkeys(("DataMovement (GB/s)", "GB/s"), "bandwidth"),
    **dict.fromkeys(("Arithmetic (GFLOPS/s)", "GFLOPS/s"), "flops"),
    **dict.fromkeys(("throughput (GElems/s)", "GElems/s"), "rate"),
}
_LEAST, _MEAN, _MOST, _TOTAL = _VERBOSE = ("min (ms)", "mean (ms)", "max (ms)", "duration (ms)")
_MISSING = "N/A"
_REPORT = re.compile(
    r"^(?P<rule>-{5,})\nBenchmark Report \((?P<unit>[^)\n]*)\)\n(?P=rule)\n(?P<body>(?:[A-Z][A-Za-z ]*: [^\n]*\n)*)",
    re.MULTILINE,
)
_A_REPORT = "Benchmark Report ("
_UNITS: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# Figures are printed to the last digit, and sums are rounded once more.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Row:
    """One result of a benchmark: ``values`` by metric in base units, the mean of so many ``iterations``.

    ``repeats`` is true of a ``Bench``, which can be told how often to run each benchmark.
    """

    name: str
    values: Mapping[str, float]
    iterations: float
    repeats: bool = True


class _Table(NamedTuple):
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def read(printed: str, file: str) -> tuple[list[Row], tuple[str, ...]]:
    """Return every result in what a program printed, and what to say of it.

    ``file`` is the CSV file that it wrote, '' if none: the last table it printed must be the same. Raises
    ToolOutputError where they differ, or something is cut or nonsense.
    """
    tables = list(_tables(printed, is_printed=True))
    if file and tables[-1:] != list(_tables(file, is_printed=False)):
        raise ToolOutputError("the CSV file is not the last table that was printed: one of them is cut short")
    if _NONE in printed or any(not table.rows for table in tables):
        raise ToolOutputError("the program recorded no benchmark")
    rows = [row for table in tables for row in _rows(table)]
    known = {"name", _TIME, _ITERATIONS, *_RATES, *_VERBOSE}
    unknown = dict.fromkeys(name for table in tables for name in table.columns if name not in known)
    warnings = [f"left out, since perfflow does not know its unit: the column {name[:80]!r}" for name in unknown]
    return rows + list(_reports(printed)), tuple(warnings)


def _tables(text: str, *, is_printed: bool) -> Iterator[_Table]:
    # Not splitlines(), to which names may hold line ends.
    lines = iter(text.removesuffix("\n").split("\n"))
    for line in lines:
        head = _HEAD.match(line)
        if not head or _NONE in line:
            continue
        bar = head["bar"] == " | "
        inner = head["columns"].removesuffix(" |") if bar else head["columns"]
        separator = " | " if bar else ","
        columns = tuple(column.strip() for column in inner.split(separator))
        if columns[:3] != ("name", _TIME, _ITERATIONS) or len({*columns}) != len(columns):
            raise ToolOutputError("the table of the Bench has other columns than it should: it is cut short or changed")
        rows: list[tuple[str, ...]] = []
        for row in lines:
            if not row.strip():
                break
            rows.append(_cells(row, separator, len(columns)))
        else:
            if is_printed:
                raise ToolOutputError("the table of the Bench is cut short: no empty line follows it")
        # Below the head of a table between bars there are dashes.
        yield _Table(columns, tuple(row for row in rows if not (bar and not "".join(row).strip("-"))))


def _cells(line: str, separator: str, count: int) -> tuple[str, ...]:
    """Split a row from its end, since a name may hold the separator. Raises ToolOutputError for another number."""
    shown = tool_files.clean_name(line)[:80]
    bars = separator == " | "
    if bars and not (line.startswith("| ") and line.endswith(" |")):
        raise ToolOutputError(f"a row does not stand between bars: {shown!r}")
    inner = line.removeprefix("| ").removesuffix(" |") if bars else line
    name, *rest = (cell.strip() for cell in inner.rsplit(separator, count - 1))
    if len(rest) != count - 1:
        raise ToolOutputError(f"a row has {len(rest) + 1} cells below {count} columns: {shown!r}")
    if bars or not name.startswith('"'):
        return name, *rest
    if len(name) < 2 or not name.endswith('"'):
        raise ToolOutputError(f"a row has more cells than {count} columns: {shown!r}")
    return name[1:-1], *rest


def _rows(table: _Table) -> Iterator[Row]:
    for cells in table.rows:
        found = dict(zip(table.columns, cells, strict=True))
        if not found["name"]:
            raise ToolOutputError("a benchmark has no name")
        name = tool_files.clean_name(found["name"])
        mean = _positive(found[_TIME], f"{_TIME} of {name[:80]}")
        iterations = _count(found[_ITERATIONS], name)
        if _TOTAL in found:
            given = {
                _TOTAL: found[_TOTAL],
                _LEAST: found.get(_LEAST, found[_TIME]),
                _MOST: found.get(_MOST, found[_TIME]),
            }
            figures = (tool_files.number_in(text, f"{key} of {name[:80]}") for key, text in given.items())
            _check(mean, iterations, *figures, name=name)
        values = {"time": tool_files.positive(mean * 1e-3, f"time of {name[:80]}")}
        for column, metric in _RATES.items():
            if found.get(column, _MISSING) != _MISSING:
                if metric in values:
                    raise ToolOutputError(f"{name[:80]} has two columns for {metric}")
                # Checked again, since what was scaled may be too large.
                rate = _positive(found[column], f"{column} of {name[:80]}") * 1e9
                values[metric] = tool_files.number(rate, f"{column} of {name[:80]}")
        yield Row(name, values, iterations)


def _reports(printed: str) -> Iterator[Row]:
    found = list(_REPORT.finditer(printed))
    if len(found) != printed.count(_A_REPORT):
        raise ToolOutputError("a Benchmark Report is cut short")
    names = [_heading(printed[: report.start()]) for report in found]
    if len(found) > 1 and not all(names):
        raise ToolOutputError(f"{len(found)} Benchmark Reports, and not all have a name: print one right before each")
    for name, report in zip(names, found, strict=True):
        yield _report(name, report)


def _heading(before: str) -> str:
    """Return the name that stands in the line right before a report, '' for an empty line."""
    line = before.removesuffix("\n").rpartition("\n")[2].strip().removesuffix(":").rstrip()
    return tool_files.clean_name(line) if line else ""


def _report(name: str, report: re.Match[str]) -> Row:
    shown = name[:80] or "the report"
    if report["unit"] not in _UNITS:
        raise ToolOutputError(f"{shown} has the unit {ascii(report['unit'])[:20]}, which perfflow does not know")
    figures = dict(line.split(": ", 1) for line in report["body"].split("\n")[:-1])
    keys = ("Mean", "Total", "Iters", "Fastest Mean", "Slowest Mean")
    if missing := [key for key in keys if key not in figures]:
        raise ToolOutputError(f"a Benchmark Report is cut short: {missing[0]} of {shown} is not there")
    mean = _positive(figures["Mean"], f"Mean of {shown}")
    iterations = _count(figures["Iters"], shown)
    rest = [
        tool_files.number_in(figures[key], f"{key} of {shown}") for key in ("Total", "Fastest Mean", "Slowest Mean")
    ]
    _check(mean, iterations, *rest, name=shown)
    seconds = tool_files.positive(mean * _UNITS[report["unit"]], f"time of {shown}")
    return Row(name, {"time": seconds}, iterations, repeats=False)


def _check(mean: float, iterations: float, total: float, least: float, most: float, *, name: str) -> None:
    """Raise ToolOutputError where figures of one benchmark contradict each other."""
    between = least * (1 - _ROUNDING) <= mean <= most * (1 + _ROUNDING)
    if not between or not math.isclose(mean * iterations, total, rel_tol=_ROUNDING):
        raise ToolOutputError(f"the figures of {name[:80]} contradict each other")


def _positive(text: str, what: str) -> float:
    """Return a figure > 0; what takes no time at all was removed by the compiler. Raises ToolOutputError."""
    figure = tool_files.number_in(text, what)
    if figure == 0:
        raise ToolOutputError(f"{what} is 0: the compiler left nothing to measure, or stopped it; use keep()")
    return figure


def _count(text: str, name: str) -> float:
    what = f"{_ITERATIONS} of {name[:80]}"
    return tool_files.positive(tool_files.whole(tool_files.number_in(text, what), what), what)
