"""Change points of simulated histories with fixed seeds, oracles of the parts of the search, and stored results."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perfflow.stats import change_points, series_noise
from perfflow.stats.change_points import Drift, FoundChanges, LevelChange, changes, drift_instead, further_changes
from perfflow.stats.partition import Partition
from perfflow.stats.series_noise import SeriesNoise
from tests.stats.series import POINTS, noisy, of_noise, quick, shifted, zigzag

properties = settings(deadline=None, max_examples=40)
LEVELS = st.lists(st.integers(-40, 40).map(lambda step: step / 256), min_size=0, max_size=60)
FIB_20 = json.loads((Path(__file__).parents[2] / "benchmarks" / "fib_20.json").read_text())


def all_of(values: Sequence[float]) -> FoundChanges:
    return changes(values, [0.0] * len(values))


def found(values: Sequence[float]) -> tuple[LevelChange, ...]:
    return all_of(values).changes


# -- simulated histories


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_quiet_series_raise_hardly_an_alarm(rho: float) -> None:
    results = [all_of(noisy(seed, 200, rho)) for seed in range(25)]
    assert sum(bool(one.changes or one.drifts) for one in results) <= 1
    assert sum(one.rho > 0.4 for one in results) == pytest.approx(25 if rho > 0.5 else 0, abs=5)


@pytest.mark.parametrize("scales", [(1.0, 0.25), (0.25, 1.0), (4.0, 0.15)])
def test_a_change_of_the_noise_is_no_change_of_the_level(scales: tuple[float, float]) -> None:
    alarms = 0
    for seed in range(40):
        result = all_of([one * scales[index >= 120] for index, one in enumerate(noisy(seed, 200))])
        alarms += bool(result.changes or result.drifts)
    assert alarms <= 1


def test_innovations_show_new_shifts_in_dependent_noise() -> None:
    near = by_innovations = 0
    for seed in range(60):
        values = shifted(noisy(seed, 200, 0.6), 190, 0.05)
        noise = series_noise.estimate(values, [0.0] * 200)
        by_innovations += 190 in further_changes(noise, Partition([], [], noise.weights()))
        own = found(values)
        near += any(abs(one.at - 190) <= 3 and one.size > 0 for one in own)
        # No change that is told may be none. The levels of a few dependent points are so uncertain that the interval
        # of their difference often contains zero; the interval of a step found in the innovations does not.
        for one in own:
            assert one.low > 0 or one.high < 0, (seed, one)
            assert one.after - one.before == pytest.approx(one.size)
    # The partition alone finds 17 of them.
    assert near >= 30
    assert by_innovations >= 10


def test_innovations_know_what_noise_is_within_runs() -> None:
    # Noise within runs, here most of the noise, is independent of the previous run; noise between runs is not.
    alarms = 0
    for seed in range(40):
        noise = of_noise([3 * one for one in noisy(seed, 200)], 0.8, 0.02**2, 0.06)
        noise = SeriesNoise(noise.clipped, noise.errors, [math.inf] * 200, 0.0, noise.between, 0.8)
        alarms += bool(further_changes(noise, Partition([], [], noise.weights())))
    assert alarms == 0


def test_a_shift_is_found_in_its_place_with_its_size() -> None:
    near = held = sized = 0
    for seed in range(40):
        at = 40 + 3 * seed
        (own,) = found(shifted(noisy(1000 + seed, 200), at, 0.05))
        near += abs(own.at - at) <= 2
        held += own.earliest <= at <= own.latest
        sized += own.low <= 0.05 <= own.high
    assert (near >= 36, held >= 36, sized >= 38) == (True, True, True)


def test_a_slope_is_a_drift_and_not_a_staircase() -> None:
    slope = [0.001 * min(max(index - 50, 0), 100) for index in range(200)]
    results = [all_of([v + s for v, s in zip(noisy(seed, 200), slope, strict=True)]) for seed in range(12)]
    assert sum(bool(one.drifts) and not one.changes for one in results) >= 11


def test_groups_of_outliers_are_left_out_however_many() -> None:
    values = noisy(3, 390)
    for begin in range(20, 380, 30):
        values = shifted(values, begin, 0.5 if begin % 60 else -0.5, begin + 3)
    assert found(values) == ()


@pytest.mark.parametrize("count", [300, 1000, 3000])
def test_long_series_show_the_same_shift(count: int) -> None:
    (one,) = found(shifted(noisy(5, count), count - 100, 0.05))
    assert abs(one.at - (count - 100)) <= 3


def test_exact_figures_show_a_step() -> None:
    (one,) = found([3.0] * 30 + [3.01] * 30)
    assert (one.at, one.earliest, one.latest, one.size) == pytest.approx((30, 30, 30, 0.01))
    assert found([3.0] * 60) == ()


@pytest.mark.parametrize(("count", "told"), [(3, 0), (4, 1)])
def test_a_change_is_told_from_four_points_on_either_side(count: int, told: int) -> None:
    for values in ([3.0] * 30 + [3.01] * count, [3.0] * count + [3.01] * 30):
        assert len(found(values)) == told


def test_few_values_say_nothing() -> None:
    for count in range(12):
        assert all_of([0.0] * (count // 2) + [1.0] * (count - count // 2)) == FoundChanges((), (), 0.0, ())


def test_a_loud_past_hides_no_shift_in_a_quiet_present() -> None:
    # Like fib_20 of github-action-benchmark: 8% noise for years, then 0.3%, and a shift of 10% fourteen runs ago.
    told = 0
    for seed in range(20):
        values = [one * (4.0 if index < 160 else 0.15) for index, one in enumerate(noisy(seed, 204))]
        (last,) = found(shifted(values, 190, 0.1))[-1:] or (None,)
        told += last is not None and last.at == 190 and 0.09 < last.low < 0.1 < last.high < 0.11
    assert told >= 19


def test_the_public_series_that_became_quiet_shows_its_last_shift() -> None:
    last = found([math.log(value) for value in FIB_20["values"]])[-1]
    assert FIB_20["dates"][last.at] == "2025-05-19"
    assert 0.1 < last.low < last.high < 0.13


@given(LEVELS, st.integers(-100, 100))
@properties
def test_moved_and_negated_series(values: list[float], constant: int) -> None:
    """A constant moves levels alone, and negated values change the other way; sums of binary fractions are exact."""
    first, moved, negated = found(values), found([v + constant for v in values]), found([-v for v in values])
    assert [one.at for one in first] == [one.at for one in moved]
    assert [one.before + constant for one in first] == pytest.approx([one.before for one in moved])
    assert [(one.at, one.size) for one in first] == [(one.at, -one.size) for one in negated]


@pytest.mark.parametrize("seed", range(6))
def test_scaled_and_reversed_series_have_the_same_changes(seed: int) -> None:
    values = shifted(shifted(noisy(seed, 200), 60, 0.1), 130, -0.15)
    places = [one.at for one in found(values)]
    assert len(places) == 2
    assert [one.at for one in found([4 * value for value in values])] == places
    back = sorted(200 - one.at for one in found(values[::-1]))
    assert all(abs(a - b) <= 3 for a, b in zip(places, back, strict=True))


@pytest.mark.parametrize("new", [4, 5, 7, 8, 20])
@pytest.mark.parametrize("first", [False, True])
def test_the_size_of_a_large_change_at_either_end_is_its_own(new: int, first: bool) -> None:
    luck = random.Random(new)
    step = math.log(1.3)
    values = [luck.gauss(0, 0.002) + (step if number >= 60 else 0.0) for number in range(60 + new)]
    (one,) = found(values[::-1] if first else values)
    assert one.size == pytest.approx(-step if first else step, abs=0.01)
    assert one.low < one.size < one.high


def test_a_change_is_as_sure_as_quiet_series_are_rarely_like_it() -> None:
    """The interval has 99% confidence, and the gain of a step is the square of its size in standard errors."""
    unsure = 0
    for count in (200, 380):
        for seed in range(25):
            for one in found(shifted(noisy(seed, count), 100, 0.012)):
                error = (one.high - one.low) / 2 / 2.576
                alarm = 1.1 * count / 200 * math.exp(-0.36 * (one.size / error) ** 2)
                assert one.confidence == pytest.approx(1 - alarm, abs=1e-12)
                assert one.size == pytest.approx((one.high + one.low) / 2)
                unsure += alarm > 1e-4
    assert unsure >= 10


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
    own = change_points._Whitened.of(noise, weights).best_step(begin, end, range(at, at + 1))
    assert own is not None
    assert (own.at, own.before, own.size) == pytest.approx((at, before, size), rel=1e-6, abs=1e-9)
    assert (own.error, own.gain) == pytest.approx((error, (size / error) ** 2), rel=1e-6)


@pytest.mark.parametrize(
    ("at", "size", "cuts", "rho", "places"),
    [
        # It has eight points on either side, or four at the end.
        *[(7, 1.0, [], 0.5, [8]), (8, 1.0, [], 0.5, [8]), (96, 1.0, [], 0.5, [96]), (97, 1.0, [], 0.5, [96])],
        *[(42, 1.0, [50], 0.5, [42]), (43, 1.0, [50], 0.5, [42])],
        *[(57, 1.0, [50], 0.5, [58]), (58, 1.0, [50], 0.5, [58])],
        *[(30, 1.0, [], 0.0, []), (30, 0.0, [], 0.5, [])],
    ],
)
def test_where_a_further_step_may_be(at: int, size: float, cuts: list[int], rho: float, places: list[int]) -> None:
    noise = of_noise(shifted(zigzag(100, 1e-3), at, size), rho)
    assert list(further_changes(noise, Partition(cuts, [], [1.0] * 100))) == places


def test_a_further_step_gains_three_more_than_the_penalty() -> None:
    one = change_points._Whitened.of(of_noise(shifted([0.0] * 200, 100, 1.0), 0.5), [1.0] * 200)
    step = one.best_step(0, 200, range(100, 101))
    assert step is not None
    for share, count in ((0.99, 0), (1.01, 1)):
        own = of_noise(shifted([0.0] * 200, 100, math.sqrt(share * 18 / step.gain)), 0.5)
        assert len(further_changes(own, Partition([], [], [1.0] * 200))) == count


# -- placing a change


@pytest.mark.parametrize(
    ("first", "likely", "place"),
    [
        *[(7, (0.01, 0.02, 0.95, 0.01, 0.01), (9, 9, 9)), (7, (0.01, 0.03, 0.90, 0.05, 0.01), (9, 9, 10))],
        *[(7, (0.01, 0.06, 0.90, 0.02, 0.01), (9, 8, 9)), (7, (0.03, 0.94, 0.03), (8, 7, 8))],
        *[(0, (0.9, 0.04, 0.03, 0.03), (0, 0, 2)), (0, (0.03, 0.03, 0.04, 0.9), (3, 1, 3))],
    ],
)
def test_the_fewest_points_with_95_percent(first: int, likely: tuple[float, ...], place: tuple[int, int, int]) -> None:
    assert change_points._held(first, [5 - math.log(one) for one in likely]) == change_points._Place(*place)


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


@pytest.mark.parametrize(
    ("begin", "boundary", "end", "at"),
    [
        *[(0, 17, 60, 29), (0, 18, 60, 30), (0, 42, 60, 30), (0, 43, 60, 31)],
        *[(28, 30, 60, 30), (29, 30, 60, 31), (0, 30, 31, 29), (0, 30, 32, 30), (27, 30, 31, 29), (29, 30, 32, 30)],
    ],
)
def test_a_change_is_moved_by_up_to_twelve_points(begin: int, boundary: int, end: int, at: int) -> None:
    place = placer(shifted([0.0] * 60, 30, 1.0)).place(begin, boundary, end, (0.0, 1.0))
    assert place.at == at
    if end - begin < 10:
        assert place == change_points._Place(at, at, at)


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
    assert (gain, size) == pytest.approx((level - loss, float(line[1])), abs=1e-6)


def sloped(count: int, begin: int, end: int, size: float = 1.0) -> list[float]:
    return np.interp(range(count), [begin, end], [0, size]).tolist()


def fitted(values: Sequence[float], precision: float = 1e9, rho: float = 0.0) -> change_points.Fitted:
    return change_points.Fitted(values, [1.0] * len(values), [precision] * len(values), rho)


def stairs(begin: int, end: int, *places: int) -> change_points.LevelSteps:
    return change_points.LevelSteps(places, [number / len(places) for number in range(len(places) + 1)], begin, end)


@pytest.mark.parametrize(
    ("count", "begin", "end"), [(140, 0, 20), (140, 50, 110), (140, 20, 140), (147, 50, 147), (30, 2, 18)]
)
def test_the_best_slope_is_the_one_that_is_there(count: int, begin: int, end: int) -> None:
    own = change_points._best_slope(sloped(count, begin, end, 0.7), [1.0] * count)
    assert own is not None
    assert (own.begin, own.end, own.size) == pytest.approx((begin, end, 0.7))


@pytest.mark.parametrize(
    ("count", "begin", "end", "steps", "told"),
    [
        # A slope lasts sixteen points, of 30 to 1500 points.
        *[(30, 2, 16, (6, 12), False), (30, 2, 18, (6, 12), True), (70, 5, 20, (10, 15), False)],
        *[(29, 2, 20, (6, 12), False), (1500, 428, 866, (280, 1220), True), (1501, 428, 866, (280, 1220), False)],
    ],
)
def test_how_long_a_slope_is(count: int, begin: int, end: int, steps: tuple[int, ...], *, told: bool) -> None:
    assert bool(drift_instead(fitted(sloped(count, begin, end)), stairs(0, count, *steps))) == told


@pytest.mark.parametrize(
    ("begin", "end", "place"),
    [
        # From 190 to 810, in steps of 44.
        (0, 1000, (454, 552)),
        (448, 608, (448, 557)),
    ],
)
def test_a_slope_is_looked_for_300_points_beyond_the_changes(begin: int, end: int, place: tuple[int, int]) -> None:
    own = drift_instead(fitted(sloped(1000, 448, 552)), stairs(begin, end, 490, 510))
    assert own is not None
    assert (own.begin, own.end) == place


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
        own = drift_instead(fitted(values, share * numbers * math.log(140) / lead, rho), steps)
        assert own == (line if told else None)


# -- a stored history is told by the same numbers in every version

SLOPE = [0.0] * 60 + [0.01 * (index // 10) for index in range(140)] + [0.13] * 60
STAIRCASE = [a + b for a, b in zip(noisy(17, 260, 0.3), SLOPE, strict=True)]
TERRACES = shifted(shifted(shifted(noisy(5, 300), 70, -0.1), 150, 0.08), 230, 0.08)
LONG = [one * (3 if index < 300 else 1) for index, one in enumerate(noisy(9, 700, 0.2))]
Told = tuple[tuple[int, int, int], tuple[float, float, float, float]]
"""Place, earliest and latest; the level before, size, low end of its interval, and confidence."""
STORED: dict[str, tuple[list[float], list[Told], list[Drift], list[tuple[int, int]], float]] = {
    "public": (
        [math.log(value) for value in FIB_20["values"]],
        [
            ((97, 88, 103), (10.2416549, -0.107288415, -0.162306512, 0.999872097)),
            ((158, 157, 159), (10.1343665, -0.230509352, -0.273739614, 1.0)),
            ((191, 191, 191), (9.90385715, 0.112575809, 0.106762358, 1.0)),
        ],
        *([], [], 0.25),
    ),
    "staircase": (STAIRCASE, [], [Drift(54, 208, 0.141461498)], [], 0.3),
    "dependent": (
        shifted(shifted(noisy(3, 200, 0.6), 190, 0.07), 20, 0.3, 23),
        [((190, 190, 190), (-0.00435774494, 0.0635440481, 0.0298280062, 0.999772886))],
        *([], [], 0.55),
    ),
    "terraces": (
        shifted(TERRACES, 110, 0.4, 113),
        [
            ((70, 70, 70), (0.00167016825, -0.0999629289, -0.113673885, 1.0)),
            ((150, 150, 151), (-0.0982927606, 0.0776769004, 0.0644718041, 1.0)),
            ((230, 230, 232), (-0.0206158602, 0.0798667834, 0.0661423409, 1.0)),
        ],
        *([], [], 0.25),
    ),
    "down and up": (
        shifted(STAIRCASE, 0, 0.2, 25),
        [((25, 25, 25), (0.195437201, -0.183809877, -0.203162465, 1.0))],
        *([Drift(73, 195, 0.130766107)], [], 0.35),
    ),
    "up and down": (
        shifted(STAIRCASE, 235, -0.3),
        [((235, 235, 235), (0.125158231, -0.287145518, -0.306731207, 1.0))],
        *([Drift(64, 202, 0.136101696)], [], 0.35),
    ),
    "long": (
        shifted(shifted(shifted(LONG, 120, 0.1), 500, -0.02), 640, 0.5, 647),
        [
            ((118, 116, 120), (-0.00278769994, 0.10457328, 0.0831564971, 1.0)),
            ((500, 491, 510), (0.10178558, -0.0216245312, -0.0292261548, 0.999999985)),
        ],
        *([], [(640, 647)], 0.3),
    ),
}


@pytest.mark.parametrize(("values", "levels", "drifts", "outliers", "rho"), STORED.values(), ids=STORED)
def test_histories_are_told_alike(
    values: list[float], levels: list[Told], drifts: list[Drift], outliers: list[tuple[int, int]], rho: float
) -> None:
    told = changes(values, [0.004] * len(values))
    assert [(one.at, one.earliest, one.latest) for one in told.changes] == [place for place, _ in levels]
    for one, (_, numbers) in zip(told.changes, levels, strict=True):
        assert (one.before, one.size, one.low, one.confidence) == pytest.approx(numbers)
    assert [(one.begin, one.end) for one in told.drifts] == [(one.begin, one.end) for one in drifts]
    assert [one.size for one in told.drifts] == pytest.approx([one.size for one in drifts])
    assert list(told.outliers) == outliers
    assert told.rho == pytest.approx(rho)
