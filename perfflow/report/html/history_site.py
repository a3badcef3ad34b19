"""The history of a project as pages that need no network: an index, and a page for each benchmark and each change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from perfflow.report import history_tables
from perfflow.report.history_tables import ChangeOfMany, ChangeRow, Followed, Shift, dimension_of
from perfflow.report.html import svg
from perfflow.report.html.charts import BOTTOM, LEFT, wide_axis, with_ends
from perfflow.report.html.document import Head, HtmlWriter, page_html
from perfflow.report.html.elements import Drawings, Filter, table_html
from perfflow.report.html.svg import Scale
from perfflow.report.sanitize import visible
from perfflow.store.history.database import StoredValue

INDEX, FOLDER, CHANGES = "index.html", "benchmarks", "changes"
HEIGHT = 260.0
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
    changed = changes_of_many(found)
    changes = table_html(history_tables.site_changes(changed)) if changed else ""
    return INDEX, page_html("history-index.html.j2", head, HtmlWriter(benchmarks=_index(found), changes=changes))


def render_benchmark(project: str, own: Sequence[Followed], commits: str = "") -> tuple[str, str]:
    """Return path and text of the page of one benchmark, with a section for each of its series, at least one.

    ``commits`` is what a commit follows in the address of its web page, '' if there is none.
    """
    name = own[0].series.benchmark
    followed = [{"title": _title(item, own), **_series(item, commits)} for item in own]
    writer = HtmlWriter(index=INDEX, followed=followed)
    return path_of(name), page_html("history-benchmark.html.j2", Head("Benchmark", name, f"of {project}"), writer)


def changes_of_many(found: Sequence[Followed]) -> list[ChangeOfMany]:
    """Return the changes of all series by the commit, or else the day, of the first run after them, newest first."""
    groups: dict[str, list[tuple[Followed, ChangeRow]]] = {}
    for item in found:
        for row in item.shifts:
            groups.setdefault(change_path(row.shift), []).append((item, row))
    alike = [ChangeOfMany(rows[0][1].shift, rows[0][1].range, rows, path) for path, rows in groups.items()]
    return sorted(alike, key=lambda item: item.shift.since, reverse=True)


def render_change(project: str, change: ChangeOfMany, commits: str = "") -> tuple[str, str]:
    """Return path and text of the page of everything that changed at one commit, the largest change first."""
    pairs = sorted(change.rows, key=lambda pair: -abs(pair[1].shift.change))
    links = [_link(item, "../") for item, _ in pairs]
    table = history_tables.changes([row for _, row in pairs], skipped=1)
    name = " ".join(filter(None, (change.shift.since[:10], change.shift.revision[:9])))
    address = history_tables.page_of_commit(commits, change.shift.revision)
    writer = HtmlWriter(
        index=INDEX,
        range=change.range,
        commit=address,
        changed=table_html(table, Drawings("Benchmark and trend", links, 0)),
    )
    return change.path, page_html("history-change.html.j2", Head("Change", name, f"of {project}"), writer)


def change_path(shift: Shift) -> str:
    """Return the path of the page of a change."""
    return _path(CHANGES, f"{shift.since[:10]} {shift.revision[:9]}", shift.revision or shift.since[:10])


def path_of(benchmark: str) -> str:
    """Return the path of a benchmark's page: readable, and unique for any name."""
    return _path(FOLDER, benchmark, benchmark)


def _path(folder: str, name: str, key: str) -> str:
    stem = re.sub(r"[^A-Za-z0-9]+", "-", name)[:_LONGEST_STEM].strip("-") or "page"
    return f"{folder}/{stem}-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}.html"


def _title(item: Followed, others: Sequence[Followed]) -> str:
    """Return the metric, with the parts that distinguish the series from others of that metric."""
    alike = [other for other in others if other.series.metric == item.series.metric]
    machine = f"machine {item.series.machine[:12]}" if len({other.series.machine for other in alike}) > 1 else ""
    return visible(", ".join(filter(None, (item.series.metric, item.apart, machine))))


