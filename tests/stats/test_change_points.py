"""Change points of simulated histories with fixed seeds, and properties of any series."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfflow.stats import series_noise
from perfflow.stats.change_points import (
    LevelChange,
    SuspicionStatus,
    changes,
    fresh_suspicion,
    further_changes,
    review_suspicion,
)
from perfflow.stats.partition import Partition, PrefixSums, cut, penalty

ROOT = Path(__file__).parents[2]

properties = settings(deadline=None, max_examples=40)
LEVELS = st.lists(st.integers(-40, 40).map(lambda step: step / 256), min_size=0, max_size=60)


def noisy(seed: int, count: int, rho: float = 0.0) -> list[float]:
    """AR(1) noise with a standard deviation of 2%."""
    chance = random.Random(seed)
    values = [chance.gauss(0, 0.02)]
    while len(values) < count:
        values.append(rho * values[-1] + math.sqrt(1 - rho * rho) * chance.gauss(0, 0.02))
    return values


def shifted(values: Sequence[float], at: int, size: float, end: int | None = None) -> list[float]:
    stop = len(values) if end is None else end
    return [value + size * (at <= index < stop) for index, value in enumerate(values)]


def found(values: Sequence[float]) -> tuple[LevelChange, ...]:
    return changes(values, [0.0] * len(values)).changes


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 4)), min_size=1, max_size=9))
@properties
def test_the_cut_is_the_best_of_all(points: list[tuple[float, float]]) -> None:
    values, weights = [value for value, _ in points], [weight for _, weight in points]

    def loss(boundaries: Sequence[int]) -> float:
        total = penalty(len(values)) * len(boundaries)
        for begin, end in pairwise([0, *boundaries, len(values)]):
            own = list(zip(values[begin:end], weights[begin:end], strict=True))
            mean = sum(v * w for v, w in own) / sum(w for _, w in own)
            total += sum(w * (v - mean) ** 2 for v, w in own)
        return total

    every = [cuts for count in range(len(values)) for cuts in combinations(range(1, len(values)), count)]
    assert loss(cut(PrefixSums.of(values, weights), range(len(values) + 1))) == pytest.approx(min(map(loss, every)))


def test_pruning_loses_no_cut() -> None:
    values = [value / 0.02 for value in shifted(noisy(1, 300), 70, 0.1, 200)]
    sums = PrefixSums.of(values, [1.0] * 300)
    best, before = [-penalty(300)], [0]
    for end in range(1, 301):
        losses = [best[at] + penalty(300) - (sums.values[end] - sums.values[at]) ** 2 / (end - at) for at in range(end)]
        best.append(min(losses))
        before.append(losses.index(min(losses)))
    expected: list[int] = []
    at = before[300]
    while at:
        expected.insert(0, at)
        at = before[at]
    assert cut(sums, range(301)) == expected
    assert len(expected) == 2


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_quiet_series_raise_hardly_an_alarm(rho: float) -> None:
    results = [changes(noisy(seed, 200, rho), [0.0] * 200) for seed in range(25)]
    assert sum(bool(one.changes or one.drifts) for one in results) <= 1
    assert sum(one.rho > 0.4 for one in results) == pytest.approx(25 if rho > 0.5 else 0, abs=5)


def test_innovations_show_new_shifts_in_dependent_noise() -> None:
    near = 0
    for seed in range(60):
        values = shifted(noisy(seed, 200, rho=0.6), 190, 0.05)
        near += any(abs(one.at - 190) <= 3 and one.size > 0 for one in found(values))
    # The partition alone finds 17 of them.
    assert near >= 30


def test_no_change_that_is_told_may_be_none() -> None:
    # The levels of a few dependent points are so uncertain that the interval of their difference often contains zero;
    # the interval of a step found in the innovations does not.
    by_innovations = 0
    for seed in range(60):
        values = shifted(noisy(seed, 200, 0.6), 190, 0.05)
        noise = series_noise.estimate(values, [0.0] * 200)
        by_innovations += 190 in further_changes(noise, Partition([], [], noise.weights()))
        for one in found(values):
            assert one.low > 0 or one.high < 0, (seed, one)
            assert one.after - one.before == pytest.approx(one.size)
    assert by_innovations >= 10


def test_innovations_know_what_noise_is_within_runs() -> None:
    # Noise within runs, here most of the noise, is independent of the previous run; noise between runs is not.
    alarms = 0
    for seed in range(40):
        values = [3 * one for one in noisy(seed, 200)]
        noise = series_noise.SeriesNoise(values, [0.06] * 200, [math.inf] * 200, 0.0, [0.02**2] * 200, 0.8)
        alarms += bool(further_changes(noise, Partition([], [], noise.weights())))
    assert alarms == 0


def test_a_shift_is_found_in_its_place_with_its_size() -> None:
    near = held = sized = 0
    for seed in range(40):
        at = 40 + 3 * seed
        own = found(shifted(noisy(1000 + seed, 200), at, 0.05))
        assert len(own) == 1
        near += abs(own[0].at - at) <= 2
        held += own[0].earliest <= at <= own[0].latest
        sized += own[0].low <= 0.05 <= own[0].high
    assert near >= 36
    assert held >= 36
    assert sized >= 38


def test_a_slope_is_a_drift_and_not_a_staircase() -> None:
    slope = [0.001 * min(max(index - 50, 0), 100) for index in range(200)]
    results = [
        changes([v + s for v, s in zip(noisy(seed, 200), slope, strict=True)], [0.0] * 200) for seed in range(12)
    ]
    assert sum(bool(one.drifts) and not one.changes for one in results) >= 11


def test_groups_of_outliers_are_left_out_however_many() -> None:
    values = noisy(3, 390)
    for begin in range(20, 380, 30):
        values = shifted(values, begin, 0.5 if begin % 60 else -0.5, begin + 3)
    result = changes(values, [0.0] * 390)
    assert result.changes == ()


@pytest.mark.parametrize("count", [300, 1000, 3000])
def test_long_series_show_the_same_shift(count: int) -> None:
    places = [one.at for one in found(shifted(noisy(5, count), count - 100, 0.05))]
    assert len(places) == 1
    assert abs(places[0] - (count - 100)) <= 3


def test_exact_figures_show_a_step() -> None:
    (one,) = found([3.0] * 30 + [3.01] * 30)
    assert (one.at, one.earliest, one.latest) == (30, 30, 30)
    assert one.size == pytest.approx(0.01)
    assert changes([3.0] * 60, [0.0] * 60).changes == ()


def test_a_loud_past_hides_no_shift_in_a_quiet_present() -> None:
    # Like fib_20 of github-action-benchmark: 8% noise for years, then 0.3%, and a shift of 10% fourteen runs ago.
    told = 0
    for seed in range(20):
        scales = [4.0] * 160 + [0.15] * 44
        values = [one * scale for one, scale in zip(noisy(seed, 204), scales, strict=True)]
        (last,) = found(shifted(values, 190, 0.1))[-1:] or (None,)
        told += last is not None and last.at == 190 and 0.09 < last.low < 0.1 < last.high < 0.11
    assert told >= 19


def test_the_public_series_that_became_quiet_shows_its_last_shift() -> None:
    data = json.loads((ROOT / "benchmarks" / "fib_20.json").read_text())
    last = found([math.log(value) for value in data["values"]])[-1]
    assert data["dates"][last.at] == "2025-05-19"
    assert 0.1 < last.low < last.high < 0.13


@pytest.mark.parametrize("scales", [(1.0, 0.25), (0.25, 1.0), (4.0, 0.15)])
def test_a_change_of_the_noise_is_no_change_of_the_level(scales: tuple[float, float]) -> None:
    first, second = scales
    alarms = 0
    for seed in range(40):
        values = [one * (first if index < 120 else second) for index, one in enumerate(noisy(seed, 200))]
        result = changes(values, [0.0] * 200)
        alarms += bool(result.changes or result.drifts)
    assert alarms <= 1


def test_each_stretch_has_the_noise_beyond_its_own_errors() -> None:
    # The noise within runs is 1.5% at first and 0.1% now; between runs it is always 1%.
    errors = [0.015] * 150 + [0.001] * 150
    chance = random.Random(7)
    values = [one / 2 + chance.gauss(0, error) for one, error in zip(noisy(8, 300), errors, strict=True)]
    between = series_noise.estimate(values, errors).between
    assert math.sqrt(between[0]) == pytest.approx(0.01, abs=0.006)
    assert math.sqrt(between[-1]) == pytest.approx(0.01, rel=0.2)


@given(LEVELS, st.integers(-100, 100))
@properties
def test_a_constant_moves_levels_alone(values: list[float], constant: int) -> None:
    # Sums of binary fractions are exact.
    first, second = found(values), found([value + constant for value in values])
    assert [one.at for one in first] == [one.at for one in second]
    assert [one.before + constant for one in first] == pytest.approx([one.before for one in second])


@given(LEVELS)
@properties
def test_negated_values_change_in_the_other_direction(values: list[float]) -> None:
    first, second = found(values), found([-value for value in values])
    assert [(one.at, one.size) for one in first] == [(one.at, -one.size) for one in second]


@pytest.mark.parametrize("seed", range(6))
def test_scaled_and_reversed_series_have_the_same_changes(seed: int) -> None:
    values = shifted(shifted(noisy(seed, 200), 60, 0.1), 130, -0.15)
    places = [one.at for one in found(values)]
    assert len(places) == 2
    assert [one.at for one in found([4 * value for value in values])] == places
    back = sorted(200 - one.at for one in found(values[::-1]))
    assert all(abs(a - b) <= 3 for a, b in zip(places, back, strict=True))


def test_few_values_say_nothing() -> None:
    for count in range(12):
        assert found([0.0] * (count // 2) + [1.0] * (count - count // 2)) == ()
        assert fresh_suspicion([float(index) for index in range(count)], [0.0] * count) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e4])
def test_what_is_no_logarithm_is_refused(bad: float) -> None:
    for check in (changes, fresh_suspicion):
        with pytest.raises(ValueError, match="value 1 is"):
            check([0.0, bad], [0.0, 0.0])
        with pytest.raises(ValueError, match="standard error 0 is"):
            check([0.0, 0.0], [-abs(bad), 0.0])
    with pytest.raises(ValueError, match="2 values but 1 standard errors"):
        changes([0.0, 0.0], [0.0])
    with pytest.raises(ValueError, match="start is 3"):
        fresh_suspicion([0.0, 0.0], [0.0, 0.0], 3)


def test_a_shift_at_the_end_is_suspected_and_confirmed() -> None:
    confirmed = 0
    for seed in range(10):
        values = shifted(noisy(seed, 140), 100, 0.08)
        told = fresh_suspicion(values[:108], [0.0] * 108)
        assert told is not None
        assert abs(told.at - 100) <= 5
        confirmed += (
            review_suspicion(told, changes(values, [0.0] * 140), values, [0.0] * 140) is SuspicionStatus.CONFIRMED
        )
    assert confirmed == 10


def test_a_spike_at_the_end_is_suspected_and_withdrawn() -> None:
    withdrawn = 0
    for seed in range(10):
        values = shifted(noisy(seed, 130), 100, 0.15, 105)
        told = fresh_suspicion(values[:105], [0.0] * 105)
        assert told is not None
        withdrawn += (
            review_suspicion(told, changes(values, [0.0] * 130), values, [0.0] * 130) is SuspicionStatus.WITHDRAWN
        )
    assert withdrawn >= 9


def test_quiet_ends_are_not_suspected() -> None:
    alarms = sum(
        fresh_suspicion(noisy(seed, count), [0.0] * count) is not None for seed in range(100) for count in (20, 60, 200)
    )
    assert alarms <= 3


@pytest.mark.parametrize("new", [4, 5, 7, 8, 20])
@pytest.mark.parametrize("first", [False, True])
def test_the_size_of_a_large_change_at_either_end_is_its_own(new: int, first: bool) -> None:
    luck = random.Random(new)
    step = math.log(1.3)
    values = [luck.gauss(0, 0.002) + (step if number >= 60 else 0.0) for number in range(60 + new)]
    if first:
        values.reverse()
    (found,) = changes(values, [0.0] * len(values)).changes
    assert found.size == pytest.approx(-step if first else step, abs=0.01)
    assert found.low < found.size < found.high
