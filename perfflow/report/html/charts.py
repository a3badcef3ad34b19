"""Charts of a report as inline pictures.

- ``forest_bar``: a change with its interval, on bands up to the thresholds, below one ``forest_axis`` for all of them.
- ``bar_picture``, ``effect_bar`` and ``share_bar``: intervals against bounds, and shares. ``samples_chart``: samples in
  the order they were taken, and by side. ``roofline_chart``: kernels under the roof.
- ``growth_figure``: a metric's growth with a size, as points with their intervals, the fitted curve, and its band.
- ``memory_figures``: the heap over the run of a process, with both sides, their peaks, and the target.
- ``layout_figure``: the code layouts of each side, as a point for each layout, and a line for the program as built.
- ``ladder_figure``: candidates, as the effect of each on top of the changes kept before it, and of all kept changes
  together.
- ``calibration_bar``: the noise of a metric on this machine, and the smallest change that can be detected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median

from markupsafe import Markup

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.result import (
    Benchmark,
    Grown,
    Growth,
    LayoutsOf,
    MemoryResult,
    Optimization,
    Result,
    RooflinePoint,
    Sample,
    TargetResult,
)
from perfflow.model.units import (
    UNITS,
    Dimension,
    common_unit,
    format_factor,
    format_quantity,
    parse_quantity,
    significant,
)
from perfflow.report.bounds import bound_of
from perfflow.report.growth_table import GrowthLine, grown_text
from perfflow.report.html import svg
from perfflow.report.html.svg import Scale
from perfflow.report.rows import ComparisonLine, values_of
from perfflow.report.sanitize import shortened, visible
from perfflow.report.table import SIDE_NAMES, Bar
from perfflow.report.terminal import Ladder
from perfflow.report.text_table import LADDER
from perfflow.stats.paired_test import Interval
from perfflow.store.calibrations import CalibrationFinding
from perfflow.verdict.row_text import unit_of_row

BAR_WIDTH, BAR_HEIGHT = 160.0, 16.0
CHART_WIDTH, CHART_HEIGHT = 640.0, 200.0
LEFT, BOTTOM = 84.0, 22.0
MOST_NAMED = 8
"""Most kernels whose names are written beside their points."""
CONCERN, ACTION = 0.05, 0.10
NARROWEST_FOREST, USUAL_FOREST, FAR = 1.25, 1.5, 2.0
"""The axis of changes reaches to the first ratio at least, and to the second or FAR times the median change at most."""
FOREST_HEIGHT = 24.0
LEAST_APART = 0.11
"""Least distance of two words of that axis, as a share of it."""
BIN, MOST_BESIDE = 6, 8
"""Pixels whose samples are beside each other, and how many of them take the whole width at least."""
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


def effect_bar(attempt: Optimization, accept: float) -> Markup:
    """Return the interval of a candidate's effect with the line that it must exceed; better is to the right."""
    effect = attempt.effect
    if effect is None or effect.value is None:
        return EMPTY
    known = [end for end in (effect.low, effect.value, effect.high) if end is not None]
    scale = Scale(min(0.0, *known) - 0.03, max(accept, *known) + 0.03, 2, BAR_WIDTH - 2)
    # An unknown end is unbounded.
    low, high = (scale.low if effect.low is None else effect.low), (scale.high if effect.high is None else effect.high)
    middle = BAR_HEIGHT / 2
    kind = "good" if attempt.decision == "accepted" else "bad" if effect.value < 0 else "unsure"
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


def forest_top(rows: Iterable[ComparisonLine]) -> float:
    """Return the ratio at the right end of the axis that all changes of a report share; its left end is one over it.

    Changes far larger than most are beyond it, since a single one would hide the thresholds of all others.
    """
    sizes = [abs(math.log(max(1 + (row.source.change.value or 0.0), 0.01))) for row in rows if row.source.change]
    usual = max(math.log(USUAL_FOREST), FAR * median(sizes or [0.0]))
    most = math.exp(min(max(sizes, default=0.0), usual, math.log(LADDER[-1]))) * (1 - 1e-9)
    return next(step for step in LADDER if step >= max(most, NARROWEST_FOREST))


