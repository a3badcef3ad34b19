"""The test of pairs: oracles, its errors under the noise of machines, invariances, edges, and stored results."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from perfflow.stats import paired_test
from perfflow.stats.paired_test import COUNTED, ENUMERATED, Interval, Pairs, pair_spread, paired_interval, paired_p
from perfflow.stats.paired_test import sign_flip_p as p_of

# No deadline: durations are not meaningful on a shared machine.
properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

Floats = npt.NDArray[np.float64]

NEAR = st.floats(min_value=0.5, max_value=2.0)
PAIRS = st.lists(st.tuples(NEAR, NEAR), min_size=1, max_size=ENUMERATED)


Sides = tuple[list[float], list[float]]


def sides(pairs: Sequence[tuple[float, float]]) -> Sides:
    return [a for a, _ in pairs], [b for _, b in pairs]


def ends(found: Interval) -> list[float]:
    return [found.estimate, found.low, found.high]


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


def of_coins(agreeing: int, count: int) -> float:
    """Return the two-sided p of equal scores, of which so many are positive: the tail is binomial."""
    return min(1.0, 2 * float(stats.binom.sf(agreeing - 1, count, 0.5)))


def coins(agreeing: int, count: int) -> list[float]:
    return [1.0] * agreeing + [-1.0] * (count - agreeing)


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
        assert p_of(values.tolist()) == pytest.approx(float(oracle.pvalue), rel=1e-12)


@properties
@given(values=st.lists(st.integers(min_value=-3, max_value=3), max_size=9))
@example(values=[0, 0])
@example(values=[1, -1])
def test_sign_flip_p_of_ties_and_zeros_is_counted_exactly(values: list[int]) -> None:
    total = abs(sum(values))
    signs = list(itertools.product((-1, 1), repeat=len(values)))
    extreme = sum(sum(s * v for s, v in zip(row, values, strict=True)) >= total for row in signs)
    assert p_of([float(v) for v in values]) == min(1.0, 2 * extreme / len(signs))


@pytest.mark.parametrize("spread", [1.0, 1e-3])
@pytest.mark.parametrize("n", range(2, 11))
def test_paired_p_is_the_enumeration_of_the_documented_weights(n: int, spread: float) -> None:
    rng = np.random.default_rng(100 + n)
    a = spread * rng.pareto(1.2, n) + 1.0
    b = (spread * rng.pareto(1.2, n) + 1.0) * (1 + 0.3 * spread)
    slower = np.log(np.maximum(a, b) / min(a.min(), b.min()))
    weights = (slower + max(0.005, float(np.quantile(slower, 0.25)))) ** -2.0
    scores = weights * np.log(b / a)
    observed = abs(float(scores.sum()))
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    p = min(1.0, 2 * float(np.mean(signs @ np.abs(scores) >= observed * (1 - 1e-12))))
    assert paired_p(a.tolist(), b.tolist()) == pytest.approx(p, rel=1e-9)
    assert Pairs.of(a.tolist(), b.tolist()).weights(0.0) == pytest.approx(weights.tolist(), rel=1e-9)


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
    found = np.sort([p_of([s * v for s, v in zip((1.0, *row), sizes, strict=True)]) for row in signs])
    share_at_most = np.searchsorted(found, found * (1 + 1e-9), side="right") / len(found)
    assert np.all(share_at_most <= found * (1 + 1e-9))
    assert found[0] == 2.0 ** (1 - len(sizes))


SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(0.4, 1.0, n),
    "exponential": lambda rng, n: rng.exponential(1.0, n) * rng.choice([1.0, 1.0, -1.0], n),
    "pareto": lambda rng, n: (rng.pareto(1.2, n) + 0.1) * rng.choice([1.0, 1.0, -1.0], n),
    "equal": lambda rng, n: np.full(n, 0.05) * rng.choice([1.0, 1.0, -1.0], n),
}


@pytest.mark.parametrize("n", range(15, 21))
def test_many_pairs_stay_near_the_full_enumeration(n: int) -> None:
    """Equal scores are counted exactly, rounded ones nearly so."""
    for minus in range(n):
        values = [-0.3] * minus + [0.3] * (n - minus)
        assert p_of(values) == pytest.approx(enumerated_p(values), rel=1e-12)
    for shape in SHAPES.values():
        rng = np.random.default_rng(300 + n)
        for _ in range(4):
            values = shape(rng, n).tolist()
            assert p_of(values) == pytest.approx(enumerated_p(values), rel=0.05, abs=2.0 ** (2 - n))


@pytest.mark.parametrize("shape", [*SHAPES][:3])
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
    assert p_of(coins(agreeing, FEWER)) == pytest.approx(of_coins(agreeing, FEWER), rel=1e-9)
    after = p_of([*coins(agreeing, FEWER), 1.0])
    assert 0.35 <= after / of_coins(agreeing + 1, FEWER + 1) <= 1.01


def test_the_saddlepoint_at_its_ends(fewer_counted: None) -> None:
    many = FEWER + 20
    balanced = [1.0, -1.0] * (many // 2)
    assert p_of([1.0] * many) == pytest.approx(2.0 ** (1 - many))
    assert p_of(balanced) == pytest.approx(1.0)
    # From the centre outwards, p decreases from 1 without a jump.
    previous = 1.0
    for exponent in np.linspace(-9.0, -0.5, 80):
        p = p_of([*balanced, float(10**exponent)])
        assert previous - 0.02 <= p <= previous + 0.002
        previous = p
    assert paired_test._saddlepoint_tail([1.0] * 200) == 2.0**-200
    normal = paired_test._NORMAL.cdf(-1e-6 / math.sqrt(200))
    assert paired_test._saddlepoint_tail([1.0, -1.0] * 100 + [1e-6]) == pytest.approx(normal, rel=1e-15)


def test_one_score_far_above_all_others_does_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    # The tail is 0.5 for any signs of the small scores, which affect only its last bit.
    small = [1e-6 * (1 + k / 100) for k in range(FEWER + 10)]
    assert p_of([1.0, *small[: FEWER - 10]]) <= 1.0
    for counted in (FEWER, COUNTED):
        monkeypatch.setattr(paired_test, "COUNTED", counted)
        assert 0.0 < p_of([1.0, *small]) <= 1.0


@pytest.mark.parametrize("n", [129, 500, 1100, COUNTED])
@pytest.mark.parametrize("z", [0.0, 1.0, 3.0, 3.9, 4.5])
def test_ties_of_any_number_of_pairs_are_counted(n: int, z: float) -> None:
    agreeing = min(n, round(n / 2 + z * math.sqrt(n) / 2))
    assert p_of(coins(agreeing, n)) == pytest.approx(of_coins(agreeing, n), rel=0.003, abs=1e-7)


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
        # The dropped part is less than the error that is told.
        assert tails[first] * (1 - 1e-9) <= found <= tails[first] * (1 + 1e-9) + 1.0001 * error


def test_a_saddlepoint_is_the_root_of_its_equation() -> None:
    sizes = [0.1, 0.5, 1.0, 2.0, 2.0]
    for observed in (0.3, 2.0, 5.5):
        root = paired_test._saddlepoint(sizes, observed)
        assert math.fsum(size * math.tanh(root * size) for size in sizes) == pytest.approx(observed, rel=1e-11)
    assert paired_test._saddlepoint(sizes, 0.0) == 0.0


@given(st.floats(-700, 700))
def test_the_hyperbolic_functions_are_numpys(x: float) -> None:
    assert paired_test._sech(x) == pytest.approx(float(1 / np.cosh(x)), rel=1e-12)
    assert paired_test._log_cosh(x) == pytest.approx(float(np.log(np.cosh(x))), rel=1e-9, abs=1e-15)
    assert (paired_test._sech(1e4), paired_test._sech(-1e4)) == (0.0, 0.0)


@pytest.mark.parametrize("n", [1, ENUMERATED, ENUMERATED + 1, 128, 129, 900])
def test_all_scores_on_one_side_give_the_smallest_possible_p(n: int) -> None:
    assert p_of([1.0 + k / n for k in range(n)]) == pytest.approx(2.0 ** (1 - n), rel=1e-12)


@pytest.mark.parametrize("n", [6, 20, 200])
def test_scores_of_any_magnitude(n: int) -> None:
    values = np.random.default_rng(n).normal(0.3, 1.0, n)
    p = p_of(values.tolist())
    for scale in (-1.0, 2.0**-1000, 2.0**1000):
        assert p_of((values * scale).tolist()) == p
    assert p_of([1.7e308] * n) == pytest.approx(2.0 ** (1 - n), rel=1e-12)


def test_no_values_or_only_zeros_prove_nothing() -> None:
    assert p_of([]) == p_of([0.0]) == p_of([0.0] * 50) == 1.0


# ---- the search for the ends of an interval ----


@pytest.mark.parametrize("first", [1e-4, 0.02, 1.0, 3.0, 300.0])
@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.0005])
def test_an_end_is_found_to_its_precision_in_a_few_steps(first: float, alpha: float) -> None:
    """For a normal distribution, the search starts too near, too far, and at the right distance."""
    tries = []

    def p(distance: float) -> float:
        tries.append(distance)
        return max(1e-300, 2 * NormalDist().cdf(-distance))

    found = paired_test._edge(p, alpha, first, 2e-3)
    end = NormalDist().inv_cdf(1 - alpha / 2)
    assert end <= found <= end * 1.0021
    assert len(tries) <= (12 if 1e-2 < first < 10 else 18)


def test_an_end_that_is_nowhere_is_infinite_and_steps_are_ends() -> None:
    assert paired_test._edge(lambda _: 0.5, 0.01, 1e-3, 2e-3) == math.inf
    found = paired_test._edge(lambda distance: 1.0 if distance < 0.7 else 0.001, 0.01, 1e-3, 2e-3)
    assert 0.7 <= found <= 0.7 * 1.0021


# ---- under realistic noise of machines ----


def noisy_runs(rng: np.random.Generator, n: int) -> Floats:
    """Return 2n successive runs: a random walk of the machine's speed, times bursts of infinite variance."""
    drift = np.exp(np.cumsum(rng.normal(0.0, 0.05, 2 * n)))
    return drift * (1 + 0.02 * rng.pareto(1.2, 2 * n))


