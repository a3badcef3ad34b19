"""Chart of the code layouts of each side: a point for each layout, and a line for the program as built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from markupsafe import Markup

from perfflow.model.criteria import Criteria
from perfflow.model.result import Benchmark, LayoutsOf, Sample
from perfflow.model.units import format_quantity
from perfflow.report.html import svg
from perfflow.report.html.charts import CHART_WIDTH, EMPTY, LEFT, from_zero, ticks
from perfflow.report.html.svg import Scale
from perfflow.report.sanitize import visible
from perfflow.report.table import SIDE_NAMES
from perfflow.verdict.row_text import unit_of_row

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
    picture = _picture(row, sides, layouts, criteria, names)
    return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(caption, picture)


def _per_layout(sample: Sample, layouts: LayoutsOf, side: int) -> list[float]:
    """Return the mean of each layout's samples."""
    numbers = layouts.numbers[side] if layouts.numbers else range(len(sample.samples))
    found: dict[int, list[float]] = {}
    for number, value in zip(numbers, sample.samples, strict=True):
        found.setdefault(number, []).append(value)
    return [fmean(values) for values in found.values()]


def _picture(
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
        parts += _lane(kind, lane, values, x)
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


def _lane(kind: str, lane: float, values: Sequence[float], x: Scale) -> list[Markup]:
    shape = svg.dot if kind == "before" else svg.triangle
    ordered = sorted(values)
    return [
        shape(f"sample {kind}", x(value), lane + _SPREAD[number % len(_SPREAD)]) for number, value in enumerate(ordered)
    ]
