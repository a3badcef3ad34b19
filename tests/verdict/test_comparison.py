"""Effect and interval of two samples: exact figures, zeros, upper bounds, coarse values, code layouts, and rates."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import variance
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.metrics import METRICS, Better, Metric
from perfflow.model.readings import CAPPED, MEAN, SCHEDULES, Design, Reading, Side, reading_of_many, reading_of_process
from perfflow.model.result import Result
from perfflow.model.units import Dimension
from perfflow.report.page import page_of
from perfflow.stats.paired_test import Interval, blocks_of, paired_interval, paired_p, permutation_interval
from perfflow.store.record import MetricSeries, Record
from perfflow.verdict import comparison
from perfflow.verdict.comparison import ComparedMetric, compare, speedup, summarise
from perfflow.verdict.decide import rule
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.verdict.comparisons import known, shown_row
from tests.verdict.records import REVISIONS, beside, criteria, ended, pairs, record, row, scaled

OLD, NEW = Side
TIME, RSS, RATE = METRICS["time"], METRICS["rss"], METRICS["rate"]
NOISY = [1.0003, 1.0211, 0.9924, 1.0108, 1.0, 1.0313, 0.9807, 1.0001, 1.0102, 0.9913]
ANY = -math.inf, math.inf


def series(
    old: Sequence[float],
    new: Sequence[float],
    metric: str = "time",
    *,
    at_most: Sequence[Side] = (),
    tick: float = 0.0,
    **keys: bool | str,
) -> MetricSeries:
    """Return pairs; ``at_most``: the sides of which upper bounds are known."""
    usual: dict[str, Any] = {"paired": True, "two_sided": True, "design": "looks"}
    made = MetricSeries("b", metric, "s", "t", **(usual | keys))
    for side, values in ((OLD, old), (NEW, new)):
        made.sides[side] = [Reading(metric, value, at_most=side in at_most, tick=tick) for value in values]
    return made


def ramp(runs: int, factor: float = 1.0) -> list[float]:
    return [factor * (1 + 0.0137 * (number * 7 % runs)) for number in range(runs)]


def compared(made: MetricSeries) -> ComparedMetric:
    return compare(made, Criteria())


def change_of(found: ComparedMetric | MetricSeries) -> Interval:
    return known((compared(found) if isinstance(found, MetricSeries) else found).change)


def ends(found: ComparedMetric | MetricSeries) -> tuple[float, float]:
    change = change_of(found)
    return change.low, change.high


# -- noisy figures


def test_the_change_is_the_paired_interval_as_a_share_of_the_baseline() -> None:
    faster = [value * 0.8 for value in NOISY]
    found = compared(series(NOISY, faster, design="fixed"))
    interval = paired_interval(NOISY, faster, comparison.CHANGE_CONFIDENCE)
    assert change_of(found).estimate == pytest.approx(-0.2)
    assert ends(found) == (math.expm1(interval.low), math.expm1(interval.high))
    assert (found.pairs, found.confidence) == (10, 0.99)
    baseline = known(found.baseline)
    assert (baseline.value, known(baseline.low) <= 1.0) == (1.0002, True)


def test_what_proves_nothing_has_no_bounds() -> None:
    # Fewer pairs than can reject anything, and values that are not paired.
    few, enough = (series(NOISY[:count], NOISY[:count], design="fixed") for count in (7, 8))
    assert ends(few) == ANY != ends(enough)
    unpaired = compared(series(NOISY, [2 * value for value in NOISY], paired=False))
    assert (ends(unpaired), unpaired.confidence) == (ANY, None)
    # Upper bounds on both sides, and a metric that is only shown.
    assert compared(series([10e6] * 10, [20e6] * 10, "rss", at_most=(OLD, NEW))).change is None
    assert compared(series(NOISY, NOISY, "user")).change is None
    empty = ComparedMetric("b", TIME, "p50", "s", "t", None, None)
    assert (empty.pairs, empty.blur, empty.change, empty.warnings) == (0, 0.0, None, ())
    assert comparison.SideSummary(1.0, None, None, 1, (1.0,)).factor == 1.0


def test_noisy_values_of_zero_have_no_relative_change_unless_nothing_changed() -> None:
    assert change_of(series([0.0] * 10, [0.0] * 10)) == Interval(0.0, 0.0, 0.0)
    found = compared(series([0.0, *NOISY], [1.0, *NOISY]))
    assert math.isnan(change_of(found).estimate)
    assert found.warnings == ("some values are zero, so there is no relative change",)


def test_one_side_alone() -> None:
    single = compared(series(NOISY, [], paired=False, two_sided=False))
    assert (single.change, single.only, single.candidate) == (None, None, None)
    made = series([], [])
    made.lone[OLD] = [Reading("time", 1.0)] * 3
    gone = compared(made)
    assert (gone.only, gone.change, known(gone.baseline).n) == (OLD, None, 3)


def test_upper_bounds_of_one_side_bound_the_change_on_one_side_only() -> None:
    grown = compared(series([10e6] * 10, [20e6] * 10, "rss", at_most=(OLD,)))
    assert ends(grown) == pytest.approx((1.0, math.inf), abs=0.1)
    assert grown.warnings[0].startswith("only an upper bound is known")
    assert ends(series([20e6] * 10, [10e6] * 10, "rss", at_most=(NEW,))) == pytest.approx((-math.inf, -0.5), abs=0.1)


def test_a_rate_is_judged_by_its_reciprocal() -> None:
    old, new = ramp(20), ramp(20, 1.3)
    found = compared(series(old, new, "rate"))
    turned = paired_interval([1 / value for value in old], [1 / value for value in new], found.confidence or 0.0)
    assert ends(found) == pytest.approx((math.expm1(-turned.high), math.expm1(-turned.low)))
    less = ramp(20, 1.001)[::-1]
    of_times = comparison.p_of_no_change([1 / value for value in old], [1 / value for value in less], TIME)
    assert comparison.p_of_no_change(old, less, RATE) == of_times
    assert of_times == paired_p([1 / value for value in old], [1 / value for value in less])


def test_no_p_without_positive_values() -> None:
    assert comparison.p_of_no_change([], [], TIME) == 1.0
    assert comparison.p_of_no_change([1.0] * 12, [0.0] * 12, TIME) == 1.0
    assert comparison.p_of_no_change([0.1] * 12, [0.2] * 12, TIME) == pytest.approx(2**-11)


def test_a_change_beyond_all_floats_is_infinite() -> None:
    found = [comparison._growth(theta) for theta in (-math.inf, -1e9, 699.5, 700.0, 1e9)]
    assert found == [-math.inf, -1.0, math.expm1(699.5), math.inf, math.inf]


@given(st.lists(st.tuples(st.floats(0.5, 2.0), st.floats(0.5, 2.0)), min_size=8, max_size=14), st.floats(0.3, 3.0))
def test_swapping_the_sides_turns_the_change_around(values: list[tuple[float, float]], factor: float) -> None:
    a, b = [x for x, _ in values], [y * factor for _, y in values]
    there, back = (change_of(series(*sides, design="fixed")) for sides in ((a, b), (b, a)))
    assert 1 + there.estimate == pytest.approx(1 / (1 + back.estimate), rel=1e-6)
    if there.low > -1 and math.isfinite(there.high):
        assert 1 + there.low == pytest.approx(1 / (1 + back.high), rel=1e-3)


# -- exact figures

UNCHECKED = "one run per side, so perfflow could not check that the value repeats; set `runs: 2`"
BY_A_TICK = "the runs of one side differ by up to 0.1%, which widens the interval"


@pytest.mark.parametrize(
    ("old", "new", "change", "warning"),
    [
        ([1000.0] * 2, [1100.0] * 2, (0.1, 0.1, 0.1), ""),
        # Runs that differ by a tick: the change of the medians, between the extremes.
        ([1000.0, 1001.0], [1100.0, 1100.5], (1100.25 / 1000.5 - 1, 1100 / 1001 - 1, 1100.5 / 1000 - 1), BY_A_TICK),
        ([0.0, 0.0], [0.0, 0.0], (0.0, 0.0, 0.0), ""),
        ([0.0, 0.0], [3.0, 3.0], (math.inf, math.inf, math.inf), ""),
        ([5.0, 5.0], [0.0, 0.0], (-1.0, -1.0, -1.0), ""),
        # One run of a side was not checked, which is said where it shows a change.
        ([1000.0], [1000.0], (0.0, 0.0, 0.0), ""),
        ([100.0], [90.0], (-0.1, -0.1, -0.1), UNCHECKED),
        ([1000.0, 1000.0], [1001.0], (0.001, 0.001, 0.001), UNCHECKED),
    ],
)
@pytest.mark.parametrize("metric", ["instructions", "heap_peak"])
def test_figures_that_repeat(metric: str, old: list[float], new: list[float], change: Any, warning: str) -> None:
    found = compared(series(old, new, metric))
    assert (found.statistic, found.metric.exact, found.confidence) == ("value", True, None)
    assert (change_of(found).estimate, *ends(found)) == pytest.approx(change)
    assert found.warnings == ((warning,) if warning else ())


@pytest.mark.parametrize("other", [1001.01, 1040.0])
def test_a_figure_whose_runs_differ_is_judged_as_a_sample(other: float) -> None:
    found = compared(series([1000.0, other], [900.0] * 2, "heap_peak"))
    assert (found.metric.exact, found.statistic, ends(found)[1]) == (False, "p50", math.inf)


# -- summaries of one side

ELEVEN = [float(value) for value in range(1, 12)]


@pytest.mark.parametrize(
    ("values", "statistic", "expected"),
    [
        # Value, low and high end, and the samples that it needs.
        (ELEVEN, "p50", (6.0, 2.0, 10.0, 0)),
        (ELEVEN, "min", (1.0, 1.0, 1.0, 0)),
        (ELEVEN, "max", (11.0, 11.0, 11.0, 0)),
        (ELEVEN, "mean", (6.0, pytest.approx(3.772, abs=0.01), pytest.approx(8.228, abs=0.01), 0)),
        (ELEVEN[:1], "mean", (1.0, None, None, 2)),
        (ELEVEN, "p99", (pytest.approx(10.9), 10.0, None, 368)),
    ],
)
def test_summaries_of_one_side(values: list[float], statistic: str, expected: tuple[Any, ...]) -> None:
    found = known(summarise([Reading("time", value) for value in values], TIME, statistic, widened=False))
    assert (found.value, found.low, found.high, found.needs) == expected
    assert found.n == len(values)
    assert summarise([], TIME, statistic, widened=False) is None


def test_a_percentile_inside_each_process_is_taken_there_first() -> None:
    readings = [reading_of_many("time", [1.0, 2.0, 100.0 + number]) for number in range(10)]
    inner = known(summarise(readings, TIME, "max"))
    assert (inner.value, inner.n) == (104.5, 10)
    assert known(inner.low) < 104.5 < known(inner.high)


BALANCE = Metric("balance", Dimension.COUNT, Better.LOWER)
"""A program's own figure, of which nothing is known but its values."""


