"""Parts of the search for change points: comparison with oracles, and exact bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perfflow.stats import change_points, partition, series_noise
from perfflow.stats.change_points import Fitted, FoundChanges, LevelSteps, changes, drift_instead
from perfflow.stats.partition import PrefixSums
from perfflow.stats.series_noise import SeriesNoise
from tests.stats.test_change_points import noisy, shifted

quick = settings(deadline=None, max_examples=25)
POINTS = st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 4)), min_size=6, max_size=30)


def zigzag(count: int, size: float = 0.01) -> list[float]:
    return [size * (-1) ** index for index in range(count)]


# -- cutting


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


def test_a_cut_costs_more_in_longer_series() -> None:
    found = [partition.penalty(n) for n in (12, 200, 400, 2000)]
    assert found == pytest.approx([15, 15, 15 + 2 * math.log(2), 15 + 2 * math.log(10)])


@pytest.mark.parametrize("count", [399, 400, 401, 1000])
def test_fewer_than_eight_points_off_a_level_are_outliers(count: int) -> None:
    for length, expected in ((7, ([], [(100, 107)])), (8, ([100, 108], []))):
        values = shifted([0.0] * count, 100, 3.0, 100 + length)
        found = partition.partition(values, [1.0] * count)
        assert (found.boundaries, found.outliers) == expected
        assert found.weights == [float(not any(a <= index < b for a, b in expected[1])) for index in range(count)]


def test_groups_of_outliers_that_touch_are_one() -> None:
    assert partition._merged([(8, 9), (1, 3), (3, 5), (2, 3), (6, 8)]) == [(1, 5), (6, 9)]


def test_a_step_is_gained_if_it_is_worth_the_penalty() -> None:
    for share, boundaries in ((0.9999, []), (1.0001, [150])):
        # The gain of a step of size s between 150 and 150 points of weight 1 is 75 s^2.
        values = shifted([0.0] * 300, 150, math.sqrt((15 + 2 * math.log(1.5)) * share / 75))
        assert partition.partition(values, [1.0] * 300).boundaries == boundaries


def test_a_stretch_that_is_long_enough_without_its_spike_is_a_level() -> None:
    values = [0.0] * 50 + [2.0, 2.0, 10.0] + [2.0] * 6 + [0.0] * 50
    found = partition.partition(values, [9.0] * 109)
    assert (found.boundaries, found.outliers) == ([50, 59], [(52, 53)])
    assert partition.partition(values[::-1], [9.0] * 109).outliers == [(56, 57)]


def test_a_change_is_told_from_four_points_on_either_side() -> None:
    for count, told in ((3, 0), (4, 1)):
        for values in ([3.0] * 30 + [3.01] * count, [3.0] * count + [3.01] * 30):
            assert len(changes(values, [0.0] * len(values)).changes) == told


def test_too_few_points_say_nothing_at_all() -> None:
    assert changes([0.0] * 11, [0.0] * 11) == FoundChanges((), (), 0.0, ())


def test_errors_that_are_not_known_are_those_of_the_point_in_the_middle() -> None:
    noise = series_noise.estimate(noisy(1, 12), [0.0, 0.0, 0.0, 0.0, 0.01, 0.02, 0.03, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert noise.errors == [0.02] * 4 + [0.01, 0.02, 0.03] + [0.02] * 5


def test_logarithms_of_all_floats_are_taken() -> None:
    series_noise.check([1000.0, -1000.0], [0.0, 1000.0])
    series_noise.check([], [])
    for value, error in ((1000.1, 0.0), (-1000.1, 0.0), (0.0, 1000.1), (0.0, -0.1)):
        with pytest.raises(ValueError, match="1000"):
            series_noise.check([value], [error])


def test_where_long_series_are_cut_at_all() -> None:
    sums = PrefixSums.of(shifted([0.0] * 1000, 500, 9.0), [1.0] * 1000)
    assert partition.screened(sums) == [0, 500, *range(980, 1001)]
    assert partition.boundaries(sums) == [500]
    # 5 points on either side give a gain of 2.5 s^2, 160 points one of 80 s^2; positions with more than 5 are kept.
    for size, seen in ((0.249, False), (0.251, True)):
        assert (500 in partition.screened(PrefixSums.of(shifted([0.0] * 1000, 500, size), [1.0] * 1000))) == seen
    for begin, at, end in ((0, 497, 1000), (0, 503, 1000), (499, 500, 502)):
        assert partition._best_cut(sums, begin, at, end) == 500
    assert (partition._best_cut(sums, 0, 496, 1000), partition._best_cut(sums, 0, 504, 1000)) == (499, 501)
    assert partition._best_cut(sums, 500, 502, 503) == 501


@given(POINTS)
@quick
def test_moving_sums_show_what_a_cut_there_gains(points: list[tuple[float, float]]) -> None:
    sums = PrefixSums.of(*([one[side] for one in points] for side in (0, 1)))
    expected = [sums.gain(begin, begin + 2, begin + 4) for begin in range(len(points) - 3)]
    assert partition._contrasts(sums, 2) == pytest.approx(expected, abs=1e-9)


# -- the noise


def test_the_noise_of_a_stretch_is_that_of_its_differences() -> None:
    assert series_noise.half_squares([1.0, 2.0, 4.0, 9.0], 2) == [4.5, 24.5]
    # The largest tenth is left out, but at least one value is kept.
    assert series_noise.trimmed_mean([2.0] * 9 + [1e9]) == pytest.approx(2 / 0.623)
    assert series_noise.trimmed_mean([5.0]) == pytest.approx(5 / 0.623)


def test_a_stretch_of_noise_ends_where_it_changes() -> None:
    found = series_noise.variances(zigzag(100, 1.0) + zigzag(100, 0.01), 1e-12)
    loud, quiet = 2 / 0.623, 2e-4 / 0.623
    assert found == pytest.approx([loud] * 105 + [quiet] * 95, rel=1e-3)
    assert series_noise.variances(zigzag(200, 0.01) + zigzag(100, 1.0), 1e-12)[194:198] == pytest.approx(
        [quiet, quiet, loud, loud], rel=1e-3
    )
    assert series_noise.variances(zigzag(20, 1.0) + zigzag(20, 1e-4), 1e-12) == [1.0] * 40
    assert series_noise.variances(zigzag(20, 1.0) + zigzag(21, 1e-4), 1e-12)[-1] < 1
    # No stretch has less noise than the floor, or fewer than 20 points.
    assert series_noise.variances(zigzag(100, 1.0) + [0.0] * 100, 1e-4)[-1] == 1e-4
    assert series_noise._ends(zigzag(100, 1.0) + zigzag(20, 1e-6) + zigzag(100, 1.0), 1e-20) == [100, 120]
    # A short stretch is merged with the more similar neighbour.
    assert series_noise._ends(zigzag(100, 1.0) + zigzag(10, 1e-3) + zigzag(100, 1e-4), 1e-20) == [100]
    assert series_noise._ends(zigzag(100, 1e-4) + zigzag(10, 1e-3) + zigzag(100, 1.0), 1e-20) == [110]


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.4, 0.8, 0.85])
@pytest.mark.parametrize("lags", [3, 5])
def test_the_differences_of_a_process_tell_its_correlation(rho: float, lags: int) -> None:
    variance, found = series_noise._fit([0.3 * (1 - rho**lag) for lag in range(1, lags + 1)])
    assert (variance, found) == pytest.approx((0.3, rho))
    assert series_noise._fit([0.3, 0.4]) == (0.3, 0.0)


def test_near_lags_count_for_more_than_far_ones() -> None:
    # Without correlation all squares are equal; here the last one differs, whose weight is a fifth of the first.
    variance, rho = series_noise._fit([1.0, 0.999, 1.001, 1.0, 0.9])
    assert rho == 0
    assert variance == pytest.approx(
        (1 + 0.999 / 2 + 1.001 / 3 + 1 / 4 + 0.9 / 5) / (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5)
    )


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


def test_variances_have_a_floor() -> None:
    # Ties in steps of 1/4: rounding has a variance of a twelfth of the square.
    assert series_noise._floor([0.0, 0.25, 0.25, 1.0]) == pytest.approx(0.25**2 / 12)
    assert series_noise._floor([2.0, 2.0]) == pytest.approx(1e-12)
    assert series_noise._floor([0.0, 1e-5, 100.0]) == pytest.approx(100**2 / 12)
    assert series_noise._floor([0.0, 1e-9]) == pytest.approx(1e-12)


def test_clipping_allows_for_slow_noise_and_for_errors_of_points() -> None:
    # In a random walk, differences four apart are larger; the factor is limited to 4, and needs at least 20 points.
    for count, factor in ((19, 1), (20, 4)):
        walk = [float(index) for index in range(count)]
        assert series_noise._scale(walk, [1.0] * count, 0.0) == pytest.approx(factor * 0.5 / 0.623)
        assert series_noise._scale(walk, [1.0] * count, 9.0) == 9.0
    # Neighbours have opposite signs, so points four apart are equal.
    assert series_noise._scale(zigzag(30, 1.0), [1.0] * 30, 0.0) == pytest.approx(2 / 0.623)
    assert series_noise._reaches([1.0, 2.0, 3.0], [9.0] * 3) == pytest.approx([9, 9, 3 * math.sqrt(14)])


def test_differences_are_shares_of_the_noise_of_both_points() -> None:
    assert series_noise._shares([0.0, 2.0, 4.0], [1.0, 1.0, 4.0], 1) == [2.0, 1.0]
    assert series_noise._shares([0.0, 2.0, 4.0], [4.0, 1.0, 1.0], 1) == [1.0, 2.0]
    assert series_noise._shares([0.0, 2.0, 4.0], [4.0, 4.0, 4.0], 2) == [2.0]
    assert series_noise._shares([0.0, 2.0, 4.0], [1.0, 1.0, 1.0], 1) == [2.0, 2.0]


def test_each_stretch_has_its_own_part_within_runs() -> None:
    assert series_noise._between([2.0, 2.0], [0.1, 0.3], 0.5, 0.25) == [1.0, 1.0]
    # The total is 0.75 of the local variance. The part within runs is subtracted, but at least a twentieth is left.
    found = series_noise._between([2.0, 4.0, 4.0, 8.0], [0.5, 1.0, 2.0, 99.0], 0.5, 0.25)
    assert found == pytest.approx([1.0, 1.5, 1.5, 0.3])


def test_dependence_widens_what_is_known_of_a_mean() -> None:
    noise = SeriesNoise([0.0] * 25, [0.1] * 25, [1.0] * 25, 0.0, [0.04] * 25, 0.4)
    assert noise.cautious_rho == pytest.approx(0.5)
    assert noise.inflation == pytest.approx(3)
    assert noise.weights() == pytest.approx([1 / (0.01 + 3 * 0.04)] * 25)
    assert SeriesNoise([0.0] * 25, [], [], 0.0, [], 0.8).cautious_rho == 0.85


# -- steps in dependent noise


@given(st.integers(0, 10**6), st.floats(0.1, 0.8))
@quick
def test_a_step_is_fitted_as_least_squares_do(seed: int, rho: float) -> None:
    """The innovations of a level and of a step are two regressors; the point of the step itself is not whitened."""
    luck = np.random.default_rng(seed)
    n, begin, end, at = 30, 4, 27, 15
    errors, between = luck.uniform(0.0, 0.1, n), luck.uniform(0.2, 0.4, n)
    noise = SeriesNoise(luck.normal(0, 1, n).tolist(), errors.tolist(), [9.0] * n, 0.0, between.tolist(), rho)
    weights = [float(index != 20) for index in range(n)]
    share = noise.cautious_rho * between / (errors**2 + between)
    kept = [index for index in range(begin + 1, end) if weights[index] and weights[index - 1]]
    x = np.array(noise.clipped)
    left = np.array([x[index] - share[index] * x[index - 1] for index in kept])
    level = np.array([1 - share[index] for index in kept])
    step = np.array([0.0 if index < at else 1.0 if index == at else 1 - share[index] for index in kept])
    spread = np.array([math.sqrt((errors[i] ** 2 + between[i]) * (1 - share[i] ** 2)) for i in kept])
    both = np.stack([level, step], axis=1) / spread[:, None]
    before, size = np.linalg.lstsq(both, left / spread, rcond=None)[0]
    error = math.sqrt(float(np.linalg.inv(both.T @ both)[1, 1]))
    found = change_points._Whitened.of(noise, weights).best_step(begin, end, range(at, at + 1))
    assert found is not None
    assert (found.at, found.before, found.size) == pytest.approx((at, before, size), rel=1e-6, abs=1e-9)
    assert (found.error, found.gain) == pytest.approx((error, (size / error) ** 2), rel=1e-6)


def test_a_further_step_has_eight_points_on_either_side_or_four_at_the_end() -> None:
    def places(values: Sequence[float], cuts: list[int], rho: float = 0.5) -> list[int]:
        n = len(values)
        noise = SeriesNoise(list(values), [0.0] * n, [9.0] * n, 0.0, [1e-4] * n, rho)
        return list(change_points.further_changes(noise, partition.Partition(cuts, [], [1.0] * n)))

    flat = zigzag(100, 1e-3)
    assert [places(shifted(flat, at, 1.0), []) for at in (7, 8, 96, 97)] == [[8], [8], [96], [96]]
    assert [places(shifted(flat, at, 1.0), [50]) for at in (42, 43, 57, 58)] == [[42], [42], [58], [58]]
    assert places(shifted(flat, 30, 1.0), [], rho=0.0) == []
    assert places(flat, []) == []


def test_a_further_step_gains_three_more_than_the_penalty() -> None:
    n = 200
    noise = SeriesNoise([0.0] * n, [0.0] * n, [9.0] * n, 0.0, [1e-4] * n, 0.5)
    one = change_points._Whitened.of(
        SeriesNoise(shifted([0.0] * n, 100, 1.0), *([0.0] * n, [9.0] * n, 0.0, [1e-4] * n, 0.5)), [1.0] * n
    ).best_step(0, n, range(100, 101))
    assert one is not None
    for share, count in ((0.99, 0), (1.01, 1)):
        values = shifted([0.0] * n, 100, math.sqrt(share * 18 / one.gain))
        own = SeriesNoise(values, noise.errors, noise.reaches, 0.0, noise.between, 0.5)
        assert len(change_points.further_changes(own, partition.Partition([], [], [1.0] * n))) == count


# -- placing a change


def test_a_place_is_held_by_the_fewest_points_with_95_percent() -> None:
    def losses(*likely: float) -> list[float]:
        return [5 - math.log(one) for one in likely]

    held = change_points._held
    assert held(7, losses(0.01, 0.02, 0.95, 0.01, 0.01)) == change_points._Place(9, 9, 9)
    assert held(7, losses(0.01, 0.03, 0.90, 0.05, 0.01)) == change_points._Place(9, 9, 10)
    assert held(7, losses(0.01, 0.06, 0.90, 0.02, 0.01)) == change_points._Place(9, 8, 9)
    assert held(7, losses(0.03, 0.94, 0.03)) == change_points._Place(8, 7, 8)
    assert held(0, losses(0.9, 0.04, 0.03, 0.03)) == change_points._Place(0, 0, 2)
    assert held(0, losses(0.03, 0.03, 0.04, 0.9)) == change_points._Place(3, 1, 3)


def placer(values: Sequence[float], rho: float = 0.0) -> change_points._Placer:
    n = len(values)
    errors, between = [0.01 * (1 + index % 3) for index in range(n)], [4e-4 * (1 + index % 2) for index in range(n)]
    return change_points._Placer(list(values), SeriesNoise(list(values), errors, [9.0] * n, 0.0, between, rho))


def test_the_loss_of_an_innovation_is_students() -> None:
    values, rho = noisy(4, 10), 0.4
    one = placer(values, rho)
    for at in range(1, 10):
        variance = (one.noise.errors[at] ** 2 + one.noise.between[at]) * (1 - rho**2)
        off = values[at] - 0.05 - rho * (values[at - 1] - 0.01)
        t = stats.t(5, scale=math.sqrt(0.8 * variance))
        assert one._loss(at, 0.05, 0.01) == pytest.approx(float(t.logpdf(0) - t.logpdf(off)))


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_a_change_is_placed_where_it_is_likeliest(rho: float) -> None:
    values = shifted(noisy(6, 60), 30, 0.08)
    one = placer(values, rho)

    def loss(at: int) -> float:
        level = [0.08 if index >= at else 0.0 for index in range(60)]
        return sum(one._loss(index, level[index], level[index - 1]) for index in range(1, 60))

    for boundary in range(22, 40):
        tried = range(max(2, boundary - 12), min(58, boundary + 12) + 1)
        likely = {at: math.exp(loss(30) - loss(at)) for at in tried}
        place = one.place(0, boundary, 60, (0.0, 0.08))
        assert place.at == max(likely, key=lambda at: likely[at])
        held = sum(likely[at] for at in range(place.earliest, place.latest + 1))
        assert held >= 0.95 * sum(likely.values())
        assert held - likely[place.earliest] < 0.95 * sum(likely.values()) or place.at == place.earliest
    far = shifted([0.0] * 60, 30, 1.0)
    assert [placer(far).place(0, at, 60, (0.0, 1.0)).at for at in (17, 18, 42, 43)] == [29, 30, 30, 31]
    assert [placer(far).place(first, 30, 60, (0.0, 1.0)).at for first in (28, 29)] == [30, 31]
    assert [placer(far).place(0, 30, end, (0.0, 1.0)).at for end in (31, 32)] == [29, 30]
    assert placer(far).place(27, 30, 31, (0.0, 1.0)) == change_points._Place(29, 29, 29)
    assert placer(far).place(29, 30, 32, (0.0, 1.0)) == change_points._Place(30, 30, 30)


def test_a_change_is_as_sure_as_quiet_series_are_rarely_like_it() -> None:
    """The interval has 99% confidence, and the gain of a step is the square of its size in standard errors."""
    unsure = 0
    for count in (200, 380):
        for seed in range(25):
            for one in changes(shifted(noisy(seed, count), 100, 0.012), [0.0] * count).changes:
                error = (one.high - one.low) / 2 / 2.576
                alarm = 1.1 * count / 200 * math.exp(-0.36 * (one.size / error) ** 2)
                assert one.confidence == pytest.approx(1 - alarm, abs=1e-12)
                assert one.size == pytest.approx((one.high + one.low) / 2)
                unsure += alarm > 1e-4
    assert unsure >= 10


# -- slopes


@given(POINTS, st.data())
@quick
def test_a_slope_is_fitted_as_least_squares_do(points: list[tuple[float, float]], data: st.DataObject) -> None:
    values, weights = map(np.array, zip(*points, strict=True))
    begin = data.draw(st.integers(0, len(points) - 3))
    end = data.draw(st.integers(begin + 2, len(points)))
    rise = np.clip((np.arange(len(points)) - begin) / (end - begin), 0, 1)
    root = np.sqrt(weights)
    both = np.stack([np.ones(len(points)), rise], axis=1) * root[:, None]
    line, *_ = np.linalg.lstsq(both, values * root, rcond=None)
    loss = float(np.sum((values * root - both @ line) ** 2))
    level = float(np.sum(weights * (values - np.average(values, weights=weights)) ** 2))
    gain, size = change_points._Moments.of(values.tolist(), weights.tolist()).gain(begin, end)
    assert gain == pytest.approx(level - loss, abs=1e-6)
    assert size == pytest.approx(float(line[1]), abs=1e-6)


def sloped(count: int, begin: int, end: int, size: float = 1.0) -> list[float]:
    return np.interp(range(count), [begin, end], [0, size]).tolist()


def fitted(values: Sequence[float], precision: float = 1.0, rho: float = 0.0) -> Fitted:
    return Fitted(values, [1.0] * len(values), [precision] * len(values), rho)


def stairs(begin: int, end: int, *places: int) -> LevelSteps:
    return LevelSteps(places, [number / len(places) for number in range(len(places) + 1)], begin, end)


@pytest.mark.parametrize(
    ("count", "begin", "end"), [(140, 0, 20), (140, 50, 110), (140, 20, 140), (147, 50, 147), (30, 2, 18)]
)
def test_the_best_slope_is_the_one_that_is_there(count: int, begin: int, end: int) -> None:
    found = change_points._best_slope(sloped(count, begin, end, 0.7), [1.0] * count)
    assert found is not None
    assert (found.begin, found.end) == (begin, end)
    assert found.size == pytest.approx(0.7)


def test_a_slope_lasts_sixteen_points() -> None:
    for end, told in ((16, False), (18, True)):
        series = fitted(sloped(30, 2, end), 1e9)
        assert bool(drift_instead(series, stairs(0, 30, 6, 12))) == told
    assert drift_instead(fitted(sloped(70, 5, 20), 1e9), stairs(0, 70, 10, 15)) is None
    # Of 30 to 1500 points.
    assert drift_instead(fitted(sloped(29, 2, 20), 1e9), stairs(0, 29, 6, 12)) is None
    for count, told in ((1500, True), (1501, False)):
        series = fitted(sloped(count, 107 * 4, 107 * 8 + 10), 1e9)
        assert bool(drift_instead(series, stairs(0, count, 280, 1220))) == told


def test_a_slope_is_looked_for_300_points_beyond_the_changes() -> None:
    values = sloped(1000, 448, 552)
    found = drift_instead(fitted(values, 1e9), stairs(0, 1000, 490, 510))
    # 190 to 810, in steps of 44.
    assert found is not None
    assert (found.begin, found.end) == (454, 552)
    inside = drift_instead(fitted(values, 1e9), stairs(448, 608, 490, 510))
    assert inside is not None
    assert (inside.begin, inside.end) == (448, 557)


@pytest.mark.parametrize(("places", "numbers"), [((70,), 2), ((60, 80), -1), ((60, 70, 80), -3)])
def test_steps_and_slopes_are_charged_for_their_numbers(places: tuple[int, ...], numbers: int) -> None:
    """A slope has three parameters, or four if it replaces a single step; a step has two. Otherwise the fit decides."""
    rho = 0.3
    # Values closer to the steps than to the slope, or the reverse.
    mix = 0.1 if numbers > 0 else 0.95
    steps = stairs(0, 140, *places)
    levels = np.array([steps.levels[sum(at <= index for at in places)] for index in range(140)])
    values = (mix * levels + (1 - mix) * np.array(sloped(140, 50, 110))).tolist()
    line = change_points._best_slope(values, [1.0] * 140)
    assert line is not None
    rise = np.array(sloped(140, line.begin, line.end, line.size))

    def loss(fit: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        rest = np.array(values) - fit
        return float(np.sum((rest[1:] - rho * rest[:-1]) ** 2))

    lead = loss(levels) - loss(rise + np.mean(np.array(values) - rise))
    assert lead * numbers > 0
    for share, told in ((0.99, numbers < 0), (1.01, numbers > 0)):
        found = drift_instead(fitted(values, share * numbers * math.log(140) / lead, rho), steps)
        assert found == (line if told else None)
