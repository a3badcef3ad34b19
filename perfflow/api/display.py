"""A small HTML table of measured rows for notebooks, with the texts of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.metrics import in_words
from perfflow.model.result import Benchmark, Result
from perfflow.report.rows import comparison_of
from perfflow.report.sanitize import visible

MOST_ROWS = 50
"""Most rows of a table, since a notebook stores its output in its file."""


def html(title: str, rows: Sequence[Benchmark], result: Result, *, names: bool) -> str:
    """Return a table of rows with both sides, the change with its interval, and the decision; all text is escaped.

    ``names``: whether the benchmarks' names are a column.
    """
    criteria = criteria_from_json(result.criteria)
    head = [*(["benchmark"] if names else []), "metric", "baseline", "candidate", "change", "decision"]
    lines = [
        "<table>",
        f"<caption>{_text(title)}</caption>",
        f"<thead><tr>{''.join(f'<th>{_text(name)}</th>' for name in head)}</tr></thead>",
        "<tbody>",
        *(_row(cells) for cells in _cells(rows[:MOST_ROWS], criteria, names=names)),
        "</tbody>",
        "</table>",
    ]
    left = len(rows) - MOST_ROWS
    if left > 0:
        lines.append(f"<p>{left} more rows are in <code>benchmarks</code>.</p>")
    return "\n".join(lines)


def _cells(rows: Sequence[Benchmark], criteria: Criteria, *, names: bool) -> Iterator[list[str]]:
    for row in rows:
        shown = comparison_of(row, criteria)
        name = [row.name] if names else []
        yield [*name, in_words(row.metric), shown.baseline, shown.candidate, shown.change, shown.decision]


def _row(cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    return escape(visible(text))
