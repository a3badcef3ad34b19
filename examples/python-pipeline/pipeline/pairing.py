"""Which pressure belongs to a level: the one nearest in time, whichever gauge measured it."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.readings import Reading


def pair(levels: Sequence[Reading], pressures: Sequence[Reading]) -> list[tuple[Reading, Reading]]:
    """Return each level with its nearest pressure; of two equally near ones, the earlier.

    Raises ValueError where there is no pressure at all.
    """
    if not pressures:
        raise ValueError("no pressure to pair with")
    return [(level, nearest(level.time, pressures)) for level in levels]


def nearest(time: int, pressures: Sequence[Reading]) -> Reading:
    """Return the pressure nearest to a time in ms."""
    best, least = pressures[0], abs(pressures[0].time - time)
    for pressure in pressures:
        distance = abs(pressure.time - time)
        if distance < least or (distance == least and pressure.time < best.time):
            best, least = pressure, distance
    return best
