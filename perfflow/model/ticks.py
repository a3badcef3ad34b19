"""Resolution (tick) of values: that of a coarse clock, or of the digits that a program prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from perfflow.model.readings import Reading
from perfflow.model.units import Dimension
from perfflow.stats.paired_test import quantile

COARSE = 0.005
"""Share of a value above which a tick matters: the floor of changes of identical files."""
_TIES = _DIFFERENT = 2


def printed_tick(value: float, steps: Sequence[float]) -> float:
    """Return the median step of the last digit of one process's figures, 0 if it is too fine to matter.

    Most formats print a fixed number of digits. A format that drops trailing zeros still prints most values in full.
    """
    tick = sorted(steps)[len(steps) // 2]
    return tick if tick > abs(value) * COARSE / 10 else 0.0


def tick_of(sides: Sequence[Sequence[Reading]], dimension: Dimension) -> float:
    """Return the tick of the values of one or two sides in base units; 0 if it is too fine to matter.

    It is the step of the printed digits, or for times a coarser step that the values show. Counts have no tick, because
    they are whole numbers by nature.
    """
    values = [[item.value for item in readings] for readings in sides if readings]
    middle = min((abs(quantile(own, 0.5)) for own in values), default=0.0)
    if middle == 0 or dimension is Dimension.COUNT:
        return 0.0
    printed = max(sorted(item.tick for item in readings)[len(readings) // 2] for readings in sides if readings)
    shown = max(map(_shown_step, values)) if dimension is Dimension.TIME else 0.0
    tick = max(printed, shown)
    return tick if tick >= COARSE * middle else 0.0


def _shown_step(values: Sequence[float]) -> float:
    """Return the largest step of which all values are multiples; 0 without ties or without different values."""
    distinct = sorted(set(values))
    if len(distinct) < _DIFFERENT or len(values) - len(distinct) < _TIES:
        return 0.0
    noise = 1e-9 * max(map(abs, distinct))
    return reduce(lambda a, b: _common_divisor(a, b, noise), map(abs, distinct))


def _common_divisor(a: float, b: float, noise: float) -> float:
    """Return the common divisor by Euclid's algorithm, for floats that are multiples of a step except for ``noise``."""
    while b > noise:
        a, b = b, abs(math.remainder(a, b))
    return a
