"""Print the names of the benchmarks in the tables that a program with nanobench prints, one per line.

    python nanobench_names.py PROGRAM ARGUMENT ...

The exit status is the program's own. A bare interpreter runs this file, so it uses only the standard library.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

BETWEEN = " > "
"""Joins the title of a table and the name of a benchmark."""
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}
_UNTITLED = "benchmark"
# The line below the head of a table, whose last cell has the title: |------:|------:|:------
_RULE = re.compile(r"\|(?:-+:\|)+:-+\s*\Z")
_LAST = re.compile(r"\s*(?P<sign>:wavy_dash: |:boom: )?`(?P<name>(?:[^`]|``)+)`(?: \((?P<note>.*)\))?\s*\Z")


class NanobenchRow(NamedTuple):
    """A row of a table with times: the benchmark, the unit of the time (s), the time, and units of work per second.

    ``name`` is '' if the row is damaged, and ``rate`` if the table hides the column. ``why`` is the reason for a
    missing time, else ''.
    """

    name: str
    unit: float
    time: str
    rate: str
    why: str = ""


def rows(text: str) -> Iterator[NanobenchRow]:
    """Yield the rows of all tables that have a column of times, such as ``ns/op``. Columns may be hidden or added."""
    head: list[str] = []
    for line, below in pairwise([*text.splitlines(), ""]):
        if _RULE.match(below):
            head = [cell.strip() for cell in line.split("|", below.count("|"))[1:]]
        elif not line.startswith("|"):
            head = []
        elif not _RULE.match(line) and (column := _time_column(head)) is not None:
            yield _row(head, column, line.split("|", len(head))[1:])


def _time_column(head: list[str]) -> int | None:
    return next((number for number, cell in enumerate(head[:-1]) if "/" in cell and cell.split("/")[0] in UNITS), None)


def _row(head: list[str], column: int, cells: list[str]) -> NanobenchRow:
    scale, _, work = head[column].partition("/")
    last = _LAST.match(cells[-1]) if len(cells) == len(head) else None
    if last is None:
        return NanobenchRow("", UNITS[scale], "", "")
    title, name = head[-1], last["name"].replace("``", "`")
    shown = name if title == _UNTITLED else f"{title}{BETWEEN}{name}"
    rate = cells[column + 1] if head[column + 1] == f"{work}/s" else ""
    why = (last["note"] or "it has no time") if last["sign"] == ":boom: " else ""
    return NanobenchRow(shown, UNITS[scale], cells[column], rate, why)


def main() -> None:
    """Run the program and print the names."""
    done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=False)
    names = dict.fromkeys(row.name for row in rows(done.stdout.decode("utf-8", "replace")) if row.name)
    sys.stdout.buffer.write("".join(f"{name}\n" for name in names).encode("utf-8", "replace"))
    sys.exit(done.returncode if done.returncode >= 0 else 1)


if __name__ == "__main__":
    main()
