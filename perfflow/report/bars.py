"""The places of intervals, bounds and samples on the axes of drawings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfflow.model.criteria import Criteria
from perfflow.model.result import Bounds, Sample, TargetResult
from perfflow.model.units import Dimension, Relation, Requirement, format_quantity
from perfflow.report.bounds import bound_of
from perfflow.report.table import AXIS, Bar, Cell, Density, Tone
from perfflow.stats.paired_test import Interval, quantile

LADDER = (1.15, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
"""Ratios at the right end of an axis of changes; its left end is one over that."""
_ROOM = 0.15
"""Margin of a target's axis on each side, as a share of the drawn range."""
_FENCES = 3.0
"""Samples farther from the quartiles than this many interquartile ranges are counted, not drawn."""
TARGET_TONES = {"met": Tone.GOOD, "not met": Tone.BAD, "not held by base": Tone.STILL, "not looked at": Tone.STILL}


@dataclass(frozen=True)
class Ratio:
    """A change to draw: natural logarithms of the ratio, of its interval, and of the threshold of a regression."""

    low: float
    value: float
    high: float
    bound: float | None
    tone: Tone


def ratio_of_change(change: Bounds | None, bound: float | None, tone: Tone) -> Ratio | None:
    """Return a relative change (-0.3 is 30% less) with its interval, or None if it is not known."""
    if change is None or change.value is None:
        return None
    low = -1.0 if change.low is None else change.low
    high = math.inf if change.high is None else change.high
    return _ratio(1 + low, 1 + change.value, 1 + high, None if bound is None else 1 + bound, tone)


def ratio_of_interval(change: Interval | None) -> Ratio | None:
    """Return a relative change without a threshold, or None if it is not known."""
    if change is None or math.isnan(change.estimate):
        return None
    return _ratio(1 + change.low, 1 + change.estimate, 1 + change.high, None, Tone.UNSURE)


def ratio_of_speedup(speedup: Bounds | None, bound: float | None, tone: Tone) -> Ratio | None:
    """Return a speedup (2.0 is twice as fast) with its interval, or None if it is not known."""
    if speedup is None or speedup.value is None:
        return None
    low = 0.0 if speedup.low is None else speedup.low
    return _ratio(low, speedup.value, math.inf if speedup.high is None else speedup.high, bound, tone)


def _ratio(low: float, value: float, high: float, bound: float | None, tone: Tone) -> Ratio:
    return Ratio(_log(low), _log(value), _log(high), None if bound is None else _log(bound), tone)


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def on_one_axis(changes: Sequence[Ratio | None], *, percent: bool) -> tuple[str, list[Cell]]:
    """Return a title with the ends of a logarithmic axis around no change, and a bar for each change.

    ``percent``: the title has relative changes, else speedups.
    """
    ends = [abs(end) for item in changes if item for end in (item.low, item.high) if math.isfinite(end)]
    most = math.exp(min(max(ends, default=0.0), math.log(LADDER[-1])))
    top = next(step for step in LADDER if step >= most * (1 - 1e-9))
    title = AXIS.join(f"{100 * (end - 1):+.3g}%" if percent else f"{end:.3g}x" for end in (1 / top, top))

    def place(logarithm: float) -> float:
        return 0.5 + logarithm / (2 * math.log(top))

    def bar(item: Ratio) -> Bar:
        low, value, high = map(place, (item.low, item.value, item.high))
        bounds = () if item.bound is None else (place(item.bound),)
        return Bar(low, high, item.tone, value, bounds, none=0.5)

    return title, [bar(item) if item else "" for item in changes]


def requirement_bar(target: TargetResult, criteria: Criteria) -> Bar | None:
    """Return the measured interval and the bound on their own axis, or None if there is nothing to draw."""
    required = bound_of(target, criteria)
    values = [value for value in (target.low, target.measured, target.high) if value is not None]
    if required is None or required.growth or not values:
        return None
    bounds = [required.bound, *([required.high] if required.high is not None else [])]
    first, last = min(values + bounds), max(values + bounds)
    room = (last - first) * _ROOM or abs(last) * _ROOM or 1.0

    def place(value: float) -> float:
        return (value - first + room) / (last - first + 2 * room)

    places = tuple(map(place, bounds))
    return Bar(
        low=-math.inf if target.low is None else place(target.low),
        high=math.inf if target.high is None else place(target.high),
        tone=TARGET_TONES.get(target.status, Tone.UNSURE),
        point=None if target.measured is None else place(target.measured),
        bounds=places,
        allowed=_allowed(required, places),
    )


def _allowed(required: Requirement, places: Sequence[float]) -> tuple[float, float] | None:
    match required.relation:
        case Relation.LESS | Relation.AT_MOST:
            return 0.0, places[0]
        case Relation.GREATER | Relation.AT_LEAST:
            return places[0], 1.0
        case Relation.BETWEEN:
            return places[0], places[-1] if len(places) > 1 else 1.0
        case Relation.EQUAL:
            return None


def densities(sides: Sequence[Sample], dimension: Dimension, unit: str) -> tuple[str, list[Density]] | None:
    """Return a title with the ends of a linear axis in ``unit``, and the samples of each side on it.

    Samples far outside of their side's quartiles are left out. None if a side has fewer than two samples, or all
    samples are equal.
    """
    if any(len(side.samples) < 2 for side in sides):
        return None
    inside = [_inside(side.samples) for side in sides]
    low, high = min(map(min, inside)), max(map(max, inside))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return None
    title = AXIS.join(format_quantity(end, dimension, unit=unit) for end in (low, high))
    return title, [Density(tuple((value - low) / (high - low) for value in values)) for values in inside]


def _inside(values: Iterable[float]) -> list[float]:
    """Return the values that are not far outside of the quartiles; at least half of all."""
    ordered = sorted(values)
    first, third = quantile(ordered, 0.25), quantile(ordered, 0.75)
    reach = _FENCES * (third - first)
    return [value for value in ordered if first - reach <= value <= third + reach]
