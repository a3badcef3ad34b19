"""The history of a project as pages that need no network: an index, and one page for each benchmark."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from perfflow.report import history_tables
from perfflow.report.history_tables import Followed, dimension_of
from perfflow.report.html import svg
from perfflow.report.html.charts import BOTTOM, CHART_HEIGHT, CHART_WIDTH, LEFT, below_axis, value_grid
from perfflow.report.html.document import Head, HtmlWriter, page_html
from perfflow.report.html.elements import Drawings, Filter, table_html
from perfflow.report.html.svg import Scale
from perfflow.report.sanitize import visible
from perfflow.store.history.database import StoredValue

INDEX, FOLDER = "index.html", "benchmarks"
MOST_DRAWN = 1000
"""Most points of one picture, the newest."""
MOST_RUNS = 50
"""Most runs in the table of one series, the newest."""
_SPARK_WIDTH, _SPARK_HEIGHT = 160.0, 16.0
_LONGEST_STEM = 60


def render_index(project: str, found: Sequence[Followed]) -> tuple[str, str]:
    """Return path and text of the index page. Equal arguments give equal bytes."""
    number = len({item.series.benchmark for item in found})
    head = Head("Benchmark history", project, f"{number} benchmarks")
    return INDEX, page_html("history-index.html.j2", head, HtmlWriter(benchmarks=_index(found)))


def render_benchmark(project: str, own: Sequence[Followed]) -> tuple[str, str]:
    """Return path and text of the page of one benchmark, with a section for each of its series, at least one."""
    name = own[0].series.benchmark
    followed = [{"title": _title(item, own), **_series(item)} for item in own]
    writer = HtmlWriter(index=INDEX, followed=followed)
    return path_of(name), page_html("history-benchmark.html.j2", Head("Benchmark", name, f"of {project}"), writer)


def path_of(benchmark: str) -> str:
    """Return the path of a benchmark's page: readable, and unique for any name."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", benchmark)[:_LONGEST_STEM].strip("-") or "benchmark"
    return f"{FOLDER}/{stem}-{hashlib.sha256(benchmark.encode('utf-8', 'replace')).hexdigest()[:8]}.html"


def _title(item: Followed, others: Sequence[Followed]) -> str:
    """Return the metric, with the parts that distinguish the series from others of that metric."""
    alike = [other for other in others if other.series.metric == item.series.metric]
    machine = f"machine {item.series.machine[:12]}" if len({other.series.machine for other in alike}) > 1 else ""
    return visible(", ".join(filter(None, (item.series.metric, item.apart, machine))))


def _index(series: Sequence[Followed]) -> Markup:
    if not series:
        return Markup("")
    links = [
        Markup('<a href="{}">{}</a>{}').format(
            path_of(item.series.benchmark), visible(item.series.benchmark), _spark(item)
        )
        for item in series
    ]
    rows = history_tables.site_index(series)
    stays = [bool(item.shifts) for item in series]
    return table_html(rows, Drawings("Benchmark and trend", links, 0), Filter("Only changed", stays))


def _spark(item: Followed) -> Markup:
    values = [point.value for point in item.points[-MOST_DRAWN:]]
    if len(values) < 2:
        return Markup("")
    x, y = Scale(0, len(values) - 1, 1, _SPARK_WIDTH - 1), Scale(min(values), max(values), _SPARK_HEIGHT - 2, 2)
    # More points than pixels would not be visible.
    step = max(1, len(values) // int(_SPARK_WIDTH / 2))
    taken = range(0, len(values), step)
    line = svg.path("curve after", list(zip(x.each(taken), y.each(values[at] for at in taken), strict=True)))
    return svg.picture(_SPARK_WIDTH, _SPARK_HEIGHT, "", [line], kind="bar")


def _series(followed: Followed) -> dict[str, Any]:
    """Return the chart, the tables of changes and runs, and the number of runs that are left out."""
    newest = followed.points[-MOST_RUNS:]
    older = len(followed.points) - len(newest)
    changes = zip(followed.at, followed.shifts, strict=True)
    marks = {at - older: row.shift.brief for at, row in changes}
    remarks = [marks.get(number, "") for number in range(len(newest))]
    return {
        "chart": _chart(followed),
        "changes": table_html(history_tables.changes(followed.shifts[::-1], of_one=True)) if followed.shifts else "",
        "runs": table_html(history_tables.runs(followed.series, newest, remarks)),
        "older": older,
    }


def _chart(followed: Followed) -> Markup:
    """Return points with their intervals in the order of the code, the level of each stretch, and the changes."""
    first = max(0, len(followed.points) - MOST_DRAWN)
    points, dimension = followed.points[first:], dimension_of(followed.series)
    values = [point.value for point in points]
    reach = max(values) - min(values)
    # Cut wide intervals, since a single one would flatten all values.
    ends = [end for point in points for end in (point.low, point.high) if end is not None]
    low = max(min([*values, *ends]), min(values) - reach) if reach else min([*values, *ends])
    high = min(max([*values, *ends]), max(values) + reach) if reach else max([*values, *ends])
    pad = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    y = Scale(low - pad, high + pad, CHART_HEIGHT - BOTTOM, 8)
    x = Scale(0, max(1, len(points) - 1), LEFT + 8, CHART_WIDTH - 8)
    parts = [*value_grid(y, dimension), *_marks(points, x, y, low - pad, high + pad)]
    for start, end, level in followed.levels:
        if end > first:
            parts.append(svg.line("median after", x(max(0, start - first)), y(level), x(end - 1 - first), y(level)))
    for at, row in zip(followed.at, followed.shifts, strict=True):
        if at > first:
            place, kind = x(at - first - 0.5), "bound small" if row.shift.remark else "bound"
            parts.append(svg.line(kind, place, 8, place, CHART_HEIGHT - BOTTOM))
    for number, place in ((0, x(0)), (len(points) - 1, x(len(points) - 1))):
        parts.append(below_axis(place, CHART_HEIGHT - 4, points[number].order_date))
    counted = f"{len(points)} runs, newest {history_tables.quantity(points[-1].value, followed.series)}"
    counted += f"; {followed.apart}" if followed.apart else ""
    changes = "; ".join(", ".join(filter(None, (row.shift.text, row.shift.remark))) for row in followed.shifts)
    label = (
        f"{followed.series.benchmark} {followed.series.metric} over time: {counted}{'; ' if changes else ''}{changes}"
    )
    return svg.picture(CHART_WIDTH, CHART_HEIGHT, label, parts)


def _marks(points: Sequence[StoredValue], x: Scale, y: Scale, lowest: float, highest: float) -> Iterator[Markup]:
    """Yield the intervals, and the values on top of them, as few elements however many points there are.

    Intervals are cut at ``lowest`` and ``highest``.
    """
    places = x.each(range(len(points)))
    known = [
        (at, max(p.low, lowest), min(p.high, highest))
        for at, p in zip(places, points, strict=True)
        if p.low is not None and p.high is not None
    ]
    if known:
        ats, lows, highs = zip(*known, strict=True)
        yield svg.strokes("error", zip(ats, y.each(lows), y.each(highs), strict=True))
    values = zip(places, y.each(point.value for point in points), points, strict=True)
    size = " many" if len(points) > 100 else ""
    measured: list[tuple[float, float]] = []
    brought: list[tuple[float, float]] = []
    for at, value, point in values:
        (brought if point.rebased else measured).append((at, value))
    if brought:
        yield svg.dots(f"dots rebased{size}", brought)
    yield svg.dots(f"dots{size}", measured)