@pytest.mark.parametrize(
    ("metric", "values", "at_zero"),
    [
        (TIME, [0.001] * 5 + [3.0], True),
        (BALANCE, [1.0] * 5 + [900.0], True),
        (BALANCE, [-1.0, 1.0, 1.0, 1.0, 1.0, 900.0], False),
    ],
)
def test_an_interval_that_ends_at_zero(metric: Metric, values: list[float], *, at_zero: bool) -> None:
    low = known(known(summarise([Reading(metric.name, value) for value in values], metric, "mean")).low)
    assert (low == 0.0, low < 0.0) == (at_zero, not at_zero)


@pytest.mark.parametrize(
    ("statistic", "runs", "low", "high"),
    [
        *[("p50", 5, True, True), ("p50", 4, False, False), ("p95", 5, True, False), ("p95", 58, True, False)],
        *[("p95", 59, True, True), ("max", 59, False, False)],
    ],
)
def test_between_what_values_a_quantile_surely_lies(statistic: str, runs: int, *, low: bool, high: bool) -> None:
    """The probability that all of 59 samples lie below the 95th percentile is less than 5%."""
    sure = known(summarise([Reading("time", value) for value in ramp(runs)], TIME, statistic)).sure
    expected = (min(ramp(runs)) if low else -math.inf, max(ramp(runs)) if high else math.inf)
    assert (sure.low, sure.high) == expected


