"""Numbers of runs of the experimental designs, shared by sampling and analysis."""

from __future__ import annotations

from collections.abc import Mapping

FEW = 5
"""Runs of each side of an expensive command: 5 + 5 are the fewest with which a change can be proven at 1%."""
FEW_MORE = 3
"""Runs of each side in each further block of an expensive command."""
SCREENING: Mapping[int, float] = {9: 0.5, 18: 0.25, 30: 0.1}
"""Number of screening pairs -> the p-value up to which a benchmark continues to the next stage.

The limits are generous, because a change of a noisy benchmark rarely shows in 9 pairs, and fresh pairs decide.
"""
SCREENING_PRECISE: Mapping[int, float] = {9: 0.15, 18: 0.05, 30: 0.03}
"""The limits for a benchmark whose interval already lies within ``PRECISE``: more pairs would find little."""
PRECISE = 0.01
CONFIRMING: Mapping[int, float] = {20: 0.5, 40: 0.2, 100: 0.07, 200: 0.0}
"""Number of fresh pairs of a screened benchmark -> the p-value above which they show no change and are enough."""


def blocks_of(runs: int) -> list[int]:
    """Return the block sizes, in runs of each side, of ``runs`` runs of an expensive command.

    The first block has 5 runs and each further one 3; fewer than 5 runs are one block.
    """
    return [FEW, *[FEW_MORE] * ((runs - FEW) // FEW_MORE)] if runs >= FEW else [runs]
