"""Tidy tables as CSV: one line for each row, an empty cell for an unknown value."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from itertools import islice

from perfflow.api.columns import DecisionRow, SampleRow, columns_of
from perfflow.api.rows import Table, decision_rows, sample_rows
from perfflow.api.run import Run
from perfflow.report.sanitize import csv_cell

FILES: Mapping[Table, str] = {"samples": "samples.csv", "decisions": "decisions.csv"}
_ROWS = 1000
"""Rows per chunk."""


def chunks(run: Run, table: Table) -> Iterator[str]:
    """Return the text of one table in chunks, since a long run has millions of samples.

    Raises UserError if the run's events are damaged.
    """
    if table == "samples":
        return _chunks(SampleRow, sample_rows(run.id, run.benchmarks, run.folder))
    return _chunks(DecisionRow, decision_rows(run.id, run.benchmarks))


def _chunks(kind: type[SampleRow | DecisionRow], rows: Iterator[SampleRow] | Iterator[DecisionRow]) -> Iterator[str]:
    yield _text([list(columns_of(kind))])
    lines = (list(map(_cell, row.values())) for row in rows)
    while part := list(islice(lines, _ROWS)):
        yield _text(part)


def _text(lines: list[list[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(lines)
    return stream.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    # repr of a float is the shortest text that parses to the same number.
    return csv_cell(value) if isinstance(value, str) else repr(value)