def test_what_is_sure_of_coarse_values_and_of_upper_bounds() -> None:
    steps = [Reading("time", 0.02 + 0.001 * (number % 2), tick=0.001) for number in range(20)]
    coarse = known(summarise(steps, TIME, "p50")).sure
    assert (coarse.low, coarse.high) == pytest.approx((0.0195, 0.0215))
    bounds = [Reading("rss", 5e6 + number, at_most=number == 3) for number in range(20)]
    bound = known(summarise(bounds, RSS, "p50"))
    assert (bound.low, bound.sure.low, bound.sure.high) == (0.0, -math.inf, 5e6 + 19)


# -- speed-ups


@given(st.floats(-0.99, 50).filter(lambda value: abs(value) > 1e-9), st.floats(0, 0.5))
def test_speedup_is_above_1_where_it_is_better(change: float, half: float) -> None:
    interval = Interval(change, change - half, change + half)
    lower, higher = speedup(interval, Better.LOWER), speedup(interval, Better.HIGHER)
    assert (lower.estimate >= 1) == (change <= 0)
    assert (higher.estimate >= 1) == (change >= 0)
    for found in (lower, higher):
        assert found.low <= found.estimate <= found.high


@pytest.mark.parametrize(
    ("change", "better", "expected"),
    [
        ((-0.5, -0.75, 0.0), Better.LOWER, (2.0, 1.0, 4.0)),
        ((1.0, 0.5, 3.0), Better.HIGHER, (2.0, 1.5, 4.0)),
        ((-1.0, -1.0, -0.5), Better.LOWER, (math.inf, 2.0, math.inf)),
        ((0.0, -math.inf, math.inf), Better.LOWER, (1.0, -math.inf, math.inf)),
    ],
)
def test_speedups(change: tuple[float, float, float], better: Better, expected: tuple[float, float, float]) -> None:
    assert speedup(Interval(*change), better) == Interval(*expected)


