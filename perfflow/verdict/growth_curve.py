"""The curve of a fitted growth and its band, for charts, at sizes between the measured points.

The band contains the curves of all exponents in the interval, each with its best ``a`` and ``b``. It shows the
uncertainty of the exponent, not the range of a further measurement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from perfflow.stats.paired_test import Interval
from perfflow.verdict.growth_fit import EXPONENTS, Growth, Point, errors_of, lines, power

PLACES = 25
"""Number of sizes at which a curve is computed, evenly spaced on a logarithmic axis."""
_WITHIN = 9
"""Number of exponents of the interval whose curves form the band."""


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
    """Return the estimate, then exponents from one end of the interval to the other."""
    low, high = max(interval.low, EXPONENTS[0]), min(interval.high, EXPONENTS[-1])
    return [interval.estimate, *(low + (high - low) * number / (_WITHIN - 1) for number in range(_WITHIN))]


def _curve(p: float, points: Sequence[Point], places: Sequence[float], floor: float, *, flat: bool) -> list[float]:
    """Return the values of the best curve with one exponent; for a flat curve, of the line through the middle."""
    weights = [error**-2 for error in errors_of(points, floor)]
    if flat:
        total = math.fsum(weights)
        level = math.fsum(w * point.value for w, point in zip(weights, points, strict=True)) / total
        middle = math.fsum(w * math.log(point.size) for w, point in zip(weights, points, strict=True)) / total
        return [level * math.exp(p * (math.log(place) - middle)) for place in places]
    unit = min(1.0, points[0].size)
    line = lines([point.value for point in points], weights)(power(p, [point.size / unit for point in points]))
    # Powers are normalized by the largest size, which is the same here: the last place is the greatest size.
    return [line.a + line.b * height for height in power(p, [place / unit for place in places])]
