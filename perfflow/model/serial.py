"""Dependence of samples on those taken before them: drift, clock states, bursts of other work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

_FEWEST_IN_ORDER = 6
_NORMAL_95 = 1.645
_STRONGEST = 0.95


def serial_factor(values: Sequence[float]) -> float:
    """Return by how much the standard error grows since samples depend on those before them; 1 where none is visible.

    ``values`` are in the order taken. They are taken for an autoregression of the first order, whose correlation is
    the larger of that of ranks and that of values (logarithms, of positive ones), corrected for the bias of short
    series (Marriott and Pope 1954). What 5% of independent series reach is not told from chance, and gives 1.
    """
    n = len(values)
    if n < _FEWEST_IN_ORDER:
        return 1.0
    positions: dict[float, list[int]] = {}
    for position, value in enumerate(sorted(values)):
        positions.setdefault(value, []).append(position)
    ranks = [(positions[value][0] + positions[value][-1]) / 2 for value in values]
    plain = list(map(math.log, values)) if min(values) > 0 else values
    found = max(_lag_one(ranks), _lag_one(plain))
    if (found + 1 / n) * math.sqrt(n) < _NORMAL_95:
        return 1.0
    correlation = min(_STRONGEST, (n * found + 1) / (n - 4))
    return math.sqrt((1 + correlation) / (1 - correlation))


def _lag_one(values: Sequence[float]) -> float:
    """Correlation of neighbours; 0 of equal values."""
    # In units of the largest, since squares of huge values are infinite.
    unit = max(map(abs, values)) or 1.0
    scaled = [value / unit for value in values]
    mean = math.fsum(scaled) / len(scaled)
    moved = [value - mean for value in scaled]
    total = math.fsum(value * value for value in moved)
    return math.fsum(map(mul, moved, moved[1:])) / total if total > 0 else 0.0