def forest_axis(top: float, thresholds: Thresholds) -> Markup:
    """Return the words of that axis: its ends, no change, and the thresholds of the workflow that have room."""
    ends = [1 / top - 1, top - 1]
    wanted = [0.0, *ends, *(sign * end for end in (thresholds.action, thresholds.concern) for sign in (-1, 1))]
    placed: list[tuple[float, float]] = []
    for change in wanted:
        at = round(math.log1p(change) / (2 * math.log(top)) + 0.5, 6) if change > -1 else -1.0
        if 0 <= at <= 1 and all(abs(at - other) >= LEAST_APART for other, _ in placed):
            placed.append((at, change))
    kinds = {0.0: "", 1.0: "end"}
    words = [
        svg.text(f"{at:.1%}", 12, f"{100 * change:+.3g}%" if change else "0", kinds.get(at, "middle"))
        for at, change in placed
    ]
    return Markup('<svg class="axis" height="16" aria-hidden="true">{}</svg>').format(Markup("").join(words))


def forest_bar(row: ComparisonLine, thresholds: Thresholds, top: float) -> Markup:
    """Return the estimate and the interval of a change, on bands up to the thresholds of its benchmark."""
    change = row.source.change
    if change is None or change.value is None:
        return EMPTY
    scale, middle = Scale(1 / top, top, 0, svg.ACROSS, logarithmic=True), FOREST_HEIGHT / 2
    parts = []
    for kind, end in (("action", thresholds.action), ("concern", thresholds.concern)):
        left, right = scale(1 - end), scale(1 + end)
        parts.append(svg.rectangle(kind, left, 0, right - left, FOREST_HEIGHT))
    low, high = (-1.0 if change.low is None else change.low), (math.inf if change.high is None else change.high)
    tone = row.tone.value
    parts += [
        svg.line("none", svg.ACROSS / 2, 0, svg.ACROSS / 2, FOREST_HEIGHT),
        svg.line(f"interval {tone}", scale(1 + low), middle, scale(1 + high), middle),
        *(
            [svg.dots(f"estimate {tone}", [(scale(1 + change.value), middle)])]
            if 1 / top <= 1 + change.value <= top
            else []
        ),
        # An interval that sets the scale ends at its end, but for rounding.
        *(
            [svg.path(f"beyond {tone}", [(0, middle), (14, 4), (14, FOREST_HEIGHT - 4)])]
            if 1 + low < (1 - 1e-9) / top
            else []
        ),
        *(
            [
                svg.path(
                    f"beyond {tone}", [(svg.ACROSS, middle), (svg.ACROSS - 14, 4), (svg.ACROSS - 14, FOREST_HEIGHT - 4)]
                )
            ]
            if 1 + high > top * (1 + 1e-9)
            else []
        ),
    ]
    return svg.stretched(FOREST_HEIGHT, parts, "forest")


