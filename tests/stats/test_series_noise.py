"""Where a series is cut, and its noise: comparison with oracles, exact bounds, and stored estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfflow.stats import partition, series_noise
from perfflow.stats.partition import PrefixSums, cut, penalty
from perfflow.stats.series_noise import SeriesNoise
from tests.stats.series import POINTS, noisy, of_noise, quick, shifted, zigzag

# -- cutting


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 4)), min_size=1, max_size=9))
@settings(deadline=None, max_examples=40)
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


@given(POINTS, st.data())
@quick
def test_sums_know_means_and_what_a_cut_gains(points: list[tuple[float, float]], data: st.DataObject) -> None:
    values, weights = map(np.array, zip(*points, strict=True))
    begin = data.draw(st.integers(0, len(points) - 2))
    at = data.draw(st.integers(begin + 1, len(points) - 1))
    end = data.draw(st.integers(at + 1, len(points)))

    def loss(first: int, last: int) -> float:
        mean = np.average(values[first:last], weights=weights[first:last])
        return float(np.sum(weights[first:last] * (values[first:last] - mean) ** 2))

    sums = PrefixSums.of(values.tolist(), weights.tolist())
    assert sums.weight(begin, end) == pytest.approx(float(weights[begin:end].sum()))
    assert sums.mean(begin, end) == pytest.approx(float(np.average(values[begin:end], weights=weights[begin:end])))
    assert sums.gain(begin, at, end) == pytest.approx(loss(begin, end) - loss(begin, at) - loss(at, end), abs=1e-9)
    assert PrefixSums.of([3.0] * 4, [0.0] * 4).mean(0, 4) == PrefixSums.of([3.0] * 4, [0.0] * 4).gain(0, 2, 4) == 0


@given(POINTS)
@quick
def test_moving_sums_show_what_a_cut_there_gains(points: list[tuple[float, float]]) -> None:
    sums = PrefixSums.of(*([one[side] for one in points] for side in (0, 1)))
    expected = [sums.gain(begin, begin + 2, begin + 4) for begin in range(len(points) - 3)]
    assert partition._contrasts(sums, 2) == pytest.approx(expected, abs=1e-9)


def test_a_cut_costs_more_in_longer_series() -> None:
    found = [penalty(n) for n in (12, 200, 400, 2000)]
    assert found == pytest.approx([15, 15, 15 + 2 * math.log(2), 15 + 2 * math.log(10)])


@pytest.mark.parametrize("share", [0.9999, 1.0001])
def test_a_step_is_gained_if_it_is_worth_the_penalty(share: float) -> None:
    # The gain of a step of size s between 150 and 150 points of weight 1 is 75 s^2.
    values = shifted([0.0] * 300, 150, math.sqrt((15 + 2 * math.log(1.5)) * share / 75))
    assert partition.partition(values, [1.0] * 300).boundaries == ([150] if share > 1 else [])


@pytest.mark.parametrize("count", [399, 400, 401, 1000])
def test_fewer_than_eight_points_off_a_level_are_outliers(count: int) -> None:
    for length, expected in ((7, ([], [(100, 107)])), (8, ([100, 108], []))):
        found = partition.partition(shifted([0.0] * count, 100, 3.0, 100 + length), [1.0] * count)
        assert (found.boundaries, found.outliers) == expected
        assert found.weights == [float(not any(a <= index < b for a, b in expected[1])) for index in range(count)]


def test_groups_of_outliers_that_touch_are_one() -> None:
    assert partition._merged([(8, 9), (1, 3), (3, 5), (2, 3), (6, 8)]) == [(1, 5), (6, 9)]


def test_a_stretch_that_is_long_enough_without_its_spike_is_a_level() -> None:
    values = [0.0] * 50 + [2.0, 2.0, 10.0] + [2.0] * 6 + [0.0] * 50
    found = partition.partition(values, [9.0] * 109)
    assert (found.boundaries, found.outliers) == ([50, 59], [(52, 53)])
    assert partition.partition(values[::-1], [9.0] * 109).outliers == [(56, 57)]


def test_where_long_series_are_cut_at_all() -> None:
    def sums(size: float) -> PrefixSums:
        return PrefixSums.of(shifted([0.0] * 1000, 500, size), [1.0] * 1000)

    assert partition.screened(sums(9.0)) == [0, 500, *range(980, 1001)]
    assert partition.boundaries(sums(9.0)) == [500]
    # 5 points on either side give a gain of 2.5 s^2, 160 points one of 80 s^2; positions with more than 5 are kept.
    assert [500 in partition.screened(sums(size)) for size in (0.249, 0.251)] == [False, True]


@pytest.mark.parametrize(
    ("begin", "at", "end", "best"),
    [
        *[(0, 497, 1000, 500), (0, 503, 1000, 500), (499, 500, 502, 500)],
        *[(0, 496, 1000, 499), (0, 504, 1000, 501), (500, 502, 503, 501)],
    ],
)
def test_a_cut_is_moved_by_up_to_three_points(begin: int, at: int, end: int, best: int) -> None:
    sums = PrefixSums.of(shifted([0.0] * 1000, 500, 9.0), [1.0] * 1000)
    assert partition._best_cut(sums, begin, at, end) == best


# -- the noise


def test_errors_that_are_not_known_are_those_of_the_point_in_the_middle() -> None:
    noise = series_noise.estimate(noisy(1, 12), [0.0, 0.0, 0.0, 0.0, 0.01, 0.02, 0.03, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert noise.errors == [0.02] * 4 + [0.01, 0.02, 0.03] + [0.02] * 5


def test_logarithms_of_all_floats_are_taken() -> None:
    series_noise.check([1000.0, -1000.0], [0.0, 1000.0])
    series_noise.check([], [])
    for value, error in ((1000.1, 0.0), (-1000.1, 0.0), (0.0, 1000.1), (0.0, -0.1)):
        with pytest.raises(ValueError, match="1000"):
            series_noise.check([value], [error])


def test_the_noise_of_a_stretch_is_that_of_its_differences() -> None:
    assert series_noise.half_squares([1.0, 2.0, 4.0, 9.0], 2) == [4.5, 24.5]
    # The largest tenth is left out, but at least one value is kept.
    assert series_noise.trimmed_mean([2.0] * 9 + [1e9]) == pytest.approx(2 / 0.623)
    assert series_noise.trimmed_mean([5.0]) == pytest.approx(5 / 0.623)


LOUD, QUIET = 2 / 0.623, 2e-4 / 0.623


@pytest.mark.parametrize(
    ("values", "floor", "expected"),
    [
        (zigzag(100, 1.0) + zigzag(100, 0.01), 1e-12, [LOUD] * 105 + [QUIET] * 95),
        (zigzag(200, 0.01) + zigzag(100, 1.0), 1e-12, [QUIET] * 196 + [LOUD] * 104),
        # No stretch has less noise than the floor, or fewer than 20 points.
        (zigzag(100, 1.0) + [0.0] * 100, 1e-4, [LOUD] * 105 + [1e-4] * 95),
        (zigzag(20, 1.0) + zigzag(20, 1e-4), 1e-12, [1.0] * 40),
    ],
)
def test_a_stretch_of_noise_ends_where_it_changes(values: list[float], floor: float, expected: list[float]) -> None:
    assert series_noise.variances(values, floor) == pytest.approx(expected, rel=1e-3)


def test_the_ends_of_stretches_of_noise() -> None:
    loud = zigzag(100, 1.0)
    assert series_noise.variances(zigzag(20, 1.0) + zigzag(21, 1e-4), 1e-12)[-1] < 1
    assert series_noise._ends(loud + zigzag(20, 1e-6) + loud, 1e-20) == [100, 120]
    # A short stretch is merged with the more similar neighbour.
    assert series_noise._ends(loud + zigzag(10, 1e-3) + zigzag(100, 1e-4), 1e-20) == [100]
    assert series_noise._ends(zigzag(100, 1e-4) + zigzag(10, 1e-3) + loud, 1e-20) == [110]


def test_each_stretch_has_the_noise_beyond_its_own_errors() -> None:
    # The noise within runs is 1.5% at first and 0.1% now; between runs it is always 1%.
    errors = [0.015] * 150 + [0.001] * 150
    within = [error * one for error, one in zip(errors, np.random.default_rng(7).normal(size=300), strict=True)]
    values = [one / 2 + other for one, other in zip(noisy(8, 300), within, strict=True)]
    between = series_noise.estimate(values, errors).between
    assert math.sqrt(between[0]) == pytest.approx(0.01, abs=0.006)
    assert math.sqrt(between[-1]) == pytest.approx(0.01, rel=0.2)


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.4, 0.8, 0.85])
@pytest.mark.parametrize("lags", [3, 5])
def test_the_differences_of_a_process_tell_its_correlation(rho: float, lags: int) -> None:
    variance, found = series_noise._fit([0.3 * (1 - rho**lag) for lag in range(1, lags + 1)])
    assert (variance, found) == pytest.approx((0.3, rho))
    assert series_noise._fit([0.3, 0.4]) == (0.3, 0.0)


def test_near_lags_count_for_more_than_far_ones() -> None:
    # Without correlation all squares are equal; here the last one differs, whose weight is a fifth of the first.
    squares = [1.0, 0.999, 1.001, 1.0, 0.9]
    variance, rho = series_noise._fit(squares)
    assert rho == 0
    assert variance == pytest.approx(np.average(squares, weights=[1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=50))
@quick
def test_running_medians_are_those_of_whole_windows(y: list[float]) -> None:
    half = min(15, len(y) if len(y) % 2 else len(y) - 1) // 2
    middles = [min(max(index, half), len(y) - 1 - half) for index in range(len(y))]
    # An even number of up to 15 values has two full windows.
    expected = [sorted(y[at - half : at + half + 1])[half] for at in middles]
    assert series_noise.running_median(y) == expected
    reaches = [0.5 + abs(one) / 9 for one in y]
    low, high = (np.array(expected) + sign * np.array(reaches) for sign in (-1, 1))
    assert series_noise.drawn_in(y, expected, reaches) == np.clip(y, low, high).tolist()


@pytest.mark.parametrize(
    ("y", "floor"),
    [
        # Ties in steps of 1/4: rounding has a variance of a twelfth of the square.
        *[([0.0, 0.25, 0.25, 1.0], 0.25**2 / 12), ([2.0, 2.0], 1e-12)],
        *[([0.0, 1e-5, 100.0], 100**2 / 12), ([0.0, 1e-9], 1e-12)],
    ],
)
def test_variances_have_a_floor(y: list[float], floor: float) -> None:
    assert series_noise._floor(y) == pytest.approx(floor)


WALK = [float(index) for index in range(20)]


@pytest.mark.parametrize(
    ("y", "floor", "scale"),
    [
        # In a random walk, differences four apart are larger; the factor is limited to 4, and needs at least 20 points.
        *[(WALK[:19], 0.0, 0.5 / 0.623), (WALK, 0.0, 4 * 0.5 / 0.623), (WALK[:19], 9.0, 9.0), (WALK, 9.0, 9.0)],
        # Neighbours have opposite signs, so points four apart are equal.
        (zigzag(30, 1.0), 0.0, 2 / 0.623),
    ],
)
def test_clipping_allows_for_slow_noise(y: list[float], floor: float, scale: float) -> None:
    assert series_noise._scale(y, [1.0] * len(y), floor) == pytest.approx(scale)


@pytest.mark.parametrize(
    ("local", "lag", "shares"),
    [
        *[([1.0, 1.0, 4.0], 1, [2.0, 1.0]), ([4.0, 1.0, 1.0], 1, [1.0, 2.0])],
        *[([4.0, 4.0, 4.0], 2, [2.0]), ([1.0, 1.0, 1.0], 1, [2.0, 2.0])],
    ],
)
def test_differences_are_shares_of_the_noise_of_both_points(local: list[float], lag: int, shares: list[float]) -> None:
    assert series_noise._shares([0.0, 2.0, 4.0], local, lag) == shares


def test_errors_of_points_and_their_parts_within_runs() -> None:
    assert series_noise._reaches([1.0, 2.0, 3.0], [9.0] * 3) == pytest.approx([9, 9, 3 * math.sqrt(14)])
    assert series_noise._between([2.0, 2.0], [0.1, 0.3], 0.5, 0.25) == [1.0, 1.0]
    # The total is 0.75 of the local variance. The part within runs is subtracted, but at least a twentieth is left.
    found = series_noise._between([2.0, 4.0, 4.0, 8.0], [0.5, 1.0, 2.0, 99.0], 0.5, 0.25)
    assert found == pytest.approx([1.0, 1.5, 1.5, 0.3])


def test_dependence_widens_what_is_known_of_a_mean() -> None:
    noise = of_noise([0.0] * 25, 0.4, 0.04, 0.1)
    assert (noise.cautious_rho, noise.inflation) == pytest.approx((0.5, 3))
    assert noise.weights() == pytest.approx([1 / (0.01 + 3 * 0.04)] * 25)
    assert SeriesNoise([0.0] * 25, [], [], 0.0, [], 0.8).cautious_rho == 0.85


@pytest.mark.parametrize(
    ("values", "error", "expected"),
    [
        (noisy(1, 12), 0.0, [0.000976703258, 0.000186646068, 0.0418500426, 0.0, 1.33737035, -0.0420237362]),
        (noisy(2, 19, 0.6), 0.005, [-0.0163662107, 9.92325065e-05, 0.0335697766, 0.0, 1.25914128, 0.0914019103]),
        (noisy(3, 20, 0.6), 0.005, [0.00323766908, 0.000236056546, 0.0588295426, 0.65, 7.39642543, -0.0592805947]),
        (noisy(4, 27, 0.6), 0.01, [0.00201577824, 0.000413812032, 0.0622671423, 0.85, 12.3333333, 0.00496163793]),
        (noisy(5, 28, 0.6), 0.01, [-0.00553462017, 0.000499368308, 0.0555945214, 0.85, 12.3333333, -0.0136860626]),
        (noisy(6, 60), 0.05, [0.00128715834, 2.1951974e-05, 0.0674560001, 0.0, 1.13800781, -0.045397155]),
    ],
    ids=["few", "short", "twenty", "more", "all lags", "precise to less than it scatters"],
)
def test_noise_is_estimated_alike_in_every_version(values: list[float], error: float, expected: list[float]) -> None:
    found = series_noise.estimate(values, [error] * len(values))
    numbers = [found.center, found.between[0], found.reaches[0], found.rho, found.inflation, math.fsum(found.clipped)]
    assert numbers == pytest.approx(expected, rel=1e-7, abs=1e-9)
