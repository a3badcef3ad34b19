"""``parse``: figures that any program prints or writes, by JSON path, pattern or CSV column."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import METRICS
from perfflow.samples.readings import Reading, reading_of_many
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
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"the output is not JSON: {_brief(error)}") from error
    names = [str(name) for name in _at(data, paths[BENCHMARK])] if BENCHMARK in paths else []
    figures: Figures = {}
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
            name = names[number] if names else ""
            figures.setdefault((name, metric), []).append(_base(metric, value, units))
    return _readings(figures)


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


def from_regex(text: str, patterns: Sequence[str], units: Mapping[str, str]) -> tuple[Reading, ...]:
    """Read figures from named groups, at every place that matches. Raises ToolOutputError when nothing does."""
    figures: Figures = {}
    for pattern in patterns:
        for match in re.finditer(pattern, text, re.MULTILINE):
            groups = match.groupdict()
            name = groups.pop(BENCHMARK, None) or ""
            for metric, number in groups.items():
                if number is not None:
                    figures.setdefault((name, metric), []).append(_base(metric, _number(metric, number), units))
    if not figures:
        raise ToolOutputError(f"nothing in the output matches {' or '.join(patterns)!r}")
    return _readings(figures)


def from_csv(text: str, columns: Mapping[str, str], units: Mapping[str, str]) -> tuple[Reading, ...]:
    """Read figures from columns by their heading; lines before the heading are passed over."""
    rows = _rows(text)
    wanted = set(columns.values())
    start = next((number for number, row in enumerate(rows) if wanted <= {cell.strip() for cell in row}), None)
    if start is None:
        raise ToolOutputError(f"no line of the output has the columns {', '.join(sorted(wanted))}")
    heading = [cell.strip() for cell in rows[start]]
    figures: Figures = {}
    needed = max(heading.index(column) for column in wanted)
    ended = text.endswith(("\n", "\r"))
    for number, row in enumerate(rows[start + 1 :], start + 2):
        # A line without a comma is prose, unless it is what is left of a row.
        is_prose = len(row) == 1 and needed and (ended or number < len(rows))
        if is_prose or not any(cell.strip() for cell in row):
            continue
        if len(row) <= needed:
            raise ToolOutputError(f"row {number} of the CSV output ends before {heading[needed]!r}: is it cut short?")
        cells = dict(zip(heading, row, strict=False))
        name = cells[columns[BENCHMARK]].strip() if BENCHMARK in columns else ""
        for metric, column in columns.items():
            if metric != BENCHMARK:
                value = _base(metric, _number(metric, cells[column]), units)
                figures.setdefault((name, metric), []).append(value)
    if not figures:
        raise ToolOutputError("the CSV output has a heading and no rows")
    return _readings(figures)


def _rows(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise ToolOutputError(f"the output is no CSV: {_brief(error)}") from error


def _number(metric: str, text: str) -> float:
    try:
        return float(text.strip().replace(",", ""))
    except ValueError as error:
        raise ToolOutputError(f"`{metric}` is {_brief(repr(text))}, not a number") from error


def _base(metric: str, value: float, units: Mapping[str, str]) -> float:
    factor = float(UNITS[units[metric]][1]) if units[metric] in UNITS else 1.0
    try:
        base = float(value * factor)
    except OverflowError as error:
        raise ToolOutputError(f"`{metric}` is too large a number") from error
    if not math.isfinite(base) or (metric in METRICS and base < 0):
        raise ToolOutputError(f"`{metric}` is {_brief(value)}, which cannot be a measurement")
    if metric == "time" and base == 0:
        raise ToolOutputError("`time` is 0, which cannot be: have the program print it more finely")
    return base


def _readings(figures: Figures) -> tuple[Reading, ...]:
    return tuple(
        Reading(metric, values[0], name) if len(values) == 1 else reading_of_many(metric, values, name)
        for (name, metric), values in figures.items()
    )


def _brief(what: object) -> str:
    text = str(what)
    return text if len(text) <= 80 else text[:77] + "..."
