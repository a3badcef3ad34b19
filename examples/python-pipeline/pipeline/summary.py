"""The whole way from lines to the figures of each gauge."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pipeline.calibration import calibrate
from pipeline.pairing import pair
from pipeline.readings import Reading, parse
from pipeline.smoothing import smooth


def series(readings: Iterable[Reading]) -> tuple[list[str], np.ndarray]:
    """Return the gauges and the levels in m, in the order of time."""
    ordered = sorted(readings, key=lambda reading: (reading.time, reading.gauge))
    return [reading.gauge for reading in ordered], np.array([reading.value for reading in ordered])


def summarize(lines: Iterable[str]) -> list[str]:
    """Return a line for each gauge: its name, how many levels, their mean and the highest one, to the last digit."""
    levels, pressures = parse(lines)
    gauges, values = series(calibrate(pair(levels, pressures)))
    found: dict[str, list[float]] = {}
    for gauge, level in zip(gauges, smooth(values).tolist(), strict=True):
        found.setdefault(gauge, []).append(level)
    return [f"{gauge} {len(own)} {sum(own) / len(own)!r} {max(own)!r}" for gauge, own in sorted(found.items())]