def samples_chart(
    row: Benchmark, orders: Mapping[str, Sequence[int]], criteria: Criteria, names: Mapping[str, str] = SIDE_NAMES
) -> Markup:
    """Return the samples of both sides twice on one axis: in the order taken, which shows drift, and by side.

    ``names``: how the report calls each side.
    """
    dimension, unit = criteria.metric(row.metric).dimension, unit_of_row(row, criteria)
    sides = [(name, side) for name, side in (("baseline", row.baseline), ("candidate", row.candidate)) if side]
    values = [value for _, side in sides for value in side.samples]
    if max((len(side.samples) for _, side in sides), default=0) < 2:
        return EMPTY
    unit = unit or common_unit(values, dimension)
    low, high = from_zero(min(values), max(values))
    y = Scale(low, high, CHART_HEIGHT - 8, 8)
    places = {name: orders.get(name) or range(len(side.samples)) for name, side in sides}
    taken = [place for name, _ in sides for place in places[name]]
    x = Scale(min(taken), max(taken), 8, svg.ACROSS - 8)
    grid, labels = wide_axis(y, dimension, unit)
    in_order, by_side, ranges = [grid], [grid], []
    lane = svg.ACROSS / len(sides)
    for number, (name, side) in enumerate(sides):
        kind, heights = ("before" if name == "baseline" else "after"), y.each(side.samples)
        texts = [format_quantity(value, dimension, unit=unit) for value in side.samples]
        for parts, start, end in ((in_order, 0.0, svg.ACROSS), (by_side, number * lane, (number + 1) * lane)):
            if side.low is not None and side.high is not None:
                top = y(side.high)
                parts.append(svg.rectangle(f"band {kind}", start, top, end - start, max(1.0, y(side.low) - top)))
            if side.value is not None:
                parts.append(svg.line(f"median {kind}", start, y(side.value), end, y(side.value)))
        at = x.each(places[name])
        tips = [f"{names[name]} {text}" for text in texts]
        in_order.append(svg.dots(f"dots {kind}", zip(at, heights, strict=True), tips))
        by_side.append(svg.dots(f"dots {kind}", spread_out(heights, (number + 0.5) * lane, 0.4 * lane)))
        if texts:
            ends = (texts[side.samples.index(end(side.samples))] for end in (min, max))
            ranges.append(f"{names[name]}: {side.n} samples, {' to '.join(ends)}")
    order = "in the order they were taken" if orders else "in their stored order"
    words = f"Left: {order}; right: by side{'' if low == 0 else '; the axis does not start at 0'}."
    plots = (svg.stretched(CHART_HEIGHT, in_order, "order"), svg.stretched(CHART_HEIGHT, by_side, "spread"))
    picture = svg.wide(CHART_HEIGHT, f"Samples of {row.title}. {'; '.join(ranges)}", labels, plots)
    return Markup('{}<p class="key">{}</p>').format(picture, words)


def spread_out(heights: Sequence[float], middle: float, reach: float) -> list[tuple[float, float]]:
    """Return a place for each height: those of the same few pixels are beside each other around ``middle``."""
    bins: dict[int, list[float]] = {}
    for height in heights:
        bins.setdefault(int(height / BIN), []).append(height)
    step = 2 * reach / max(MOST_BESIDE, *(len(found) for found in bins.values()))
    return [
        (middle + step * (number - (len(found) - 1) / 2), height)
        for found in bins.values()
        for number, height in enumerate(found)
    ]


def wide_axis(y: Scale, dimension: Dimension, unit: str = "") -> tuple[Markup, list[Markup]]:
    """Return the lines at round values of a stretched picture, and those values to its left."""
    values = list(_round_values(y, dimension, unit))
    labels = [svg.text(LEFT - 6, at + 4, words, "end") for at, words in values]
    return svg.rules("grid", [at for at, _ in values]), labels


