"""Stored samples have the same intervals in every version, in the digits that are shown and in all that decide."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

import pytest

from perfflow.stats import paired_test
from perfflow.stats.paired_test import (
    Interval,
    Pairs,
    clopper_pearson_upper,
    paired_interval,
    permutation_interval,
    permutation_p,
    sign_flip_p,
    student_t_quantile,
    unpaired_interval,
)


def normal(seed: int, count: int) -> list[float]:
    luck = random.Random(seed)
    return [NormalDist().inv_cdf(luck.random()) for _ in range(count)]


def samples(count: int, effect: float = 0.1, spread: float = 0.1) -> tuple[list[float], list[float]]:
    baseline, candidate = ([math.exp(spread * one) for one in normal(count + side, count)] for side in (0, 1000))
    return baseline, [value * math.exp(effect) for value in candidate]


def ends(found: Interval) -> list[float]:
    return [found.estimate, found.low, found.high]


def exactly(*expected: float) -> object:
    return pytest.approx(list(expected), rel=1e-11)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (8, [0.1412325690483, -0.1715444349641, 0.3812478983785]),
        (10, [0.06232365013733, -0.02631460193032, 0.2416018175999]),
        (14, [0.09998477968193, -0.03663164631585, 0.2316384724807]),
        (20, [0.05307532117249, -0.02997223400975, 0.1113400566392]),
        (64, [0.1196684571811, 0.06902779968911, 0.1727276879153]),
        (120, [0.07898207079877, 0.04750895594117, 0.1099710757828]),
        (140, [0.0804390380327, 0.04983144062932, 0.1125443776449]),
        (300, [0.1159613362432, 0.09340795771714, 0.1383428670559]),
    ],
)
def test_intervals_of_pairs(count: int, expected: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds depend slightly on the search algorithm; this test keeps even these digits stable."""
    for module in (paired_test, paired_test):
        monkeypatch.setattr(module, "COUNTED", 128)
    assert ends(paired_interval(*samples(count), 0.99)) == exactly(*expected)


def test_intervals_of_pairs_of_many_kinds() -> None:
    a, b = samples(200)
    assert ends(paired_interval(a, b, 0.99)) == exactly(0.1128816999264, 0.08488771663526, 0.1402624726517)
    assert ends(paired_interval([1.0] * 9, [1.25] * 9, 0.99)) == exactly(
        0.2231435513142, 0.22314348924, 0.2231436133885
    )
    assert ends(paired_interval([1.0, 2.0] * 8, [2.0, 1.0] * 8, 0.95)) == exactly(
        0.0, -0.5093918510905, 0.5093918510905
    )


def test_intervals_of_runs_in_random_order() -> None:
    a, b = samples(8)
    assert ends(permutation_interval(a, b, 0.99)) == exactly(0.1298181005963, -0.08699780288908, 0.3165194864571)
    assert ends(permutation_interval(a, b, 0.99, (5, 3))) == exactly(
        0.1298181005963, -0.09621436814892, 0.3222185963179
    )
    assert permutation_p(a, b, 0.0, (5, 3)) == pytest.approx(0.0928571428571429, rel=1e-12)
    assert ends(unpaired_interval(a, b[:5], 0.99)) == exactly(0.1585500824212, -0.4921780639482, 0.8092782287905)


def test_quantiles_that_are_searched_for() -> None:
    assert [student_t_quantile(0.6, freedom) for freedom in (1, 2.5, 30)] == exactly(
        0.324919696257, 0.2814595127711, 0.2556053649751
    )
    assert [clopper_pearson_upper(found, 10, 0.95) for found in (0, 3, 9)] == exactly(
        0.2588655508935, 0.606624216106, 0.9948838031087
    )


def test_an_estimate_stays_where_it_has_settled() -> None:
    assert Pairs.of(*samples(12, spread=1.0)).estimate() == pytest.approx(-0.2162869475749545, rel=1e-13)


@pytest.mark.parametrize(
    ("count", "p"),
    [
        (6, 0.4375),
        (14, 0.0401611328125),
        (15, 0.08245849609375),
        (100, 0.00267918122939747),
        (128, 0.0781398307733004),
        (129, 0.411935990760306),
        (200, 0.353676512179483),
        (400, 7.35445062218787e-05),
        (900, 0.922635763440059),
        (1100, 0.695642316229089),
        (1001, 0.0388710059991632),
        (1500, 0.0723787476633106),
    ],
)
def test_p_of_sums_by_each_way_of_counting(count: int, p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_test, "COUNTED", 1000)
    values = [value + (2 if count != 1100 else 0.5) / math.sqrt(count) for value in normal(count, count)]
    assert sign_flip_p(values) == pytest.approx(p, rel=1e-12)


def test_the_tail_of_many_coins_and_what_it_may_lack() -> None:
    found = paired_test._windowed_tail([1 + number % 7 for number in range(300)], 640)
    assert found == pytest.approx((0.144507098582562, 9.16323017463583e-10), rel=1e-13)


def test_the_saddlepoint_at_its_ends_is_exact() -> None:
    assert paired_test._saddlepoint_tail([1.0] * 200) == 2.0**-200
    normal = paired_test._NORMAL.cdf(-1e-6 / math.sqrt(200))
    assert paired_test._saddlepoint_tail([1.0, -1.0] * 100 + [1e-6]) == pytest.approx(normal, rel=1e-15)
    assert (paired_test._sech(1e4), paired_test._sech(-1e4)) == (0.0, 0.0)
