"""How many pairs prove a change, given the spread of the pairs: the formula behind ``perfflow plan --detect``.

The interim analyses are at fixed numbers of pairs, each with its part of the error. At the analysis after n pairs a
change of the share c is proven with probability ``POWER`` if

    ln((1 + c) / (1 + floor)) >= WIDER * (t(1 - alpha / 2) + t(POWER)) * spread / sqrt(n)

with the error alpha of that analysis: the interval of the change must exclude zero by the floor. ``spread`` is the
standard deviation of ln(candidate / baseline) of one pair, t the quantile of Student's distribution with n - 1 degrees
of freedom.
"""

from __future__ import annotations

import math

from perfflow.model.readings import SCHEDULES, Design
from perfflow.stats.paired_test import student_t_quantile

POWER = 0.9
"""Probability with which a change of the given size is proven."""
WIDER = 1.15
"""By how much the interval of the sign-flip test, which weighs pairs, is wider than that of a t-test of normal noise.

Simulated: with it, 90% to 100% of 60 comparisons of 11 to 64 pairs prove the change, without it 75% to 90%.
"""
_LOOKS = SCHEDULES[Design.LOOKS]


def pairs_to_prove(change: float, spread: float, floor: float) -> int | None:
    """Return the pairs of the first analysis that proves a change of that share; None if even the last one does not."""
    return next((pairs for pairs, alpha in _LOOKS if _smallest(pairs, alpha, spread, floor) <= change), None)


def smallest_change(pairs: float, spread: float, floor: float) -> float | None:
    """Return the smallest change that is proven within so many pairs; None if they are too few for any analysis."""
    done = [(look, alpha) for look, alpha in _LOOKS if look <= pairs]
    return min((_smallest(look, alpha, spread, floor) for look, alpha in done), default=None)


def _smallest(pairs: int, alpha: float, spread: float, floor: float) -> float:
    width = student_t_quantile(1 - alpha / 2, pairs - 1) + student_t_quantile(POWER, pairs - 1)
    return math.expm1(math.log1p(floor) + WIDER * width * spread / math.sqrt(pairs))
