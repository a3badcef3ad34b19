"""The CSV of Nsight Compute's raw and details pages, as launches with metrics by id.

The raw page has a column for each metric, its units in the row below the names, and a row for each launch. The details
page has a row for each metric of each launch under a label, which differs from version to version, and rows with the
advice of ncu's rules. Before the names of the columns stand progress (``==PROF==``) and what the program printed.
Nothing ends either page: launches that the progress tells of, and launches with fewer rows than others, show a cut.

Numbers are in the notation of whatever locale ncu ran in. A table is printed in one notation, so how its groups and
decimals are marked is told by all of its cells together: ``4,963,609,951.19``, ``27.595.520`` beside ``65,77``,
``1 024,5``. Where only ``117.344`` tells, its unit may: there is no part of a nanosecond, and a unit with a prefix is
chosen so that its figure is below 1000. The spelling of units changed from ``nsecond`` and ``cycle/nsecond`` to ``ns``
and ``hz``; prefixes are decimal.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from perfflow.model.errors import ToolOutputError
from perfflow.tools import printed_numbers, tool_files
from perfflow.tools.nvidia.ncu_metrics import BY_LABEL, Kind

_FIRST = '"ID",'
_SAID, _PROFILED = re.compile(r"==[A-Z]+=="), re.compile(r'^==PROF== Profiling ".*" - (\d+):', re.MULTILINE)
_KERNEL, _NAME, _VALUE, _UNIT = "Kernel Name", "Metric Name", "Metric Value", "Metric Unit"
_RULE = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup")
_REMEDY = "it wants the output of `ncu --csv --page raw` (or `details`)"
_GROUPS = re.compile(r"(?<=\d)[ \u00a0\u202f'\u2019](?=\d{3})")
# With --print-metric-instances, the values of every instance follow in brackets.
_INSTANCES = re.compile(r"\s*\([^()]*\)\Z")
_MISSING = {"", "n/a", "-nan", "nan", "+nan", "no data", "<n/a>"}
_DOUBTFUL = "(!)"
# A lone mark before three digits.
_EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_WHOLE = {"ns", "nsecond", "byte", "byte/block", "block", "thread", "register/thread"}
_SCALED = re.compile(r"(?:[umkKMGT](?:second|s|byte|B|[hH]z)\b|cycle/[num]second).*")
_ID = re.compile(r"[a-z0-9_]+__[a-zA-Z0-9_.]+", re.ASCII)


def _prefixed(*names: str) -> dict[str, int]:
    """Units with every prefix, and their powers of ten."""
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
"""The power of ten that turns a figure of a unit into one of base units."""


class Cell(NamedTuple):
    """A metric of one launch as it was printed."""

    text: str
    unit: str = ""


class Rule(NamedTuple):
    """What one of ncu's rules says of a launch; ``kind`` is ncu's: OPT, WRN, INF or nothing."""

    name: str
    kind: str
    text: str
    speedup: str


@dataclass(slots=True)
class Launch:
    """One launch of a kernel: ``cells`` by the metric's id, ``columns`` what else its rows say of it."""

    id: str
    kernel: str
    columns: dict[str, str]
    cells: dict[str, Cell] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Table:
    """The launches of one page, in the order in which they ran, what marks decimals in it, and what it may lack."""

    launches: Sequence[Launch]
    mark: str
    warnings: tuple[str, ...] = ()


def read(name: str, text: str) -> Table:
    """Read either page. Raises ToolOutputError if there is no table, or if it is cut or no table of ncu's."""
    header, *rows = _rows(name, text)
    if len(set(header)) != len(header) or _KERNEL not in header:
        raise ToolOutputError(f"{name} is damaged: its columns are {', '.join(header)[:80]!r}")
    warnings: list[str] = []
    if _NAME in header:
        if not {_VALUE, _UNIT} <= set(header):
            raise ToolOutputError(f"{name} is damaged: a page with {_NAME!r} and without {_VALUE!r}")
        launches, values, warnings = _details(name, header, rows)
    else:
        # Every cell of this page is quoted, an empty one, too.
        if any(line.startswith('"') and line.endswith(",") for line in text.splitlines()):
            raise ToolOutputError(f"{name} is cut short: a row ends with a comma")
        launches = _raw(name, header, rows)
        values = [cell for launch in launches for cell in launch.cells.values()]
    if (profiled := len(set(_PROFILED.findall(text)))) > len(launches):
        warnings.append(f"{name} holds {len(launches):,} of {profiled:,} launches that ncu profiled: it may be cut")
    return Table(launches, decimal_mark(values), tuple(warnings))


