"""How much a benchmark differs from sample to sample, by its newest runs in the history.

For telling before a run how noisy it will be. Nothing is written, and where a history cannot be read nothing is
known.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping
from typing import Any

from perfflow.model.errors import UserError
from perfflow.model.later import dataclass
from perfflow.store.history.connections import DamagedError
from perfflow.store.history.database import History, Measured
from perfflow.store.history.summary import params_text

NEWEST = 10
FEWEST_SAMPLES = 6
"""Samples without which an interval says little of their spread."""
METRIC = "time"
_FEWEST_PAIRS = 6
"""Fewer have no interval."""
_OF_MEDIAN = 1.96 * 1.2533
"""Half of the 95% interval of a median of n normal values, in their standard deviations, times the root of n."""


@dataclass(frozen=True)
class Spread:
    """The standard deviation of one sample as a share of the median, by the median of so many ``runs``."""

    noise: float
    runs: int

    def pairs(self, change: float) -> int:
        """About how many pairs tell a change of that share.

        The interval of the difference of two medians of n samples is as narrow as ``change`` then.
        """
        half = _OF_MEDIAN * math.sqrt(2) * self.noise
        return max(_FEWEST_PAIRS, math.ceil((half / change) ** 2))


def spreads(
    history: History, workflow: str, params: Mapping[str, Any], machine: str, benchmarks: Collection[str]
) -> dict[str, Spread]:
    """What is known of each of these benchmarks on this machine, by name; of the others nothing is."""
    stored = params_text(params)
    try:
        found = {
            series.benchmark: _spread(history.points(series.id, NEWEST))
            for series in history.series()
            if (series.metric, series.workflow, series.params, series.machine) == (METRIC, workflow, stored, machine)
            and series.benchmark in benchmarks
        }
    except (UserError, DamagedError):
        return {}
    return {name: spread for name, spread in found.items() if spread}


def _spread(points: Collection[Measured]) -> Spread | None:
    shares = [
        (point.high - point.low) / 2 / point.value * math.sqrt(point.n) / _OF_MEDIAN
        for point in points
        if point.low is not None and point.high is not None and point.value > 0 and point.n >= FEWEST_SAMPLES
    ]
    return Spread(statistics.median(shares), len(shares)) if shares else None
