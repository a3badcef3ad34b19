"""Reader of the CSV of Nsight Compute's raw and details pages, as launches with metrics by id.

The raw page has a column for each metric, units in the row below the names, and a row for each launch. The details page
has a row for each metric of each launch under a label, which differs from version to version, and rows with the advice
of ncu's rules. Progress (``==PROF==``) and the program's output precede the column names. Neither page has an end mark:
a truncated one is recognized by launches in the progress, and by launches with fewer rows than others.

Numbers are in the notation of ncu's locale. One table has one notation, so all its cells together determine the marks
of groups and decimals: ``4,963,609,951.19``, ``27.595.520`` beside ``65,77``, ``1 024,5``. If there is only a number
such as ``117.344``, its unit can decide: there are no fractions of a nanosecond, and ncu chooses prefixes so that
figures are below 1000. The spelling of units changed from ``nsecond`` and ``cycle/nsecond`` to ``ns`` and ``hz``;
prefixes are decimal.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from perfflow.model.errors import ToolOutputError
from perfflow.tools import parsed_output, tool_files
from perfflow.tools.nvidia.ncu_metrics import BY_LABEL, Kind

_FIRST = '"ID",'
_MESSAGE, _PROFILED = re.compile(r"==[A-Z]+=="), re.compile(r'^==PROF== Profiling ".*" - (\d+):', re.MULTILINE)
_KERNEL, _NAME, _VALUE, _UNIT = "Kernel Name", "Metric Name", "Metric Value", "Metric Unit"
_RULE = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup")
_REMEDY = "use the output of `ncu --csv --page raw` (or `details`)"
_GROUPS = re.compile(r"(?<=\d)[ \u00a0\u202f'\u2019](?=\d{3})")
# With --print-metric-instances, the values of every instance follow in brackets.
_INSTANCES = re.compile(r"\s*\([^()]*\)\Z")
_MISSING = {"", "n/a", "-nan", "nan", "+nan", "no data", "<n/a>"}
_DOUBTFUL = "(!)"
# A single mark before three digits: groups or decimals.
_EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_WHOLE = {"ns", "nsecond", "byte", "byte/block", "block", "thread", "register/thread"}
_SCALED = re.compile(r"(?:[umkKMGT](?:second|s|byte|B|[hH]z)\b|cycle/[num]second).*")
_ID = re.compile(r"[a-z0-9_]+__[a-zA-Z0-9_.]+", re.ASCII)


def _prefixed(*names: str) -> dict[str, int]:
    """Return the units with every prefix, and their powers of ten."""
    prefixes = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
    return {prefix + name: power for prefix, power in prefixes.items() for name in names}


def _rates(amounts: Mapping[str, int]) -> dict[str, int]:
    return {f"{above}/{below}": up - down for above, up in amounts.items() for below, down in _TIMES.items()}


_TIMES, _SIZES = _prefixed("second", "seconds", "sec", "s"), _prefixed("byte", "bytes", "B")
_COUNTED = (
    "", "inst", "inst/cycle", "inst/warp", "warp", "warps", "block", "blocks", "thread", "threads", "cycle",
    "register", "register/thread", "registers/thread", "byte/cycle", "sector", "sectors",
)  # fmt: skip
_POWERS: Mapping[Kind, Mapping[str, int]] = {
    "s": _TIMES,
    "B": _SIZES | {f"{unit}/block": power for unit, power in _SIZES.items()},
    "B/s": _rates(_SIZES),
    "1/s": _prefixed("hz", "Hz") | _rates(_prefixed("cycle", "cycles")),
    "%": {"%": -2},
    "1": dict.fromkeys(_COUNTED, 0),
}
"""The power of ten that converts a figure of each unit to base units, by kind."""


class Cell(NamedTuple):
    """A metric of one launch, as printed."""

    text: str
    unit: str = ""


class NcuRule(NamedTuple):
    """The result of one of ncu's rules for a launch; ``kind`` is ncu's: OPT, WRN, INF or ''."""

    name: str
    kind: str
    text: str
    speedup: str


@dataclass(slots=True)
class NcuLaunch:
    """One launch of a kernel: ``cells`` by the metric's id, and ``columns`` with its other data."""

    id: str
    kernel: str
    columns: dict[str, str]
    cells: dict[str, Cell] = field(default_factory=dict)
    rules: list[NcuRule] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NcuTable:
    """The launches of one page in the order in which they ran, the decimal mark, and warnings about missing data."""

    launches: Sequence[NcuLaunch]
    mark: str
    warnings: tuple[str, ...] = ()


