"""Series of logarithms for the search for change points."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st

from perfflow.stats.series_noise import SeriesNoise

quick = settings(deadline=None, max_examples=25)
POINTS = st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 4)), min_size=6, max_size=30)
"""Values and their weights."""


def noisy(seed: int, count: int, rho: float = 0.0) -> list[float]:
    """AR(1) noise with a standard deviation of 2%."""
    chance = random.Random(seed)
    values = [chance.gauss(0, 0.02)]
    while len(values) < count:
        values.append(rho * values[-1] + math.sqrt(1 - rho * rho) * chance.gauss(0, 0.02))
    return values


def zigzag(count: int, size: float = 0.01) -> list[float]:
    return [size * (-1) ** index for index in range(count)]


def shifted(values: Sequence[float], at: int, size: float, end: int | None = None) -> list[float]:
    stop = len(values) if end is None else end
    return [value + size * (at <= index < stop) for index, value in enumerate(values)]


def of_noise(values: Sequence[float], rho: float, between: float = 1e-4, error: float = 0.0) -> SeriesNoise:
    """Return known noise of a series, the same at each of its points."""
    n = len(values)
    return SeriesNoise(list(values), [error] * n, [9.0] * n, 0.0, [between] * n, rho)