# -- many operations in a process


def processes(before: list[list[float]], after: list[list[float]]) -> MetricSeries:
    made = series([], [])
    for side, found in ((OLD, before), (NEW, after)):
        made.sides[side] = [reading_of_process("time", values) for values in found]
    return made


@pytest.mark.parametrize(
    ("before", "after", "statistic", "low", "value"),
    [
        # Half of the operations twice as slow is a slowdown of the process.
        ([1.0] * 100, [1.0, 2.0] * 50, CAPPED, 0.5, 1.5),
        # The mean decides where rare operations got far slower.
        ([1.0] * 50, [1.0] * 49 + [21.0], MEAN, 0.4, 1.4),
    ],
)
def test_averages(before: list[float], after: list[float], statistic: str, low: float, value: float) -> None:
    found = compared(processes(*([[noise * one for one in side] for noise in NOISY * 2] for side in (before, after))))
    assert found.statistic == statistic
    assert ends(found)[0] == pytest.approx(low, abs=0.05)
    assert (known(found.baseline).value, known(found.candidate).value) == pytest.approx((1.0, value), abs=0.01)
    assert any(text.startswith("judged by the mean") for text in found.warnings) is (statistic == MEAN)


def test_what_the_rest_of_the_machine_adds_to_a_few_values_counts_for_little() -> None:
    disturbed = [[noise] * 99 + [noise * 50 * (number % 3)] for number, noise in enumerate(NOISY * 2)]
    found = compared(processes([[noise] * 100 for noise in NOISY * 2], disturbed))
    assert found.statistic == CAPPED
    assert -0.02 < ends(found)[0] <= ends(found)[1] < 0.02


def by_the_fastest(before: list[list[float]], after: list[list[float]]) -> MetricSeries:
    made = processes(before, after)
    for side in (OLD, NEW):
        made.sides[side] = [replace(item, value=item.inner["min"], statistic="min") for item in made.sides[side]]
    return made


def test_the_mean_decides_where_the_fastest_of_each_process_hides_a_change() -> None:
    before = [[noise] * 15 for noise in NOISY * 2]
    found = compared(by_the_fastest(before, [[noise] * 10 + [noise * 1.6] * 5 for noise in NOISY * 2]))
    assert found.statistic == MEAN
    assert ends(found)[0] == pytest.approx(0.2, abs=0.05)
    assert any(text.startswith("judged by the mean of all samples: the fastest") for text in found.warnings)
    # What other programs take from some processes moves the mean, but proves nothing.
    disturbed = [[noise] * 10 + [noise * (1 + number % 3)] * 5 for number, noise in enumerate(NOISY * 2)]
    found = compared(by_the_fastest(disturbed, disturbed[1:] + disturbed[:1]))
    assert found.statistic == "min"
    assert -0.05 < ends(found)[0] < 0 < ends(found)[1] < 0.05


