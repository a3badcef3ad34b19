"""The permutation test of few expensive runs, and the looks of the adaptive plan."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perfflow.statistics import LOOKS, look_confidence, paired_interval, permutation_interval, permutation_p

TIMES = st.lists(st.floats(0.5, 2.0), min_size=5, max_size=5)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [3, 5, 6])
def test_permutation_p_is_scipys(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.lognormal(0, 0.1, n), rng.lognormal(0.1, 0.1, n)
    oracle = stats.permutation_test(
        (np.log(a), np.log(b)), lambda x, y: abs(np.mean(x) - np.mean(y)), alternative="greater", n_resamples=10**6
    )
    assert permutation_p(a.tolist(), b.tolist()) == pytest.approx(float(oracle.pvalue), rel=1e-9)


def test_five_and_five_can_prove_a_change_at_one_percent_and_four_and_four_cannot() -> None:
    five = permutation_interval([1.0, 1.01, 1.02, 1.03, 1.04], [2.0, 2.01, 2.02, 2.03, 2.04], 0.99)
    assert five.low > math.log(1.8)
    assert permutation_p([1.0, 1.01, 1.02, 1.03, 1.04], [2.0, 2.01, 2.02, 2.03, 2.04]) == pytest.approx(2 / 252)
    four = permutation_interval([1.0, 1.01, 1.02, 1.03], [2.0, 2.01, 2.02, 2.03], 0.99)
    assert (four.low, four.high) == (-math.inf, math.inf)


@given(a=TIMES, b=TIMES)
@settings(max_examples=60, deadline=None)
def test_swapping_the_sides_negates_the_interval(a: list[float], b: list[float]) -> None:
    forward, backward = permutation_interval(a, b, 0.99), permutation_interval(b, a, 0.99)
    assert backward.estimate == pytest.approx(-forward.estimate, abs=1e-12)
    width = forward.high - forward.low
    assert (backward.low, backward.high) == pytest.approx((-forward.high, -forward.low), abs=0.01 * width + 1e-6)
    assert forward.low <= forward.estimate <= forward.high


def test_false_alarms_of_the_permutation_test_are_at_most_nominal() -> None:
    rng = random.Random(3)
    alarms = 0
    trials = 2000
    for _ in range(trials):
        drift = [math.exp(0.2 * k * rng.random() + rng.paretovariate(1.2) * 0.05) for k in range(10)]
        chosen = set(rng.sample(range(10), 5))
        a = [drift[k] for k in range(10) if k in chosen]
        b = [drift[k] for k in range(10) if k not in chosen]
        alarms += permutation_p(a, b) <= 0.01
    assert stats.binomtest(alarms, trials, 0.01, alternative="greater").pvalue > 0.001


def test_the_looks_spend_one_percent() -> None:
    assert sum(1 - look_confidence(look) for look in LOOKS) == pytest.approx(0.01)
    assert look_confidence(1) == look_confidence(11)
    assert look_confidence(12) == look_confidence(15)
    assert look_confidence(1000) == look_confidence(64)


def test_looking_six_times_raises_no_more_alarms_than_it_may_spend() -> None:
    """Identical programs under a random walk with Pareto bursts, pairs in coin-flip order, judged at every look."""
    rng = random.Random(11)
    alarms = 0
    trials = 150
    for _ in range(trials):
        level = 0.0
        a, b = [], []
        for _ in range(LOOKS[-1]):
            pair = []
            for _ in range(2):
                level += rng.gauss(0, 0.02)
                pair.append(math.exp(level + 0.05 * rng.paretovariate(1.5)))
            rng.shuffle(pair)
            a.append(pair[0])
            b.append(pair[1])
        for look in LOOKS:
            interval = paired_interval(a[:look], b[:look], look_confidence(look))
            if interval.low > 0 or interval.high < 0:
                alarms += 1
                break
    assert stats.binomtest(alarms, trials, 0.01, alternative="greater").pvalue > 0.001
