"""The output of ``perfflow history``: the index of all benchmarks and the runs of one, as tables and as data."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from perfflow.jobs.history.collect import shown
from perfflow.jobs.history.suspicion_report import LocatedChange, TrendChange, changes_of, located_change
from perfflow.jobs.history.trends import NEWEST, HistoryFilter, SeriesTrend, commit_order, parameters_of, trends
from perfflow.model.errors import UserError
from perfflow.model.metrics import in_words
from perfflow.model.plain_data import to_json
from perfflow.report import history_tables
from perfflow.report.history_tables import ChangeRow, IndexRow, Shift
from perfflow.report.sanitize import csv_cell
from perfflow.report.table import Table, Tone
from perfflow.store.history.stored import suggestion
from perfflow.tools.tool_files import clean_name

Tell = Callable[[str], None]
NEWEST_DRAWN = 48
"""The number of newest values in a sparkline."""
_COLUMNS = (
    *("benchmark", "metric", "statistic", "unit", "machine", "workflow", "started", "committed", "revision", "branch"),
    *("dirty", "value", "low", "high", "n", "decision", "run", "rebased"),
)
_CHANGE_COLUMNS = ("benchmark", "metric", "before", "after", "change", "confidence", "at", "commits")


def index(root: Path, asked: HistoryFilter, tell: Tell) -> list[IndexRow]:
    """Return a row for each requested series, with its last change."""
    found = _read(root, asked, tell)
    return [_index_row(trend, found) for trend in found]


def regressions(rows: Sequence[IndexRow]) -> list[IndexRow]:
    """Return the rows whose last change is a regression, largest first."""
    worse = [(abs(row.shift.change), row) for row in rows if row.shift and row.shift.tone is Tone.BAD]
    return [row for _, row in sorted(worse, key=lambda item: -item[0])]


def _index_row(trend: SeriesTrend, others: Sequence[SeriesTrend]) -> IndexRow:
    found = changes_of(trend)
    return IndexRow(
        trend.series,
        [point.value for point in trend.points[-NEWEST_DRAWN:]],
        trend.points[-1],
        shift_of(found[-1], trend) if found else None,
        trend.is_flaky,
        parameters_of(trend, others),
        trend.rebased,
    )


def shift_of(change: TrendChange, trend: SeriesTrend) -> Shift:
    """Return a change in the form that tables show."""
    first = trend.points[change.at]
    when, tone = first.committed or first.started, history_tables.tone_of(change.change, trend.series.better)
    weight = history_tables.weight_of(change.change, trend.series.statistic)
    return Shift(change.change, when, first.revision, tone, weight)


def index_table(rows: Sequence[IndexRow]) -> Table:
    """Return the index as a table."""
    return history_tables.index(rows)


def chosen(root: Path, asked: HistoryFilter, tell: Tell) -> list[SeriesTrend]:
    """Return the trends of a benchmark, or of all whose names contain the text. Raises UserError if there are none."""
    found = _read(root, asked, tell, newest=None)
    exact = [trend for trend in found if trend.series.benchmark == asked.benchmark]
    if found:
        return exact or found
    with shown(root, tell) as history:
        known = sorted({series.benchmark for series in history.series()})
    hint = suggestion(asked.benchmark, known, "benchmarks")
    raise UserError.of(f"the history has no matching runs of {clean_name(asked.benchmark)!r}", hint)


def _read(root: Path, asked: HistoryFilter, tell: Tell, newest: int | None = NEWEST) -> list[SeriesTrend]:
    found, _ = followed_trends(root, asked, tell, newest)
    return found


def followed_trends(
    root: Path, asked: HistoryFilter, tell: Tell, newest: int | None = None
) -> tuple[list[SeriesTrend], dict[str, int]]:
    """Return the requested trends, with all points or the ``newest``, and the order of their commits."""
    with shown(root, tell) as history:
        order = commit_order(root, history.revisions())
        return list(trends(history, asked, order, newest)), order


def heading(trend: SeriesTrend, others: Sequence[SeriesTrend]) -> str:
    """Return the heading of a table of runs."""
    apart = parameters_of(trend, others)
    machine = f", machine {trend.series.machine[:12]}" if len({item.series.machine for item in others}) > 1 else ""
    series, behind = trend.series, f" ({apart})" if apart else ""
    return f"{series.benchmark} {in_words(series.metric)} {series.statistic}{machine}{behind}"


def runs_table(trend: SeriesTrend) -> Table:
    """Return the runs of a trend as a table, with its changes."""
    marks = [""] * len(trend.points)
    for change in changes_of(trend):
        marks[change.at] = shift_of(change, trend).brief
    return history_tables.runs(trend.series, trend.points, marks)


def changes_table(found: Sequence[LocatedChange]) -> Table:
    """Return changes as a table, in their order."""
    return history_tables.changes([_row(item) for item in found])


def change_row(root: Path, trend: SeriesTrend, change: TrendChange, order: dict[str, int]) -> ChangeRow:
    """Return a change of one trend as a row of a table."""
    return _row(located_change(root, trend, change, order))


def _row(located: LocatedChange) -> ChangeRow:
    spot = located.hotspots[0].text() if located.hotspots else ""
    return ChangeRow(
        located.trend.series,
        located.change.before,
        located.change.after,
        (located.change.change, located.change.low, located.change.high),
        shift_of(located.change, located.trend),
        "; ".join(filter(None, ("slow drift" if located.change.is_drift else "", spot, located.rebased))),
        located.range,
        located.bisect,
    )


def changes_csv(changes: Sequence[LocatedChange]) -> str:
    """Return CSV with one row for each change, values in base units."""
    stream = io.StringIO()
    spots = ("; ".join(each.text() for each in item.hotspots) for item in changes)
    rows = [
        {**item.as_json(), "commits": " ".join(item.commits), "hotspots": text}
        for item, text in zip(changes, spots, strict=True)
    ]
    writer = csv.DictWriter(stream, rows[0].keys() if rows else _CHANGE_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return stream.getvalue()


def row_as_json(row: IndexRow) -> dict[str, Any]:
    """Return a row of the index as data, values in base units."""
    series = row.series
    shift = (
        {
            **{name: getattr(row.shift, name) for name in ("change", "since", "revision")},
            "weight": row.shift.weight.value,
        }
        if row.shift
        else None
    )
    return {
        **{name: getattr(series, name) for name in ("benchmark", "metric", "statistic", "unit", "better", "machine")},
        "workflow": series.workflow,
        "runs": series.points,
        "last": row.last.value,
        "measured": row.last.started,
        "revision": row.last.revision,
        "branch": row.last.branch,
        "trend": list(row.values),
        "shift": shift,
        "flaky": row.is_flaky,
        "rebased": to_json(row.rebased) if row.rebased else None,
    }


def trend_as_json(trend: SeriesTrend) -> dict[str, Any]:
    """Return a series with all its points as data, values in base units."""
    series = trend.series
    names = (
        "started",
        "committed",
        "revision",
        "branch",
        "dirty",
        "value",
        "low",
        "high",
        "n",
        "decision",
        "run",
        "rebased",
    )
    return {
        **{name: getattr(series, name) for name in ("benchmark", "metric", "statistic", "unit", "better", "machine")},
        "workflow": series.workflow,
        "rebased": to_json(trend.rebased) if trend.rebased else None,
        "points": [
            {**{name: getattr(point, name) for name in names}, "dirty": bool(point.dirty)} for point in trend.points
        ],
    }


def csv_of(root: Path, asked: HistoryFilter, tell: Tell, only: Iterable[IndexRow] | None = None) -> str:
    """Return CSV with one row for each value, values in base units. ``only``: the rows of the index to include."""
    kept = None if only is None else {row.series.id for row in only}
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for trend in _read(root, asked, tell, newest=None):
        for point in trend.points if kept is None or trend.series.id in kept else ():
            values = (getattr(point if hasattr(point, name) else trend.series, name) for name in _COLUMNS)
            writer.writerow(map(_cell, values))
    return stream.getvalue()


def _cell(value: object) -> object:
    return csv_cell(value) if isinstance(value, str) else value