def test_processes_of_different_statistics_are_compared_by_their_medians() -> None:
    made = by_the_fastest([[noise, noise * 2, noise * 3] for noise in NOISY * 2], [[noise] * 3 for noise in NOISY * 2])
    # The last ones fell back to the median, as those of code that allocates do.
    made.sides[NEW][-1] = replace(made.sides[NEW][-1], value=made.sides[NEW][-1].inner["p50"], statistic="p50")
    found = compared(made)
    assert found.statistic == "p50"
    assert known(found.baseline).value == pytest.approx(2.0, abs=0.05)
    assert ends(found)[0] == pytest.approx(-0.5, abs=0.05)


def test_the_mean_and_the_capped_mean_share_the_false_alarms() -> None:
    same = [[noise, noise * 1.01] for noise in NOISY * 2]
    found = compared(processes(same, same[::-1]))
    assert found.confidence == pytest.approx(1 - (1 - comparison.MEAN_SHARE) * dict(SCHEDULES[Design.LOOKS])[20])


# -- the runs that count


@pytest.mark.parametrize(
    ("design", "counts"),
    [
        ("few", {4: 4, 5: 5, 7: 5, 8: 8, 10: 8, 98: 98, 200: 98}),
        ("looks", {3: 3, 12: 12, 4096: 4096, 5000: 4096}),
        ("fixed", {5000: 5000}),
    ],
)
def test_the_runs_that_count_are_those_of_the_last_look_or_whole_block(design: str, counts: dict[int, int]) -> None:
    assert {runs: comparison._judged(design, runs) for runs in counts} == counts


@pytest.mark.parametrize(("runs", "counted", "alpha"), [(7, 5, 0.00794), (8, 8, 0.0004)])
def test_few_runs_are_judged_in_whole_blocks(runs: int, counted: int, alpha: float) -> None:
    old, new = ramp(runs), ramp(runs, 1.4)
    found = compared(series(old, new, design="few", paired=False))
    expected = permutation_interval(old[:counted], new[:counted], 1 - alpha, blocks_of(counted))
    assert (found.pairs, ends(found)[0]) == pytest.approx((counted, math.expm1(expected.low)))
    short = compared(series(old[:4], new[:4], design="few", paired=False))
    assert (short.pairs, short.warnings) == (4, (comparison._TOO_FEW_PAIRS,))


@pytest.mark.parametrize(("before", "after"), [(8, 3), (3, 8), (8, 7)])
def test_a_side_of_few_runs_may_lack_readings(before: int, after: int) -> None:
    found = compared(series(ramp(before), ramp(after, 1.4), design="few", paired=False))
    assert found.change is not None
    assert found.change.estimate == pytest.approx(0.4, abs=0.2)


def test_too_few_fresh_runs_confirm_nothing() -> None:
    made = series(ramp(7), ramp(7, 1.4), design="few", paired=False)
    made.confirming = {side: [0] * 5 + [1] * 2 for side in Side}
    (confirmation,) = compared(made).confirmations
    assert (confirmation.pairs, confirmation.p) == (2, 1.0)


def test_what_was_not_taken_in_pairs_has_none() -> None:
    found = compared(series(ramp(12), ramp(12, 1.3), design="unpaired", paired=False))
    assert (found.pairs, bool(found.change)) == (0, True)


def test_before_the_first_look_all_pairs_count_and_from_it_on_whole_ones() -> None:
    old, new = ramp(13), ramp(13, 1.3)
    first = SCHEDULES["looks"][0][0]
    counts = {(3, 4): (3, 4), (12, first): (first, first), (first, first + 2): (first, first)}
    for (before, after), expected in counts.items():
        found = comparison._of_schedule("looks", old[:before], new[:after])
        assert found == (old[: expected[0]], new[: expected[1]])


# -- coarse values


def test_all_of_five_pairs_on_one_side_are_told() -> None:
    old, new = ramp(5), [1.2, 1.3, 1.4, 1.5, 1.6]
    made = series(old, new)
    found = compared(made)
    ratios = [b / a - 1 for a, b in zip(old, new, strict=True)]
    sure = known(comparison.sure_change(found, made))
    assert (sure.low, sure.high) == pytest.approx((min(ratios), max(ratios)))
    for other in (replace(found, pairs=4), replace(found, change=None), replace(found, change=Interval(0, -0.1, 0.1))):
        assert comparison.sure_change(other, made) is None
    made.sides[NEW][0] = replace(made.sides[NEW][0], at_most=True)
    assert comparison.sure_change(found, made) is None