def noisy_pairs(rng: np.random.Generator, n: int, effect: float = 0.0, tick: float = 0.0) -> Sides:
    """Return pairs of such runs in coin-flip order; ``tick`` rounds times to whole clock ticks, at least one."""
    runs = noisy_runs(rng, n).reshape(n, 2)
    coin = rng.integers(0, 2, n)
    found = runs[np.arange(n), coin], runs[np.arange(n), 1 - coin] * math.exp(effect)
    baseline, candidate = (np.maximum(1, np.rint(side / tick)) * tick if tick else side for side in found)
    return baseline.tolist(), candidate.tolist()


@pytest.mark.parametrize(("n", "trials"), [(10, 3000), (14, 3000), (20, 3000), (28, 2000), (64, 500), (140, 200)])
@pytest.mark.parametrize("tick", [0.0, 0.3])
def test_false_alarms_are_no_more_than_nominal(n: int, trials: int, tick: float) -> None:
    rng = np.random.default_rng(1000 + n)
    found = [paired_p(*noisy_pairs(rng, n, tick=tick)) for _ in range(trials)]
    for alpha in (0.002, 0.01, 0.05, 0.2):
        alarms = sum(p <= alpha for p in found)
        assert alarms <= stats.binom.ppf(0.999, trials, alpha), (alpha, alarms)
    # A test that never rejects would pass the previous check.
    assert tick or sum(p <= 0.2 for p in found) >= 0.12 * trials


