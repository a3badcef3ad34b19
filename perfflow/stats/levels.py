"""Smooth a series: estimate its level at each point from the neighbouring values."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.stats.paired_test import quantile

_REACH = 2
_FEW, _TOO_FEW = 8, 3


def levels(values: Sequence[float]) -> list[float]:
    """Return the running median of ``values``, as many as there are values.

    The window has two neighbours on each side, one if there are fewer than 8 values, and none if there are fewer than
    3. At the ends it has neighbours on one side only.
    values: one for each revision, in order, in any unit.
    Source: Tukey, Exploratory Data Analysis, chapter 7 (running medians).
    """
    reach = 0 if len(values) < _TOO_FEW else 1 if len(values) < _FEW else _REACH
    return [quantile(values[max(0, at - reach) : at + reach + 1], 0.5) for at in range(len(values))]
