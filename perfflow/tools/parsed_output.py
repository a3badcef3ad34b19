"""``parse``: read figures from the output of any program, by JSON path, pattern or CSV column."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
Paths = Mapping[str, str | Sequence[str]]
"""Metric -> path or column. ``benchmark`` may have several, whose values are joined to a name by ``/``."""
_Figure = tuple[str, str, Printed, int | None]
"""Benchmark, metric, the number in its declared unit, and the entry that names the benchmark.

The figures of one entry are samples of one benchmark; None: the output names no benchmark, so all figures are samples.
"""
_Cell = tuple[str, str, str, str, int | None]
"""Benchmark, metric, the number as printed, its place in the output, and the entry as in ``_Figure``."""
_STEP = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<index>\d*)\]")
_ALL = "[]"


def from_json(text: str, paths: Paths, units: Mapping[str, str], samples: bool = False) -> tuple[Reading, ...]:
    """Read figures at paths such as ``results[].mean``; ``[]`` means every item, ``[0]`` one of them.

    With a path for ``benchmark``, names and figures are paired in order; a name whose path has no ``[]`` holds for all
    figures. Raises ToolOutputError if a path does not exist, its value is not a number, or two items have one name.
    ``samples``: items of one name are samples of one benchmark.
    """
    try:
        data = json.loads(text, parse_float=_Written)
    except (ValueError, RecursionError) as error:
        hint = "; for lines with a JSON object each, write `jsonl`" if text.lstrip().startswith("{") else ""
        raise ToolOutputError(f"the output is not JSON: {error}{hint}") from error
    figures = list(_json_figures(data, paths, 0))
    for metric, path in _metrics(paths).items():
        if all(figure[1] != metric for figure in figures):
            raise ToolOutputError(f"the JSON output has nothing at {path!r}")
    named = _paths_of(paths)
    listed = next((path for path in named if _ALL in path), "")
    items = listed.rpartition(_ALL)[0] + _ALL if listed else ""

    def entries() -> list[dict[str, Any]]:
        return [_scalars(item, f"{items}.") for item in _at(data, items)] if items else []

    return _readings(figures, units, None if samples else _Distinct(paths, entries, "json"))


def from_jsonl(text: str, paths: Paths, units: Mapping[str, str], samples: bool = False) -> tuple[Reading, ...]:
    """Read figures from lines that are JSON objects each, by paths as in ``from_json``. Other lines are skipped.

    A line may have some of the paths. With ``benchmark``, each line with figures has a name, and each name has figures.
    Raises ToolOutputError as ``from_json`` does, also if a line that begins with ``{`` is not JSON.
    """
    figures: list[_Figure] = []
    objects: dict[int, Any] = {}
    unmeasured: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("{"):
            continue
        try:
            objects[number] = json.loads(line, parse_float=_Written)
            found = list(_json_figures(objects[number], paths, number))
            for name in [] if found or BENCHMARK not in paths else _names(objects[number], paths):
                unmeasured.setdefault(name, number)
        except (ValueError, RecursionError) as error:
            raise ToolOutputError(f"line {number} of the output is not JSON: {error}") from error
        except ToolOutputError as error:
            raise ToolOutputError(f"line {number}: {error}") from error
        figures += found
    for metric, path in _metrics(paths).items():
        if all(figure[1] != metric for figure in figures):
            raise ToolOutputError(f"no line of the output is a JSON object with {path!r}")
    lost = [name for name in unmeasured if all(figure[0] != name for figure in figures)]
    if lost:
        raise ToolOutputError(f"line {unmeasured[lost[0]]} names {lost[0]!r}, but no line has a figure for it")

    def entries() -> list[dict[str, Any]]:
        return [_scalars(item, "") for item in objects.values()]

    return _readings(figures, units, None if samples else _Distinct(paths, entries, "jsonl"))


def _paths_of(paths: Paths) -> list[str]:
    """Return the paths or columns of ``benchmark``."""
    named = paths.get(BENCHMARK, ())
    return [named] if isinstance(named, str) else list(named)


def _metrics(paths: Paths) -> dict[str, str]:
    return {metric: str(path) for metric, path in paths.items() if metric != BENCHMARK}


def _json_figures(data: Any, paths: Paths, first: int) -> Iterator[_Figure]:
    """Yield the figures of one document. ``first``: number of its first entry."""
    # An entry without a name has no figures of its own, so a document without names may lack the paths.
    names: list[str] | None = None
    for metric, path in _metrics(paths).items():
        values = _at(data, path)
        if not values:
            continue
        if names is None:
            names = _names(data, paths) if BENCHMARK in paths else [""]
        is_one = all(_ALL not in part for part in _paths_of(paths))
        if not is_one and len(names) != len(values):
            raise ToolOutputError(f"the JSON output has {len(names)} names but {len(values)} values at {path!r}")
        if not names:
            raise ToolOutputError(f"there is a value at {path!r}, but no name at {_paths_of(paths)[0]!r}")
        for index, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ToolOutputError(f"{path!r} is {tool_files.shown(value)}, not a number")
            number = Printed(value, value.step if isinstance(value, _Written) else 1.0)
            entry = None if BENCHMARK not in paths else first if is_one else index
            yield names[0 if is_one else index], metric, number, entry


def _names(data: Any, paths: Paths) -> list[str]:
    """Return the names of the benchmarks in a document; a part at a path without ``[]`` belongs to all of them."""
    parts = [[str(value) for value in _at(data, path)] for path in _paths_of(paths)]
    most = max(map(len, parts))
    parts = [part * most if len(part) == 1 else part for part in parts]
    if any(len(part) != most for part in parts):
        counts = " and ".join(f"{len(part)} at {path!r}" for part, path in zip(parts, _paths_of(paths), strict=True))
        raise ToolOutputError(f"the parts of the names differ in number: {counts}")
    return ["/".join(name) for name in zip(*parts, strict=True)]


def _scalars(item: Any, prefix: str) -> dict[str, Any]:
    """Return the texts and whole numbers in an object by their paths, which begin with ``prefix``."""
    found: dict[str, Any] = {}
    for key, value in item.items() if isinstance(item, dict) else ():
        if isinstance(value, dict):
            found |= _scalars(value, f"{prefix}{key}.")
        elif isinstance(value, str | int):
            found[prefix + key] = value
    return found


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
    samples: bool = False,
) -> tuple[Reading, ...]:
    """Read figures from the named groups of every match. ``seconds`` is the time limit for each pattern.

    Raises ToolOutputError if nothing matches, or if two matches give one name a figure, and PatternTimeoutError.
    """
    cells: list[_Cell] = []
    for pattern in patterns:
        line, counted = 1, 0
        for match in search(pattern, [text], seconds):
            line += text.count("\n", counted, match.start)
            counted, groups = match.start, dict(match.groups)
            name = groups.pop(BENCHMARK, None)
            entry = None if name is None else len(cells)
            found = [(metric, number) for metric, number in groups.items() if number is not None]
            cells += [(name or "", metric, number, f"on line {line}", entry) for metric, number in found]
    if not cells:
        raise ToolOutputError(f"nothing in the output matches {' or '.join(patterns)!r}")
    return _readings(_figures(cells, decimal), units, None if samples else _Distinct({}, list, "regex"))


def from_csv(
    text: str, columns: Paths, units: Mapping[str, str], decimal: Decimal | None = None, samples: bool = False
) -> tuple[Reading, ...]:
    """Read figures from columns by their heading. Lines before the heading are skipped.

    The separator is that of the heading: ``,``, ``;`` or a tab. Raises ToolOutputError, also for two rows of one name
    unless they are ``samples``.
    """
    metrics, parts = _metrics(columns), _paths_of(columns)
    wanted = {*metrics.values(), *parts}
    rows, start = _table(text, wanted, decimal)
    heading = [cell.strip() for cell in rows[start]]
    cells: list[_Cell] = []
    entries: list[dict[str, Any]] = []
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
        name = "/".join(named[part].strip() for part in parts)
        entries.append(named)
        entry = number if parts else None
        cells += [(name, metric, named[column], f"in row {number}", entry) for metric, column in metrics.items()]
    if not cells:
        raise ToolOutputError("the CSV output has a heading but no rows")
    distinct = _Distinct(columns, lambda: entries, "csv")
    return _readings(_figures(cells, decimal), units, None if samples else distinct)


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
    for name, metric, text, place, entry in cells:
        yield name, metric, printed_numbers.read(text, f"`{metric}` {place}", decimal, evident), entry


@dataclass(frozen=True)
class _Distinct:
    """The rule that each name belongs to one entry of the output, and how to make names distinct.

    ``entries``: the fields of all entries by path or column. ``key``: of ``parse``, for the message.
    """

    paths: Paths
    entries: Callable[[], list[dict[str, Any]]]
    key: str

    def error(self, name: str, metric: str, numbers: Sequence[float]) -> ToolOutputError:
        """Return the error about two figures of one name."""
        both = f"the output has two values of `{metric}` for {name!r}, {numbers[0]:.15g} and {numbers[1]:.15g}"
        parts = _paths_of(self.paths)
        if parts:
            another = "ANOTHER_COLUMN" if self.key == "csv" else "ANOTHER_PATH"
            remedy = f"`benchmark: {json.dumps([*parts, self._telling_apart() or another])}` under `{self.key}`"
        else:
            remedy = "match more of the text in the group `benchmark`"
        return ToolOutputError(
            f"{both}; make the names distinct: {remedy}; or, if they are samples of one benchmark, write "
            "`samples: true` under `parse`"
        )

    def _telling_apart(self) -> str:
        """Return a path or column whose values differ between entries of one name, '' if there is none."""
        entries, parts = self.entries(), _paths_of(self.paths)
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for entry in entries:
            groups.setdefault(tuple(entry.get(part) for part in parts), []).append(entry)
        several = [group for group in groups.values() if len(group) > 1]
        measured = set(_metrics(self.paths).values())
        # A text is more likely to be a parameter than a number, which may be another figure.
        keys = sorted(
            {key for entry in entries for key in entry} - {*parts, *measured},
            key=lambda key: not any(isinstance(entry.get(key), str) for entry in entries),
        )
        return next(
            (key for key in keys if all(_all_differ(entry.get(key) for entry in group) for group in several)), ""
        )


def _all_differ(values: Iterable[Any]) -> bool:
    listed = list(values)
    return None not in listed and len(set(listed)) == len(listed)


def _readings(figures: Iterable[_Figure], units: Mapping[str, str], distinct: _Distinct | None) -> tuple[Reading, ...]:
    """Combine the figures of each benchmark and metric, in base units, with the step of their last digits.

    Raises ToolOutputError if two entries of the output have one name, unless ``distinct`` is None.
    """
    values: dict[tuple[str, str], list[float]] = {}
    steps: dict[tuple[str, str], list[float]] = {}
    first: dict[tuple[str, str], tuple[int | None, float]] = {}
    for name, metric, number, entry in figures:
        before = first.setdefault((name, metric), (entry, number.value))
        if distinct and entry != before[0]:
            raise distinct.error(name, metric, (before[1], number.value))
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