def test_coarse_values_move_both_ends_out() -> None:
    """Values in whole milliseconds: half of one on a median of 20 is 2.5%, on one of 25 it is 2%."""
    found = compared(series([0.02] * 12, [0.025] * 12, tick=0.001))
    blur = max(math.log1p(0.025) - math.log1p(-0.02), math.log1p(0.02) - math.log1p(-0.025))
    assert found.blur == pytest.approx(blur)
    assert ends(found) == pytest.approx((1.25 * math.exp(-blur) - 1, 1.25 * math.exp(blur) - 1))
    (said,) = found.warnings
    assert said.startswith("values come in steps of 1.00 ms, 5.0% of the value")
    assert (known(found.baseline).low, known(found.baseline).high) == pytest.approx((0.0195, 0.0205))
    # Steps as large as the values leave nothing known.
    wide = compared(series([0.001] * 12, [0.001] * 12, tick=0.002))
    assert (wide.blur, ends(wide)) == (math.inf, ANY)


# -- code layouts


def layouts(per_side: int, runs: int, spread: float) -> MetricSeries:
    """Return ``per_side`` code layouts of each side, each run several times, and the programs as built."""
    values = [1 + spread * (number % 5 - 2) for number in range(per_side) for _ in range(runs)]
    made = series(values, [1.1 * value for value in values], design="few layouts", paired=False)
    made.built = series([1.0, 1.01, 0.99, 1.02, 0.98] * 4, [1.3, 1.31, 1.29, 1.32, 1.28] * 4)
    made.layouts = {side: [number for number in range(per_side) for _ in range(runs)] for side in Side}
    return made


def test_layouts_decide_by_the_median_of_each() -> None:
    made = layouts(10, 3, 0.02)
    made.sides[NEW][0] = replace(made.sides[NEW][0], value=50.0)  # an outlier among three runs of one layout
    found = compared(made)
    assert change_of(found).estimate == pytest.approx(0.1, abs=1e-3)
    over = known(found.layouts)
    assert (found.pairs, over.n) == (10, 10)
    assert change_of(over.built).estimate == pytest.approx(0.3, abs=0.01)


def test_five_layouts_are_enough_beside_the_mean_and_another_row() -> None:
    made = layouts(5, 3, 0.01)
    for side in Side:
        made.sides[side] = [replace(item, inner={MEAN: item.value}, statistic="min") for item in made.sides[side]]
    found = compare(made, Criteria(), 0.8)
    assert found.statistic == "min"
    assert found.confidence == pytest.approx(0.992)
    assert ends(found)[0] > 0.03


def test_the_side_with_fewer_layouts_and_runs_counts() -> None:
    made = layouts(10, 3, 0.02)
    made.sides[NEW], made.layouts[NEW] = made.sides[NEW][:-4], made.layouts[NEW][:-4]
    found = compared(made)
    assert (found.pairs, known(found.layouts).n) == (9, 9)
    # The last layout has two runs, so the first two of each layout count.
    made.sides[NEW] = [
        replace(item, value=item.value * (9 if at % 3 == 2 else 1)) for at, item in enumerate(made.sides[NEW])
    ]
    values = comparison._values(made, NEW)
    assert values == pytest.approx([item.value for item in made.sides[NEW]][::3])


def test_the_deviation_of_runs_that_were_cut_short_is_net_of_the_noise_of_whole_ones() -> None:
    made = layouts(4, 2, 0.1)
    built = known(made.built)
    for side in Side:
        made.sides[side], made.layouts[side] = made.sides[side] + made.sides[side][-1:], [0, 0, 1, 1, 2, 2, 3, 3, 3]
    noise = [comparison._variance([item.value for item in built.readings(side)]) or 0.0 for side in Side]
    spread = variance(map(math.log, (0.8, 0.9, 1.0, 1.1)))
    assert comparison._deviation(made) == pytest.approx(math.sqrt(spread - sum(noise) / 2 / 2))
    built.sides[NEW] = built.sides[NEW][:1]
    assert comparison._deviation(made) == pytest.approx(math.sqrt(spread - noise[0] / 2))


