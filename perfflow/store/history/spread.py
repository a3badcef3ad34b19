"""The spread of a benchmark between samples, from its newest runs in the history.

Used to predict the noise before a run. Nothing is written. A history that cannot be read gives no data.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from perfflow.model.errors import UserError
from perfflow.store.history.connections import DamagedError
from perfflow.store.history.database import History, StoredValue
from perfflow.store.history.summary import params_text

NEWEST = 10
FEWEST_SAMPLES = 6
"""Least number of samples whose interval gives a usable spread."""
METRIC = "time"
_FEWEST_PAIRS = 6
"""Fewer pairs have no interval."""
_OF_MEDIAN = 1.96 * 1.2533
"""Half-width of the 95% interval of a median of n normal values, in standard deviations, times sqrt(n)."""


@dataclass(frozen=True)
class Spread:
    """The standard deviation of one sample as a share of the median: the median over ``runs`` runs."""

    noise: float
    runs: int

    def pairs(self, change: float) -> int:
        """Return approximately how many pairs detect a change of that share.

        At that number the half-width of the interval of the difference of two medians is ``change``.
        """
        half = _OF_MEDIAN * math.sqrt(2) * self.noise
        return max(_FEWEST_PAIRS, math.ceil((half / change) ** 2))


def spreads(
    history: History, workflow: str, params: Mapping[str, Any], machine: str, benchmarks: Collection[str]
) -> dict[str, Spread]:
    """Return the spread of each of these benchmarks on this machine, by name, if it is known."""
    stored = params_text(params)
    try:
        by_name = {
            series.benchmark: _spread(history.points(series.id, NEWEST))
            for series in history.series()
            if (series.metric, series.workflow, series.params, series.machine) == (METRIC, workflow, stored, machine)
            and series.benchmark in benchmarks
        }
    except (UserError, DamagedError):
        return {}
    return {name: spread for name, spread in by_name.items() if spread}


def _spread(points: Collection[StoredValue]) -> Spread | None:
    shares = [
        (point.high - point.low) / 2 / point.value * math.sqrt(point.n) / _OF_MEDIAN
        for point in points
        if point.low is not None and point.high is not None and point.value > 0 and point.n >= FEWEST_SAMPLES
    ]
    return Spread(statistics.median(shares), len(shares)) if shares else None
