"""What a gauge reads and what is true: its gain and offset, from a file, and what the air's pressure adds."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from pipeline.readings import Reading

GAUGES = Path(__file__).parents[1] / "data" / "gauges.csv"
_NORMAL = 1013.25
"""Pressure of the air at the sea, in hPa."""
_PER_HPA = 0.0102
"""Metres of water that weigh as much as one hPa of air."""


def calibrate(pairs: Iterable[tuple[Reading, Reading]]) -> list[Reading]:
    """Return the levels in m as they are, from what was read and the pressure at that time.

    Raises KeyError for a gauge that the file does not name.
    """
    found = []
    for level, pressure in pairs:
        gain, offset = factors(level.gauge)
        value = level.value * gain + offset - (pressure.value - _NORMAL) * _PER_HPA
        found.append(Reading(level.time, level.gauge, value))
    return found


def factors(gauge: str) -> tuple[float, float]:
    """Return gain and offset (m) of a gauge."""
    with GAUGES.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if row["gauge"] == gauge:
                return float(row["gain"]), float(row["offset"])
    raise KeyError(gauge)
