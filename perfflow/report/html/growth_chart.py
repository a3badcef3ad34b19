"""Chart of a metric's growth with a size: points with their intervals, the fitted curve, and its band."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from markupsafe import Markup

from perfflow.model.criteria import Criteria
from perfflow.model.result import Grown, Growth
from perfflow.model.units import Dimension, format_quantity
from perfflow.report.growth_table import GrowthLine, grown_text
from perfflow.report.html import svg
from perfflow.report.html.charts import BOTTOM, CHART_HEIGHT, CHART_WIDTH, EMPTY, LEFT, below_axis, ticks
from perfflow.report.html.svg import Scale
from perfflow.report.sanitize import visible
from perfflow.report.table import SIDE_NAMES

_NARROW = 12.0
"""Ratio of the ends of an axis below which a linear scale has rounder tick values."""
MOST_SIZES = 8
"""Most sizes that are written below the axis."""


def growth_figure(line: GrowthLine, criteria: Criteria, names: Mapping[str, str] = SIDE_NAMES) -> Markup:
    """Return the chart of one growth with its caption; '' if there is no curve. ``names``: what the sides are called.

    Both axes are logarithmic, so a power of the size is a straight line. Values of 0 cannot be drawn.
    """
    item = line.source
    sides = [(kind, side) for kind, side in (("before", item.baseline), ("after", item.candidate)) if side]
    drawn = [
        (kind, side) for kind, side in sides if side.curve and all((point.value or 0) > 0 for point in side.points)
    ]
    if not drawn:
        return EMPTY
    caption = Markup("<code>{}</code> <code>{}</code> with <code>{}</code>: {}").format(
        visible(item.benchmark), visible(item.metric), visible(item.key), _words(line, names)
    )
    return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(
        caption, _picture(item, drawn, criteria, names)
    )


def _words(line: GrowthLine, names: Mapping[str, str]) -> Markup:
    texts = [
        Markup('<span class="{}">{} {}</span> {}').format(kind, mark, side, text)
        for kind, mark, side, text, known in (
            ("before", "●", names["baseline"], line.baseline, line.source.baseline),
            ("after", "▲", names["candidate"], line.candidate, line.source.candidate),
        )
        if known
    ]
    texts_of_sides = Markup("; ").join(texts)
    return texts_of_sides + f"; {line.decision}" if line.source.decision else texts_of_sides


def _picture(item: Growth, sides: list[tuple[str, Grown]], criteria: Criteria, names: Mapping[str, str]) -> Markup:
    points = [point for _, side in sides for point in side.points]
    curves = [point for _, side in sides for point in side.curve]
    values = [value for point in (*points, *curves) for value in (point.value, point.low, point.high)]
    known = [value for value in values if value is not None and value > 0]
    sizes = sorted({point.size for point in points})
    # A band may reach 0, which is not on a logarithmic axis, so it is cut.
    least = max(min(known), min(point.value or math.inf for point in points) / 10)
    x = Scale(sizes[0] / 1.1, sizes[-1] * 1.1, LEFT + 8, CHART_WIDTH - 8, logarithmic=True)
    y = Scale(least / 1.3, max(known) * 1.3, CHART_HEIGHT - BOTTOM - 12, 8, logarithmic=True)
    parts = [*_grid(y, criteria.metric(item.metric).dimension), *_sizes(x, sizes)]
    for kind, side in sides:
        lows = [(x(point.size), y(max(point.low or 0.0, least / 1.3))) for point in side.curve]
        highs = [(x(point.size), y(point.high or max(known))) for point in side.curve]
        parts.append(svg.path(f"band {kind}", [*lows, *reversed(highs)]))
        parts.append(svg.path(f"curve {kind}", [(x(point.size), y(point.value or least)) for point in side.curve]))
        for point in side.points:
            if point.low is not None and point.high is not None:
                at = x(point.size)
                parts.append(svg.line(f"whisker {kind}", at, y(max(point.low, least / 1.3)), at, y(point.high)))
            shape = svg.dot if kind == "before" else svg.triangle
            parts.append(shape(f"sample {kind}", x(point.size), y(point.value or least)))
    words = f"{visible(item.key)}, both axes logarithmic; bands: 95% confidence of the curve"
    parts.append(svg.text((LEFT + CHART_WIDTH) / 2, CHART_HEIGHT - 4, words, "middle"))
    growths = "; ".join(
        f"{names['baseline' if kind == 'before' else 'candidate']}: {grown_text(side)}" for kind, side in sides
    )
    return svg.picture(CHART_WIDTH, CHART_HEIGHT, f"Growth of {item.benchmark} {item.metric}. {growths}", parts)


def _grid(y: Scale, dimension: Dimension) -> Iterator[Markup]:
    for value in log_ticks(y.low, y.high):
        yield svg.line("grid", LEFT, y(value), CHART_WIDTH, y(value))
        yield svg.text(LEFT - 6, y(value) + 4, format_quantity(value, dimension), "end")


def log_ticks(low: float, high: float) -> list[float]:
    """Return round values between two positive ends: powers of ten, and 2 and 5 times them if they are few."""
    if high / low < _NARROW:
        return ticks(low, high)
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    found = [
        [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]
        for factors in ((1, 2, 5), (1, 5), (1,))
    ]
    fine = next((values for values in found if len(values) <= 6), found[-1])
    return fine[:: math.ceil(len(fine) / 6)]


def _sizes(x: Scale, sizes: list[float]) -> Iterator[Markup]:
    for size in sizes[:: math.ceil(len(sizes) / MOST_SIZES)]:
        yield svg.line("grid", x(size), 8, x(size), CHART_HEIGHT - BOTTOM - 12)
        yield below_axis(x(size), CHART_HEIGHT - BOTTOM, f"{size:g}")
