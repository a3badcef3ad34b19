"""The level of a series at each of its points: what a value is beside those around it, so that luck weighs little."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.stats.paired_test import quantile

_REACH = 2
_FEW, _TOO_FEW = 8, 3


def levels(values: Sequence[float]) -> list[float]:
    """Return the median of each value and its neighbours: two on each side, one of fewer than 8 values.

    values: one for each revision, in their order, any unit. The first and the last have neighbours on one side only. Of
    fewer than 3 values each stands for itself. Source: Tukey, Exploratory Data Analysis, chapter 7 (running medians).
    """
    reach = 0 if len(values) < _TOO_FEW else 1 if len(values) < _FEW else _REACH
    return [quantile(values[max(0, at - reach) : at + reach + 1], 0.5) for at in range(len(values))]