def from_zero(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis: from 0, unless all values lie above 55% of the largest."""
    room = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    return (0.0 if 0 <= low < 0.55 * high else low - room), high + room


def value_grid(y: Scale, dimension: Dimension) -> Iterator[Markup]:
    """Yield horizontal lines at round values, and the values beside them, all in one unit."""
    for at, words in _round_values(y, dimension, ""):
        yield svg.line("grid", LEFT, at, CHART_WIDTH, at)
        yield svg.text(LEFT - 6, at + 4, words, "end")


def _round_values(y: Scale, dimension: Dimension, unit: str) -> Iterator[tuple[float, str]]:
    """Yield places and texts of round values, all in one unit: ``unit`` unless it is ''."""
    # Bytes are shown in KiB and MiB, so they must be round in those units.
    unit = unit or common_unit([y.high], dimension)
    scale = float(UNITS[unit][1]) if unit else 1.0
    for value in (tick * scale for tick in ticks(y.low / scale, y.high / scale)):
        words = format_quantity(value, dimension, unit=unit)
        # With three digits, 100 and 100.5 are both "100", and two lines would have the same label.
        if math.isclose(parse_quantity(words).value, value, rel_tol=1e-6):
            yield y(value), words


def with_ends(value: float | None, low: float | None, high: float | None, dimension: Dimension, unit: str = "") -> str:
    """Return a value with the ends of its interval if they are known, all in one unit."""
    unit = unit or common_unit([value], dimension)
    value_text, *ends = (format_quantity(end or 0.0, dimension, unit=unit) for end in (value, low, high))
    return value_text if low is None or high is None else f"{value_text} [{', '.join(ends)}]"


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
        shape = svg.dot if point.tree == "baseline" else svg.square
        share = f", {point.share:.0%} of its roof" if point.share is not None else ""
        attained = with_ends(point.attained.value, point.attained.low, point.attained.high, Dimension.FLOPS)
        tip = f"{point.benchmark}: {attained} at {significant(point.intensity)} FLOP/B{share}"
        parts.append(shape(f"sample {kind}", x(point.intensity), y(point.attained.value or 0.0), 4, tip))
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


_NARROW = 12.0
"""Ratio of the ends of an axis below which a linear scale has rounder tick values."""
MOST_SIZES = 8
"""Most sizes that are written below the axis."""


def growth_figure(line: GrowthLine, criteria: Criteria, names: Mapping[str, str] = SIDE_NAMES) -> Markup:
    """Return the chart of one growth with its caption; '' if there is no curve. ``names``: what the sides are called.

    Both axes are logarithmic, so a power of the size is a straight line. Values of 0 cannot be drawn.
    """
    growth = line.source
    sides = [(kind, side) for kind, side in (("before", growth.baseline), ("after", growth.candidate)) if side]
    drawn = [
        (kind, side) for kind, side in sides if side.curve and all((point.value or 0) > 0 for point in side.points)
    ]
    if not drawn:
        return EMPTY
    caption = Markup("<code>{}</code> <code>{}</code> with <code>{}</code>: {}").format(
        visible(growth.benchmark), visible(growth.metric), visible(growth.key), _words(line, names)
    )
    return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(
        caption, _picture(growth, drawn, criteria, names)
    )


def _words(line: GrowthLine, names: Mapping[str, str]) -> Markup:
    texts = [
        Markup('<span class="{}">{} {}</span> {}').format(kind, mark, side, text)
        for kind, mark, side, text, known in (
            ("before", "●", names["baseline"], line.baseline, line.source.baseline),
            ("after", "■", names["candidate"], line.candidate, line.source.candidate),
        )
        if known
    ]
    texts_of_sides = Markup("; ").join(texts)
    return texts_of_sides + f"; {line.decision}" if line.source.decision else texts_of_sides


def _picture(growth: Growth, sides: list[tuple[str, Grown]], criteria: Criteria, names: Mapping[str, str]) -> Markup:
    points = [point for _, side in sides for point in side.points]
    curves = [point for _, side in sides for point in side.curve]
    values = [value for point in (*points, *curves) for value in (point.value, point.low, point.high)]
    known = [value for value in values if value is not None and value > 0]
    sizes = sorted({point.size for point in points})
    # A band may reach 0, which is not on a logarithmic axis, so it is cut.
    least = max(min(known), min(point.value or math.inf for point in points) / 10)
    x = Scale(sizes[0] / 1.1, sizes[-1] * 1.1, LEFT + 8, CHART_WIDTH - 8, logarithmic=True)
    y = Scale(least / 1.3, max(known) * 1.3, CHART_HEIGHT - BOTTOM - 12, 8, logarithmic=True)
    dimension = criteria.metric(growth.metric).dimension
    parts = [*_grid(y, dimension), *_sizes(x, sizes)]
    for kind, side in sides:
        lows = [(x(point.size), y(max(point.low or 0.0, least / 1.3))) for point in side.curve]
        highs = [(x(point.size), y(point.high or max(known))) for point in side.curve]
        parts.append(svg.path(f"band {kind}", [*lows, *reversed(highs)]))
        parts.append(svg.path(f"curve {kind}", [(x(point.size), y(point.value or least)) for point in side.curve]))
        for point in side.points:
            if point.low is not None and point.high is not None:
                at = x(point.size)
                parts.append(svg.line(f"whisker {kind}", at, y(max(point.low, least / 1.3)), at, y(point.high)))
            shape = svg.dot if kind == "before" else svg.square
            tip = f"{point.size:g}: {with_ends(point.value, point.low, point.high, dimension)}"
            parts.append(shape(f"sample {kind}", x(point.size), y(point.value or least), tip=tip))
    words = f"{visible(growth.key)}, both axes logarithmic; bands: 95% confidence of the curve"
    parts.append(svg.text((LEFT + CHART_WIDTH) / 2, CHART_HEIGHT - 4, words, "middle"))
    growths = "; ".join(
        f"{names['baseline' if kind == 'before' else 'candidate']}: {grown_text(side)}" for kind, side in sides
    )
    return svg.picture(CHART_WIDTH, CHART_HEIGHT, f"Growth of {growth.benchmark} {growth.metric}. {growths}", parts)


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
    bounds = [(words, requirement.bound) for words, requirement in required if requirement]
    dimension, words = _AXES[curves[0].axis]
    ends = [(curve.at[0], curve.at[-1]) for curve in curves]
    x = Scale(min(first for first, _ in ends), max(last for _, last in ends), LEFT + 8, CHART_WIDTH - 8)
    top = max([*(max(curve.held) for curve in curves), *(bound for _, bound in bounds)])
    y = Scale(0.0, top * 1.12, CHART_HEIGHT - BOTTOM - 12, 8)
    parts = [
        *value_grid(y, Dimension.BYTES),
        *(
            below_axis(x(value), CHART_HEIGHT - BOTTOM, format_quantity(value, dimension))
            for value in ticks(x.low, x.high)
        ),
    ]
    for bound_text, bound in bounds:
        parts.append(svg.line("bound", LEFT, y(bound), CHART_WIDTH, y(bound)))
        parts.append(svg.text(LEFT + 4, y(bound) - 3, f"target {visible(bound_text)}"))
    peaks = []
    labels: list[tuple[float, float]] = []
    for curve in curves:
        kind = "before" if curve.tree == "baseline" else "after"
        peak = max(curve.held)
        at = curve.at[curve.held.index(peak)]
        shape = svg.dot if kind == "before" else svg.square
        peak_text = format_quantity(peak, Dimension.BYTES)
        steps = list(_steps(curve))
        tips = [
            f"{names[curve.tree]} {format_quantity(held, Dimension.BYTES)} at {format_quantity(when, dimension)}"
            for when, held in steps
        ]
        parts.append(svg.path(f"curve {kind}", [(x(when), y(held)) for when, held in steps], tips))
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


def _steps(curve: MemoryResult) -> Iterator[tuple[float, float]]:
    """Yield the points of a step curve: the value stays the same until the next point."""
    before: float | None = None
    for at, held in zip(curve.at, curve.held, strict=True):
        if before is not None:
            yield at, before
        yield at, held
        before = held


_HEIGHT = 120.0
_LANES = {"baseline": 30.0, "candidate": 68.0}
_SPREAD = (0.0, -8.0, 8.0, -4.0, 4.0, -12.0, 12.0)
"""Vertical offsets of the points of a lane in turn, so that equal points do not hide each other."""


def layout_figure(row: Benchmark, criteria: Criteria, names: Mapping[str, str] = SIDE_NAMES) -> Markup:
    """Return the chart of a row that was measured over several code layouts; '' for any other row.

    ``names``: how the report calls each side.
    """
    layouts = row.layouts
    if layouts is None or layouts.n < 2 or not (row.baseline and row.candidate):
        return EMPTY
    sides = {
        "baseline": _per_layout(row.baseline, layouts, 0),
        "candidate": _per_layout(row.candidate, layouts, 1),
    }
    caption = Markup("<code>{}</code> <code>{}</code>: {} code layouts of each side, between layouts ±{}").format(
        visible(row.name), visible(row.metric), layouts.n, f"{layouts.deviation:.1%}"
    )
    picture = _layout_picture(row, sides, layouts, criteria, names)
    return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(caption, picture)


def _per_layout(sample: Sample, layouts: LayoutsOf, side: int) -> list[float]:
    """Return the mean of each layout's samples."""
    numbers = layouts.numbers[side] if layouts.numbers else range(len(sample.samples))
    found: dict[int, list[float]] = {}
    for number, value in zip(numbers, sample.samples, strict=True):
        found.setdefault(number, []).append(value)
    return [fmean(values) for values in found.values()]


def _layout_picture(
    row: Benchmark, sides: dict[str, list[float]], layouts: LayoutsOf, criteria: Criteria, names: Mapping[str, str]
) -> Markup:
    dimension, unit = criteria.metric(row.metric).dimension, unit_of_row(row, criteria)
    built = {"baseline": layouts.built.baseline, "candidate": layouts.built.candidate}
    alone = {name: sample.value for name, sample in built.items() if sample and sample.value is not None}
    every = [*(value for values in sides.values() for value in values), *alone.values()]
    low, high = from_zero(min(every), max(every))
    x = Scale(low, high, LEFT + 8, CHART_WIDTH - 30)
    parts = []
    for tick in ticks(low, high):
        parts.append(svg.line("grid", x(tick), 8, x(tick), _HEIGHT - 32))
        parts.append(svg.text(x(tick), _HEIGHT - 20, format_quantity(tick, dimension, unit=unit), "middle"))
    for name, values in sides.items():
        kind, lane = ("before" if name == "baseline" else "after"), _LANES[name]
        parts.append(svg.text(LEFT - 2, lane + 4, names[name], f"{kind} end"))
        parts += _lane(kind, lane, sorted(values), x, lambda value: format_quantity(value, dimension, unit=unit))
        if name in alone:
            at = x(alone[name])
            parts.append(svg.line(f"built {kind}", at, lane - 16, at, lane + 16))
    ends = {
        name: " to ".join(format_quantity(end, dimension, unit=unit) for end in (min(values), max(values)))
        for name, values in sides.items()
    }
    ranges = "; ".join(f"{names[name]}: {text}" for name, text in ends.items())
    axis = "" if low == 0 else "; the axis does not start at 0"
    words = f"one point per layout; the line is the program as built{axis}"
    parts.append(svg.text((LEFT + CHART_WIDTH) / 2, _HEIGHT - 4, words, "middle"))
    return svg.picture(CHART_WIDTH, _HEIGHT, f"Code layouts of {row.title}. {ranges}", parts)


def _lane(kind: str, lane: float, values: Sequence[float], x: Scale, text: Callable[[float], str]) -> Iterator[Markup]:
    shape = svg.dot if kind == "before" else svg.square
    for number, value in enumerate(values):
        yield shape(f"sample {kind}", x(value), lane + _SPREAD[number % len(_SPREAD)], tip=text(value))


_ROW = 26.0
_NAMES = 190.0
_WORDS = 28
_DECISIONS = {"accepted": "kept", "rejected": "reverted", "skipped": "not tried"}


def ladder_figure(ladder: Ladder) -> Markup:
    """Return the chart of one ladder; its logarithmic axis shows times better than the baseline."""
    ends = [
        end
        for interval in (*(rung.reached for rung in ladder.rungs), *([ladder.together] if ladder.together else []))
        for end in (interval.low, interval.estimate, interval.high)
        if 0 < end < math.inf
    ]
    rows = len(ladder.rungs) + (ladder.together is not None)
    foot = 14 + rows * _ROW
    x = Scale(min(1.0, *ends) / 1.04, max(1.05, *ends) * 1.04, _NAMES, CHART_WIDTH - 110, logarithmic=True)
    parts = []
    for tick in log_ticks(x.low, x.high):
        parts.append(svg.line("grid", x(tick), 6, x(tick), foot))
        parts.append(svg.text(x(tick), foot + 12, f"{significant(tick)}x", "middle"))
    parts.append(svg.line("none", x(1.0), 6, x(1.0), foot))
    texts, middle, end = [], 14.0, 1.0
    for rung in ladder.rungs:
        word, kept = _DECISIONS[rung.decision], rung.decision == "accepted"
        kind = "good" if kept else "bad" if rung.reached.estimate < rung.start else "unsure"
        parts += _row(x, middle, shortened(rung.name, _WORDS), rung.reached, kind, word)
        parts.append(svg.line("rung", x(rung.start), middle, x(rung.reached.estimate), middle))
        if kept:
            end = rung.reached.estimate
            parts.append(svg.line("rung", x(end), middle, x(end), middle + _ROW))
        texts.append(f"{visible(rung.name)}: {word}, {significant(rung.reached.estimate)}x")
        middle += _ROW
    if ladder.together:
        parts += _row(x, middle, "all kept, measured together", ladder.together, "good", "")
        texts.append(f"together: {significant(ladder.together.estimate)}x")
    words = "times better than the baseline, logarithmic; bars are 95% intervals"
    parts.append(svg.text((_NAMES + CHART_WIDTH) / 2, foot + 26, words, "middle"))
    label = f"Candidates judged by {visible(ladder.benchmark)} {visible(ladder.metric)}. {'; '.join(texts)}"
    caption = Markup("<code>{}</code> <code>{}</code>: each candidate on top of the changes kept before it").format(
        visible(ladder.benchmark), visible(ladder.metric)
    )
    picture = svg.picture(CHART_WIDTH, foot + 32, label, parts)
    return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(caption, picture)


def _row(x: Scale, middle: float, name: str, reached: Interval, kind: str, word: str) -> list[Markup]:
    low, high = (end if 0 < end < math.inf else other for end, other in ((reached.low, x.low), (reached.high, x.high)))
    label = " ".join(filter(None, (f"{significant(reached.estimate)}x", word)))
    return [
        svg.text(_NAMES - 10, middle + 4, name, "end"),
        svg.line(f"interval {kind}", x(low), middle, x(high), middle),
        svg.dot(
            f"point {kind}", x(reached.estimate), middle, 4, format_factor(reached.estimate, reached.low, reached.high)
        ),
        svg.text(max(x(high), x(reached.estimate)) + 8, middle + 4, label),
    ]


LEAST_SPAN = 0.12
"""Least share at the right end of a bar, so that both thresholds fit."""


def calibration_span(findings: list[CalibrationFinding]) -> float:
    """Return the share at the right end of all bars."""
    ends = [end for item in findings for end in (_noise(item), item.smallest_change) if end is not None]
    return min(1.0, max([LEAST_SPAN, *(end * 1.1 for end in ends)]))


def calibration_bar(finding: CalibrationFinding, span: float) -> Markup:
    """Return a bar with the noise as a band from 0, the smallest change as a point, and lines at 5% and 10%."""
    noise = _noise(finding)
    if noise is None:
        return EMPTY
    scale, middle = Scale(0.0, span, 2, BAR_WIDTH - 2), BAR_HEIGHT / 2
    parts = [
        svg.rectangle("share noise", scale(0.0), 4, max(1.0, scale(noise) - scale(0.0)), BAR_HEIGHT - 8),
        *(svg.line("threshold", scale(bound), 0, scale(bound), BAR_HEIGHT) for bound in (CONCERN, ACTION)),
        svg.line("none", scale(0.0), 0, scale(0.0), BAR_HEIGHT),
    ]
    if finding.smallest_change is not None:
        kind = (
            "good" if finding.smallest_change <= CONCERN else "unsure" if finding.smallest_change <= ACTION else "bad"
        )
        parts.append(svg.dot(f"point {kind}", scale(finding.smallest_change), middle, 4))
    return svg.picture(BAR_WIDTH, BAR_HEIGHT, "", parts, kind="bar")


def _noise(item: CalibrationFinding) -> float | None:
    return None if item.noise is None else math.expm1(item.noise)
