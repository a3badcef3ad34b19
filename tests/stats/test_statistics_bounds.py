"""Statistics: exact bounds, oracles for internal functions, and the cost of searches."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from perfflow.stats import paired_test
from perfflow.stats.paired_test import (
    CONFIRMED,
    CONFIRMING,
    ENOUGH,
    FEW,
    FEW_MORE,
    MANY,
    UNLIKELY,
    LogMean,
    clopper_pearson_upper,
    interval_of_log_means,
    log_mean,
    log_mean_of_summary,
    look_confidence,
    mean_interval,
    pair_spread,
    permutation_interval,
    permutation_p,
    quantile_interval,
    student_t_quantile,
    unpaired_interval,
)


def test_the_limits_of_confirmations_and_the_sizes_of_blocks() -> None:
    assert CONFIRMING[:5] == (6, 8, 11, 15, 20)
    assert (ENOUGH, CONFIRMED, UNLIKELY, MANY) == (11, 0.05, 0.2, 12)
    assert (FEW, FEW_MORE) == (5, 3)


def test_between_two_looks_the_next_one_counts_and_after_the_last_the_last() -> None:
    looks = ((11, 0.0059), (15, 0.0015), (20, 0.001), (64, 0.0016))
    found = {pairs: 1 - look_confidence(pairs, looks) for pairs in (1, 11, 12, 15, 16, 64, 65, 9999)}
    expected = {1: 59, 11: 59, 12: 15, 15: 15, 16: 10, 64: 16, 65: 16, 9999: 16}
    assert found == pytest.approx({pairs: alpha / 10_000 for pairs, alpha in expected.items()})


def test_a_mean_and_its_error_are_the_first_order_of_a_log_mean() -> None:
    assert log_mean_of_summary(4.0, 0.5, 7) == LogMean(math.log(4.0), 0.015625, 7)
    values = [1.0, 2.0, 4.0]
    found = log_mean(values)
    assert found.mean == pytest.approx(math.log(2.0))
    assert found.size == 3
    assert found.error == pytest.approx(float(np.var(np.log(values), ddof=1)) / 3)
    assert log_mean([3.0]) == LogMean(math.log(3.0), 0.0, 1)
    assert log_mean([3.0, 3.0]).error == 0


def test_two_sizes_of_one_value_bound_nothing() -> None:
    one, two = log_mean([1.0]), log_mean([1.0, 2.0])
    for sides in ((one, two), (two, one)):
        found = interval_of_log_means(*sides, 0.99)
        assert (found.low, found.high) == (-math.inf, math.inf)
        assert found.estimate == sides[1].mean - sides[0].mean
    # With two values on each side, one of 6 orders is as extreme; with five, one of 252, and 2/252 is less than 1%.
    assert unpaired_interval([1.0] * 2, [2.0] * 2, 0.99).low == -math.inf
    # With four and five values it is one of 126.
    assert unpaired_interval([1.0] * 4, [2.0] * 5, 0.99).low == -math.inf
    assert unpaired_interval([1.0] * 5, [2.0] * 5, 0.99).low == pytest.approx(math.log(2))


@pytest.mark.parametrize("freedom", [0.7, 1.0, 2.5, 9.0, 200.0])
@pytest.mark.parametrize("p", [0.6, 0.95, 0.995, 0.9999])
def test_students_t_of_any_freedom_is_scipys(p: float, freedom: float) -> None:
    assert student_t_quantile(p, freedom) == pytest.approx(float(stats.t.ppf(p, freedom)), rel=1e-8)


@given(st.floats(-0.5, 1.5), st.floats(0.2, 60), st.floats(0.2, 60))
def test_the_incomplete_beta_function_is_scipys(x: float, a: float, b: float) -> None:
    expected = float(special.betainc(a, b, min(1.0, max(0.0, x))))
    assert paired_test._incomplete_beta(x, a, b) == pytest.approx(expected, rel=1e-9, abs=1e-13)


def test_the_incomplete_beta_function_at_its_ends() -> None:
    assert [paired_test._incomplete_beta(x, 2.0, 3.0) for x in (0.0, 1.0)] == [0.0, 1.0]


@pytest.mark.parametrize(("found", "trials"), [(0, 10), (1, 10), (9, 10), (3, 300), (150, 300)])
def test_the_upper_bound_of_a_share_is_scipys(found: int, trials: int) -> None:
    expected = stats.binomtest(found, trials).proportion_ci(0.9, "exact").high
    assert clopper_pearson_upper(found, trials, 0.95) == pytest.approx(float(expected), rel=1e-8)


def test_all_of_them_bound_no_share() -> None:
    assert clopper_pearson_upper(10, 10, 0.95) == 1.0


def test_the_spread_of_pairs_is_that_of_a_normal_distribution() -> None:
    # Log ratios -2, -1, 0, 1, 5: the median is 0, and the median distance from it is 1.
    ratios = [math.exp(value) for value in (5, -1, 0, 1, -2)]
    assert pair_spread([2.0] * 5, [2 * value for value in ratios]) == pytest.approx(1.4826)
    with pytest.raises(ValueError, match="zip"):
        pair_spread([2.0] * 5, ratios[:4])


def test_a_mean_of_two_values_has_one_degree_of_freedom() -> None:
    found = mean_interval([1.0, 3.0], 0.95)
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 1, 2.0, 1.0))
    wider = mean_interval([1.0, 3.0], 0.95, 2.0)
    assert wider.high - 2 == pytest.approx(2 * (found.high - 2))
    one = mean_interval([2.0], 0.95)
    assert (one.estimate, one.low, one.high) == (2.0, -math.inf, math.inf)


def test_dependence_moves_the_ends_of_a_quantile_out_in_ranks_and_in_values() -> None:
    values = [float(2**k) for k in range(40)]
    plain, wide = (quantile_interval(values, 0.5, 0.95, factor) for factor in (1.0, 2.0))
    assert (plain.low, plain.high) == (2.0**13, 2.0**26)
    assert wide.estimate == plain.estimate == 1.5 * 2.0**19
    # Twice as far from rank 19.5: ranks 6 and 33; for ratios, twice as far in logarithms.
    by_ratio = [math.exp(2 * math.log(end) - math.log(wide.estimate)) for end in (plain.low, plain.high)]
    assert wide.low == pytest.approx(min(2.0**6, by_ratio[0]))
    assert wide.high == pytest.approx(max(2.0**33, by_ratio[1]))
    linear = quantile_interval([float(k) for k in range(-20, 20)], 0.5, 0.95, 1.5)
    straight = quantile_interval([float(k) for k in range(-20, 20)], 0.5, 0.95)
    assert linear.low <= straight.low - 0.5 * (straight.estimate - straight.low) + 1e-9
    assert linear.high == pytest.approx(straight.high + 0.5 * (straight.high - straight.estimate), abs=1)


def test_an_end_at_zero_or_below_is_moved_out_in_values() -> None:
    for lowest in (0.0, -0.5):
        values = [lowest] * 15 + [float(k) for k in range(1, 26)]
        plain, wide = (quantile_interval(values, 0.5, 0.95, factor) for factor in (1.0, 2.0))
        assert plain.low == lowest
        assert wide.low == pytest.approx(plain.estimate - 2 * (plain.estimate - lowest))


def test_a_quantile_without_a_bound_keeps_it_open_however_it_depends() -> None:
    found = quantile_interval([1.0, 2.0, 3.0], 0.5, 0.95, 3.0)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_an_end_beyond_all_floats_is_a_large_one() -> None:
    assert paired_test._farther(1.0, 1e200, 9.0) == math.exp(700)


def test_equal_runs_in_blocks_prove_nothing() -> None:
    assert permutation_p([2.0] * 8, [2.0] * 8, 0.0, (5, 3)) == 1


def test_a_permutation_interval_ends_where_its_p_is_the_error() -> None:
    rng = np.random.default_rng(3)
    for blocks in ((), (5, 3)):
        a, b = (rng.lognormal(shift, 0.1, 8).tolist() for shift in (0.0, 0.2))
        found = permutation_interval(a, b, 0.99, blocks)
        assert found.estimate == pytest.approx(float(np.mean(np.log(b)) - np.mean(np.log(a))))
        for end, sign in ((found.low, -1), (found.high, 1)):
            reach = abs(end - found.estimate)
            inside, outside = (
                paired_test.permutation_p(a, b, end + sign * step * reach, blocks) for step in (-0.01, 0.01)
            )
            assert outside <= 0.01 < inside * 1.2


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
    stepped: Callable[[float], float] = lambda distance: 1.0 if distance < 0.7 else 0.001  # noqa: E731
    assert 0.7 <= paired_test._edge(stepped, 0.01, 1e-3, 2e-3) <= 0.7 * 1.0021


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


@pytest.mark.parametrize("n", [129, 400])
def test_digits_of_a_fixed_length_count_what_they_may_have_lost(n: int) -> None:
    """The tail of a sum of coin flips is binomial, and the dropped part is less than the returned error."""
    for at_least in (n // 2, n // 2 + n // 16, n // 2 + n // 5):
        tail, error = paired_test._windowed_tail([1] * n, at_least)
        exact = float(stats.binom.sf(at_least - 1, n, 0.5))
        assert tail - error * 1.0001 - exact * 1e-9 <= exact <= tail * (1 + 1e-9)
        assert error < 1e-8
