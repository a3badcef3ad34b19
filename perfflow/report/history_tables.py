"""A project's history as tables: a row for each benchmark, or a row for each run of a benchmark.

The row types are here, so that every format renders the same rows. The store holds the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from perfflow.model.criteria import Thresholds
from perfflow.model.metrics import METRICS, in_words, is_exact
from perfflow.model.units import Dimension, column_unit, common_unit, format_change, format_interval, format_quantity
from perfflow.report.table import NOTHING, Cell, Column, Span, Table, TextKind, Tone, mark, name, table, value, words
from perfflow.report.text_table import sparkline
from perfflow.store.history.database import StoredSeries, StoredValue
from perfflow.verdict.decide import IDENTICAL_FLOOR

SPARKS = 24
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BY_UNIT = {dimension.base_unit: dimension for dimension in Dimension if dimension is not Dimension.RATIO}


class Weight(StrEnum):
    """The severity of a change by a gate's default thresholds. A gate ignores a change below the floor."""

    ACTION = "action"
    CONCERN = "concern"
    SMALL = "small"
    BELOW_FLOOR = "below floor"


def weight_of(change: float, statistic: str) -> Weight:
    """Return the severity of a change, given as a share. Exact figures repeat to the digit, so their floor is tiny."""
    size, usual = abs(change), Thresholds()
    floor = min(usual.floor, IDENTICAL_FLOOR) if is_exact(statistic) else usual.floor
    ends = ((usual.action, Weight.ACTION), (usual.concern, Weight.CONCERN), (floor, Weight.SMALL))
    return next((weight for end, weight in ends if size > end), Weight.BELOW_FLOOR)


@dataclass(frozen=True)
class Shift:
    """The last change of a series: its size as a share, its start, whether it is good news, and its severity."""

    change: float
    since: str
    revision: str
    tone: Tone
    weight: Weight = Weight.SMALL

    @property
    def remark(self) -> str:
        """A note if the change is below a gate's floor, else ''."""
        return "below the floor of a gate" if self.weight is Weight.BELOW_FLOOR else ""

    @property
    def brief(self) -> str:
        """Text such as ``changed by +5.2%`` for the first run after the change."""
        return ", ".join(filter(None, (f"changed by {format_change(self.change)}", self.remark)))

    @property
    def text(self) -> str:
        """Text such as ``+5.2% since 2026-03-31 (1a2b3c4)``."""
        place = f" ({self.revision[:9]})" if self.revision else ""
        return f"{format_change(self.change)} since {self.since[:10]}{place}"


@dataclass(frozen=True)
class IndexRow:
    """One benchmark: its values, the newest one, and the last change. ``apart`` distinguishes series of equal name."""

    series: StoredSeries
    values: Sequence[float]
    last: StoredValue
    shift: Shift | None
    is_flaky: bool
    apart: str = ""
    rebased: object = None
    """How values of another machine were rebased, as stored; ``apart`` has the same in words."""


@dataclass(frozen=True)
class ChangeRow:
    """One change: both levels in base units, the share with its 99% interval, and how to find its commit."""

    series: StoredSeries
    before: float
    after: float
    change: tuple[float, float, float]
    shift: Shift
    kind: str
    range: str
    bisect: str


@dataclass(frozen=True)
class SuspicionRow:
    """A suspected change at the newest points: the level before it in base units, and the change as a share.

    ``what`` is its outcome, or the way to settle it.
    """

    series: StoredSeries
    state: str
    before: float
    change: float
    since: str
    range: str
    what: str


def suspicions(rows: Sequence[SuspicionRow]) -> Table:
    """Return a row for each suspicion."""
    columns = [
        name("Benchmark"),
        Column("Metric", TextKind.NAME),
        mark("Suspicion"),
        value("Before", rank=1),
        value("Change"),
        mark("Since"),
        Column("Commits", TextKind.NAME, rank=2),
        words("To settle it"),
    ]
    units = _units((row.series, row.before) for row in rows)
    return table(columns, (_suspicion_cells(row, units) for row in rows))


def _suspicion_cells(row: SuspicionRow, units: Mapping[Dimension, str]) -> list[str]:
    return [
        row.series.benchmark,
        in_words(row.series.metric),
        row.state,
        quantity(row.before, row.series, units[dimension_of(row.series)]),
        format_change(row.change),
        row.since[:10],
        row.range or NOTHING,
        row.what,
    ]


