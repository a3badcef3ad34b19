"""The CSV of Nsight Compute's raw and details pages, as launches with metrics by id.

The raw page has a column for each metric, its units in the row below the names, and a row for each launch. The details
page has a row for each metric of each launch under a label, which differs from version to version, and rows with the
advice of ncu's rules. Before the names of the columns stand progress (``==PROF==``) and what the program printed.
Nothing ends either page: launches that the progress tells of, and launches with fewer rows than others, show a cut.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from perfflow.errors import ToolOutputError
from perfflow.tools.nvidia import ncu_labels, ncu_numbers
from perfflow.tools.nvidia.ncu_numbers import Cell

_FIRST = '"ID",'
_SAID, _PROFILED = re.compile(r"==[A-Z]+=="), re.compile(r'^==PROF== Profiling ".*" - (\d+):', re.MULTILINE)
_KERNEL, _NAME, _VALUE, _UNIT = "Kernel Name", "Metric Name", "Metric Value", "Metric Unit"
_RULE, _TYPE, _TEXT, _SPEEDUP = "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup"
_REMEDY = "it wants the output of `ncu --csv --page raw` (or `details`)"
_Rows = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What one of ncu's rules says of a launch; ``kind`` is ncu's: OPT, WRN, INF or nothing."""

    name: str
    kind: str
    text: str
    speedup: str = ""


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
    if _NAME in header:
        if not {_VALUE, _UNIT} <= set(header):
            raise ToolOutputError(f"{name} is damaged: a page with {_NAME!r} and without {_VALUE!r}")
        launches, values, warnings = _details(name, header, rows)
    else:
        # Every cell of this page is quoted, an empty one, too.
        if any(line.startswith('"') and line.endswith(",") for line in text.splitlines()):
            raise ToolOutputError(f"{name} is cut short: a row ends with a comma")
        launches, values, warnings = *_raw(name, header, rows), []
    if (profiled := len(set(_PROFILED.findall(text)))) > len(launches):
        warnings.append(f"{name} holds {len(launches):,} of {profiled:,} launches that ncu profiled: it may be cut")
    return Table(launches, ncu_numbers.decimal_mark(values), tuple(warnings))


def _rows(name: str, text: str) -> list[list[str]]:
    """The cells of each row from the columns' names on."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(_FIRST)), None)
    if start is None:
        raise ToolOutputError(f"{name} holds no table of ncu: {_REMEDY}")
    found: list[list[str]] = []
    for line in filter(str.strip, lines[start:]):
        if not _SAID.match(line):
            try:
                found += csv.reader([line], strict=True)
            except (csv.Error, ValueError) as error:
                raise ToolOutputError(f"{name} is cut short or damaged: {ascii(line)[:80]}") from error
    return found


def _raw(name: str, header: Sequence[str], rows: _Rows) -> tuple[list[Launch], list[Cell]]:
    for cells in rows:
        _require_whole(name, header, cells)
    metrics = {column: at for at, column in enumerate(header) if _is_metric(column)}
    if not metrics:
        raise ToolOutputError(f"{name} holds no metric: {_REMEDY}")
    if not rows or rows[0][0]:
        raise ToolOutputError(f"{name} is damaged: no units stand below its columns")
    if len({cells[0] for cells in rows}) != len(rows):
        raise ToolOutputError(f"{name} is damaged: two rows are of the same launch")
    launches = []
    for cells in rows[1:]:
        own = {column: cell for column, cell in zip(header, cells, strict=True) if column not in metrics}
        found = {column: Cell(cells[at], rows[0][at]) for column, at in metrics.items()}
        launches.append(Launch(_id(name, cells[0]), own[_KERNEL], own, found))
    return launches, [cell for launch in launches for cell in launch.cells.values()]


def _is_metric(column: str) -> bool:
    """Whether a column is a metric's: its id, but not one of several instances of it."""
    return ("__" in column or column.startswith("memory_l")) and ":" not in column


def _details(name: str, header: Sequence[str], rows: _Rows) -> tuple[list[Launch], list[Cell], list[str]]:
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
            metric = ncu_labels.id_of(label, cell.unit)
            if metric and launch.cells.setdefault(metric, cell).text != cell.text:
                raise ToolOutputError(f"{name} is damaged: it gives {label[:60]!r} of launch {launch.id} twice")
        elif row.get(_RULE):
            launch.rules.append(Rule(row[_RULE], row.get(_TYPE, ""), row.get(_TEXT, ""), row.get(_SPEEDUP, "")))
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