def read(name: str, text: str) -> NcuTable:
    """Read either page. Raises ToolOutputError if there is no table, or if it is truncated or not a table of ncu."""
    header, *rows = _rows(name, text)
    if len(set(header)) != len(header) or _KERNEL not in header:
        raise ToolOutputError(f"{name} is damaged: its columns are {', '.join(header)[:80]!r}")
    warnings: list[str] = []
    if _NAME in header:
        if not {_VALUE, _UNIT} <= set(header):
            raise ToolOutputError(
                f"{name} is damaged: it has a column {_NAME!r}, but not both {_VALUE!r} and {_UNIT!r}"
            )
        launches, values, warnings = _details(name, header, rows)
    else:
        # Every cell of this page is quoted, including empty ones.
        if any(line.startswith('"') and line.endswith(",") for line in text.splitlines()):
            raise ToolOutputError(f"{name} is cut short: a row ends with a comma")
        launches = _raw(name, header, rows)
        values = [cell for launch in launches for cell in launch.cells.values()]
    if (profiled := len(set(_PROFILED.findall(text)))) > len(launches):
        warnings.append(f"{name} contains {len(launches):,} of {profiled:,} profiled launches: it may be cut short")
    return NcuTable(launches, decimal_mark(values), tuple(warnings))


def _rows(name: str, text: str) -> list[list[str]]:
    """Return the cells of each row, beginning with the column names."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(_FIRST)), None)
    if start is None:
        raise ToolOutputError(f"{name} contains no table of ncu: {_REMEDY}")
    try:
        return list(
            csv.reader((line for line in lines[start:] if line.strip() and not _MESSAGE.match(line)), strict=True)
        )
    except csv.Error as error:
        raise ToolOutputError(f"{name} is cut short or damaged: {error}") from error


def _raw(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[NcuLaunch]:
    for cells in rows:
        _require_whole(name, header, cells)
    # Columns with single instances of a metric are left out.
    metrics = [at for at, id_ in enumerate(header) if ("__" in id_ or id_.startswith("memory_l")) and ":" not in id_]
    if not metrics:
        raise ToolOutputError(f"{name} contains no metric: {_REMEDY}")
    if not rows or rows[0][0]:
        raise ToolOutputError(f"{name} is damaged: the row of units below the column names is missing")
    if len({cells[0] for cells in rows}) != len(rows):
        raise ToolOutputError(f"{name} is damaged: two rows are of the same launch")
    launches = []
    for cells in rows[1:]:
        by_column = dict(zip(header, cells, strict=True))
        metrics_of_launch = {header[at]: Cell(cells[at], rows[0][at]) for at in metrics}
        launches.append(NcuLaunch(_id(name, cells[0]), by_column[_KERNEL], by_column, metrics_of_launch))
    return launches


def _details(
    name: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[NcuLaunch], list[Cell], list[str]]:
    launches: dict[str, NcuLaunch] = {}
    values: list[Cell] = []
    rows_of: Counter[str] = Counter()
    for cells in rows:
        # A row of a metric ends with a comma after its value.
        if len(cells) != header.index(_VALUE) + 2 or cells[-1]:
            _require_whole(name, header, cells)
        row = dict(zip(header, cells, strict=False))
        launch = launches.setdefault(_id(name, cells[0]), NcuLaunch(cells[0], row[_KERNEL], row))
        if launch.kernel != row[_KERNEL]:
            raise ToolOutputError(f"{name} is damaged: launch {launch.id} has two kernels")
        if label := row[_NAME]:
            values.append(cell := Cell(row[_VALUE], row[_UNIT]))
            rows_of[launch.id] += 1
            # Metrics without a known id are left out.
            metric = _id_of(label, cell.unit)
            if metric and launch.cells.setdefault(metric, cell).text != cell.text:
                raise ToolOutputError(f"{name} is damaged: it contains {label[:60]!r} of launch {launch.id} twice")
        elif row.get(_RULE[0]):
            launch.rules.append(NcuRule(*(row.get(column, "") for column in _RULE)))
    fewer = [number for number in launches if rows_of[number] < max(rows_of.values(), default=0)]
    short = f"{name} has fewer metrics of launch {', '.join(fewer[:3])} than of others: it may be cut short"
    return list(launches.values()), values, [short] if fewer else []


def _require_whole(name: str, header: Sequence[str], cells: Sequence[str]) -> None:
    if len(cells) != len(header):
        raise ToolOutputError(f"{name} is cut short: a row has {len(cells)} cells under {len(header)} columns")


def _id(name: str, cell: str) -> str:
    if not re.fullmatch(r"\d{1,12}", cell, re.ASCII):
        raise ToolOutputError(f"{name} is damaged: {ascii(cell)[:40]} is not the number of a launch")
    return cell


def _id_of(label: str, unit: str) -> str:
    """Return the id of a label with its unit; an id is returned as it is; '' for a metric that perfflow does not read.

    Raises ToolOutputError for a label that is only known with another unit.
    """
    if _ID.fullmatch(label):
        return label
    is_share = unit.strip() == "%"
    metric_id = BY_LABEL.get((is_share, label), "")
    if not metric_id and (not is_share, label) in BY_LABEL:
        raise ToolOutputError(f"{label} has the unit {ascii(unit)[:30]}, which perfflow does not know for it")
    return metric_id


def decimal_mark(cells: Iterable[Cell]) -> str:
    """Return the decimal mark of a table, ``.`` or ``,``; '' if it is unknown.

    Raises ToolOutputError if cells contradict each other.
    """
    marks = {mark for cell in cells for mark in _evidence(cell)}
    if len(marks) > 1:
        raise ToolOutputError("the table has numbers in two notations: print it with LC_ALL=C")
    return marks.pop() if marks else ""


def _evidence(cell: Cell) -> Iterator[str]:
    for text in (_bare(cell), *re.split(r"[;()\s]+", cell.text)):
        yield from parsed_output.decimal_evidence(text)
    if _EITHER.fullmatch(text := _bare(cell)):
        seen, other = (".", ",") if "." in text else (",", ".")
        if cell.unit in _WHOLE:
            yield other
        elif _SCALED.fullmatch(cell.unit):
            yield seen


def _bare(cell: Cell) -> str:
    """Return a cell's text without spaces between groups, the mark of doubt, and values of single instances."""
    return _GROUPS.sub("", _INSTANCES.sub("", cell.text.strip().removeprefix(_DOUBTFUL).strip()))


def figure(cell: Cell, mark: str, kind: Kind, what: str) -> float | None:
    """Return a cell's figure in the base unit of its kind, shares as 0..1; None if it was not collected.

    Raises ToolOutputError naming ``what`` for a text that is not a number, a negative or infinite number, an ambiguous
    number without a known ``mark``, and a unit of another kind.
    """
    text = _bare(cell)
    if text.lower() in _MISSING:
        return None
    if not mark and _EITHER.fullmatch(text):
        raise ToolOutputError(f"{what} is {text}, which may be a thousand times as much or as little: use LC_ALL=C")
    number = parsed_output.plain_number(text, "comma" if mark == "," else "point")
    if number is None:
        raise ToolOutputError(f"{what} is {ascii(cell.text)[:60]}, not a number")
    value, power = tool_files.number(number.value, what), tool_files.scale_of(cell.unit.strip(), _POWERS[kind], what)
    # Divided, since 1e-9 is not a binary fraction: 239008 ns are exactly 0.000239008 s.
    return tool_files.number(value * 10.0**power if power >= 0 else value / 10.0**-power, what)
