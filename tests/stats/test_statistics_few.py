"""The permutation test for few expensive runs, and the interim analyses."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfflow.model.readings import SCHEDULES, Design
from perfflow.stats.paired_test import Looks, blocks_of, look_confidence, paired_p, permutation_interval, permutation_p

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


def enumerated(baseline: list[float], candidate: list[float], blocks: list[int], slack: float) -> float:
    """Return the share of orders within the blocks whose sides differ by as much minus ``slack``, by enumeration."""
    logs = [list(map(math.log, side)) for side in (baseline, candidate)]
    differences = []
    for size, end in zip(blocks, itertools.accumulate(blocks), strict=True):
        both = logs[0][end - size : end] + logs[1][end - size : end]
        differences.append([2 * sum(chosen) - sum(both) for chosen in itertools.combinations(both, size)])
    observed = abs(sum(logs[0]) - sum(logs[1]))
    found = [abs(sum(parts)) >= observed - slack for parts in itertools.product(*differences)]
    return sum(found) / len(found)


@given(data=st.data(), blocks=st.sampled_from([[2, 2], [3, 2], [2, 2, 2], [1, 1, 1, 1, 1], [4, 3], [3, 3, 1]]))
def test_orders_within_blocks_are_counted_as_enumeration_does(data: st.DataObject, blocks: list[int]) -> None:
    times = st.lists(st.floats(0.5, 2.0), min_size=sum(blocks), max_size=sum(blocks))
    baseline, candidate = data.draw(times), data.draw(times)
    # Rounding to whole steps changes each sum by at most half a step for each run.
    slack = 2 * sum(blocks) * 2 * sum(blocks) * math.log(4) / 4096
    p = permutation_p(baseline, candidate, 0.0, blocks)
    assert enumerated(baseline, candidate, blocks, -slack) <= p + 1e-9
    assert p <= enumerated(baseline, candidate, blocks, slack) + 1e-9


@pytest.mark.parametrize("blocks", [[2, 2], [3, 2], [2, 2, 2], [5, 3]])
def test_orders_within_blocks_of_plain_noise_are_counted_exactly(blocks: list[int]) -> None:
    rng = np.random.default_rng(sum(blocks))
    for _ in range(5):
        a, b = (rng.lognormal(shift, 0.1, sum(blocks)).tolist() for shift in (0.0, 0.1))
        assert permutation_p(a, b, 0.0, blocks) == pytest.approx(enumerated(a, b, blocks, 1e-12), rel=0.02, abs=0.01)


def test_one_block_is_counted_without_rounding() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.lognormal(0, 0.1, 5).tolist(), rng.lognormal(0.1, 0.1, 5).tolist()
    assert permutation_p(a, b, 0.0, [5]) == permutation_p(a, b)
    assert permutation_interval(a, b, 0.99, [5]) == permutation_interval(a, b, 0.99)


def test_the_fewest_runs_of_each_look_can_prove_a_change() -> None:
    for runs, alpha in SCHEDULES[Design.FEW][:4]:
        blocks = blocks_of(runs)
        assert sum(blocks) == runs
        a, b = [1.0 + k / 1000 for k in range(runs)], [2.0 + k / 1000 for k in range(runs)]
        assert permutation_p(a, b, 0.0, blocks) == 2 / math.prod(math.comb(2 * size, size) for size in blocks)
        assert permutation_interval(a, b, 1 - alpha, blocks).low > math.log(1.5)


def blocks_of_noise(rng: random.Random, runs: int, tick: float) -> tuple[list[float], list[float]]:
    """Return runs of identical programs on a machine with drift and bursts, each block in random order."""
    level = 0.0
    a: list[float] = []
    b: list[float] = []
    for size in blocks_of(runs):
        taken = []
        for _ in range(2 * size):
            level += rng.gauss(0, 0.05)
            value = math.exp(level + 0.05 * rng.paretovariate(1.2))
            taken.append(max(1, round(value / tick)) * tick if tick else value)
        rng.shuffle(taken)
        a += taken[:size]
        b += taken[size:]
    return a, b


@pytest.mark.parametrize("tick", [0.0, 0.1])
@pytest.mark.parametrize("runs", [8, 14])
def test_false_alarms_of_blocks_are_at_most_nominal(runs: int, tick: float) -> None:
    rng, trials = random.Random(runs), 1000
    found = [permutation_p(*blocks_of_noise(rng, runs, tick), 0.0, blocks_of(runs)) for _ in range(trials)]
    for alpha in (0.01, 0.05, 0.2):
        assert sum(p <= alpha for p in found) <= stats.binom.ppf(0.999, trials, alpha)
    assert sum(p <= 0.2 for p in found) >= 0.12 * trials


def test_the_looks_of_few_runs_raise_no_more_alarms_than_they_may_spend() -> None:
    rng, trials = random.Random(5), 400
    alarms = 0
    for _ in range(trials):
        a, b = blocks_of_noise(rng, 35, 0.0)
        alarms += any(
            permutation_p(a[:runs], b[:runs], 0.0, blocks_of(runs)) <= alpha
            for runs, alpha in SCHEDULES[Design.FEW]
            if runs <= 35
        )
    assert stats.binomtest(alarms, trials, 0.01, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("schedule", [SCHEDULES[design] for design in (Design.LOOKS, Design.FEW)])
def test_the_looks_spend_one_percent(schedule: Looks) -> None:
    assert sum(alpha for _, alpha in schedule) == pytest.approx(0.01)
    assert [runs for runs, _ in schedule] == sorted({runs for runs, _ in schedule})
    last, least = schedule[-1]
    assert look_confidence(1, schedule) == 1 - schedule[0][1]
    assert look_confidence(last + 1000, schedule) == 1 - least


def test_between_two_looks_the_next_one_is_judged() -> None:
    assert look_confidence(12, SCHEDULES[Design.LOOKS]) == look_confidence(15, SCHEDULES[Design.LOOKS])
    assert look_confidence(65, SCHEDULES[Design.LOOKS]) == look_confidence(90, SCHEDULES[Design.LOOKS])


def test_looking_again_and_again_raises_no_more_alarms_than_it_may_spend() -> None:
    """Identical programs under a random walk with Pareto bursts, pairs in coin-flip order, judged at every look."""
    rng = random.Random(11)
    looks = [(pairs, alpha) for pairs, alpha in SCHEDULES[Design.LOOKS] if pairs <= 360]
    alarms = 0
    trials = 150
    for _ in range(trials):
        level = 0.0
        a, b = [], []
        for _ in range(looks[-1][0]):
            pair = []
            for _ in range(2):
                level += rng.gauss(0, 0.02)
                pair.append(math.exp(level + 0.05 * rng.paretovariate(1.5)))
            rng.shuffle(pair)
            a.append(pair[0])
            b.append(pair[1])
        alarms += any(paired_p(a[:pairs], b[:pairs]) <= alpha for pairs, alpha in looks)
    assert stats.binomtest(alarms, trials, 0.01, alternative="greater").pvalue > 0.001
