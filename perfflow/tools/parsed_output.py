"""``parse``: read figures from the output of any program, by JSON path, pattern or CSV column."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import METRICS
from perfflow.model.readings import Reading, reading_of_many
from perfflow.model.ticks import printed_tick
from perfflow.model.units import unit_of
from perfflow.tools import printed_numbers, tool_files
from perfflow.tools.pattern_search import search
from perfflow.tools.printed_numbers import Decimal, Printed

BENCHMARK = "benchmark"
"""The group, path or column of benchmark names."""
_Figure = tuple[str, str, Printed]
"""Benchmark, metric, and the number in its declared unit."""
_Cell = tuple[str, str, str, str]
"""Benchmark, metric, the number as printed, and its place in the output."""
_STEP = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<index>\d*)\]")


def from_json(text: str, paths: Mapping[str, str], units: Mapping[str, str]) -> tuple[Reading, ...]:
    """Read figures at paths such as ``results[].mean``; ``[]`` means every item, ``[0]`` one of them.

    With a path for ``benchmark``, names and figures are paired in order. Raises ToolOutputError if a path does not
    exist or its value is not a number.
    """
    try:
        data = json.loads(text, parse_float=_Written)
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"the output is not JSON: {error}") from error
    names = [str(name) for name in _at(data, paths[BENCHMARK])] if BENCHMARK in paths else []
    figures: list[_Figure] = []
    for metric, path in paths.items():
        if metric == BENCHMARK:
            continue
        values = _at(data, path)
        if not values:
            raise ToolOutputError(f"the JSON output has nothing at {path!r}")
        if names and len(names) != len(values):
            raise ToolOutputError(f"the JSON output has {len(names)} names but {len(values)} values at {path!r}")
        for name, value in zip(names or [""] * len(values), values, strict=True):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ToolOutputError(f"{path!r} is {tool_files.shown(value)}, not a number")
            figures.append((name, metric, Printed(value, value.step if isinstance(value, _Written) else 1.0)))
    return _readings(figures, units)


class _Written(float):
    """A number of a JSON text with the step of its last digit."""

    step: float

    def __new__(cls, text: str) -> Self:
        """Read the number."""
        made = super().__new__(cls, text)
        made.step = printed_numbers.last_digit(text)
        return made


def _at(data: Any, path: str) -> list[Any]:
    """Return the values at a path. Raises ToolOutputError if only some items of a list have its next key."""
    found = [data]
    for step in _STEP.finditer(path):
        key, index = step["key"], step["index"]
        following: list[Any] = []
        for number, item in enumerate(found, 1):
            onward: list[Any] = []
            if isinstance(item, dict) and key in item:
                onward = [item[key]]
            elif isinstance(item, list) and key is None:
                onward = item[int(index) :][:1] if index else item
            # An empty list contributes no figure, but an item without the key would silently lose one.
            if not onward and len(found) > 1 and (key is not None or item != []):
                raise ToolOutputError(f"item {number} at {path!r} has no {step[0]!r}")
            following += onward
        found = following
    return found


def from_regex(
    text: str,
    patterns: Sequence[str],
    units: Mapping[str, str],
    decimal: Decimal | None = None,
    seconds: float | None = None,
) -> tuple[Reading, ...]:
    """Read figures from the named groups of every match. ``seconds`` is the time limit for each pattern.

    Raises ToolOutputError if nothing matches, and PatternTimeoutError.
    """
    cells: list[_Cell] = []
    for pattern in patterns:
        line, counted = 1, 0
        for match in search(pattern, [text], seconds):
            line += text.count("\n", counted, match.start)
            counted, groups = match.start, dict(match.groups)
            name = groups.pop(BENCHMARK, None) or ""
            found = [(metric, number) for metric, number in groups.items() if number is not None]
            cells += [(name, metric, number, f"on line {line}") for metric, number in found]
    if not cells:
        raise ToolOutputError(f"nothing in the output matches {' or '.join(patterns)!r}")
    return _readings(_figures(cells, decimal), units)


def from_csv(
    text: str, columns: Mapping[str, str], units: Mapping[str, str], decimal: Decimal | None = None
) -> tuple[Reading, ...]:
    """Read figures from columns by their heading. Lines before the heading are skipped.

    The separator is that of the heading: ``,``, ``;`` or a tab. Raises ToolOutputError.
    """
    wanted, metrics = set(columns.values()), [metric for metric in columns if metric != BENCHMARK]
    rows, start = _table(text, wanted, decimal)
    heading = [cell.strip() for cell in rows[start]]
    cells: list[_Cell] = []
    needed = max(heading.index(column) for column in wanted)
    ended = text.endswith(("\n", "\r"))
    for number, row in enumerate(rows[start + 1 :], start + 2):
        # A line without a separator is prose, unless it is a last row that was cut off.
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
        cells += [(name, metric, named[columns[metric]], f"in row {number}") for metric in metrics]
    if not cells:
        raise ToolOutputError("the CSV output has a heading but no rows")
    return _readings(_figures(cells, decimal), units)


def _table(text: str, wanted: set[str], decimal: Decimal | None) -> tuple[list[list[str]], int]:
    """Return the rows and the index of the heading, split by the first delimiter that gives a line all columns."""
    try:
        for delimiter in ";\t," if decimal == "comma" else ",;\t":
            rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
            for number, row in enumerate(rows):
                if wanted <= {cell.strip() for cell in row}:
                    return rows, number
    except csv.Error as error:
        raise ToolOutputError(f"the output is not CSV: {error}") from error
    raise ToolOutputError(f"no line of the output has the columns {', '.join(sorted(wanted))}")


def _figures(cells: Sequence[_Cell], decimal: Decimal | None) -> Iterator[_Figure]:
    """Read printed numbers, all of them in one notation."""
    evident: frozenset[str] = frozenset() if decimal else printed_numbers.evident_marks(cell[2] for cell in cells)
    for name, metric, text, place in cells:
        yield name, metric, printed_numbers.read(text, f"`{metric}` {place}", decimal, evident)


def _readings(figures: Iterable[_Figure], units: Mapping[str, str]) -> tuple[Reading, ...]:
    """Combine the figures of each benchmark and metric, in base units, with the step of their last digits."""
    values: dict[tuple[str, str], list[float]] = {}
    steps: dict[tuple[str, str], list[float]] = {}
    for name, metric, number in figures:
        known = unit_of(units[metric])
        factor = float(known[1]) if known else 1.0
        values.setdefault((name, metric), []).append(_base(metric, number.value, factor))
        steps.setdefault((name, metric), []).append(number.step * factor)
    found = (
        Reading(metric, many[0], name) if len(many) == 1 else reading_of_many(metric, many, name)
        for (name, metric), many in values.items()
    )
    return tuple(replace(item, tick=printed_tick(item.value, steps[item.benchmark, item.metric])) for item in found)


def _base(metric: str, value: float, factor: float) -> float:
    try:
        base = float(value * factor)
    except OverflowError as error:
        raise ToolOutputError(f"`{metric}` is too large for a number") from error
    if not math.isfinite(base) or (metric in METRICS and base < 0):
        raise ToolOutputError(f"`{metric}` is {tool_files.shown(value)}, which cannot be a measurement")
    if metric == "time" and base == 0:
        raise ToolOutputError("`time` is 0, which is not valid: have the program print more digits")
    return base
