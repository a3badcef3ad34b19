"""The bound of a proportion compared with scipy, and the spread of pairs compared with that of the simulation."""

from __future__ import annotations

import math
import random

import pytest
from scipy.stats import beta, binomtest

from perfflow.stats.paired_test import clopper_pearson_upper, pair_spread


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(("found", "trials"), [(0, 1), (0, 20), (1, 20), (3, 45), (0, 315), (7, 1000), (19, 20)])
def test_the_upper_bound_is_scipys(found: int, trials: int, confidence: float) -> None:
    bound = clopper_pearson_upper(found, trials, confidence)
    assert bound == pytest.approx(float(beta.ppf(confidence, found + 1, trials - found)), rel=1e-6)
    exact = binomtest(found, trials, alternative="less").proportion_ci(confidence, method="exact")
    assert bound == pytest.approx(float(exact.high), rel=1e-6)


def test_where_all_were_found_nothing_is_excluded() -> None:
    assert clopper_pearson_upper(5, 5, 0.95) == 1.0


def test_no_alarm_in_n_trials_is_the_root_of_the_level() -> None:
    assert clopper_pearson_upper(0, 20, 0.95) == pytest.approx(1 - 0.05 ** (1 / 20), rel=1e-6)


def test_the_spread_is_that_of_the_ratio_whatever_the_change_and_its_outliers() -> None:
    chance = random.Random(3)
    baseline = [math.exp(chance.gauss(0, 0.01)) for _ in range(4000)]
    candidate = [1.3 * math.exp(chance.gauss(0, 0.01)) * (5 if chance.random() < 0.02 else 1) for _ in baseline]
    assert pair_spread(baseline, candidate) == pytest.approx(0.01 * math.sqrt(2), rel=0.1)


def test_equal_pairs_have_no_spread() -> None:
    assert pair_spread([2.0, 3.0, 4.0], [2.0, 3.0, 4.0]) == 0.0