def changes(rows: Sequence[ChangeRow], skipped: int = 0, links: Sequence[str] = ()) -> Table:
    """Return a row for each change. ``links``: pages of all benchmarks that changed at the same time.

    ``skipped``: the number of first columns that are left out, since the benchmark, or benchmark and metric, are beside
    or above the table.
    """
    columns = [
        name("Benchmark"),
        Column("Metric", TextKind.NAME),
        value("Before → after", rank=1),
        value("Change"),
        mark("Since"),
        Column("Commits", TextKind.NAME, rank=2),
        words("To find the commit"),
    ]
    units = _units((row.series, level) for row in rows for level in (row.before, row.after))
    cells = (_change_cells(row, units, to)[skipped:] for row, to in zip(rows, links or [""] * len(rows), strict=True))
    return table(columns[skipped:], cells, tones=[row.shift.tone for row in rows])


def _change_cells(row: ChangeRow, units: Mapping[Dimension, str], to: str) -> list[Cell]:
    levels, dimension = (row.before, row.after), dimension_of(row.series)
    unit = units[dimension] or common_unit(levels, dimension)
    return [
        row.series.benchmark,
        in_words(row.series.metric),
        " → ".join(quantity(level, row.series, unit) for level in levels),
        format_interval(*row.change),
        (Span(row.shift.since[:10], TextKind.VALUE, to),),
        row.range or row.shift.revision[:9] or NOTHING,
        "; ".join(filter(None, (row.shift.remark, row.kind, row.bisect))),
    ]


@dataclass(frozen=True)
class Followed:
    """A series with its points in the order of the code, and its changes.

    ``at`` are the first points after each change, ``shifts`` the changes. ``levels`` are the stretches between changes:
    first point, the point after the last, and the level in base units. ``drifts`` are slow changes: first and last
    point, and the values there.
    """

    series: StoredSeries
    points: Sequence[StoredValue]
    at: Sequence[int]
    shifts: Sequence[ChangeRow]
    levels: Sequence[tuple[int, int, float]]
    is_flaky: bool
    apart: str = ""
    drifts: Sequence[tuple[int, int, float, float]] = ()


@dataclass(frozen=True)
class ChangeOfMany:
    """Everything that changed at the same commit: the changes with their series, and the page that shows them."""

    shift: Shift
    range: str
    rows: Sequence[tuple[Followed, ChangeRow]]
    path: str


def site_changes(found: Sequence[ChangeOfMany]) -> Table:
    """Return a row for each commit at which something changed, the newest first."""
    columns = [
        mark("Since"),
        Column("Commits", TextKind.NAME, rank=2),
        value("Series"),
        value("Largest change"),
        name("Benchmark"),
    ]
    cells = []
    for item in found:
        largest = _largest(item)
        since: Cell = (Span(item.shift.since[:10], TextKind.VALUE, item.path),)
        count = str(len(item.rows))
        cells.append(
            [
                since,
                item.range or item.shift.revision[:9] or NOTHING,
                count,
                format_change(largest.shift.change),
                largest.series.benchmark,
            ]
        )
    return table(columns, cells, tones=[_largest(item).shift.tone for item in found])


def _largest(item: ChangeOfMany) -> ChangeRow:
    return max((row for _, row in item.rows), key=lambda row: abs(row.shift.change))


def site_index(rows: Sequence[Followed], links: Sequence[str]) -> Table:
    """Return a row for each series with its newest value and last change, without the column of names and trends.

    ``links``: the page of each last change, '' without one.
    """
    columns = [
        Column("Metric", TextKind.NAME),
        value("Runs"),
        value("Last"),
        mark("Last shift"),
        mark("Newest"),
    ]
    tones = [row.shifts[-1].shift.tone if row.shifts else Tone.STILL for row in rows]
    units = _units((row.series, row.points[-1].value) for row in rows)
    return _remarked(columns, [_site_cells(row, units, to) for row, to in zip(rows, links, strict=True)], tones)


def _remarked(columns: Sequence[Column], cells: Sequence[Sequence[Cell]], tones: Iterable[Tone]) -> Table:
    """Return a table whose rows end with a remark; without a column of remarks if there are none."""
    remark = words("Remark") if any(row[-1] for row in cells) else None
    return table([*columns, remark], cells, tones=tones)


def _site_cells(row: Followed, units: Mapping[Dimension, str], to: str) -> list[Cell]:
    last, shift = row.points[-1], row.shifts[-1].shift if row.shifts else None
    drift = "slow drift" if any(begin == row.at[-1] for begin, *_ in row.drifts) else ""
    return [
        in_words(row.series.metric),
        str(row.series.points),
        quantity(last.value, row.series, units[dimension_of(row.series)]),
        (Span(shift.text if shift else NOTHING, TextKind.VALUE, to),),
        last.order_date,
        "; ".join(filter(None, (shift.remark if shift else "", drift, row.apart, "flaky" if row.is_flaky else ""))),
    ]


