"""How the samples of a benchmark were taken, which determines their analysis."""

from __future__ import annotations

from enum import StrEnum


class Design(StrEnum):
    """How the samples of one benchmark were taken; it determines the analysis."""

    LOOKS = "looks"
    FIXED = "fixed"
    FEW = "few"
    """A few runs of each side in random order."""
    SCREEN = "screen"
    CONFIRM = "confirm"
    LAYOUTS = "layouts"
    FIXED_LAYOUTS = "fixed layouts"
    FEW_LAYOUTS = "few layouts"
    """A few code layouts of each side, with several runs of each layout."""
    UNPAIRED = "unpaired"
    """Combined from two stored sets."""
