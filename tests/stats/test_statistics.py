from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from perfflow.stats import paired_test
from perfflow.stats.paired_test import (
    COUNTED,
    ENUMERATED,
    Interval,
    Pairs,
    mean_interval,
    paired_interval,
    paired_p,
    quantile,
    quantile_interval,
    samples_for_quantile,
    sign_flip_p,
    student_t_quantile,
)

# No deadline: durations are not meaningful on a shared machine.
properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

Floats = npt.NDArray[np.float64]

NEAR = st.floats(min_value=0.5, max_value=2.0)
PAIRS = st.lists(st.tuples(NEAR, NEAR), min_size=1, max_size=ENUMERATED)


def sides(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def all_sums(sizes: Sequence[float]) -> Floats:
    """Return the sums of all 2^n assignments of signs."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums + size, sums - size])
    return sums


def enumerated_p(values: Sequence[float]) -> float:
    """Return the two-sided p by definition: twice the share of assignments at least as extreme on the observed side."""
    sums = all_sums(values)
    observed = abs(math.fsum(values))
    tail = np.mean(sums >= observed - 1e-12 * math.fsum(map(abs, values)))
    return min(1.0, 2 * float(tail))


# ---- the sign-flip test compared with other computations ----


@pytest.mark.parametrize("n", range(2, 14))
def test_sign_flip_p_agrees_with_scipys_exact_permutation_test(n: int) -> None:
    rng = np.random.default_rng(n)
    for shift in (0.0, 0.4, 3.0):
        values = rng.normal(shift, 1.0, n)
        oracle = stats.permutation_test(
            (values, np.zeros(n)),
            lambda x, y, axis: np.sum(x - y, axis=axis),
            permutation_type="samples",
            n_resamples=2**n,
            vectorized=True,
        )
        assert sign_flip_p(values.tolist()) == pytest.approx(float(oracle.pvalue), rel=1e-12)


@properties
@given(values=st.lists(st.integers(min_value=-3, max_value=3), max_size=9))
@example(values=[0, 0])
@example(values=[1, -1])
def test_sign_flip_p_of_ties_and_zeros_is_counted_exactly(values: list[int]) -> None:
    total = abs(sum(values))
    signs = list(itertools.product((-1, 1), repeat=len(values)))
    extreme = sum(sum(s * v for s, v in zip(row, values, strict=True)) >= total for row in signs)
    assert sign_flip_p([float(v) for v in values]) == min(1.0, 2 * extreme / len(signs))


@pytest.mark.parametrize("n", range(2, 11))
def test_paired_p_is_the_enumeration_of_the_documented_weights(n: int) -> None:
    rng = np.random.default_rng(100 + n)
    a = rng.pareto(1.2, n) + 1.0
    b = (rng.pareto(1.2, n) + 1.0) * 1.3
    slower = np.log(np.maximum(a, b) / min(a.min(), b.min()))
    weights = (slower + max(0.005, float(np.quantile(slower, 0.25)))) ** -2.0
    scores = weights * np.log(b / a)
    observed = abs(float(scores.sum()))
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    p = min(1.0, 2 * float(np.mean(signs @ np.abs(scores) >= observed * (1 - 1e-12))))
    assert paired_p(a.tolist(), b.tolist()) == pytest.approx(p, rel=1e-9)
    assert Pairs.of(a.tolist(), b.tolist()).weights(0.0) == pytest.approx(weights.tolist(), rel=1e-9)


def test_a_pair_weighs_less_the_further_its_slower_run_is_from_the_best() -> None:
    weights = Pairs.of([1.0, 1.0, 3.0, 1.0], [1.0, 1.5, 1.0, 9.0]).weights(0.0)
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights)) == 4


@pytest.mark.parametrize("n", range(15, 21))
def test_equal_scores_of_many_pairs_are_counted_exactly(n: int) -> None:
    for minus in range(n):
        values = [-0.3] * minus + [0.3] * (n - minus)
        assert sign_flip_p(values) == pytest.approx(enumerated_p(values), rel=1e-12)


TIES: dict[str, list[float]] = {
    "equal": [1.0] * 15,
    "ticks": [1.0] * 8 + [2.0] * 5 + [3.0] * 2,
    "one far above": [1.0] + [1e-3] * 14,
    "spread": [1.3**k for k in range(15)],
}


@pytest.mark.parametrize("sizes", TIES.values(), ids=TIES)
def test_p_is_below_any_level_no_more_often_than_that_level(sizes: list[float]) -> None:
    # All assignments of signs to 15 pairs, so this is the exact size of the test. Times in whole clock ticks have ties,
    # for which the p of the saddlepoint approximation is too small by a factor of up to 3.
    assert len(sizes) > ENUMERATED
    signs = itertools.product((1.0, -1.0), repeat=len(sizes) - 1)
    found = np.sort([sign_flip_p([s * v for s, v in zip((1.0, *row), sizes, strict=True)]) for row in signs])
    share_at_most = np.searchsorted(found, found * (1 + 1e-9), side="right") / len(found)
    assert np.all(share_at_most <= found * (1 + 1e-9))
    assert found[0] == 2.0 ** (1 - len(sizes))


SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(0.4, 1.0, n),
    "exponential": lambda rng, n: rng.exponential(1.0, n) * rng.choice([1.0, 1.0, -1.0], n),
    "pareto": lambda rng, n: (rng.pareto(1.2, n) + 0.1) * rng.choice([1.0, 1.0, -1.0], n),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", range(15, 21))
def test_counting_rounded_scores_stays_near_the_full_enumeration(n: int, shape: str) -> None:
    rng = np.random.default_rng(300 + n)
    for _ in range(4):
        values = SHAPES[shape](rng, n).tolist()
        p, oracle = sign_flip_p(values), enumerated_p(values)
        assert p == pytest.approx(oracle, rel=0.05, abs=2.0 ** (2 - n))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", range(15, 21))
def test_the_saddlepoint_stays_within_a_factor_of_the_full_enumeration(n: int, shape: str) -> None:
    rng = np.random.default_rng(400 + n)
    sizes = np.abs(SHAPES[shape](rng, n))
    sizes /= sizes.max()
    sums = np.sort(all_sums(sizes.tolist()))
    for tail in (0.4, 0.1, 0.01, 0.002):
        target = sums[int((1 - tail) * len(sums))]
        # Flip signs greedily, so that the sum is close to the wanted point of the tail.
        scores, rest = [], float(target)
        for size in sorted(sizes.tolist(), reverse=True):
            sign = 1.0 if rest > 0 else -1.0
            scores.append(sign * size)
            rest -= sign * size
        exact = enumerated_p(scores) / 2
        ratio = paired_test._saddlepoint_tail(scores) / exact
        assert 1 / 1.9 <= ratio <= 1.9, (tail, exact)


FEWER = 128


@pytest.fixture
def fewer_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the saddlepoint approximation begin where the exact tail is still known."""
    monkeypatch.setattr(paired_test, "COUNTED", FEWER)


@pytest.mark.parametrize("agreeing", [66, 75, 80, 90, 110])
def test_the_saddlepoint_takes_over_smoothly(agreeing: int, fewer_counted: None) -> None:
    # With equal scores the tail is binomial, and the saddlepoint approximation is worst because of the ties.
    values = [1.0] * agreeing + [-1.0] * (FEWER - agreeing)
    exact = 2 * float(stats.binom.sf(agreeing - 1, FEWER, 0.5))
    assert sign_flip_p(values) == pytest.approx(min(1.0, exact), rel=1e-9)
    after = sign_flip_p([*values, 1.0])
    assert 0.35 <= after / (2 * float(stats.binom.sf(agreeing, FEWER + 1, 0.5))) <= 1.01


def test_the_saddlepoint_at_its_ends(fewer_counted: None) -> None:
    many = FEWER + 20
    assert sign_flip_p([1.0] * many) == pytest.approx(2.0 ** (1 - many))
    assert sign_flip_p([1.0, -1.0] * (many // 2)) == pytest.approx(1.0)
    balanced = [1.0, -1.0] * (many // 2)
    # From the centre outwards, p decreases from 1 without a jump.
    previous = 1.0
    for exponent in np.linspace(-9.0, -0.5, 80):
        p = sign_flip_p([*balanced, float(10**exponent)])
        assert previous - 0.02 <= p <= previous + 0.002
        previous = p


def test_one_score_far_above_all_others_does_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    # The tail is 0.5 for any signs of the small scores, which affect only its last bit.
    small = [1e-6 * (1 + k / 100) for k in range(FEWER + 10)]
    assert sign_flip_p([1.0, *small[: FEWER - 10]]) <= 1.0
    for counted in (FEWER, COUNTED):
        monkeypatch.setattr(paired_test, "COUNTED", counted)
        assert 0.0 < sign_flip_p([1.0, *small]) <= 1.0


@pytest.mark.parametrize("n", [129, 500, 1100, COUNTED])
@pytest.mark.parametrize("z", [0.0, 1.0, 3.0, 3.9, 4.5])
def test_ties_of_any_number_of_pairs_are_counted(n: int, z: float) -> None:
    agreeing = min(n, round(n / 2 + z * math.sqrt(n) / 2))
    values = [1.0] * agreeing + [-1.0] * (n - agreeing)
    exact = min(1.0, 2 * float(stats.binom.sf(agreeing - 1, n, 0.5)))
    assert sign_flip_p(values) == pytest.approx(exact, rel=0.003, abs=1e-7)


@pytest.mark.parametrize("n", [200, 700])
@pytest.mark.parametrize("shape", SHAPES)
def test_counting_in_digits_of_a_fixed_length_is_counting(n: int, shape: str) -> None:
    rng = np.random.default_rng(n)
    sizes = sorted(np.rint(20 * np.abs(SHAPES[shape](rng, n))).astype(int).clip(0, 400).tolist())
    ways = np.array([1.0])
    for size in sizes:
        ways = (np.append(ways, np.zeros(size)) + np.append(np.zeros(size), ways)) / 2
    tails = np.cumsum(ways[::-1])[::-1]
    for share in (0.5, 0.05, 1e-3, 1e-5):
        first = int(np.argmax(tails <= share))
        found, error = paired_test._windowed_tail(sizes, first)
        assert 0 <= error < 1e-7
        assert tails[first] * (1 - 1e-9) <= found <= tails[first] + 2 * error


@pytest.mark.parametrize("n", [1, ENUMERATED, ENUMERATED + 1, 128, 129, 900])
def test_all_scores_on_one_side_give_the_smallest_possible_p(n: int) -> None:
    assert sign_flip_p([1.0 + k / n for k in range(n)]) == pytest.approx(2.0 ** (1 - n), rel=1e-12)


@pytest.mark.parametrize("n", [6, 20, 200])
def test_scores_of_any_magnitude(n: int) -> None:
    values = np.random.default_rng(n).normal(0.3, 1.0, n)
    p = sign_flip_p(values.tolist())
    for scale in (2.0**-1000, 2.0**1000):
        assert sign_flip_p((values * scale).tolist()) == p
    assert sign_flip_p((-values).tolist()) == p
    assert sign_flip_p([1.7e308] * n) == pytest.approx(2.0 ** (1 - n), rel=1e-12)


def test_no_values_or_only_zeros_prove_nothing() -> None:
    assert sign_flip_p([]) == sign_flip_p([0.0]) == sign_flip_p([0.0] * 50) == 1.0


# ---- under realistic noise of machines ----


def noisy_runs(rng: np.random.Generator, n: int) -> Floats:
    """Return 2n successive runs: a random walk of the machine's speed, times bursts of infinite variance."""
    drift = np.exp(np.cumsum(rng.normal(0.0, 0.05, 2 * n)))
    return drift * (1 + 0.02 * rng.pareto(1.2, 2 * n))


def noisy_pairs(rng: np.random.Generator, n: int, effect: float = 0.0, tick: float = 0.0) -> tuple[Floats, Floats]:
    """Return pairs of such runs in coin-flip order; ``tick`` rounds times to whole clock ticks, at least one."""
    runs = noisy_runs(rng, n).reshape(n, 2)
    coin = rng.integers(0, 2, n)
    baseline = runs[np.arange(n), coin]
    candidate = runs[np.arange(n), 1 - coin] * math.exp(effect)
    if tick:
        return np.maximum(1, np.rint(baseline / tick)) * tick, np.maximum(1, np.rint(candidate / tick)) * tick
    return baseline, candidate


@pytest.mark.parametrize(("n", "trials"), [(10, 3000), (14, 3000), (20, 3000), (28, 2000), (64, 500), (140, 200)])
@pytest.mark.parametrize("tick", [0.0, 0.3])
def test_false_alarms_are_no_more_than_nominal(n: int, trials: int, tick: float) -> None:
    rng = np.random.default_rng(1000 + n)
    found = []
    for _ in range(trials):
        a, b = noisy_pairs(rng, n, tick=tick)
        found.append(paired_p(a.tolist(), b.tolist()))
    for alpha in (0.002, 0.01, 0.05, 0.2):
        alarms = sum(p <= alpha for p in found)
        assert alarms <= stats.binom.ppf(0.999, trials, alpha), (alpha, alarms)
    # A test that never rejects would pass the previous check.
    assert tick or sum(p <= 0.2 for p in found) >= 0.12 * trials


def test_the_same_noise_raises_false_alarms_without_the_coin() -> None:
    # Without random order, a machine that slows down while it warms up causes false regressions.
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(200):
        runs = (noisy_runs(rng, 14) * np.exp(0.05 * np.arange(28))).reshape(14, 2)
        alarms += paired_p(runs[:, 0].tolist(), runs[:, 1].tolist()) <= 0.05
    assert alarms > 40


def test_a_real_change_is_found_under_the_same_noise() -> None:
    rng = np.random.default_rng(11)
    found = 0
    for _ in range(200):
        a, b = noisy_pairs(rng, 14, effect=math.log(0.6))
        found += paired_p(a.tolist(), b.tolist()) <= 0.01
    assert found >= 180


@pytest.mark.parametrize(("n", "trials"), [(10, 400), (14, 400), (20, 300), (28, 200), (64, 60)])
def test_the_interval_covers_the_true_effect_as_often_as_it_says(n: int, trials: int) -> None:
    rng = np.random.default_rng(2000 + n)
    missed = {0.99: 0, 0.95: 0}
    for _ in range(trials):
        effect = float(rng.uniform(-0.7, 0.7))
        a, b = noisy_pairs(rng, n, effect)
        intervals = {c: paired_interval(a.tolist(), b.tolist(), c) for c in missed}
        for confidence, interval in intervals.items():
            missed[confidence] += not interval.low <= effect <= interval.high
            assert -math.inf < interval.low <= interval.estimate <= interval.high < math.inf
        assert intervals[0.99].low <= intervals[0.95].low <= intervals[0.95].high <= intervals[0.99].high
    for confidence, misses in missed.items():
        assert misses <= stats.binom.ppf(0.999, trials, 1 - confidence), confidence
    # An infinite interval would pass the previous check.
    assert missed[0.95] >= stats.binom.ppf(0.001, trials, 0.02)
    assert intervals[0.95].high - intervals[0.95].low < 1.0


def test_the_interval_narrows_with_more_pairs() -> None:
    rng = np.random.default_rng(5)
    widths = []
    for n in (10, 28, 64):
        intervals = [paired_interval(a.tolist(), b.tolist(), 0.99) for a, b in (noisy_pairs(rng, n) for _ in range(15))]
        widths.append(float(np.median([interval.high - interval.low for interval in intervals])))
    assert widths == sorted(widths, reverse=True)
    assert widths[2] < 0.6 * widths[0]


def test_the_ends_of_the_interval_are_where_the_test_starts_to_reject() -> None:
    rng = np.random.default_rng(6)
    for n in (10, 14, 20, 28):
        a, b = (side.tolist() for side in noisy_pairs(rng, n, 0.2))
        interval = paired_interval(a, b, 0.99)
        assert paired_p(a, b, interval.low) <= 0.01
        assert paired_p(a, b, interval.high) <= 0.01
        # The weights depend on theta, so p is not exactly monotone.
        step = 0.02 * (interval.high - interval.low)
        assert paired_p(a, b, interval.low - step) < 0.0105 < paired_p(a, b, interval.low + 2 * step)
        assert paired_p(a, b, interval.high + step) < 0.0105 < paired_p(a, b, interval.high - 2 * step)


# ---- invariances ----


@properties
@given(pairs=PAIRS)
def test_swapping_the_sides_negates_the_effect(pairs: list[tuple[float, float]]) -> None:
    a, b = sides(pairs)
    assert paired_p(b, a) == pytest.approx(paired_p(a, b))
    forward, backward = paired_interval(a, b, 0.95), paired_interval(b, a, 0.95)
    assert backward.estimate == pytest.approx(-forward.estimate, abs=1e-6)
    assert (backward.low, backward.high) == pytest.approx((-forward.high, -forward.low), abs=1e-5)


@properties
@given(pairs=PAIRS, exponent=st.integers(min_value=-900, max_value=900))
def test_the_unit_of_the_times_does_not_matter(pairs: list[tuple[float, float]], exponent: int) -> None:
    a, b = sides(pairs)
    scale = 2.0**exponent
    scaled = [x * scale for x in a], [x * scale for x in b]
    assert paired_p(*scaled) == pytest.approx(paired_p(a, b))
    assert Pairs.of(*scaled).estimate() == pytest.approx(Pairs.of(a, b).estimate(), abs=1e-6)


@properties
@given(pairs=PAIRS, order=st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_does_not_matter(pairs: list[tuple[float, float]], order: random.Random) -> None:
    shuffled = list(pairs)
    order.shuffle(shuffled)
    assert paired_p(*sides(shuffled)) == pytest.approx(paired_p(*sides(pairs)))
    assert Pairs.of(*sides(shuffled)).estimate() == pytest.approx(Pairs.of(*sides(pairs)).estimate(), abs=1e-6)


@properties
@given(pairs=PAIRS, factor=st.floats(min_value=1e-3, max_value=1e3))
def test_a_constant_factor_shifts_the_effect_by_its_logarithm(pairs: list[tuple[float, float]], factor: float) -> None:
    # Rounding makes equal sides differ in the last digit, all in the same direction.
    assume(all(x != y for x, y in pairs))
    a, b = sides(pairs)
    moved = [x * factor for x in b]
    assert Pairs.of(a, moved).estimate() == pytest.approx(Pairs.of(a, b).estimate() + math.log(factor), abs=1e-6)
    assert paired_p(a, moved, math.log(factor)) == pytest.approx(paired_p(a, b))


# ---- edges ----


@pytest.mark.parametrize("n", [8, 14, 20, 150])
def test_identical_values_are_no_change_and_a_point_of_an_interval(n: int) -> None:
    values = [0.1 + k / 1000 for k in range(n)]
    assert paired_p(values, values) == 1.0
    interval = paired_interval(values, values, 0.99)
    assert interval.estimate == 0.0
    assert -1e-6 < interval.low <= 0 <= interval.high < 1e-6


@pytest.mark.parametrize("n", [8, 14, 20])
def test_a_constant_ratio_is_known_exactly(n: int) -> None:
    values = [0.1 + k / 1000 for k in range(n)]
    interval = paired_interval(values, [value * 1.25 for value in values], 0.99)
    assert (interval.low, interval.estimate, interval.high) == pytest.approx([math.log(1.25)] * 3, abs=1e-6)


@pytest.mark.parametrize("n", range(1, 8))
def test_too_few_pairs_bound_nothing(n: int) -> None:
    interval = paired_interval([1.0] * n, [2.0] * n, 0.99)
    assert interval.estimate == pytest.approx(math.log(2))
    assert (interval.low, interval.high) == (-math.inf, math.inf)
    assert paired_p([1.0] * n, [2.0] * n) == 2.0 ** (1 - n)


def test_eight_pairs_are_enough_for_99_percent_and_six_for_95() -> None:
    a, b = [1.0] * 8, [2.0 + k / 100 for k in range(8)]
    assert math.isfinite(paired_interval(a, b, 0.99).low)
    assert math.isfinite(paired_interval(a[:6], b[:6], 0.95).high)
    assert math.isinf(paired_interval(a[:5], b[:5], 0.95).high)


def test_one_pair_without_a_difference_carries_no_information() -> None:
    a, b = [1.0, 1.0, 1.0, 1.0], [1.1, 1.2, 1.3, 1.0]
    assert paired_p(a, b) == 2.0 ** (1 - 3)


@pytest.mark.parametrize("n", [10, 20, 140])
@pytest.mark.parametrize(("low", "high"), [(1e-300, 1e300), (5e-324, 1e308), (5e-324, 1e-323), (1e307, 1.5e308)])
def test_huge_ratios_and_denormals(n: int, low: float, high: float) -> None:
    difference = math.log(high) - math.log(low)
    assert paired_p([low] * n, [high] * n) == pytest.approx(2.0 ** (1 - n))
    interval = paired_interval([low] * n, [high] * n, 0.99)
    assert (interval.low, interval.estimate, interval.high) == pytest.approx([difference] * 3, rel=1e-6)
    mixed = paired_interval([low, high] * (n // 2), [high, low] * (n // 2), 0.99)
    assert mixed.low <= 0 <= mixed.high
    assert paired_p([low, high] * (n // 2), [high, low] * (n // 2)) == pytest.approx(1.0)


def test_sides_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        paired_p([1.0, 2.0], [1.0])


# ---- order statistics and means ----


@properties
@given(
    values=st.lists(st.floats(min_value=-1e9, max_value=1e9), min_size=1, max_size=40),
    q=st.floats(min_value=0.0, max_value=1.0),
)
def test_quantiles_are_numpys(values: list[float], q: float) -> None:
    assert quantile(values, q) == pytest.approx(float(np.quantile(values, q)), rel=1e-9, abs=1e-6)


def test_quantiles_of_equal_neighbours_are_exact() -> None:
    assert quantile([math.inf, math.inf, 1.0], 0.75) == math.inf
    assert quantile([5e-324] * 3, 0.4) == 5e-324
    assert quantile([0.1] * 7, 0.35) == 0.1


@pytest.mark.parametrize("q", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
@pytest.mark.parametrize("n", [1, 5, 9, 30, 72, 100, 368, 600])
def test_the_interval_of_a_quantile_has_its_coverage_and_is_no_wider(n: int, confidence: float, q: float) -> None:
    # With the values 0..n-1 a bound is its own rank, so the coverage is a difference of binomial probabilities.
    interval = quantile_interval([float(k) for k in range(n)], q, confidence)
    tail = (1 - confidence) / 2
    below = 0.0 if interval.low == -math.inf else float(stats.binom.cdf(interval.low, n, q))
    above = 0.0 if interval.high == math.inf else float(stats.binom.sf(interval.high, n, q))
    assert below <= tail + 1e-12
    assert above <= tail + 1e-12
    # One order statistic further in would have too little coverage.
    inner_low = 0 if interval.low == -math.inf else interval.low + 1
    inner_high = n - 1 if interval.high == math.inf else interval.high - 1
    assert stats.binom.cdf(inner_low, n, q) > tail
    assert stats.binom.sf(inner_high, n, q) > tail
    assert interval.estimate == pytest.approx(float(np.quantile(np.arange(n), q)))


def test_the_interval_of_a_quantile_covers_it_in_samples() -> None:
    rng = np.random.default_rng(3)
    trials, covered = 400, 0
    for _ in range(trials):
        interval = quantile_interval(rng.exponential(1.0, 100).tolist(), 0.9, 0.95)
        covered += interval.low <= math.log(10) <= interval.high
    exact = stats.binomtest(covered, trials, 0.95, alternative="less")
    assert exact.pvalue > 0.001
    assert covered < trials


@pytest.mark.parametrize(("q", "needed"), [(0.95, 72), (0.99, 368), (0.05, 72), (0.9, 36), (0.5, 6)])
def test_samples_that_a_quantile_needs(q: float, needed: int) -> None:
    assert samples_for_quantile(q, 0.95) == needed
    enough = quantile_interval([float(k) for k in range(needed)], q, 0.95)
    assert math.isfinite(enough.low)
    assert math.isfinite(enough.high)
    short = quantile_interval([float(k) for k in range(needed - 1)], q, 0.95)
    assert math.isinf(short.low) or math.isinf(short.high)


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 9, 30, 200, 5000])
@pytest.mark.parametrize("p", [0.6, 0.75, 0.95, 0.975, 0.995, 0.9995])
def test_students_t_is_scipys(p: float, freedom: int) -> None:
    assert student_t_quantile(p, freedom) == pytest.approx(float(stats.t.ppf(p, freedom)), rel=1e-7)


@pytest.mark.parametrize("n", [2, 3, 10, 100])
def test_the_interval_of_a_mean_is_scipys(n: int) -> None:
    values = np.random.default_rng(n).exponential(1.0, n)
    low, high = stats.t.interval(0.99, n - 1, loc=values.mean(), scale=stats.sem(values))
    interval = mean_interval(values.tolist(), 0.99)
    assert (interval.estimate, interval.low, interval.high) == pytest.approx((values.mean(), low, high), rel=1e-7)


def test_means_at_the_edges() -> None:
    assert mean_interval([3.0], 0.95) == Interval(3.0, -math.inf, math.inf)
    assert mean_interval([3.0] * 4, 0.95) == Interval(3.0, 3.0, 3.0)
    # The squares of these would overflow or underflow.
    for scale in (1e200, 1e-200):
        small, plain = mean_interval([scale, 2 * scale], 0.95), mean_interval([1.0, 2.0], 0.95)
        assert small.high == pytest.approx(plain.high * scale)
