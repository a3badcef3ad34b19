"""Waves are no level: a weighted mean over the neighbours in time."""

from __future__ import annotations

import numpy as np

WIDTH = 160
"""Neighbours on each side that count."""


def weights(width: int = WIDTH) -> np.ndarray:
    """Return 2 * width + 1 weights of a bell, which add up to 1."""
    distance = np.arange(-width, width + 1) / (width / 2)
    bell = np.exp(-0.5 * distance**2)
    return bell / bell.sum()


def smooth(levels: np.ndarray, width: int = WIDTH) -> np.ndarray:
    """Return each level's weighted mean with its neighbours; beyond an end, its last level goes on."""
    padded = np.pad(levels, width, mode="edge")
    bell = weights(width).astype(levels.dtype)
    smoothed = np.empty_like(levels)
    for place in range(len(levels)):
        total = 0.0
        for step in range(len(bell)):
            total += bell[step] * padded[place + step]
        smoothed[place] = total
    return smoothed
