"""What is known of one side: quantiles, means, shares, and the level of a series at each of its points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from perfflow.stats import paired_test
from perfflow.stats.paired_test import Interval, clopper_pearson_upper, mean_interval, quantile, quantile_interval
from tests.stats.test_statistics import ends

# -- quantiles


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    values=st.lists(st.floats(min_value=-1e9, max_value=1e9), min_size=1, max_size=40),
    q=st.floats(min_value=0.0, max_value=1.0),
)
def test_quantiles_are_numpys(values: list[float], q: float) -> None:
    assert quantile(values, q) == pytest.approx(float(np.quantile(values, q)), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [([math.inf, math.inf, 1.0], 0.75, math.inf), ([5e-324] * 3, 0.4, 5e-324), ([0.1] * 7, 0.35, 0.1)],
)
def test_quantiles_of_equal_neighbours_are_exact(values: list[float], q: float, expected: float) -> None:
    assert quantile(values, q) == expected


@pytest.mark.parametrize("q", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
@pytest.mark.parametrize("n", [1, 5, 9, 30, 72, 100, 368, 600])
def test_the_interval_of_a_quantile_has_its_coverage_and_is_no_wider(n: int, confidence: float, q: float) -> None:
    # With the values 0..n-1 a bound is its own rank, so the coverage is a difference of binomial probabilities.
    interval = quantile_interval([float(k) for k in range(n)], q, confidence)
    tail = (1 - confidence) / 2
    below = 0.0 if interval.low == -math.inf else float(stats.binom.cdf(interval.low, n, q))
    above = 0.0 if interval.high == math.inf else float(stats.binom.sf(interval.high, n, q))
    assert max(below, above) <= tail + 1e-12
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
    assert stats.binomtest(covered, trials, 0.95, alternative="less").pvalue > 0.001
    assert covered < trials


@pytest.mark.parametrize(("q", "needed"), [(0.95, 72), (0.99, 368), (0.05, 72), (0.9, 36), (0.5, 6)])
def test_samples_that_a_quantile_needs(q: float, needed: int) -> None:
    assert paired_test.samples_for_quantile(q, 0.95) == needed
    enough, short = (quantile_interval([float(k) for k in range(n)], q, 0.95) for n in (needed, needed - 1))
    assert all(map(math.isfinite, ends(enough)))
    assert not all(map(math.isfinite, ends(short)))


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


@pytest.mark.parametrize("lowest", [0.0, -0.5])
def test_an_end_at_zero_or_below_is_moved_out_in_values(lowest: float) -> None:
    values = [lowest] * 15 + [float(k) for k in range(1, 26)]
    plain, wide = (quantile_interval(values, 0.5, 0.95, factor) for factor in (1.0, 2.0))
    assert plain.low == lowest
    assert wide.low == pytest.approx(plain.estimate - 2 * (plain.estimate - lowest))


def test_ends_that_are_open_or_beyond_all_floats() -> None:
    # A quantile without a bound keeps it open, however its samples depend on each other.
    assert ends(quantile_interval([1.0, 2.0, 3.0], 0.5, 0.95, 3.0))[1:] == [-math.inf, math.inf]
    assert paired_test._farther(1.0, 1e200, 9.0) == math.exp(700)


# -- means


@pytest.mark.parametrize("freedom", [0.7, 1.0, 2, 2.5, 3, 5, 9.0, 30, 200.0, 5000])
@pytest.mark.parametrize("p", [0.6, 0.75, 0.95, 0.975, 0.995, 0.9995, 0.9999])
def test_students_t_of_any_freedom_is_scipys(p: float, freedom: float) -> None:
    assert paired_test.student_t_quantile(p, freedom) == pytest.approx(float(stats.t.ppf(p, freedom)), rel=1e-8)


@pytest.mark.parametrize("n", [2, 3, 10, 100])
def test_the_interval_of_a_mean_is_scipys(n: int) -> None:
    values = np.random.default_rng(n).exponential(1.0, n)
    low, high = stats.t.interval(0.99, n - 1, loc=values.mean(), scale=stats.sem(values))
    found, wider = (mean_interval(values.tolist(), 0.99, factor) for factor in (1.0, 2.0))
    assert ends(found) == pytest.approx([values.mean(), low, high], rel=1e-7)
    assert wider.high - found.estimate == pytest.approx(2 * (found.high - found.estimate))


def test_means_at_the_edges() -> None:
    assert mean_interval([3.0], 0.95) == Interval(3.0, -math.inf, math.inf)
    assert mean_interval([3.0] * 4, 0.95) == Interval(3.0, 3.0, 3.0)
    # The squares of these would overflow or underflow.
    for scale in (1e200, 1e-200):
        small, plain = mean_interval([scale, 2 * scale], 0.95), mean_interval([1.0, 2.0], 0.95)
        assert small.high == pytest.approx(plain.high * scale)


def test_a_mean_and_its_error_are_the_first_order_of_a_log_mean() -> None:
    assert paired_test.log_mean_of_summary(4.0, 0.5, 7) == paired_test.LogMean(math.log(4.0), 0.015625, 7)
    found = paired_test.log_mean([1.0, 2.0, 4.0])
    assert (found.mean, found.size) == pytest.approx((math.log(2.0), 3))
    assert found.error == pytest.approx(float(np.var(np.log([1.0, 2.0, 4.0]), ddof=1)) / 3)
    assert paired_test.log_mean([3.0]) == paired_test.LogMean(math.log(3.0), 0.0, 1)
    assert paired_test.log_mean([3.0, 3.0]).error == 0


# -- shares


@given(st.floats(-0.5, 1.5), st.floats(0.2, 60), st.floats(0.2, 60))
def test_the_incomplete_beta_function_is_scipys(x: float, a: float, b: float) -> None:
    expected = float(special.betainc(a, b, min(1.0, max(0.0, x))))
    assert paired_test._incomplete_beta(x, a, b) == pytest.approx(expected, rel=1e-9, abs=1e-13)
    assert [paired_test._incomplete_beta(end, a, b) for end in (0.0, 1.0)] == [0.0, 1.0]


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(
    ("found", "trials"),
    [
        *[(0, 1), (0, 10), (1, 10), (9, 10), (10, 10), (0, 20), (1, 20), (19, 20), (3, 45)],
        *[(3, 300), (150, 300), (0, 315), (7, 1000)],
    ],
)
def test_the_upper_bound_of_a_share_is_scipys(found: int, trials: int, confidence: float) -> None:
    bound = clopper_pearson_upper(found, trials, confidence)
    exact = stats.binomtest(found, trials, alternative="less").proportion_ci(confidence, method="exact")
    assert bound == pytest.approx(float(exact.high), rel=1e-8)
    # Where all were found nothing is excluded; no alarm in n trials is the root of the level.
    if found in (0, trials):
        assert bound == pytest.approx(1 - (1 - confidence) ** (1 / trials) if found == 0 else 1.0, rel=1e-6)


def test_quantiles_that_are_searched_for_are_the_same_in_every_version() -> None:
    assert [paired_test.student_t_quantile(0.6, freedom) for freedom in (1, 2.5, 30)] == pytest.approx(
        [0.324919696257, 0.2814595127711, 0.2556053649751], rel=1e-11
    )
    assert [clopper_pearson_upper(found, 10, 0.95) for found in (0, 3, 9)] == pytest.approx(
        [0.2588655508935, 0.606624216106, 0.9948838031087], rel=1e-11
    )


# -- levels

SERIES = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        *[([], []), ([3], [3]), ([3, 1], [3, 1])],
        # One neighbour on each side; the ends have only one.
        ([1, 1, 9, 1], [1, 1, 1, 5]),
        # Two neighbours on each side: two outliers in a row do not change the level, three do.
        ([5, 5, 5, 1, 1, 5, 5, 5], [5] * 8),
        ([5, 5, 5, 1, 1, 1, 5, 5, 5], [5, 5, 5, 1, 1, 1, 5, 5, 5]),
        # A step keeps its place.
        ([1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 1, 2, 2, 2, 2]),
    ],
)
def test_levels_of_known_series(values: list[float], found: list[float]) -> None:
    assert paired_test.levels(values) == found


@given(SERIES, st.floats(0.5, 2))
def test_levels_lie_among_the_values_and_go_with_their_unit(values: list[float], factor: float) -> None:
    found = paired_test.levels(values)
    assert len(found) == len(values)
    assert all(min(values) <= level <= max(values) for level in found)
    assert paired_test.levels([value * factor for value in values]) == pytest.approx(
        [level * factor for level in found]
    )
