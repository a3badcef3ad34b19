"""The smallest detectable change, checked with known noise and fresh draws."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from perfflow.model.criteria import Thresholds
from perfflow.model.metrics import METRICS, Metric
from perfflow.model.readings import Design
from perfflow.verdict.calibration import CHANGES, RecordedValues, Window, pairs_needed, smallest_change
from tests.long import rest_long
from tests.verdict.comparisons import known

TIME, RATE = METRICS["time"], METRICS["rate"]


def noise(spread: float, count: int, seed: int) -> list[float]:
    chance = random.Random(seed)
    return [0.02 * chance.lognormvariate(0, spread) for _ in range(count)]


def recorded(spread: float, count: int = 300, design: str = "looks", first: int = 1) -> RecordedValues:
    return RecordedValues(TIME, design, noise(spread, count, first), noise(spread, count, first + 1))


def found_in_fresh_draws(spread: float, change: float, pairs: int, design: str = "looks", draws: int = 60) -> float:
    """Return the share of runs over newly drawn pairs that detect the change."""
    found = 0
    for seed in range(draws):
        candidate = [value * (1 + change) for value in noise(spread, pairs, 2000 + seed)]
        found += Window(TIME, design, noise(spread, pairs, 1000 + seed), candidate).finds(Thresholds())
    return found / draws


def below(change: float, steps: int) -> float:
    return CHANGES[max(0, CHANGES.index(change) - steps)]


@pytest.mark.parametrize(("spread", "pairs"), rest_long([(0.03, 28), (0.05, 14), (0.01, 64)], keep=2))
def test_known_noise_gives_the_change_that_fresh_draws_give(spread: float, pairs: int) -> None:
    """Return the median over three recordings, because a single one may be lucky."""
    told = sorted(
        smallest_change(recorded(spread, first=first), Thresholds(), pairs, "seed") or math.inf for first in (1, 3, 5)
    )[1]
    assert found_in_fresh_draws(spread, told, pairs) >= 0.8
    assert found_in_fresh_draws(spread, below(told, 3), pairs) < 0.9


def test_less_noise_and_more_pairs_tell_smaller_changes() -> None:
    told = {}
    for spread, pairs in itertools.product((0.002, 0.02, 0.2), (10, 64)):
        told[spread, pairs] = smallest_change(recorded(spread), Thresholds(), pairs, "seed") or math.inf
    assert told[0.002, 64] <= told[0.02, 64] < told[0.2, 64]
    assert told[0.2, 64] < told[0.2, 10]


def test_without_noise_the_first_change_above_the_floor_is_told() -> None:
    still = RecordedValues(TIME, "looks", [0.0213572] * 64, [0.0213572] * 64)
    assert smallest_change(still, Thresholds(), 64, "seed") == 0.025
    assert smallest_change(still, Thresholds(floor=0.005), 64, "seed") == 0.0075


def test_rates_are_told_as_times_are() -> None:
    times = recorded(0.02)
    turned = RecordedValues(
        RATE, "looks", [1 / value for value in times.baseline], [1 / value for value in times.candidate]
    )
    as_time, as_rate = (smallest_change(item, Thresholds(), 64, "seed") for item in (times, turned))
    assert below(known(as_time), 2) <= known(as_rate) <= CHANGES[CHANGES.index(known(as_time)) + 2]


def test_hopeless_noise_tells_nothing() -> None:
    assert smallest_change(recorded(3.0), Thresholds(), 64, "seed") is None


@pytest.mark.parametrize(
    ("design", "count", "pairs"),
    [("looks", 300, 9), ("looks", 9, 9), ("looks", 20, 64), ("few", 4, 4)],
)
def test_too_few_pairs_tell_nothing(design: str, count: int, pairs: int) -> None:
    assert smallest_change(recorded(0.001, count, design), Thresholds(), pairs, "seed") is None


def test_the_seed_decides_the_windows() -> None:
    first, again = (smallest_change(recorded(0.05), Thresholds(), 28, "a") for _ in range(2))
    assert first == again


def test_few_runs_are_replayed_by_their_own_rules() -> None:
    few = smallest_change(recorded(0.005, 40, Design.FEW), Thresholds(), pairs_needed(Design.FEW, 5), "seed")
    assert found_in_fresh_draws(0.005, known(few), 5, Design.FEW) >= 0.8


@pytest.mark.parametrize(("design", "pairs"), [("looks", 40), ("fixed", 17), ("few", 5)])
@pytest.mark.parametrize("metric", [TIME, RATE])
def test_a_factor_on_the_interval_is_a_factor_on_the_values(metric: Metric, design: str, pairs: int) -> None:
    for seed in range(6):
        baseline, candidate = noise(0.03, pairs, 10 + seed), noise(0.03, pairs, 50 + seed)
        window = Window(metric, design, baseline, candidate)
        for change in (0.03, 0.05, 0.08, 0.12, 0.3):
            slowed = Window(metric, design, baseline, [value * (1 + change) for value in candidate])
            assert window.finds(Thresholds(), change) == slowed.finds(Thresholds())