def test_a_real_change_is_found_under_the_same_noise() -> None:
    rng = np.random.default_rng(11)
    found = sum(paired_p(*noisy_pairs(rng, 14, effect=math.log(0.6))) <= 0.01 for _ in range(200))
    assert found >= 180


@pytest.mark.parametrize(("n", "trials"), [(10, 400), (14, 400), (20, 300), (28, 200), (64, 60)])
def test_the_interval_covers_the_true_effect_as_often_as_it_says(n: int, trials: int) -> None:
    rng = np.random.default_rng(2000 + n)
    missed = {0.99: 0, 0.95: 0}
    for _ in range(trials):
        effect = float(rng.uniform(-0.7, 0.7))
        pairs = noisy_pairs(rng, n, effect)
        intervals = {c: paired_interval(*pairs, c) for c in missed}
        for confidence, interval in intervals.items():
            missed[confidence] += not interval.low <= effect <= interval.high
            assert -math.inf < interval.low <= interval.estimate <= interval.high < math.inf
        assert intervals[0.99].low <= intervals[0.95].low <= intervals[0.95].high <= intervals[0.99].high
    for confidence, misses in missed.items():
        assert misses <= stats.binom.ppf(0.999, trials, 1 - confidence), confidence
    # An infinite interval would pass the previous check.
    assert missed[0.95] >= stats.binom.ppf(0.001, trials, 0.02)
    assert intervals[0.95].high - intervals[0.95].low < 1.0


