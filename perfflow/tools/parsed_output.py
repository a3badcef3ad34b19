"""``parse``: figures that any program prints or writes, by JSON path, pattern or CSV column."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import METRICS
from perfflow.samples.readings import Reading, reading_of_many
from perfflow.samples.ticks import printed_tick
from perfflow.tools import printed_numbers
from perfflow.tools.pattern_search import search
from perfflow.tools.printed_numbers import Decimal
from perfflow.units import UNITS

BENCHMARK = "benchmark"
"""The group, path or column that holds benchmarks' names instead of figures."""
Figures = dict[tuple[str, str], list[float]]
_STEP = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<index>\d*)\]")


def from_json(text: str, paths: Mapping[str, str], units: Mapping[str, str]) -> tuple[Reading, ...]:
    """Read figures at paths such as ``results[].mean``; ``[]`` means every item, ``[0]`` one of them.

    With a path for ``benchmark`` names and figures go together in order. Raises ToolOutputError when a path leads
    nowhere or to something that is not a number.
    """
    try:
        data = json.loads(text, parse_float=_Written)
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"the output is not JSON: {_brief(error)}") from error
    names = [str(name) for name in _at(data, paths[BENCHMARK])] if BENCHMARK in paths else []
    figures, steps = Figures(), Figures()
    for metric, path in paths.items():
        if metric == BENCHMARK:
            continue
        values = list(_at(data, path))
        if not values:
            raise ToolOutputError(f"nothing at {path!r} in the JSON output")
        if names and len(names) != len(values):
            raise ToolOutputError(f"{len(names)} names but {len(values)} values at {path!r}")
        for number, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ToolOutputError(f"{path!r} is {_brief(repr(value))}, not a number")
            key = (names[number] if names else "", metric)
            figures.setdefault(key, []).append(_base(metric, value, units))
            step = value.step if isinstance(value, _Written) else 1.0
            steps.setdefault(key, []).append(step * _factor(metric, units))
    return _readings(figures, steps)


class _Written(float):
    """A number of a JSON text that knows the step of its last digit."""

    step: float

    def __new__(cls, text: str) -> Self:
        """Read it."""
        made = super().__new__(cls, text)
        made.step = printed_numbers.last_digit(text)
        return made


def _at(data: Any, path: str) -> Iterator[Any]:
    """Yield what is at the path. Raises ToolOutputError where some items of a list lead on and others do not."""
    found = [data]
    for step in _STEP.finditer(path):
        following: list[Any] = []
        for number, item in enumerate(found, 1):
            if step["key"] is not None:
                onward = [item[step["key"]]] if isinstance(item, dict) and step["key"] in item else []
            elif not isinstance(item, list):
                onward = []
            else:
                onward = item if not step["index"] else item[int(step["index"]) :][:1]
            # An empty list has no items to lose; an item that lacks what others have is a figure lost.
            if not onward and len(found) > 1 and (step["key"] is not None or item != []):
                raise ToolOutputError(f"item {number} at {path!r} has no {step[0]!r}")
            following += onward
        found = following
    yield from found


def from_regex(
    text: str,
    patterns: Sequence[str],
    units: Mapping[str, str],
    decimal: Decimal | None = None,
    seconds: float | None = None,
) -> tuple[Reading, ...]:
    """Read figures from named groups, at every place that matches, in at most so many seconds for each pattern.

    Raises ToolOutputError when nothing does, and PatternTimeoutError.
    """
    cells = []
    for pattern in patterns:
        line, counted = 1, 0
        for match in search(pattern, [text], seconds):
            line += text.count("\n", counted, match.start)
            counted, groups = match.start, dict(match.groups)
            name = groups.pop(BENCHMARK, None) or ""
            for metric, number in groups.items():
                if number is not None:
                    cells.append(_Cell(name, metric, number, f"on line {line}"))
    if not cells:
        raise ToolOutputError(f"nothing in the output matches {' or '.join(patterns)!r}")
    return _figures(cells, units, decimal)


