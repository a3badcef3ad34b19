"""Compare a row with the calibration of this machine: the smallest detectable change, and the noise."""

from __future__ import annotations

import math

from perfflow.model.result import Expected
from perfflow.model.units import Dimension, format_quantity
from perfflow.stats.paired_test import pair_spread
from perfflow.verdict.comparison import Comparison
from perfflow.verdict.decide import IDENTICAL_FLOOR

NOISIER = 2.0
"""Factor on the calibrated noise above which a run counts as noisier."""
FEWEST_PAIRS = 10
"""Number of pairs below which their spread is too uncertain to compare."""


def detectable_change(expected: Expected | None) -> str:
    """Return ``on this machine changes of 3% or more are detected within 20 s``; '' without a calibration."""
    if expected is None or expected.within is None:
        return ""
    time = format_quantity(expected.within, Dimension.TIME)
    if expected.smallest_change is None:
        return f"in the calibration of this machine, no change up to 100% was detected within {time}"
    return f"on this machine changes of {percent(expected.smallest_change)} or more are detected within {time}"


def noisier(row: Comparison, expected: Expected | None) -> str:
    """Return ``noisier than when calibrated: ±4% against ±1%``; '' if it is not noisier or that is not known."""
    if expected is None or expected.noise is None or row.baseline is None or row.candidate is None:
        return ""
    sides = row.baseline.samples, row.candidate.samples
    if len(sides[0]) != len(sides[1]) or len(sides[0]) < FEWEST_PAIRS or min(*sides[0], *sides[1]) <= 0:
        return ""
    spread = pair_spread(*sides)
    # Noise below the smallest change that is ever reported does not matter.
    if spread <= max(NOISIER * expected.noise, IDENTICAL_FLOOR):
        return ""
    shown = (f"±{percent(math.expm1(value))}" for value in (spread, expected.noise))
    return f"noisier than when calibrated: {' against '.join(shown)}"


def percent(share: float) -> str:
    """Return a share with two significant digits, such as 3% or 0.25%."""
    if share < 0.0005:
        return "<0.1%"
    return f"{share * 100:.2g}%" if share < 1 else f"{share:.0%}"
