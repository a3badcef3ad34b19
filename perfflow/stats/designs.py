"""How many runs each design of an experiment has: what sampling takes, and what judging goes by."""

from __future__ import annotations

from collections.abc import Mapping

FEW = 5
"""Runs of each side of an expensive command: 5 + 5 is the least with which a change can be proven at 1%."""
FEW_MORE = 3
"""Runs of each side in each further block of an expensive command."""
SCREENING: Mapping[int, float] = {9: 0.5, 18: 0.25, 30: 0.1}
"""Pairs of a screened benchmark -> the p up to which it stands out and goes on to the next stage.

The stages are coarse: a change of a noisy benchmark rarely shows in 9 pairs, and fresh pairs decide in the end.
"""
SCREENING_PRECISE: Mapping[int, float] = {9: 0.15, 18: 0.05, 30: 0.03}
"""The same of a benchmark whose interval lies within ``PRECISE`` already: more pairs would find little."""
PRECISE = 0.01
CONFIRMING: Mapping[int, float] = {20: 0.5, 40: 0.2, 100: 0.07, 200: 0.0}
"""Fresh pairs of what stood out in every stage -> the p above which they are enough, since they show no change."""


def blocks_of(runs: int) -> list[int]:
    """The runs of each side in each whole block that so many of an expensive command make, or the only one so far."""
    return [FEW, *[FEW_MORE] * ((runs - FEW) // FEW_MORE)] if runs >= FEW else [runs]
