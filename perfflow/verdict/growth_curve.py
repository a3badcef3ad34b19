"""The curve of a fitted growth and its band, for pictures: what ``growth_fit`` found, told at sizes between the points.

The band holds the curves of all exponents in the interval, each with the ``a`` and ``b`` that suit it best. It is how
far the exponent is uncertain, not where a further measurement would lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from perfflow.stats.paired_test import Interval
from perfflow.verdict.growth_fit import EXPONENTS, Growth, Point, errors_of, lines, power

PLACES = 25
"""Sizes at which a curve is told, evenly spaced on a logarithmic axis."""
_WITHIN = 9
"""Exponents of the interval whose curves make the band."""


def curve_of(points: Sequence[Point], found: Growth, floor: float) -> list[tuple[float, Interval]]:
    """Return (size, value with its band) from the least size to the greatest, in the metric's base unit.

    ``points`` and ``floor`` are those that ``found`` was fitted to.
    """
    points = sorted(points, key=lambda point: point.size)
    least, greatest = points[0].size, points[-1].size
    places = [least * (greatest / least) ** (number / (PLACES - 1)) for number in range(PLACES)]
    own, *others = (_curve(p, points, places, floor, flat=found.high == 0) for p in _exponents(found.exponent))
    bands = zip(own, *others, strict=True)
    return [(place, Interval(values[0], min(values), max(values))) for place, values in zip(places, bands, strict=True)]


def _exponents(interval: Interval) -> list[float]:
    """The estimate, then exponents from one end of the interval to the other."""
    low, high = max(interval.low, EXPONENTS[0]), min(interval.high, EXPONENTS[-1])
    return [interval.estimate, *(low + (high - low) * number / (_WITHIN - 1) for number in range(_WITHIN))]


def _curve(p: float, points: Sequence[Point], places: Sequence[float], floor: float, *, flat: bool) -> list[float]:
    """The values at places of the best curve with one exponent; of a flat one, of the line through the middle."""
    weights = [error**-2 for error in errors_of(points, floor)]
    if flat:
        total = math.fsum(weights)
        level = math.fsum(w * point.value for w, point in zip(weights, points, strict=True)) / total
        middle = math.fsum(w * math.log(point.size) for w, point in zip(weights, points, strict=True)) / total
        return [level * math.exp(p * (math.log(place) - middle)) for place in places]
    unit = min(1.0, points[0].size)
    line = lines([point.value for point in points], weights)(power(p, [point.size / unit for point in points]))
    # Powers are shares of the largest, which is the same here: the last place is the greatest size.
    return [line.a + line.b * height for height in power(p, [place / unit for place in places])]