def from_csv(
    text: str, columns: Mapping[str, str], units: Mapping[str, str], decimal: Decimal | None = None
) -> tuple[Reading, ...]:
    """Read figures from columns by their heading; lines before the heading are passed over.

    Cells end at ``,``, or at ``;`` or a tab where the heading's do. Raises ToolOutputError.
    """
    wanted = set(columns.values())
    rows, start = _table(text, wanted, decimal)
    heading = [cell.strip() for cell in rows[start]]
    cells: list[_Cell] = []
    needed = max(heading.index(column) for column in wanted)
    ended = text.endswith(("\n", "\r"))
    for number, row in enumerate(rows[start + 1 :], start + 2):
        # A line without a comma is prose, unless it is what is left of a row.
        is_prose = len(row) == 1 and needed and (ended or number < len(rows))
        if is_prose or not any(cell.strip() for cell in row):
            continue
        if len(row) <= needed:
            raise ToolOutputError(f"row {number} of the CSV output ends before {heading[needed]!r}: is it cut short?")
        if any(cell.strip() for cell in row[len(heading) :]):
            counts = f"{len(row)} cells, but the heading has {len(heading)}"
            raise ToolOutputError(f"row {number} of the CSV output has {counts}: is a decimal comma not quoted?")
        named = dict(zip(heading, row, strict=False))
        name = named[columns[BENCHMARK]].strip() if BENCHMARK in columns else ""
        cells += [
            _Cell(name, metric, named[column], f"in row {number}")
            for metric, column in columns.items()
            if metric != BENCHMARK
        ]
    if not cells:
        raise ToolOutputError("the CSV output has a heading and no rows")
    return _figures(cells, units, decimal)


_DELIMITERS: Mapping[Decimal | None, str] = {None: ",;\t", "point": ",;\t", "comma": ";\t,"}


def _table(text: str, wanted: set[str], decimal: Decimal | None) -> tuple[list[list[str]], int]:
    """The rows and the number of the heading, by the first delimiter with which a line has all columns."""
    for delimiter in _DELIMITERS[decimal]:
        rows = _rows(text, delimiter)
        for number, row in enumerate(rows):
            if wanted <= {cell.strip() for cell in row}:
                return rows, number
    raise ToolOutputError(f"no line of the output has the columns {', '.join(sorted(wanted))}")


def _rows(text: str, delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as error:
        raise ToolOutputError(f"the output is not CSV: {_brief(error)}") from error


@dataclass(frozen=True, slots=True)
class _Cell:
    """One number as it was printed, and where."""

    benchmark: str
    metric: str
    text: str
    place: str


def _figures(cells: Sequence[_Cell], units: Mapping[str, str], decimal: Decimal | None) -> tuple[Reading, ...]:
    """Readings of printed numbers, with the step of their last digits."""
    evident: frozenset[str] = frozenset() if decimal else printed_numbers.evident_marks(cell.text for cell in cells)
    figures, steps = Figures(), Figures()
    for cell in cells:
        found = printed_numbers.read(cell.text, f"`{cell.metric}` {cell.place}", decimal, evident)
        key = (cell.benchmark, cell.metric)
        figures.setdefault(key, []).append(_base(cell.metric, found.value, units))
        steps.setdefault(key, []).append(found.step * _factor(cell.metric, units))
    return _readings(figures, steps)


def _factor(metric: str, units: Mapping[str, str]) -> float:
    """What turns a figure in its unit into base units."""
    return float(UNITS[units[metric]][1]) if units[metric] in UNITS else 1.0


def _base(metric: str, value: float, units: Mapping[str, str]) -> float:
    try:
        base = float(value * _factor(metric, units))
    except OverflowError as error:
        raise ToolOutputError(f"`{metric}` is too large a number") from error
    if not math.isfinite(base) or (metric in METRICS and base < 0):
        raise ToolOutputError(f"`{metric}` is {_brief(value)}, which cannot be a measurement")
    if metric == "time" and base == 0:
        raise ToolOutputError("`time` is 0, which cannot be: have the program print it more finely")
    return base


def _readings(figures: Figures, steps: Figures) -> tuple[Reading, ...]:
    found = (
        Reading(metric, values[0], name) if len(values) == 1 else reading_of_many(metric, values, name)
        for (name, metric), values in figures.items()
    )
    return tuple(replace(item, tick=printed_tick(item.value, steps[item.benchmark, item.metric])) for item in found)


def _brief(what: object) -> str:
    text = str(what)
    return text if len(text) <= 80 else text[:77] + "..."
