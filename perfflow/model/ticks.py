"""Steps in which values come: of a coarse clock, or of the digits that a program prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from perfflow.model.readings import Reading
from perfflow.model.units import Dimension
from perfflow.stats.paired_test import quantile

COARSE = 0.005
"""Share of a value from which on a step counts: the floor of changes of identical files."""
_TIES = _DIFFERENT = 2


def printed_tick(value: float, steps: Sequence[float]) -> float:
    """The usual step of the last digit of one process's figures, 0 where it is too fine to matter.

    Most formats print a fixed number of digits; one that drops zeros prints most values in full.
    """
    tick = sorted(steps)[len(steps) // 2]
    return tick if tick > abs(value) * COARSE / 10 else 0.0


def tick_of(sides: Sequence[Sequence[Reading]], dimension: Dimension) -> float:
    """The step in which the values of one side, or of two, come, in base units; 0 where they are fine-grained.

    It is that of the digits printed, or of times a coarser one that they show. Counts are whole by nature, not rounded.
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
    """The largest step of which all values are multiples, 0 where none is seen: it takes ties, and different values."""
    distinct = sorted(set(values))
    if len(distinct) < _DIFFERENT or len(values) - len(distinct) < _TIES:
        return 0.0
    noise = 1e-9 * max(map(abs, distinct))
    return reduce(lambda a, b: _common_divisor(a, b, noise), map(abs, distinct))


def _common_divisor(a: float, b: float, noise: float) -> float:
    """Euclid's algorithm for floats that are multiples of a step but for ``noise``."""
    while b > noise:
        a, b = b, abs(math.remainder(a, b))
    return a
