"""Serial dependence of samples is detected, and widens intervals enough for the long run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from perfflow.model.readings import serial_factor
from perfflow.stats.paired_test import mean_interval, quantile, quantile_interval

Process = Callable[[int, random.Random], list[float]]


def independent(count: int, chance: random.Random) -> list[float]:
    return [math.exp(chance.gauss(0, 0.05)) for _ in range(count)]


def autoregressive(count: int, chance: random.Random) -> list[float]:
    """Each value depends on the one before it with a correlation of 0.9."""
    state, found = chance.gauss(0, 1), []
    for _ in range(count):
        found.append(math.exp(0.05 * state))
        state = 0.9 * state + math.sqrt(1 - 0.81) * chance.gauss(0, 1)
    return found


def two_states(count: int, chance: random.Random) -> list[float]:
    """A clock that is fast for 60% of the time and 20% slower for the rest, some ten runs in a row."""
    fast, found = chance.random() < 0.6, []
    for _ in range(count):
        found.append((1.0 if fast else 1.2) * math.exp(chance.gauss(0, 0.01)))
        if chance.random() < (0.08 if fast else 0.12):
            fast = not fast
    return found


def bursts(count: int, chance: random.Random) -> list[float]:
    """Other work comes and goes; how long and how much is drawn from a Pareto distribution."""
    found: list[float] = []
    busy = chance.random() < 0.5
    while len(found) < count:
        size = chance.paretovariate(1.2) * 0.05 if busy else 0.0
        length = int(chance.paretovariate(1.2) * 2)
        found += [(1 + size) * math.exp(chance.gauss(0, 0.005)) for _ in range(min(length, count))]
        busy = not busy
    return found[:count]


def misses(process: Process, count: int, *, widened: bool, trials: int = 400) -> float:
    chance = random.Random(count)
    truth = quantile([value for _ in range(2000) for value in process(25, chance)], 0.5)
    found = 0
    for _ in range(trials):
        values = process(count, chance)
        interval = quantile_interval(values, 0.5, 0.95, serial_factor(values) if widened else 1.0)
        found += not interval.low <= truth <= interval.high
    return found / trials


@pytest.mark.parametrize(
    ("process", "count", "most"),
    [(autoregressive, 14, 0.5), (autoregressive, 64, 0.2), (two_states, 64, 0.3), (bursts, 14, 0.7), (bursts, 64, 0.5)],
)
def test_the_long_runs_median_is_missed_far_less_often(process: Process, count: int, most: float) -> None:
    plain, widened = (misses(process, count, widened=wide) for wide in (False, True))
    assert plain > 0.1
    assert widened < most * plain


def test_independent_samples_keep_their_interval() -> None:
    chance = random.Random(1)
    for count in (6, 14, 64):
        factors = [serial_factor(independent(count, chance)) for _ in range(400)]
        assert sum(factor > 1 for factor in factors) <= 40


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 9, [1.0, 2.0] * 5, [0.0] * 9])
def test_too_few_and_equal_values_tell_nothing(values: list[float]) -> None:
    assert serial_factor(values) == 1.0


def test_a_drift_is_seen_whatever_the_sign_of_the_values() -> None:
    drift = [float(number) for number in range(-10, 10)]
    assert 5 < serial_factor(drift) < 7
    assert serial_factor([value + 100 for value in drift]) == pytest.approx(serial_factor(drift), rel=0.1)


def test_a_factor_moves_the_ends_of_a_quantile() -> None:
    values = [float(number) for number in range(1, 101)]
    plain, twice, far = (quantile_interval(values, 0.5, 0.95, factor) for factor in (1.0, 2.0, 20.0))
    assert (plain.low, plain.high) == (40, 61)
    assert twice.low == 29
    assert twice.high == pytest.approx(50.5 * (61 / 50.5) ** 2)
    assert 0 < far.low < 1
    assert far.high > 100
    few = quantile_interval([1.0, 2.0, 3.0], 0.5, 0.95, 2.0)
    assert (few.low, few.high) == (-math.inf, math.inf)
    centred = quantile_interval([value - 50.5 for value in values], 0.5, 0.95, 2.0)
    assert (centred.low, centred.high) == (-21.5, 21.5)


def test_a_factor_widens_a_mean() -> None:
    plain, twice = (mean_interval([1.0, 2.0, 4.0], 0.95, factor) for factor in (1.0, 2.0))
    assert twice.high - twice.low == pytest.approx(2 * (plain.high - plain.low))


def test_of_huge_values_it_is_that_of_small_ones() -> None:
    values = [1.0, 3.0, 2.0, 1.5, 2.5, 1.0, 3.5, 2.0]
    assert serial_factor([-1e308 * value / 4 for value in values]) == serial_factor([-value for value in values])
    assert serial_factor([0.0, 1e300, 0.0, 1e300, 0.0, 1e300]) == 1.0
