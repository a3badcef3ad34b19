"""Reader of the printed benchmark results of Mojo's standard library: tables of a ``Bench``, and ``Report`` blocks.

A ``Bench`` writes one table in a form that the program chooses: CSV with quoted names, in which nothing is escaped; the
same with aligned columns; or columns between bars. Names are not quoted in the latter two, so rows are split from their
end. An empty line after each printed table marks it as complete. A ``Report`` has no name: it is the line right before
it, which can be missing for a single report.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from perfflow.model.errors import ToolOutputError
from perfflow.tools import tool_files

_HEAD = re.compile(r"^\.*(?:\| )?(?P<columns>name *(?P<bar> \| |, *)met \(ms\).*)$")
_NONE = "No benchmarks recorded"
# Names of mean, iterations, total time, minimum and maximum in a Bench and a Report. A Bench can omit the last three.
_BENCH = ("met (ms)", "iters", "duration (ms)", "min (ms)", "max (ms)")
_OF_REPORT = ("Mean", "Iters", "Total", "Fastest Mean", "Slowest Mean")
# A Bench without names of metrics writes only their units. All are multiples of 10^9.
_RATES: Mapping[str, str] = {
    **dict.fromkeys(("DataMovement (GB/s)", "GB/s"), "bandwidth"),
    **dict.fromkeys(("Arithmetic (GFLOPS/s)", "GFLOPS/s"), "flops"),
    **dict.fromkeys(("throughput (GElems/s)", "GElems/s"), "rate"),
}
_MISSING = "N/A"
_REPORT = re.compile(
    r"^(?P<rule>-{5,})\nBenchmark Report \((?P<unit>[^)\n]*)\)\n(?P=rule)\n(?P<body>(?:[A-Z][A-Za-z ]*: [^\n]*\n)*)",
    re.MULTILINE,
)
_A_REPORT = "Benchmark Report ("
_UNITS: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# Figures are printed to the last digit, and sums are rounded once more.
_ROUNDING = 1e-6


class Row(NamedTuple):
    """One result of a benchmark: ``values`` by metric in base units, the mean of ``iterations`` iterations.

    ``repeats`` is true for a ``Bench``, which has an option for the number of repetitions.
    """

    name: str
    values: Mapping[str, float]
    iterations: float
    repeats: bool = True


_Table = list[dict[str, str]]
"""The cells of each row by their columns."""


def read(printed: str, file: str) -> tuple[list[Row], tuple[str, ...]]:
    """Return every result that a program printed, and warnings.

    ``file`` is the text of its CSV file, '' if there is none; its table must equal the last printed one. Raises
    ToolOutputError if they differ, or if the output is truncated or invalid.
    """
    tables = list(_tables(printed, is_printed=True))
    if file and tables[-1:] != list(_tables(file, is_printed=False)):
        raise ToolOutputError("the CSV file differs from the last printed table: one of them is cut short")
    if _NONE in printed or not all(tables):
        raise ToolOutputError("the program recorded no benchmark")
    rows = [_row(cells) for table in tables for cells in table]
    known = {"name", "mean (ms)", *_BENCH, *_RATES}
    unknown = dict.fromkeys(name for table in tables for name in table[0] if name not in known)
    warnings = [f"column {name[:80]!r} is left out: perfflow does not know its unit" for name in unknown]
    return rows + list(_reports(printed)), tuple(warnings)


def _tables(text: str, *, is_printed: bool) -> Iterator[_Table]:
    # Not splitlines(), since names can contain characters that it takes for line ends.
    lines = iter(text.removesuffix("\n").split("\n"))
    for line in lines:
        head = _HEAD.match(line)
        if not head or _NONE in line:
            continue
        bars = head["bar"] == " | "
        separator = " | " if bars else ","
        columns = [column.strip() for column in head["columns"].removesuffix(" |" if bars else "").split(separator)]
        if columns[:3] != ["name", *_BENCH[:2]] or len({*columns}) != len(columns):
            raise ToolOutputError(
                "the table of the Bench has unexpected columns: it is cut short or its format has changed"
            )
        rows: _Table = []
        for row in lines:
            if not row.strip():
                break
            # A table between bars has dashes below its head.
            cells = _cells(row, separator, len(columns))
            if not bars or "".join(cells).strip("-"):
                rows.append(dict(zip(columns, cells, strict=True)))
        else:
            if is_printed:
                raise ToolOutputError("the table of the Bench is cut short: no empty line follows it")
        yield rows


def _cells(line: str, separator: str, count: int) -> list[str]:
    """Split a row from its end, since a name can contain the separator. Raises ToolOutputError for a wrong number."""
    shown = tool_files.clean_name(line)[:80]
    bars = separator == " | "
    if bars and not (line.startswith("| ") and line.endswith(" |")):
        raise ToolOutputError(f"a row is not between bars: {shown!r}")
    inner = line.removeprefix("| ").removesuffix(" |") if bars else line
    name, *rest = (cell.strip() for cell in inner.rsplit(separator, count - 1))
    if len(rest) != count - 1:
        raise ToolOutputError(f"a row has {len(rest) + 1} cells below {count} columns: {shown!r}")
    if name.startswith('"') and not bars:
        if len(name) < 2 or not name.endswith('"'):
            raise ToolOutputError(f"a row has more cells than {count} columns: {shown!r}")
        name = name[1:-1]
    return [name, *rest]


def _row(cells: Mapping[str, str]) -> Row:
    if not cells["name"]:
        raise ToolOutputError("a benchmark has no name")
    name = tool_files.clean_name(cells["name"])
    seconds, iterations = _timed(cells, _BENCH, 1e-3, name[:80])
    values = {"time": seconds}
    for column, metric in _RATES.items():
        if cells.get(column, _MISSING) != _MISSING:
            if metric in values:
                raise ToolOutputError(f"{name[:80]} has two columns for {metric}")
            # Checked again, since the scaled value can be too large.
            what = f"{column} of {name[:80]}"
            values[metric] = tool_files.number(_positive(cells[column], what) * 1e9, what)
    return Row(name, values, iterations)


def _reports(printed: str) -> Iterator[Row]:
    found = list(_REPORT.finditer(printed))
    if len(found) != printed.count(_A_REPORT):
        raise ToolOutputError("a Benchmark Report is cut short")
    for report in found:
        # The name is the line right before the report, which can be empty.
        before = printed[: report.start()].removesuffix("\n").rpartition("\n")[2]
        heading = before.strip().removesuffix(":").rstrip()
        if len(found) > 1 and not heading:
            many = f"not all of {len(found)} Benchmark Reports have a name"
            raise ToolOutputError(f"{many}: print one on the line before each")
        name = tool_files.clean_name(heading) if heading else ""
        shown = name[:80] or "the report"
        figures = dict(line.split(": ", 1) for line in report["body"].split("\n")[:-1])
        if missing := [key for key in _OF_REPORT if key not in figures]:
            raise ToolOutputError(f"a Benchmark Report is cut short: {missing[0]} of {shown} is missing")
        unit = tool_files.scale_of(report["unit"], _UNITS, shown)
        seconds, iterations = _timed(figures, _OF_REPORT, unit, shown)
        yield Row(name, {"time": seconds}, iterations, repeats=False)


def _timed(cells: Mapping[str, str], keys: Sequence[str], unit: float, name: str) -> tuple[float, float]:
    """Return the mean time in s and the iterations. Raises ToolOutputError if figures contradict each other."""
    mean = _positive(cells[keys[0]], f"{keys[0]} of {name}")
    what = f"{keys[1]} of {name}"
    iterations = tool_files.positive(tool_files.whole(tool_files.number_in(cells[keys[1]], what), what), what)
    if keys[2] in cells:
        given = [(key, cells.get(key, cells[keys[0]])) for key in keys[2:]]
        total, least, most = (tool_files.number_in(text, f"{key} of {name}") for key, text in given)
        is_between = least * (1 - _ROUNDING) <= mean <= most * (1 + _ROUNDING)
        if not is_between or not math.isclose(mean * iterations, total, rel_tol=_ROUNDING):
            raise ToolOutputError(f"the figures of {name} contradict each other")
    return tool_files.positive(mean * unit, f"time of {name}"), iterations


def _positive(text: str, what: str) -> float:
    """Return a figure > 0. Raises ToolOutputError, for 0 with a remedy: the compiler can remove work without effect."""
    figure = tool_files.number_in(text, what)
    if figure == 0:
        raise ToolOutputError(
            f"{what} is 0: nothing was measured, perhaps because the compiler removed the work: use keep()"
        )
    return figure
