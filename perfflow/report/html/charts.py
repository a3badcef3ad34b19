"""Charts: intervals against bounds, samples in the order they were taken, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from perfflow.model.criteria import Criteria
from perfflow.model.result import Benchmark, Optimization, Result, RooflinePoint
from perfflow.model.units import UNITS, Dimension, common_unit, format_quantity, parse_quantity
from perfflow.report.html import svg
from perfflow.report.html.svg import Scale
from perfflow.report.sanitize import shortened
from perfflow.report.table import SIDE_NAMES, Bar
from perfflow.verdict.row_text import unit_of_row

BAR_WIDTH, BAR_HEIGHT = 160.0, 16.0
CHART_WIDTH, CHART_HEIGHT = 640.0, 200.0
LEFT, BOTTOM = 84.0, 22.0
MOST_NAMED = 8
"""Most kernels whose names are written beside their points."""
CONCERN, ACTION = 0.05, 0.10
EMPTY = Markup("")


def bar_picture(bar: Bar) -> Markup:
    """Return an interval with its bounds and the line of no change; the allowed side is shaded."""
    scale, middle = Scale(0, 1, 2, BAR_WIDTH - 2), BAR_HEIGHT / 2
    first, last = (scale(end) for end in bar.allowed or (0.0, 0.0))
    parts = [
        *([svg.rectangle("allowed", first, 1, last - first, BAR_HEIGHT - 2)] if bar.allowed else []),
        *([] if bar.none is None else [svg.line("none", scale(bar.none), 0, scale(bar.none), BAR_HEIGHT)]),
        *(svg.line("bound", scale(bound), 0, scale(bound), BAR_HEIGHT) for bound in bar.bounds),
        svg.line(f"interval {bar.tone.value}", scale(bar.low), middle, scale(bar.high), middle),
        *([] if bar.point is None else [svg.dot(f"point {bar.tone.value}", scale(bar.point), middle)]),
    ]
    return svg.picture(BAR_WIDTH, BAR_HEIGHT, "", parts, kind="bar")


def effect_bar(item: Optimization, accept: float) -> Markup:
    """Return the interval of a candidate's effect with the line that it must exceed; better is to the right."""
    effect = item.effect
    if effect is None or effect.value is None:
        return EMPTY
    known = [end for end in (effect.low, effect.value, effect.high) if end is not None]
    scale = Scale(min(0.0, *known) - 0.03, max(accept, *known) + 0.03, 2, BAR_WIDTH - 2)
    # An unknown end is unbounded.
    low, high = (scale.low if effect.low is None else effect.low), (scale.high if effect.high is None else effect.high)
    middle = BAR_HEIGHT / 2
    kind = "good" if item.decision == "accepted" else "bad" if effect.value < 0 else "unsure"
    parts = [
        svg.line("none", scale(0.0), 0, scale(0.0), BAR_HEIGHT),
        svg.line("bound", scale(accept), 0, scale(accept), BAR_HEIGHT),
        svg.line(f"interval {kind}", scale(low), middle, scale(high), middle),
        svg.dot(f"point {kind}", scale(effect.value), middle),
    ]
    return svg.picture(BAR_WIDTH, BAR_HEIGHT, "", parts, kind="bar")


def share_bar(before: float | None, after: float | None) -> Markup:
    """Return bars of a function's shares: the upper one before, the lower one after."""
    sides = [(kind, share) for kind, share in (("before", before), ("after", after)) if share is not None]
    height = BAR_HEIGHT / max(1, len(sides))
    parts = [
        svg.rectangle(f"share {kind}", 0, number * height + 1, max(0.5, share * BAR_WIDTH), height - 2)
        for number, (kind, share) in enumerate(sides)
    ]
    return svg.picture(BAR_WIDTH, BAR_HEIGHT, "", parts, kind="bar") if parts else EMPTY


def samples_chart(
    row: Benchmark, orders: Mapping[str, Sequence[int]], criteria: Criteria, names: Mapping[str, str] = SIDE_NAMES
) -> Markup:
    """Return the samples of both sides in the order they were taken, which shows drift, with their medians.

    ``names``: how the report calls each side.
    """
    dimension, unit = criteria.metric(row.metric).dimension, unit_of_row(row, criteria)
    sides = [(name, side) for name, side in (("baseline", row.baseline), ("candidate", row.candidate)) if side]
    values = [value for _, side in sides for value in side.samples]
    if max((len(side.samples) for _, side in sides), default=0) < 2:
        return EMPTY
    low, high = from_zero(min(values), max(values))
    y = Scale(low, high, CHART_HEIGHT - BOTTOM, 8)
    places = {name: orders.get(name) or range(len(side.samples)) for name, side in sides}
    taken = [place for name, _ in sides for place in places[name]]
    x = Scale(min(taken), max(taken), LEFT + 8, CHART_WIDTH - 8)
    parts = [*value_grid(y, dimension, unit)]
    for name, side in sides:
        kind = "before" if name == "baseline" else "after"
        if side.low is not None and side.high is not None:
            top = y(side.high)
            parts.append(svg.rectangle(f"band {kind}", LEFT, top, CHART_WIDTH - LEFT, max(1.0, y(side.low) - top)))
        if side.value is not None:
            parts.append(svg.line(f"median {kind}", LEFT, y(side.value), CHART_WIDTH, y(side.value)))
        shape = svg.dot if name == "baseline" else svg.triangle
        parts += [
            shape(f"sample {kind}", x(at), y(value)) for at, value in zip(places[name], side.samples, strict=True)
        ]
    parts.append(svg.text((LEFT + CHART_WIDTH) / 2, CHART_HEIGHT - 4, _axis(orders, low), "middle"))
    ranges = "; ".join(
        f"{names[name]}: {side.n} samples, {format_quantity(min(side.samples), dimension, unit=unit)} to "
        f"{format_quantity(max(side.samples), dimension, unit=unit)}"
        for name, side in sides
        if side.samples
    )
    return svg.picture(CHART_WIDTH, CHART_HEIGHT, f"Samples of {row.title}. {ranges}", parts)