def test_the_ends_of_the_interval_are_where_the_test_starts_to_reject() -> None:
    rng = np.random.default_rng(6)
    for n in (10, 14, 20, 28):
        a, b = noisy_pairs(rng, n, 0.2)
        interval = paired_interval(a, b, 0.99)
        # The weights depend on theta, so p is not exactly monotone.
        step = 0.02 * (interval.high - interval.low)
        for end, outwards in ((interval.low, -step), (interval.high, step)):
            assert paired_p(a, b, end) <= 0.01
            assert paired_p(a, b, end + outwards) < 0.0105 < paired_p(a, b, end - 2 * outwards)


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
@given(pairs=PAIRS, exponent=st.integers(-900, 900), order=st.randoms(use_true_random=False))
def test_neither_unit_nor_order_matter(pairs: list[tuple[float, float]], exponent: int, order: random.Random) -> None:
    a, b = sides(pairs)
    scale, shuffled = 2.0**exponent, list(pairs)
    order.shuffle(shuffled)
    for other in (([x * scale for x in a], [x * scale for x in b]), sides(shuffled)):
        assert paired_p(*other) == pytest.approx(paired_p(a, b))
        assert Pairs.of(*other).estimate() == pytest.approx(Pairs.of(a, b).estimate(), abs=1e-6)


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
@pytest.mark.parametrize("factor", [1.0, 1.25])
def test_a_constant_ratio_is_known_exactly(n: int, factor: float) -> None:
    values = [0.1 + k / 1000 for k in range(n)]
    other = [value * factor for value in values]
    interval = paired_interval(values, other, 0.99)
    assert ends(interval) == pytest.approx([math.log(factor)] * 3, abs=1e-6)
    assert interval.low <= interval.estimate <= interval.high
    if factor == 1.0:
        assert (paired_p(values, other), interval.estimate) == (1.0, 0.0)


@pytest.mark.parametrize("n", range(1, 9))
def test_eight_pairs_are_enough_for_99_percent_and_six_for_95(n: int) -> None:
    a, b = [1.0] * n, [2.0] * n
    for confidence, enough in ((0.99, 8), (0.95, 6)):
        bounds = (pytest.approx(math.log(2), abs=1e-6),) * 2 if n >= enough else (-math.inf, math.inf)
        assert ends(paired_interval(a, b, confidence)) == [pytest.approx(math.log(2)), *bounds]
    assert paired_p(a, b) == 2.0 ** (1 - n)


def test_one_pair_without_a_difference_carries_no_information() -> None:
    assert paired_p([1.0, 1.0, 1.0, 1.0], [1.1, 1.2, 1.3, 1.0]) == 2.0 ** (1 - 3)


