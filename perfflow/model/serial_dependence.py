"""Serial dependence of samples: drift, clock states, bursts of other work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

_FEWEST_IN_ORDER = 6
_NORMAL_95 = 1.645
_STRONGEST = 0.95


def serial_factor(values: Sequence[float]) -> float:
    """Return the factor by which serial dependence increases the standard error; 1 if no dependence is visible.

    ``values`` are in the order taken. The model is a first-order autoregression. Its correlation is the larger of that
    of the ranks and that of the values (logarithms, if all are positive), corrected for the bias of short series
    (Marriott and Pope 1954). A correlation that 5% of independent series reach counts as chance, and gives 1.
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
    """Return the correlation of neighbouring values; 0 if all are equal."""
    # In units of the largest value, because squares of huge values are infinite.
    unit = max(map(abs, values)) or 1.0
    scaled = [value / unit for value in values]
    mean = math.fsum(scaled) / len(scaled)
    moved = [value - mean for value in scaled]
    total = math.fsum(value * value for value in moved)
    return math.fsum(map(mul, moved, moved[1:])) / total if total > 0 else 0.0
