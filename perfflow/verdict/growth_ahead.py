"""Find a further size that would settle a growth, assuming that the fitted curve continues."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from perfflow.verdict.growth_fit import Growth, Point, fit, lines, power


def deciding_size(points: Sequence[Point], found: Growth, decided: Callable[[Growth], bool], **how: float) -> float:
    """Return approximately the least further size that would settle the growth; 0 if none would.

    Its relative error is assumed to be the median of the others. ``how`` are the arguments of ``fit``.
    """
    if not math.isfinite(found.exponent.estimate):
        return 0.0
    sizes = [point.size for point in points]
    least, largest = min(sizes), max(sizes)
    scaled = [size / min(1.0, least) for size in sizes]
    values = [point.value for point in points]
    share = sorted(point.error / abs(point.value) if point.value else 0.0 for point in points)[len(points) // 2]
    errors = [max(math.hypot(item.error, how["floor"] * item.value), 1e-9 * max(map(abs, values))) for item in points]
    line = lines(values, [error**-2 for error in errors])
    for times in (2, 4, 8, 16, 32, 64):
        further = [*scaled, largest * times / min(1.0, least)]
        # The curve is normalized by its largest size, so fit it again for a new largest size.
        curve = power(found.exponent.estimate, further)
        best = line(curve[:-1])
        guess = [best.a + best.b * height for height in curve]
        future = [Point(size, value, share * value) for size, value in zip(further, guess, strict=True)]
        if guess[-1] > 0 and decided(fit(future, **how)):
            return largest * times
    return 0.0
