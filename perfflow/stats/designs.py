"""Numbers of runs of the experimental designs, shared by sampling and analysis."""

from __future__ import annotations

FEW = 5
"""Runs of each side of an expensive command: 5 + 5 are the fewest with which a change can be proven at 1%."""
FEW_MORE = 3
"""Runs of each side in each further block of an expensive command."""
MANY = 12
"""If more benchmarks than this are compared, or several by one process, changes are confirmed by fresh pairs."""
CONFIRMING = (6, 8, 11, 15, 20, 28, 40, 64, 90, 128)
"""Numbers of fresh pairs after which a confirmation is analysed; with 6, the smallest p-value is 1/32."""
ENOUGH = 11
"""Fresh pairs that a confirmation has at least before it is given up."""
CONFIRMED, UNLIKELY = 0.05, 0.2
"""The p-value up to which fresh pairs confirm a change, and the one above which more of them would hardly do so."""


def blocks_of(runs: int) -> list[int]:
    """Return the block sizes, in runs of each side, of ``runs`` runs of an expensive command.

    The first block has 5 runs and each further one 3; fewer than 5 runs are one block.
    """
    return [FEW, *[FEW_MORE] * ((runs - FEW) // FEW_MORE)] if runs >= FEW else [runs]
