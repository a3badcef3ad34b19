"""Fit the growth of a value with a size: the exponent with its interval, and the class. Numbers only.

The model is ``value = a + b * (size^p - 1) / p``, which includes the logarithm (p = 0), the line, the square and the
cube (Box and Cox 1964). ``a`` is the fixed cost of every run, such as the start of a process, which must not
lower the exponent. For each p the best a and b follow by weighted least squares. The interval contains every p whose
sum of squares exceeds the minimum by no more than the confidence allows (profile likelihood, Venzon and Moolgavkar
1988). If the points scatter more than their errors explain, the errors are scaled by the Birge ratio, as the Particle
Data Group does. This module does not use numpy or scipy, because they start slowly; the tests use them as references.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from perfflow.model.units import GROWTH_CLASSES
from perfflow.stats.paired_test import Interval

LEAST = 3
"""Least number of sizes for a fit: the model has three parameters."""
BEND = 0.1
"""Tolerance on the exponent of timed programs: caches and allocators bend the curve."""
EXACT_BEND = 0.02
"""Tolerance on the exponent of exact counts, which caches do not affect."""
SPAN = 10.0
"""Least factor between the smallest and the largest size for the class ``constant``."""
EXPONENTS = [step / 20 for step in range(-40, 121)]
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Point:
    """The value at one size, in its base unit, with its standard error."""

    size: float
    value: float
    error: float


@dataclass(frozen=True)
class Growth:
    """A fitted growth. ``rise`` is the share by which the last value exceeds that of the least size.

    ``low`` and ``high`` bound the class, as indices of ``GROWTH_CLASSES``; halves are between two classes.
    """

    exponent: Interval
    rise: Interval
    best: str
    """The class whose curve comes closest."""
    low: float
    high: float
    nlogn: float
    """The exponent of the power that is closest to n log n over these sizes."""

    @property
    def curve(self) -> str:
        """``n^1.02``, or ``constant``."""
        return "constant" if self.high == 0 else f"n^{self.exponent.estimate:.2f}"


@dataclass(frozen=True)
class Line:
    """The best fit ``a + b * f``, with its weighted sum of squares."""

    a: float
    b: float
    squares: float


def fit(points: Sequence[Point], confidence: float, *, floor: float, flat: float, bend: float) -> Growth:
    """Fit a growth to at least LEAST points of different positive sizes.

    ``floor`` is the share of a value that is uncertain in addition to its error, because two sizes use the caches
    differently and are not measured in pairs. A rise of at most ``flat`` over the sizes counts as none. For ``bend``
    see BEND.
    """
    points = sorted(points, key=lambda point: point.size)
    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    rise = _rise(points, z)
    least = points[0].size
    sizes = [point.size / min(1.0, least) for point in points]
    values, errors = [point.value for point in points], errors_of(points, floor)
    line = lines(values, [error**-2 for error in errors])
    exponent = _profiled(lambda p: line(power(p, sizes)).squares, z, max(0, len(points) - LEAST))
    best = min(_CURVES, key=lambda name: line(_CURVES[name](sizes)).squares)
    nlogn = _exponent_of_nlogn(sizes, values, errors)
    if rise.high <= flat:
        best = GROWTH_CLASSES[0]
        # A flat curve over a short range of sizes does not bound the growth.
        low, high = 0.0, math.inf
        if points[-1].size >= SPAN * least:
            # The offset explains a flat curve, so any exponent fits the rest. The plain slope is near 0.
            high, exponent = 0.0, _slope(points, errors, z)
    else:
        low = 0.0 if rise.low <= flat else class_of(exponent.low, nlogn, bend, least=True)
        high = max(low, class_of(exponent.high, nlogn, bend))
    return Growth(exponent, rise, best, low, high, nlogn)


def errors_of(points: Sequence[Point], floor: float) -> list[float]:
    """Return the standard errors by which the points are weighted; for ``floor`` see ``fit``."""
    largest = max(abs(point.value) for point in points) or 1.0
    return [max(math.hypot(item.error, floor * item.value), 1e-9 * largest) for item in points]


def class_of(exponent: float, nlogn: float, bend: float, *, least: bool = False) -> float:
    """Return the index in ``GROWTH_CLASSES`` of an exponent; ``nlogn`` is the exponent of n log n over the sizes.

    Linear and n log n are close, and a bent line may look like n log n. So the ``least`` class is linear up to the
    tolerance of a line, and the greatest class is n log n from the midpoint between the two.
    """
    half_way = min(1 + BEND, (1 + nlogn) / 2)
    linear = max(1 + bend, half_way) if least else half_way
    bands = {
        "log": (-math.inf, bend),
        "linear": (1 - bend, linear),
        "nlogn": (linear, max(nlogn + bend, linear)),
        "quadratic": (2 - bend, 2 + bend),
        "cubic": (3 - bend, 3 + bend),
    }
    place = 0.5
    for name, (lower, upper) in bands.items():
        if exponent < lower:
            return place
        place = float(GROWTH_CLASSES.index(name))
        if exponent <= upper:
            return place
        place += 0.5
    return place


def _rise(points: Sequence[Point], z: float) -> Interval:
    """Return the share by which the last value exceeds the first; the upper bound is that of the highest value."""
    first, last = points[0], points[-1]
    if first.value <= 0:
        level = all(point.value == first.value for point in points)
        return Interval(0.0, 0.0, 0.0) if level else Interval(math.inf, -1.0, math.inf)

    def spread(point: Point) -> float:
        return 0.0 if point is first else z * math.hypot(first.error / first.value, point.error / first.value)

    shares = [(point, point.value / first.value - 1) for point in points]
    high = max(share + spread(point) for point, share in shares)
    share = last.value / first.value - 1
    return Interval(share, share - spread(last), high)


def _slope(points: Sequence[Point], errors: Sequence[float], z: float) -> Interval:
    """Return the slope of ln(value) over ln(size) by weighted least squares, with its normal interval."""
    if min(point.value for point in points) <= 0:
        return Interval(0.0, 0.0, 0.0)
    logs = [(math.log(point.size), math.log(point.value)) for point in points]
    weights = [(point.value / error) ** 2 for point, error in zip(points, errors, strict=True)]
    total = math.fsum(weights)
    middle = math.fsum(w * x for w, (x, _) in zip(weights, logs, strict=True)) / total
    spread = math.fsum(w * (x - middle) ** 2 for w, (x, _) in zip(weights, logs, strict=True))
    slope = math.fsum(w * (x - middle) * y for w, (x, y) in zip(weights, logs, strict=True)) / spread
    return Interval(slope, slope - z / math.sqrt(spread), slope + z / math.sqrt(spread))


def power(p: float, sizes: Sequence[float]) -> list[float]:
    """Return (size^p - 1) / p, divided by the power of the largest size to prevent overflow."""
    logs = [math.log(size) for size in sizes]
    if abs(p) < 1e-9:
        return logs
    top = max(p * log for log in logs) if p > 0 else 0.0
    return [(math.exp(p * log - top) - math.exp(-top)) / p for log in logs]


_CURVES: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "constant": lambda sizes: [0.0 for _ in sizes],
    "log": lambda sizes: power(0.0, sizes),
    "linear": lambda sizes: power(1.0, sizes),
    "nlogn": lambda sizes: [size * math.log(size) / max(sizes) for size in sizes],
    "quadratic": lambda sizes: power(2.0, sizes),
    "cubic": lambda sizes: power(3.0, sizes),
}


def lines(values: Sequence[float], weights: Sequence[float]) -> Callable[[list[float]], Line]:
    """Return a function that fits ``a + b * f`` by weighted least squares, with a and b limited to 0 or more."""
    total = math.fsum(weights)
    level = math.fsum(w * y for w, y in zip(weights, values, strict=True)) / total

    def squares(a: float, b: float, curve: Sequence[float]) -> float:
        return math.fsum(w * (y - a - b * f) ** 2 for w, y, f in zip(weights, values, curve, strict=True))

    def line(curve: list[float]) -> Line:
        mean = math.fsum(w * f for w, f in zip(weights, curve, strict=True)) / total
        spread = math.fsum(w * (f - mean) ** 2 for w, f in zip(weights, curve, strict=True))
        if spread <= 0:
            return Line(level, 0.0, squares(level, 0.0, curve))
        b = math.fsum(w * (f - mean) * (y - level) for w, f, y in zip(weights, curve, values, strict=True)) / spread
        a = level - b * mean
        if b < 0:
            a, b = level, 0.0
        elif a < 0:
            whole = math.fsum(w * f * f for w, f in zip(weights, curve, strict=True))
            a, b = 0.0, math.fsum(w * f * y for w, f, y in zip(weights, curve, values, strict=True)) / whole
        return Line(a, b, squares(a, b, curve))

    return line


def _profiled(squares: Callable[[float], float], z: float, freedom: int) -> Interval:
    """Return the exponent with the least squares and its interval; bounds outside ``EXPONENTS`` are infinite."""
    found = [(squares(p), p) for p in EXPONENTS]
    least, near = min(found)
    estimate = _lowest(squares, near - 0.05, near + 0.05)
    least = min(least, squares(estimate))
    scatter = max(1.0, least / freedom) if freedom else 1.0
    limit = least + z * z * scatter
    inside = [p for value, p in found if value <= limit] or [estimate]
    low, high = min(*inside, estimate), max(*inside, estimate)
    first, last = EXPONENTS[0], EXPONENTS[-1]
    return Interval(
        estimate,
        -math.inf if low <= first else _edge(squares, limit, low, low - 0.05),
        math.inf if high >= last else _edge(squares, limit, high, high + 0.05),
    )


def _lowest(squares: Callable[[float], float], low: float, high: float) -> float:
    """Return the exponent of the minimum between two exponents, by golden-section search."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(30):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if squares(left) < squares(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def _edge(squares: Callable[[float], float], limit: float, inside: float, outside: float) -> float:
    """Return the exponent at which the sum of squares crosses the limit, by bisection."""
    for _ in range(30):
        middle = (inside + outside) / 2
        if squares(middle) <= limit:
            inside = middle
        else:
            outside = middle
    return inside


def _exponent_of_nlogn(sizes: Sequence[float], values: Sequence[float], errors: Sequence[float]) -> float:
    """Return the exponent of the power closest to n log n over these sizes, with these weights."""
    curve = _CURVES["nlogn"](sizes)
    weights = [error**-2 for error in errors]
    own = lines(values, weights)(curve)
    if own.b <= 0:
        # The values do not grow, so fit the shape of n log n alone.
        own, weights = Line(0.0, 1.0, 0.0), [1 / max(height, 1e-9) ** 2 for height in curve]
    line = lines([own.a + own.b * height for height in curve], weights)
    steps = [1 + step / 50 for step in range(51)]
    near = min(steps, key=lambda p: line(power(p, sizes)).squares)
    return max(1.0, _lowest(lambda p: line(power(p, sizes)).squares, near - 0.02, near + 0.02))
