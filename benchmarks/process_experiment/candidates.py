"""The candidates: what one process says in one number, in s per iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from perfflow.model.readings import CAP, CAPPED
from perfflow.stats.paired_test import quantile

Statistic = Callable[[Sequence[float], Sequence[float]], float]
"""Seconds per iteration and iterations of each sample -> the number."""
QUARTILE, MEAN = "lower quartile", "mean of samples"


def per_operation(seconds: Sequence[float], iterations: Sequence[float]) -> float:
    """All time over all iterations."""
    total = math.fsum(value * number for value, number in zip(seconds, iterations, strict=True))
    return total / math.fsum(iterations)


def capped(most: float) -> Statistic:
    """The mean, each sample counted as ``most`` medians at the most."""

    def statistic(seconds: Sequence[float], _: Sequence[float]) -> float:
        limit = most * quantile(seconds, 0.5)
        return math.fsum(min(value, limit) for value in seconds) / len(seconds)

    return statistic


def mean_between(low: float, high: float) -> Statistic:
    """The mean of the samples between two shares of their order."""

    def statistic(seconds: Sequence[float], _: Sequence[float]) -> float:
        kept = sorted(seconds)[math.floor(low * len(seconds)) : math.ceil(high * len(seconds))]
        return math.fsum(kept) / len(kept)

    return statistic


def at(q: float) -> Statistic:
    """A quantile."""
    return lambda seconds, _: quantile(seconds, q)


CANDIDATES: Mapping[str, Statistic] = {
    "minimum": at(0.0),
    QUARTILE: at(0.25),
    "median": at(0.5),
    "upper quartile": at(0.75),
    "mean of the lower half": mean_between(0.0, 0.5),
    "mean of the middle half": mean_between(0.25, 0.75),
    "mean without 10% at each end": mean_between(0.1, 0.9),
    "mean capped at 1.25 medians": capped(1.25),
    CAPPED: capped(CAP),
    "mean capped at 2 medians": capped(2),
    "mean capped at 4 medians": capped(4),
    MEAN: mean_between(0.0, 1.0),
    "mean per operation": per_operation,
}