def test_the_deviation_between_layouts_is_net_of_noise() -> None:
    logs = [math.log(1 + 0.1 * (number % 5 - 2)) for number in range(10)]
    noise = variance(map(math.log, sorted([1.0, 1.01, 0.99, 1.02, 0.98] * 4)[:19]))
    other = variance(map(math.log, sorted([1.3, 1.31, 1.29, 1.32, 1.28] * 4)[:19]))
    for spread, expected in ((0.1, math.sqrt(variance(logs) - (noise + other) / 2 / 2)), (0.0, 0.0)):
        assert known(compared(layouts(10, 2, spread)).layouts).deviation == pytest.approx(expected)
    unknown = layouts(10, 2, 0.1)
    unknown.built = series([1.0], [1.3])
    assert comparison._deviation(unknown) == 0.0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # The largest twentieth is left out.
        *[([1.0], None), ([0.0, 1.0, 2.0], None), ([1.0, math.e], 0.5)],
        ([1.0, math.e] * 9 + [1e9], variance([0.0, 1.0] * 9 + [math.log(1e9)])),
        ([1.0, math.e] * 9 + [1.0, 1e9], variance([0.0] * 10 + [1.0] * 9)),
    ],
)
def test_a_variance_leaves_the_largest_twentieth_out(values: list[float], expected: float | None) -> None:
    assert comparison._variance(values) == pytest.approx(expected)


def event(design: str, number: int, layout: int, **sides: float) -> dict[str, Any]:
    values = {side: [{"metric": "cpu", "value": value}] for side, value in sides.items()}
    found: dict[str, Any] = {"event": "sample", "step": "s", "design": design, "pair": number, **values}
    return found | ({"layout": layout} if layout else {})


def series_of(events: Iterator[dict[str, Any]]) -> MetricSeries:
    folded = Record()
    for item in events:
        folded.fold(item)
    return folded.series["s", "cpu"]


def taken(*, between: float, pairs: int = 20, noise: float = 0.003) -> Iterator[dict[str, Any]]:
    """As built, the head is 12% slower; over layouts there is no change."""
    chance = random.Random(7)

    def value(layout: float) -> float:
        return layout * chance.gauss(1, noise)

    for number in range(pairs):
        yield event("looks", number, 0, baseline=value(1.0), candidate=value(1.12))
    for number in range(pairs):
        drawn = {side.value: value(chance.gauss(1, between)) for side in Side}
        yield event("layouts", pairs + number, number + 1, **drawn)


def test_the_samples_as_built_are_set_aside_and_kept() -> None:
    found = compared(series_of(taken(between=0.02)))
    over = known(found.layouts)
    assert (found.pairs, over.n) == (20, 20)
    assert found.confidence == pytest.approx(1 - dict(SCHEDULES[Design.LAYOUTS])[20])
    assert abs(change_of(found).estimate) < 0.03
    assert change_of(over.built).estimate == pytest.approx(0.12, abs=0.01)
    assert 0.01 < over.deviation < 0.04
    # Noise alone is no deviation between layouts.
    assert known(compared(series_of(taken(between=0.0, pairs=60, noise=0.02))).layouts).deviation < 0.01


def test_memory_is_judged_as_built() -> None:
    folded = Record()
    for number, layout in enumerate([0] * 6 + [1, 2, 3]):
        item = event("layouts" if layout else "looks", number, layout, baseline=1e6, candidate=1e6)
        folded.fold(beside([item], "rss", 1e7, 1e7)[0])
    assert {key[1]: len(found.sides[OLD]) for key, found in folded.series.items()} == {"cpu": 3, "rss": 6}
    assert folded.series["s", "rss"].built is None


def test_of_a_few_layouts_the_medians_count() -> None:
    chance = random.Random(3)
    runs = [(side, layout) for side in Side for layout in range(1, 9) for _ in range(3)]
    chance.shuffle(runs)
    lucky = {(side, layout): chance.gauss(1, 0.05) for side in Side for layout in range(1, 9)}

    def events() -> Iterator[dict[str, Any]]:
        for number in range(11):
            yield event("looks", number, 0, baseline=1.0, candidate=1.3)
        for number, (side, layout) in enumerate(runs, 11):
            # One run of three is disturbed, which does not affect the median.
            cost = lucky[side, layout] * (1.5 if number % 7 == 0 else 1.0)
            yield event("few layouts", number, layout, **{side.value: cost})

    made = series_of(events())
    assert made.layouts[OLD] == sorted(made.layouts[OLD])
    found = compared(made)
    assert (found.pairs, known(found.layouts).n, found.confidence) == (8, 8, 0.99)
    assert 0.02 < known(found.layouts).deviation < 0.15
    assert rule(found, Thresholds(), identical=False).decision in ("same", "unproven")


