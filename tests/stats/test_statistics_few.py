"""The permutation test for few expensive runs, unpaired values, and the interim analyses."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perfflow.model.readings import SCHEDULES, Design
from perfflow.stats import paired_test
from perfflow.stats.paired_test import (
    Interval,
    blocks_of,
    interval_of_log_means,
    log_mean,
    paired_p,
    permutation_interval,
    permutation_p,
)
from tests.stats.test_statistics import ends, samples

TIMES = st.lists(st.floats(0.5, 2.0), min_size=5, max_size=5)
SIDE = st.lists(st.floats(min_value=1e-9, max_value=1e9), min_size=1, max_size=30)
ANY = -math.inf, math.inf
LOOKS, FEW, LAYOUTS = (SCHEDULES[design] for design in (Design.LOOKS, Design.FEW, Design.LAYOUTS))


def unpaired_interval(baseline: Sequence[float], candidate: Sequence[float], confidence: float) -> Interval:
    return interval_of_log_means(log_mean(baseline), log_mean(candidate), confidence)


def lognormal(rng: np.random.Generator, n: int, effect: float = 0.1) -> tuple[list[float], list[float]]:
    return rng.lognormal(0, 0.1, n).tolist(), rng.lognormal(effect, 0.1, n).tolist()


# -- the permutation test


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [3, 5, 6])
def test_permutation_p_is_scipys(seed: int, n: int) -> None:
    a, b = lognormal(np.random.default_rng(seed), n)
    oracle = stats.permutation_test(
        (np.log(a), np.log(b)), lambda x, y: abs(np.mean(x) - np.mean(y)), alternative="greater", n_resamples=10**6
    )
    assert permutation_p(a, b) == pytest.approx(float(oracle.pvalue), rel=1e-9)


def test_five_and_five_can_prove_a_change_at_one_percent_and_four_and_four_cannot() -> None:
    a, b = [1.0, 1.01, 1.02, 1.03, 1.04], [2.0, 2.01, 2.02, 2.03, 2.04]
    assert permutation_interval(a, b, 0.99).low > math.log(1.8)
    assert permutation_p(a, b) == pytest.approx(2 / 252)
    assert ends(permutation_interval(a[:4], b[:4], 0.99))[1:] == [*ANY]


@given(a=TIMES, b=TIMES)
def test_swapping_the_sides_negates_the_interval(a: list[float], b: list[float]) -> None:
    forward, backward = permutation_interval(a, b, 0.99), permutation_interval(b, a, 0.99)
    assert backward.estimate == pytest.approx(-forward.estimate, abs=1e-12)
    width = forward.high - forward.low
    assert (backward.low, backward.high) == pytest.approx((-forward.high, -forward.low), abs=0.01 * width + 1e-6)
    assert forward.low <= forward.estimate <= forward.high


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
        a, b = lognormal(rng, sum(blocks))
        assert permutation_p(a, b, 0.0, blocks) == pytest.approx(enumerated(a, b, blocks, 1e-12), rel=0.02, abs=0.01)


def test_blocks_without_rounding_and_without_a_difference() -> None:
    a, b = lognormal(np.random.default_rng(1), 5)
    assert permutation_p(a, b, 0.0, [5]) == permutation_p(a, b)
    assert permutation_interval(a, b, 0.99, [5]) == permutation_interval(a, b, 0.99)
    assert permutation_p([2.0] * 8, [2.0] * 8, 0.0, (5, 3)) == 1


def test_a_permutation_interval_ends_where_its_p_is_the_error() -> None:
    rng = np.random.default_rng(3)
    for blocks in ((), (5, 3)):
        a, b = lognormal(rng, 8, 0.2)
        found = permutation_interval(a, b, 0.99, blocks)
        assert found.estimate == pytest.approx(float(np.mean(np.log(b)) - np.mean(np.log(a))))
        for end, sign in ((found.low, -1), (found.high, 1)):
            reach = sign * abs(end - found.estimate)
            inside, outside = (permutation_p(a, b, end + step * reach, blocks) for step in (-0.01, 0.01))
            assert outside <= 0.01 < inside * 1.2


def test_intervals_of_runs_in_random_order_are_the_same_in_every_version() -> None:
    a, b = samples(8)
    for found, expected in (
        (permutation_interval(a, b, 0.99), [0.1298181005963, -0.08699780288908, 0.3165194864571]),
        (permutation_interval(a, b, 0.99, (5, 3)), [0.1298181005963, -0.09621436814892, 0.3222185963179]),
        (unpaired_interval(a, b[:5], 0.99), [0.1585500824212, -0.4921780639482, 0.8092782287905]),
    ):
        assert ends(found) == pytest.approx(expected, rel=1e-11)
    assert permutation_p(a, b, 0.0, (5, 3)) == pytest.approx(0.0928571428571429, rel=1e-12)


# -- unpaired values


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "m"), [(2, 2), (2, 9), (10, 10), (7, 60), (300, 200)])
def test_it_is_welchs_with_three_times_the_half_width(seed: int, n: int, m: int) -> None:
    draw = random.Random(f"{seed} {n} {m}")
    a = [draw.lognormvariate(-3, draw.choice((0.01, 0.3))) for _ in range(n)]
    b = [draw.lognormvariate(-3.1, draw.choice((0.02, 0.2))) for _ in range(m)]
    theirs = stats.ttest_ind(np.log(b), np.log(a), equal_var=False).confidence_interval(0.99)
    middle, half = (theirs.low + theirs.high) / 2, paired_test.SESSIONS * (theirs.high - theirs.low) / 2
    expected = [middle, middle - half, middle + half]
    assert ends(unpaired_interval(a, b, 0.99)) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@settings(deadline=None)
@given(SIDE, SIDE, st.floats(min_value=0.01, max_value=100))
def test_swapped_sides_mirror_it_and_a_factor_moves_it(a: list[float], b: list[float], factor: float) -> None:
    there, back = unpaired_interval(a, b, 0.99), unpaired_interval(b, a, 0.99)
    assert there.estimate == pytest.approx(-back.estimate, abs=1e-12)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), rel=1e-9, abs=1e-12)
    moved = unpaired_interval(a, [value * factor for value in b], 0.99)
    assert moved.estimate == pytest.approx(there.estimate + math.log(factor), abs=1e-9)


@pytest.mark.parametrize(
    ("n", "m", "spread", "known"),
    [
        # With one value on a side nothing is known.
        *[(1, 1, 0.1, False), (1, 3, 0.1, False), (2, 1, 0.1, False)],
        # Without any spread as many values are needed as a permutation needs. Of 2 + 2 equal values, 2 of 6 assignments
        # to the sides are as extreme, of 4 + 4 2 of 70, of 4 + 5 2 of 126, and of 5 + 5 2 of 252, less than 1%.
        *[(2, 2, 0.0, False), (4, 4, 0.0, False), (4, 5, 0.0, False), (5, 5, 0.0, True)],
    ],
)
def test_the_values_that_unpaired_sides_need(n: int, m: int, spread: float, *, known: bool) -> None:
    a, b = ([start + spread * number for number in range(count)] for start, count in ((1.0, n), (2.0, m)))
    found, old, new = unpaired_interval(a, b, 0.99), log_mean(a), log_mean(b)
    by_means = paired_test.interval_of_log_means(old, new, 0.99)
    expected = (pytest.approx(math.log(2)),) * 2 if known else ANY
    assert (found.low, found.high) == expected
    assert found.estimate == by_means.estimate == new.mean - old.mean
    if spread:
        assert (by_means.low, by_means.high) == ANY


# -- interim analyses


def test_the_limits_of_confirmations_and_the_sizes_of_blocks() -> None:
    assert paired_test.CONFIRMING[:5] == (6, 8, 11, 15, 20)
    limits = (paired_test.ENOUGH, paired_test.CONFIRMED, paired_test.UNLIKELY, paired_test.MANY)
    assert limits == (11, 0.05, 0.2, 12)
    assert (paired_test.FEW, paired_test.FEW_MORE) == (5, 3)


def test_between_two_looks_the_next_one_counts_and_after_the_last_the_last() -> None:
    looks = ((11, 0.0059), (15, 0.0015), (20, 0.001), (64, 0.0016))
    expected = {1: 59, 11: 59, 12: 15, 15: 15, 16: 10, 64: 16, 65: 16, 9999: 16}
    found = {pairs: 10_000 * (1 - paired_test.look_confidence(pairs, looks)) for pairs in expected}
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("schedule", [LOOKS, FEW, LAYOUTS], ids=["looks", "few", "layouts"])
def test_the_looks_spend_one_percent(schedule: Sequence[tuple[int, float]]) -> None:
    assert sum(alpha for _, alpha in schedule) == pytest.approx(0.01)
    assert [runs for runs, _ in schedule] == sorted({runs for runs, _ in schedule})
    # A share that the number of pairs cannot reach would be wasted.
    assert schedule is FEW or all(2.0 ** (1 - pairs) <= alpha for pairs, alpha in schedule)


def test_the_fewest_runs_of_each_look_can_prove_a_change() -> None:
    for runs, alpha in FEW[:4]:
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
@pytest.mark.parametrize("runs", [5, 8, 14])
def test_false_alarms_of_blocks_are_at_most_nominal(runs: int, tick: float) -> None:
    rng, trials = random.Random(runs), 1000
    found = [permutation_p(*blocks_of_noise(rng, runs, tick), 0.0, blocks_of(runs)) for _ in range(trials)]
    for alpha in (0.01, 0.05, 0.2):
        assert sum(p <= alpha for p in found) <= stats.binom.ppf(0.999, trials, alpha)
    assert sum(p <= 0.2 for p in found) >= 0.12 * trials


def test_the_looks_of_few_runs_raise_no_more_alarms_than_they_may_spend() -> None:
    rng, trials = random.Random(5), 400
    looks = [(runs, alpha) for runs, alpha in FEW if runs <= 35]
    alarms = 0
    for _ in range(trials):
        a, b = blocks_of_noise(rng, 35, 0.0)
        alarms += any(permutation_p(a[:runs], b[:runs], 0.0, blocks_of(runs)) <= alpha for runs, alpha in looks)
    assert stats.binomtest(alarms, trials, 0.01, alternative="greater").pvalue > 0.001


def test_looking_again_and_again_raises_no_more_alarms_than_it_may_spend() -> None:
    """Identical programs under a random walk with Pareto bursts, pairs in coin-flip order, judged at every look."""
    rng, trials = random.Random(11), 150
    looks = [(pairs, alpha) for pairs, alpha in LOOKS if pairs <= 360]
    alarms = 0
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
