"""Chart of the heap over the run of a process: both sides, their peaks, and the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from perfflow.model.criteria import Criteria
from perfflow.model.result import MemoryResult, Result, TargetResult
from perfflow.model.units import Dimension, format_quantity
from perfflow.report.bounds import bound_of
from perfflow.report.html import svg
from perfflow.report.html.charts import BOTTOM, CHART_HEIGHT, CHART_WIDTH, LEFT, below_axis, value_grid
from perfflow.report.html.charts import ticks as round_ticks
from perfflow.report.html.svg import Scale
from perfflow.report.rows import values_of
from perfflow.report.sanitize import visible
from perfflow.report.table import SIDE_NAMES

MOST_CHARTS = 12
METRIC = "heap_peak"
_NAME_WIDTH, _NAME_HEIGHT = 90, 14
"""Size of a peak's label in pixels."""
_AXES = {
    "instructions": (Dimension.COUNT, "instructions since the start"),
    "bytes": (Dimension.BYTES, "bytes requested since the start"),
    "time": (Dimension.TIME, "time since the start"),
}


def memory_figures(result: Result, criteria: Criteria, names: Mapping[str, str] = SIDE_NAMES) -> Iterator[Markup]:
    """Yield a chart for each benchmark whose heap was recorded, and the number of those left out.

    ``names``: how the report calls each side.
    """
    groups: dict[tuple[str, str, str], list[MemoryResult]] = {}
    for item in result.memory:
        groups.setdefault((item.step, item.benchmark, item.axis), []).append(item)
    rows = {(row.step, row.name): row for row in result.benchmarks if row.metric == METRIC}
    for number, ((step, benchmark, _), curves) in enumerate(groups.items()):
        if number == MOST_CHARTS:
            left = len(groups) - MOST_CHARTS
            yield Markup("<p>The curves of {} more benchmarks are in <code>result.json</code>.</p>").format(left)
            return
        targets = [item for item in result.targets if (item.benchmark, item.metric) == (benchmark, METRIC)]
        row = rows.get((step, benchmark))
        values = f": {METRIC} {values_of(row, criteria)}" if row and row.candidate else ""
        caption = Markup("<code>{}</code>, heap over the run by <code>{}</code>{}").format(
            visible(benchmark), visible(step), values
        )
        picture = memory_chart(curves, targets, criteria, names)
        yield Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(caption, picture)


def memory_chart(
    curves: Sequence[MemoryResult],
    targets: Sequence[TargetResult],
    criteria: Criteria,
    names: Mapping[str, str] = SIDE_NAMES,
) -> Markup:
    """Return the chart of curves with the same axis, with a line for each bound on the peak."""
    required = ((target.requirement, bound_of(target, criteria)) for target in targets)
    bounds = [(words, found.bound) for words, found in required if found]
    dimension, words = _AXES[curves[0].axis]
    ends = [(curve.at[0], curve.at[-1]) for curve in curves]
    x = Scale(min(first for first, _ in ends), max(last for _, last in ends), LEFT + 8, CHART_WIDTH - 8)
    top = max([*(max(curve.held) for curve in curves), *(bound for _, bound in bounds)])
    y = Scale(0.0, top * 1.12, CHART_HEIGHT - BOTTOM - 12, 8)
    parts = [
        *value_grid(y, Dimension.BYTES),
        *(
            below_axis(x(value), CHART_HEIGHT - BOTTOM, format_quantity(value, dimension))
            for value in round_ticks(x.low, x.high)
        ),
    ]
    for wanted, bound in bounds:
        parts.append(svg.line("bound", LEFT, y(bound), CHART_WIDTH, y(bound)))
        parts.append(svg.text(LEFT + 4, y(bound) - 3, f"target {visible(wanted)}"))
    peaks = []
    labels: list[tuple[float, float]] = []
    for curve in curves:
        kind = "before" if curve.tree == "baseline" else "after"
        peak = max(curve.held)
        at = curve.at[curve.held.index(peak)]
        shape = svg.dot if kind == "before" else svg.triangle
        peak_text = format_quantity(peak, Dimension.BYTES)
        parts.append(svg.path(f"curve {kind}", list(_steps(curve, x, y))))
        parts.append(shape(f"sample {kind}", x(at), y(peak), 4))
        right = x(at) > CHART_WIDTH * 0.7
        place = (x(at) + (-8 if right else 8), y(peak) - 5)
        # If two peaks are close, the second label goes below the curve.
        if any(abs(place[0] - left) < _NAME_WIDTH and abs(place[1] - high) < _NAME_HEIGHT for left, high in labels):
            place = (place[0], y(peak) + _NAME_HEIGHT)
        labels.append(place)
        parts.append(svg.text(*place, f"peak {peak_text}", f"{kind}{' end' if right else ''}"))
        peaks.append(f"{names[curve.tree]}: peak {peak_text} at {format_quantity(at, dimension)}")
    parts.append(svg.text((LEFT + CHART_WIDTH) / 2, CHART_HEIGHT - 4, words, "middle"))
    label = f"Heap of {curves[0].benchmark} over the run. {'; '.join(peaks)}"
    return svg.picture(CHART_WIDTH, CHART_HEIGHT, label, parts)


def _steps(curve: MemoryResult, x: Scale, y: Scale) -> Iterator[tuple[float, float]]:
    """Yield the points of a step curve: the value stays the same until the next point."""
    before: float | None = None
    for at, held in zip(curve.at, curve.held, strict=True):
        if before is not None:
            yield x(at), y(before)
        yield x(at), y(held)
        before = held
