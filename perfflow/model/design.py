"""How the samples of a benchmark were taken, which determines their analysis."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from perfflow.stats.paired_test import Looks


class Design(StrEnum):
    """How the samples of one benchmark were taken; it determines the analysis."""

    LOOKS = "looks"
    FIXED = "fixed"
    FEW = "few"
    """A few runs of each side in random order."""
    CONFIRM = "confirm"
    """Fresh pairs that confirm a change of the pairs before. All of them decide."""
    LAYOUTS = "layouts"
    FIXED_LAYOUTS = "fixed layouts"
    FEW_LAYOUTS = "few layouts"
    """A few code layouts of each side, with several runs of each layout."""
    UNPAIRED = "unpaired"
    """Combined from two stored sets."""


SCHEDULES: Mapping[str, Looks] = {
    # More than half is spent at the first analysis, so that 9 pairs that all agree, with a part of it, prove a change.
    Design.LOOKS: (
        *((11, 0.0056), (15, 0.0012), (20, 0.0008), (28, 0.0005), (40, 0.0004), (64, 0.0004), (90, 0.0002)),
        *((128, 0.0002), (180, 0.0001), (256, 0.0001), (360, 0.0001), (512, 0.0001), (720, 0.00005)),
        *((1024, 0.00005), (1440, 0.00005), (2048, 0.00005), (2900, 0.00005), (4096, 0.00005)),
    ),
    # In runs of each side. The smallest p-value of 5 + 5 runs in random order is 2/252 = .00794.
    Design.FEW: (
        *((5, 0.00794), (8, 0.0004), (11, 0.0004), (14, 0.0003), (20, 0.0003), (26, 0.0002), (35, 0.00016)),
        *((50, 0.0001), (71, 0.0001), (98, 0.0001)),
    ),
    # Pairs with fresh code layouts vary more, so the last analysis has a larger part.
    Design.LAYOUTS: ((11, 0.0020), (15, 0.0010), (20, 0.0010), (28, 0.0010), (40, 0.0010), (64, 0.0040)),
}
"""Interim analyses of the designs that have them: numbers of pairs, each with its part of the 1% of false alarms."""