@pytest.mark.parametrize("n", [10, 20, 140])
@pytest.mark.parametrize(("low", "high"), [(1e-300, 1e300), (5e-324, 1e308), (5e-324, 1e-323), (1e307, 1.5e308)])
def test_huge_ratios_and_denormals(n: int, low: float, high: float) -> None:
    difference = math.log(high) - math.log(low)
    assert paired_p([low] * n, [high] * n) == pytest.approx(2.0 ** (1 - n))
    assert ends(paired_interval([low] * n, [high] * n, 0.99)) == pytest.approx([difference] * 3, rel=1e-6)
    there, back = [low, high] * (n // 2), [high, low] * (n // 2)
    mixed = paired_interval(there, back, 0.99)
    assert mixed.low <= 0 <= mixed.high
    assert paired_p(there, back) == pytest.approx(1.0)


@pytest.mark.parametrize("compute", [paired_p, pair_spread])
def test_sides_of_different_length_are_refused(compute: Callable[[list[float], list[float]], float]) -> None:
    with pytest.raises(ValueError, match="zip"):
        compute([1.0, 2.0], [1.0])


def test_the_spread_of_pairs_is_that_of_a_normal_distribution() -> None:
    # Log ratios -2, -1, 0, 1, 5: the median is 0, and the median distance from it is 1.
    ratios = [math.exp(value) for value in (5, -1, 0, 1, -2)]
    assert pair_spread([2.0] * 5, [2 * value for value in ratios]) == pytest.approx(1.4826)
    assert pair_spread([2.0, 3.0, 4.0], [2.0, 3.0, 4.0]) == 0.0


def test_the_spread_is_that_of_the_ratio_whatever_the_change_and_its_outliers() -> None:
    chance = random.Random(3)
    baseline = [math.exp(chance.gauss(0, 0.01)) for _ in range(4000)]
    candidate = [1.3 * math.exp(chance.gauss(0, 0.01)) * (5 if chance.random() < 0.02 else 1) for _ in baseline]
    assert pair_spread(baseline, candidate) == pytest.approx(0.01 * math.sqrt(2), rel=0.1)


# ---- stored samples have the same results in every version, in the digits that are shown and in all that decide ----


def normal(seed: int, count: int) -> list[float]:
    luck = random.Random(seed)
    return [NormalDist().inv_cdf(luck.random()) for _ in range(count)]


def samples(count: int, effect: float = 0.1, spread: float = 0.1) -> Sides:
    baseline, candidate = ([math.exp(spread * one) for one in normal(count + side, count)] for side in (0, 1000))
    return baseline, [value * math.exp(effect) for value in candidate]


EVEN = [1.0] * 9, [1.25] * 9
TURNS = [1.0, 2.0] * 8, [2.0, 1.0] * 8


@pytest.mark.parametrize(
    ("pairs", "confidence", "counted", "expected"),
    [
        (samples(8), 0.99, FEWER, [0.1412325690483, -0.1715444349641, 0.3812478983785]),
        (samples(10), 0.99, FEWER, [0.06232365013733, -0.02631460193032, 0.2416018175999]),
        (samples(14), 0.99, FEWER, [0.09998477968193, -0.03663164631585, 0.2316384724807]),
        (samples(20), 0.99, FEWER, [0.05307532117249, -0.02997223400975, 0.1113400566392]),
        (samples(64), 0.99, FEWER, [0.1196684571811, 0.06902779968911, 0.1727276879153]),
        (samples(120), 0.99, FEWER, [0.07898207079877, 0.04750895594117, 0.1099710757828]),
        (samples(140), 0.99, FEWER, [0.0804390380327, 0.04983144062932, 0.1125443776449]),
        (samples(300), 0.99, FEWER, [0.1159613362432, 0.09340795771714, 0.1383428670559]),
        (samples(200), 0.99, COUNTED, [0.1128816999264, 0.08488771663526, 0.1402624726517]),
        (EVEN, 0.99, COUNTED, [0.2231435513142, 0.22314348924, 0.2231436133885]),
        (TURNS, 0.95, COUNTED, [0.0, -0.5093918510905, 0.5093918510905]),
    ],
)
def test_intervals_of_pairs(
    pairs: Sides, confidence: float, counted: int, expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds depend slightly on the search algorithm; this test keeps even these digits stable."""
    monkeypatch.setattr(paired_test, "COUNTED", counted)
    assert ends(paired_interval(*pairs, confidence)) == pytest.approx(expected, rel=1e-11)


def test_an_estimate_stays_where_it_has_settled() -> None:
    assert Pairs.of(*samples(12, spread=1.0)).estimate() == pytest.approx(-0.2162869475749545, rel=1e-13)


@pytest.mark.parametrize(
    ("count", "p"),
    [
        *[(6, 0.4375), (14, 0.0401611328125), (15, 0.08245849609375), (100, 0.00267918122939747)],
        *[(128, 0.0781398307733004), (129, 0.411935990760306), (200, 0.353676512179483)],
        *[(400, 7.35445062218787e-05), (900, 0.922635763440059), (1100, 0.695642316229089)],
        *[(1001, 0.0388710059991632), (1500, 0.0723787476633106)],
    ],
)
def test_p_of_sums_by_each_way_of_counting(count: int, p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_test, "COUNTED", 1000)
    values = [value + (2 if count != 1100 else 0.5) / math.sqrt(count) for value in normal(count, count)]
    assert p_of(values) == pytest.approx(p, rel=1e-12)


def test_the_tail_of_many_coins_and_what_it_may_lack() -> None:
    found = paired_test._windowed_tail([1 + number % 7 for number in range(300)], 640)
    assert found == pytest.approx((0.144507098582562, 9.16323017463583e-10), rel=1e-13)