def dimension_of(series: StoredSeries) -> Dimension:
    """Return the dimension of the values of a series."""
    known = METRICS.get(series.metric)
    return known.dimension if known else _BY_UNIT.get(series.unit, Dimension.COUNT)


def quantity(value_: float, series: StoredSeries, unit: str = "") -> str:
    """Return a value of a series as text in ``unit``, or in a suitable one."""
    return format_quantity(value_, dimension_of(series), unit=unit)


def _units(values: Iterable[tuple[StoredSeries, float]]) -> Mapping[Dimension, str]:
    """Return the unit of each dimension in a column that shows values of several series."""
    by_dimension: dict[Dimension, list[float]] = {}
    for series, number in values:
        by_dimension.setdefault(dimension_of(series), []).append(number)
    return {dimension: column_unit(numbers, dimension) for dimension, numbers in by_dimension.items()}


def tone_of(change: float, better: str) -> Tone:
    """Return whether a change of that sign is good news."""
    if better not in ("lower", "higher") or change == 0:
        return Tone.STILL
    return Tone.GOOD if (change < 0) == (better == "lower") else Tone.BAD


def index(rows: Sequence[IndexRow]) -> Table:
    """Return a row for each series with its trend, newest value and last change."""
    columns = [
        name("Benchmark"),
        Column("Metric", TextKind.NAME),
        Column("Trend", rank=2),
        value("Runs", rank=3),
        value("Last"),
        mark("Last shift"),
    ]
    tones = (row.shift.tone if row.shift else Tone.STILL for row in rows)
    units = _units((row.series, row.last.value) for row in rows)
    return _remarked(columns, [_index_cells(row, units) for row in rows], tones)


def _index_cells(row: IndexRow, units: Mapping[Dimension, str]) -> list[str]:
    remarks = [
        row.shift.remark if row.shift else "",
        row.apart,
        "flaky: differs by more than 5% from run to run" if row.is_flaky else "",
    ]
    return [
        row.series.benchmark,
        in_words(row.series.metric),
        sparkline(row.values, SPARKS),
        str(row.series.points),
        quantity(row.last.value, row.series, units[dimension_of(row.series)]),
        row.shift.text if row.shift else NOTHING,
        "; ".join(filter(None, remarks)),
    ]


def runs(series: StoredSeries, points: Sequence[StoredValue], marks: Sequence[str], commits: str = "") -> Table:
    """Return a row for each run of a series, the newest first; ``marks`` are remarks on the points, '' for none.

    ``commits`` is what a commit follows in the address of its web page, '' if there is none.
    """
    columns = [
        mark("Measured"),
        Column("Revision", TextKind.NAME),
        Column("Branch", TextKind.NAME, rank=3),
        value("Value"),
        mark("95% interval", rank=1),
        value("Samples", rank=2),
        mark("Decision", rank=2),
        words("Remark"),
    ]
    pairs = list(zip(points, marks, strict=True))
    shown = [number for point in points for number in (point.value, point.high)]
    unit = column_unit(shown, dimension_of(series)) or common_unit(shown, dimension_of(series))
    return table(columns, [_run_cells(series, point, remark, unit, commits) for point, remark in reversed(pairs)])


def page_of_commit(commits: str, revision: str) -> str:
    """Return the address of the web page of a commit; '' if there is none."""
    return f"{commits}{revision}" if commits and _COMMIT.fullmatch(revision) else ""


def _run_cells(series: StoredSeries, point: StoredValue, remark: str, unit: str, commits: str) -> list[Cell]:
    known = point.low is not None and point.high is not None
    ends = [quantity(end or 0.0, series, unit) for end in (point.low, point.high)] if known else ["", ""]
    remarks = [
        remark,
        f"rebased from machine {point.rebased[:12]}" if point.rebased else "",
        "uncommitted changes" if point.dirty else "",
        f"{point.noise} machine" if point.noise == "hostile" else "",
    ]
    return [
        (point.started or point.committed)[:16].replace("T", " "),
        (Span(point.revision[:9] or NOTHING, TextKind.NAME, page_of_commit(commits, point.revision)),),
        point.branch or NOTHING,
        quantity(point.value, series, unit),
        f"[{ends[0]}, {ends[1]}]" if known else NOTHING,
        str(point.n),
        point.decision or NOTHING,
        "; ".join(filter(None, remarks)),
    ]