def _index(series: Sequence[Followed]) -> Markup:
    if not series:
        return Markup("")
    links = [_link(item) for item in series]
    rows = history_tables.site_index(
        series, [change_path(item.shifts[-1].shift) if item.shifts else "" for item in series]
    )
    stays = [bool(item.shifts) for item in series]
    return table_html(rows, Drawings("Benchmark and trend", links, 0), Filter("Only changed", stays))


def _link(item: Followed, up: str = "") -> Markup:
    """Return the name of a benchmark as a link to its page, and its trend; ``up`` leads to the folder of the index."""
    name = item.series.benchmark
    return Markup('<a href="{}">{}</a>{}').format(up + path_of(name), visible(name), _spark(item))


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


def _series(followed: Followed, commits: str) -> dict[str, Any]:
    """Return the chart, the tables of changes and runs, and the number of runs that are left out."""
    newest = followed.points[-MOST_RUNS:]
    older = len(followed.points) - len(newest)
    changes = zip(followed.at, followed.shifts, strict=True)
    marks = {at - older: row.shift.brief for at, row in changes}
    remarks = [marks.get(number, "") for number in range(len(newest))]
    shifts = followed.shifts[::-1]
    links = [f"../{change_path(row.shift)}" for row in shifts]
    return {
        "chart": _chart(followed),
        "changes": table_html(history_tables.changes(shifts, skipped=2, links=links)) if shifts else "",
        "runs": table_html(history_tables.runs(followed.series, newest, remarks, commits)),
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
    y, foot = Scale(low - pad, high + pad, HEIGHT - BOTTOM, 8), HEIGHT - BOTTOM
    x = Scale(0, max(1, len(points) - 1), 8, svg.ACROSS - 8)
    grid, labels = wide_axis(y, dimension)
    parts = [grid]
    for at, row in zip(followed.at, followed.shifts, strict=True):
        if at > first:
            kind = "bound small" if row.shift.remark else "bound"
            place = x(at - first - 0.5)
            parts.append(svg.path(kind, [(place, 8), (place, foot)], [row.shift.text]))
    parts += _marks(points, x, y, low - pad, high + pad, followed)
    for start, end, level in followed.levels:
        if end > first:
            parts.append(svg.line("median after", x(max(0, start - first)), y(level), x(end - 1 - first), y(level)))
    for start, end, before, after in followed.drifts:
        if start >= first:
            parts.append(svg.line("drift", x(start - first), y(before), x(end - first), y(after)))
    words = [
        *labels,
        svg.text(LEFT + 8, HEIGHT - 4, points[0].order_date, "first"),
        svg.text("100%", HEIGHT - 4, points[-1].order_date, "last end"),
    ]
    counted = f"{len(points)} runs, newest {history_tables.quantity(points[-1].value, followed.series)}"
    counted += f"; {followed.apart}" if followed.apart else ""
    changes = "; ".join(", ".join(filter(None, (row.shift.text, row.shift.remark))) for row in followed.shifts)
    label = (
        f"{followed.series.benchmark} {followed.series.metric} over time: {counted}{'; ' if changes else ''}{changes}"
    )
    return svg.wide(HEIGHT, label, words, [svg.stretched(HEIGHT, parts, "whole")])


def _marks(
    points: Sequence[StoredValue], x: Scale, y: Scale, lowest: float, highest: float, followed: Followed
) -> Iterator[Markup]:
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
    size = " many" if len(points) > 100 else ""
    dimension = dimension_of(followed.series)
    heights = y.each(point.value for point in points)
    for kind, rebased in ((f"dots rebased{size}", True), (f"dots{size}", False)):
        chosen = [item for item in zip(places, heights, points, strict=True) if bool(item[2].rebased) is rebased]
        if chosen:
            tips = (
                " ".join(filter(None, (p.order_date, p.revision[:9], with_ends(p.value, p.low, p.high, dimension))))
                for *_, p in chosen
            )
            yield svg.dots(kind, [(at, height) for at, height, _ in chosen], tips)