def _rows(name: str, text: str) -> list[list[str]]:
    """The cells of each row from the columns' names on."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(_FIRST)), None)
    if start is None:
        raise ToolOutputError(f"{name} holds no table of ncu: {_REMEDY}")
    try:
        return list(csv.reader((line for line in lines[start:] if line.strip() and not _SAID.match(line)), strict=True))
    except csv.Error as error:
        raise ToolOutputError(f"{name} is cut short or damaged: {error}") from error


def _raw(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Launch]:
    for cells in rows:
        _require_whole(name, header, cells)
    # Of the columns with a metric's id those of its single instances are left out.
    metrics = [at for at, id_ in enumerate(header) if ("__" in id_ or id_.startswith("memory_l")) and ":" not in id_]
    if not metrics:
        raise ToolOutputError(f"{name} holds no metric: {_REMEDY}")
    if not rows or rows[0][0]:
        raise ToolOutputError(f"{name} is damaged: no units stand below its columns")
    if len({cells[0] for cells in rows}) != len(rows):
        raise ToolOutputError(f"{name} is damaged: two rows are of the same launch")
    launches = []
    for cells in rows[1:]:
        own = dict(zip(header, cells, strict=True))
        found = {header[at]: Cell(cells[at], rows[0][at]) for at in metrics}
        launches.append(Launch(_id(name, cells[0]), own[_KERNEL], own, found))
    return launches


def _details(
    name: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[Launch], list[Cell], list[str]]:
    launches: dict[str, Launch] = {}
    values: list[Cell] = []
    told: Counter[str] = Counter()
    for cells in rows:
        # A row of a metric ends behind its value, by a comma.
        if len(cells) != header.index(_VALUE) + 2 or cells[-1]:
            _require_whole(name, header, cells)
        row = dict(zip(header, cells, strict=False))
        launch = launches.setdefault(_id(name, cells[0]), Launch(cells[0], row[_KERNEL], row))
        if launch.kernel != row[_KERNEL]:
            raise ToolOutputError(f"{name} is damaged: launch {launch.id} is of two kernels")
        if label := row[_NAME]:
            values.append(cell := Cell(row[_VALUE], row[_UNIT]))
            told[launch.id] += 1
            # Metrics without a known id are left out.
            metric = _id_of(label, cell.unit)
            if metric and launch.cells.setdefault(metric, cell).text != cell.text:
                raise ToolOutputError(f"{name} is damaged: it gives {label[:60]!r} of launch {launch.id} twice")
        elif row.get(_RULE[0]):
            launch.rules.append(Rule(*(row.get(column, "") for column in _RULE)))
    fewer = [number for number in launches if told[number] < max(told.values(), default=0)]
    short = f"{name} tells less of launch {', '.join(fewer[:3])} than of others: it may be cut"
    return list(launches.values()), values, [short] if fewer else []


def _require_whole(name: str, header: Sequence[str], cells: Sequence[str]) -> None:
    if len(cells) != len(header):
        raise ToolOutputError(f"{name} is cut short: a row has {len(cells)} cells under {len(header)} columns")


def _id(name: str, cell: str) -> str:
    if not re.fullmatch(r"\d{1,12}", cell, re.ASCII):
        raise ToolOutputError(f"{name} is damaged: {ascii(cell)[:40]} is no launch's number")
    return cell


def _id_of(label: str, unit: str) -> str:
    """Return the id behind a label and its unit, a metric's own id as it is, '' for one that perfflow does not read.

    Raises ToolOutputError for a label that is known with another unit only.
    """
    if _ID.fullmatch(label):
        return label
    is_share = unit.strip() == "%"
    found = BY_LABEL.get((is_share, label), "")
    if not found and (not is_share, label) in BY_LABEL:
        raise ToolOutputError(f"{label} has the unit {ascii(unit)[:30]}, which perfflow does not know for it")
    return found


def decimal_mark(cells: Iterable[Cell]) -> str:
    """Return which of ``.`` and ``,`` marks decimals in a table, '' where nothing tells.

    Raises ToolOutputError where some cells say one and others the other.
    """
    marks = {mark for cell in cells for mark in _evidence(cell)}
    if len(marks) > 1:
        raise ToolOutputError("its numbers are written in two notations: print it with LC_ALL=C")
    return marks.pop() if marks else ""


def _evidence(cell: Cell) -> Iterator[str]:
    for text in (_bare(cell), *re.split(r"[;()\s]+", cell.text)):
        yield from printed_numbers.decimal_evidence(text)
    if _EITHER.fullmatch(text := _bare(cell)):
        seen, other = (".", ",") if "." in text else (",", ".")
        if cell.unit in _WHOLE:
            yield other
        elif _SCALED.fullmatch(cell.unit):
            yield seen


def _bare(cell: Cell) -> str:
    """A cell without spaces between its groups, the mark of doubt, and the values of single instances."""
    return _GROUPS.sub("", _INSTANCES.sub("", cell.text.strip().removeprefix(_DOUBTFUL).strip()))


def figure(cell: Cell, mark: str, kind: Kind, what: str) -> float | None:
    """Return a cell's figure in the base unit of its kind, shares as 0..1; None where it was not collected.

    Raises ToolOutputError naming ``what`` for no number, a negative or an endless one, one that may be two where no
    ``mark`` is known, and for a unit of another kind.
    """
    text = _bare(cell)
    if text.lower() in _MISSING:
        return None
    if not mark and _EITHER.fullmatch(text):
        raise ToolOutputError(f"{what} is {text}, which may be a thousand times as much or as little: use LC_ALL=C")
    found = printed_numbers.plain(text, "comma" if mark == "," else "point")
    if found is None:
        raise ToolOutputError(f"{what} is {ascii(cell.text)[:60]}, not a number")
    value, power = tool_files.number(found.value, what), tool_files.scale_of(cell.unit.strip(), _POWERS[kind], what)
    # Divided, since 1e-9 is no binary fraction: 239008 ns are 0.000239008 s to the digit.
    return tool_files.number(value * 10.0**power if power >= 0 else value / 10.0**-power, what)