def _axis(orders: Mapping[str, Sequence[int]], low: float) -> str:
    order = "in the order they were taken" if orders else "in their stored order"
    return order if low == 0 else f"{order}; the axis does not start at 0"


def from_zero(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis: from 0, unless all values lie above 55% of the largest."""
    room = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    return (0.0 if 0 <= low < 0.55 * high else low - room), high + room


def value_grid(y: Scale, dimension: Dimension, unit: str = "") -> Iterator[Markup]:
    """Yield horizontal lines at round values, and the values beside them, all in one unit: ``unit`` unless it is ''."""
    # Bytes are shown in KiB and MiB, so they must be round in those units.
    unit = unit or common_unit([y.high], dimension)
    scale = float(UNITS[unit][1]) if unit else 1.0
    for value in (tick * scale for tick in ticks(y.low / scale, y.high / scale)):
        words = format_quantity(value, dimension, unit=unit)
        # With three digits, 100 and 100.5 are both "100", and two lines would have the same label.
        if math.isclose(parse_quantity(words).value, value, rel_tol=1e-6):
            yield svg.line("grid", LEFT, y(value), CHART_WIDTH, y(value))
            yield svg.text(LEFT - 6, y(value) + 4, words, "end")


def below_axis(x: float, y: float, words: str) -> Markup:
    """Return words below a place on the horizontal axis, right-aligned at the edge of the picture."""
    return svg.text(min(x, CHART_WIDTH), y, words, "end" if x > CHART_WIDTH - 24 else "middle")


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Return round values between two ends."""
    span = high - low
    if not (span > 0 and math.isfinite(span)):
        return [low]
    step = 10.0 ** math.floor(math.log10(span / wanted))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= wanted + 1)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def roofline_chart(result: Result) -> Markup:
    """Return the kernels under the roof on logarithmic axes, with names if they are few. The table below has all."""
    points = [point for point in result.roofline if point.attained.value and point.intensity > 0]
    roofs = {(point.device, point.precision): point for point in points if point.attainable}
    slopes = _roofs(result, roofs)
    if not points or not slopes:
        return EMPTY
    intensities = [point.intensity for point in points] + [top / slope for slope, top in slopes]
    heights = [point.attained.value or 0.0 for point in points] + [top for _, top in slopes]
    x = Scale(min(intensities) / 4, max(intensities) * 4, LEFT + 8, CHART_WIDTH - 8, logarithmic=True)
    y = Scale(min(heights) / 4, max(heights) * 2, CHART_HEIGHT - BOTTOM - 12, 8, logarithmic=True)
    parts = [
        below_axis(x(10.0**power), CHART_HEIGHT - BOTTOM, f"{10.0**power:g}")
        for power in range(math.ceil(math.log10(x.low)), math.floor(math.log10(x.high)) + 1)
    ]
    for power in range(math.ceil(math.log10(y.low)), math.floor(math.log10(y.high)) + 1):
        parts += [
            svg.line("grid", LEFT, y(10.0**power), CHART_WIDTH, y(10.0**power)),
            svg.text(LEFT - 6, y(10.0**power) + 4, format_quantity(10.0**power, Dimension.FLOPS), "end"),
        ]
    for slope, top in slopes:
        knee = top / slope
        parts.append(svg.path("roof", [(x(x.low), y(slope * x.low)), (x(knee), y(top)), (x(x.high), y(top))]))
    for point in points:
        kind = "before" if point.tree == "baseline" else "after"
        shape = svg.dot if point.tree == "baseline" else svg.triangle
        parts.append(shape(f"sample {kind}", x(point.intensity), y(point.attained.value or 0.0), 4))
    if len(points) <= MOST_NAMED:
        places = [(x(point.intensity), y(point.attained.value or 0.0)) for point in points]
        parts += [_name(point, place, places) for point, place in zip(points, places, strict=True)]
    parts.append(svg.text((LEFT + CHART_WIDTH) / 2, CHART_HEIGHT - 4, "FLOP per byte, logarithmic", "middle"))
    shares = "; ".join(
        f"{point.benchmark}: {point.share:.0%} of its roof" for point in points if point.share is not None
    )
    return svg.picture(CHART_WIDTH, CHART_HEIGHT, f"Roofline. {shares}", parts)


def _name(point: RooflinePoint, place: tuple[float, float], others: Sequence[tuple[float, float]]) -> Markup:
    """Return the name of a point's benchmark, to its left if another point is close on its right."""
    (across, down), kind = place, "before" if point.tree == "baseline" else "after"
    crowded = any(0 < x - across < 120 and abs(y - down) < 12 for x, y in others)
    words = shortened(point.benchmark, 24)
    left = crowded or across + 8 + 7 * len(words) > CHART_WIDTH
    return svg.text(across + (-8 if left else 8), down + 4, words, f"{kind} end" if left else kind)


def _roofs(result: Result, points: Mapping[tuple[str, str], RooflinePoint]) -> list[tuple[float, float]]:
    """Return bandwidth and top of each roof for which both peaks are known."""
    found = []
    for device, precision in points:
        mine = [peak for peak in result.peaks if peak.device in ("", device)]
        slope = max((peak.value for peak in mine if peak.metric == "bandwidth"), default=0.0)
        tops = [peak.value for peak in mine if peak.metric == "flops" and precision in ("", peak.precision)]
        if slope and tops:
            found.append((slope, max(tops)))
    return found