# -- a rate that is the inverse of a time in all samples is judged and reported once


@pytest.mark.parametrize(
    ("times", "rates", "candidates", "same"),
    [
        ([1.0, 2.0, 4.0], [4.0, 2.0, 1.0], 3, True),
        ([0.25, 0.5, 0.125], [2.0, 1.0, 4.0], 3, True),  # half a byte of work
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 3, False),
        ([1.0, 1.0, 1.0], [2.15625, 2.15625 * 1.001, 2.15625], 3, True),
        ([1.0, 1.0, 1.0], [2.15625, 2.15625 * 1.0011, 2.15625], 3, False),
        ([1.0, 2.0, 4.0], [4.0, 2.0, 1.0], 2, False),  # a process of the candidate lacks it
    ],
)
def test_a_rate_that_is_a_time(times: list[float], rates: list[float], candidates: int, *, same: bool) -> None:
    events = pairs("b", times, times)
    for number, (one, rate) in enumerate(zip(events, rates, strict=True)):
        beside([one], "throughput", rate, rate if number < candidates else None)
    assert comparison.source_of(record(*events, ended("b")), "b", "throughput") == ("time" if same else "")


def test_a_rate_is_left_out_where_its_time_says_the_same() -> None:
    time = shown_row("regressed", "concern", 0.2, 0.1, 0.3)
    rate = shown_row("regressed", "concern", -0.2, -0.3, -0.1, metric="throughput", better="higher", same_as="time")
    worse, alone, unknown = ({"level": None}, {"same_as": ""}, {"level": None})
    assert comparison.without_inverse_rates([time, rate]) == [time]
    for of_time, of_rate, count in (
        *(({"gating": False}, {}, 2), ({"decision": "same"}, {}, 2)),
        *(({}, alone, 2), ({}, worse, 2), (unknown, worse, 1)),
    ):
        both = [time.model_copy(update=of_time), rate.model_copy(update=of_rate)]
        assert comparison.without_inverse_rates(both) == both[:count]


def with_rate(wanted: Criteria | None = None, *, work: float = 1.0, guard: Sequence[str] = ()) -> Result:
    """Return a time that is 25% longer and a throughput (work / time); the head may do a different amount of work."""
    own = wanted or Criteria()
    events = pairs("b", scaled(1.0), scaled(1.25))
    for one in events:
        before, after = (1e6 / one[side][0]["value"] for side in Side)
        beside([one], "throughput", before, work * after)
    return judge(record(*events, ended("b"), criteria=own, trees=REVISIONS, guard=list(guard)), own)


@pytest.mark.parametrize("guard", [[], ["**"]])
def test_the_rate_does_not_gate(guard: list[str]) -> None:
    result = with_rate(guard=guard)
    rate = row(result, "throughput")
    assert (rate.gating, rate.same_as, rate.why) == (False, "time", "the same measurement as time")
    assert [text.partition(",")[0] for text in result.reason_texts] == ["regressed: b time +25.0%"]


def test_one_that_a_target_names_gates_and_is_told_once() -> None:
    own = criteria({"b": {"throughput": "≥1MB/s"}})
    result = with_rate(own)
    assert row(result, "throughput").gating
    assert sum(text.startswith("regressed") for text in result.reason_texts) == 1
    page = page_of(result)
    assert [item.metric for item in page.comparisons] == ["time"]
    assert [item.metric for item in known(page.findings.summary).regressed.shown] == ["time"]
    assert [text.split()[1] for text in result.routes[0].brief.regressed] == ["time:"]
    assert judge(record_of_result(result), own) == result


def test_of_other_work_the_rate_is_another_measurement() -> None:
    assert row(with_rate(work=1.3), "throughput").same_as == ""
    assert row(with_rate(work=0.8, guard=["**"]), "throughput").gating
