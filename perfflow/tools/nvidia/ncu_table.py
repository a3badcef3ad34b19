"""The CSV of Nsight Compute's raw and details pages, as launches with metrics by id.

The raw page has a column for each metric, its units in the row below the names, and a row for each launch. The details
page has a row for each metric of each launch under a label, which differs from version to version, and rows with the
advice of ncu's rules. Before the names of the columns stand progress (``==PROF==``) and what the program printed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perfflow.errors import ToolOutputError
from perfflow.tools.nvidia import ncu_labels, ncu_numbers

_FIRST = '"ID",'
_SAID = re.compile(r"==[A-Z]+==")
_KERNEL, _NAME, _VALUE, _UNIT = "Kernel Name", "Metric Name", "Metric Value", "Metric Unit"
_RULE, _TYPE, _TEXT, _SPEEDUP = "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup"
_REMEDY = "it wants the output of `ncu --csv --page raw` (or `details`)"


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric of one launch as it was printed."""

    text: str
    unit: str


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
    columns: Mapping[str, str]
    cells: dict[str, Cell] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Table:
    """The launches of one page, in the order in which they ran, and what marks decimals in it."""

    launches: Sequence[Launch]
    mark: str


def read(name: str, text: str) -> Table:
    """Read either page. Raises ToolOutputError if there is no table, or if it is cut or no table of ncu's."""
    rows = _rows(name, text)
    header = next(rows, [])
    if len(set(header)) != len(header) or _KERNEL not in header:
        raise ToolOutputError(f"{name} is damaged: its columns are {', '.join(header)[:80]!r}")
    if _NAME not in header:
        # Every cell of this page is quoted, an empty one, too.
        if any(line.startswith('"') and line.endswith(",") for line in text.splitlines()):
            raise ToolOutputError(f"{name} is cut short: a row ends with a comma")
        return _raw(name, header, list(rows))
    if not {_VALUE, _UNIT} <= set(header):
        raise ToolOutputError(f"{name} is damaged: a page with {_NAME!r} and without {_VALUE!r}")
    return _details(name, header, list(rows))


def _rows(name: str, text: str) -> Iterator[list[str]]:
    """Yield the cells of each row from the columns' names on."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(_FIRST)), None)
    if start is None:
        raise ToolOutputError(f"{name} holds no table of ncu: {_REMEDY}")
    for line in lines[start:]:
        if not line.strip() or _SAID.match(line):
            continue
        try:
            (cells,) = csv.reader([line], strict=True)
        except (csv.Error, ValueError) as error:
            raise ToolOutputError(f"{name} is cut short or damaged: {ascii(line)[:80]}") from error
        yield cells


def _raw(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    for cells in rows:
        if len(cells) != len(header):
            raise ToolOutputError(f"{name} is cut short: a row has {len(cells)} cells under {len(header)} columns")
    metrics = [index for index, column in enumerate(header) if _is_metric(column)]
    if not metrics:
        raise ToolOutputError(f"{name} holds no metric: {_REMEDY}")
    if not rows or rows[0][0]:
        raise ToolOutputError(f"{name} is damaged: no units stand below its columns")
    if len({cells[0] for cells in rows}) != len(rows):
        raise ToolOutputError(f"{name} is damaged: two rows are of the same launch")
    units, launches = rows[0], []
    for cells in rows[1:]:
        own = {column: cells[index] for index, column in enumerate(header) if index not in set(metrics)}
        found = {header[index]: Cell(cells[index], units[index]) for index in metrics}
        launches.append(Launch(_id(name, cells[0]), own[_KERNEL], own, found))
    return Table(launches, ncu_numbers.decimal_mark(cells[index] for cells in rows[1:] for index in metrics))


def _is_metric(column: str) -> bool:
    """Whether a column is a metric's: its id, but not one of several instances of it."""
    return ("__" in column or column.startswith("memory_l")) and ":" not in column


def _details(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    value = header.index(_VALUE)
    launches: dict[str, Launch] = {}
    values = []
    for cells in rows:
        # A row of a metric ends behind its value, by a comma.
        is_short = len(cells) == value + 2 and not cells[-1]
        if not is_short and len(cells) != len(header):
            raise ToolOutputError(f"{name} is cut short: a row has {len(cells)} cells under {len(header)} columns")
        row = dict(zip(header, cells, strict=False))
        launch = launches.setdefault(_id(name, cells[0]), Launch(cells[0], row[_KERNEL], row))
        if launch.kernel != row[_KERNEL]:
            raise ToolOutputError(f"{name} is damaged: launch {launch.id} is of two kernels")
        if label := row[_NAME]:
            values.append(row[_VALUE])
            _add(name, launch, label, Cell(row[_VALUE], row[_UNIT]))
        elif row.get(_RULE):
            rule = Rule(row[_RULE], row.get(_TYPE, ""), row.get(_TEXT, ""), row.get(_SPEEDUP, ""))
            launch.rules.append(rule)
    return Table(list(launches.values()), ncu_numbers.decimal_mark(values))


def _add(name: str, launch: Launch, label: str, cell: Cell) -> None:
    """File a cell under the id of its metric; metrics without a known one are left out."""
    metric = ncu_labels.id_of(label, cell.unit)
    if metric and launch.cells.setdefault(metric, cell).text != cell.text:
        raise ToolOutputError(f"{name} is damaged: it gives {label[:60]!r} of launch {launch.id} twice")


def _id(name: str, cell: str) -> str:
    if not re.fullmatch(r"\d{1,12}", cell, re.ASCII):
        raise ToolOutputError(f"{name} is damaged: {ascii(cell)[:40]} is no launch's number")
    return cell
