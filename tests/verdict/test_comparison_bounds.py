"""Special cases of a comparison: layouts, resolution, upper bounds, zeros, and runs within a tick."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import variance

import pytest

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import METRICS, Better, Metric
from perfflow.model.readings import SCHEDULES, Reading, Side
from perfflow.model.result import PlannedStep
from perfflow.model.units import Dimension
from perfflow.stats.paired_test import Interval, blocks_of, paired_interval, paired_p, permutation_interval
from perfflow.store.record import MetricSeries
from perfflow.verdict import comparison, judge
from perfflow.verdict.comparison import ComparedMetric, compare, p_of_no_change, sure_change
from perfflow.verdict.judge import NOTHING
from tests.verdict.records import ended, judged, pairs, planned

OLD, NEW = Side
TIME, RATE, COUNT = METRICS["time"], METRICS["rate"], METRICS["instructions"]


def series(old: list[float], new: list[float], metric: str = "time", **keys: bool | str) -> MetricSeries:
    known: dict[str, bool | str] = {"paired": True, "two_sided": True, "design": "looks"}
    made = MetricSeries("b", metric, "s", "t", **(known | keys))  # type: ignore[arg-type]
    made.sides = {OLD: [Reading(metric, value) for value in old], NEW: [Reading(metric, value) for value in new]}
    return made


def ramp(runs: int, factor: float = 1.0) -> list[float]:
    return [factor * (1 + 0.0137 * (number * 7 % runs)) for number in range(runs)]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        # Runs that differ by a tick: the change of the medians, between the extremes.
        ([1000.0, 1001.0], [1100.0, 1100.5], (1100.25 / 1000.5 - 1, 1100 / 1001 - 1, 1100.5 / 1000 - 1)),
        ([1000.0, 1000.0], [1100.0, 1100.0], (0.1, 0.1, 0.1)),
        ([0.0, 0.0], [0.0, 0.0], (0.0, 0.0, 0.0)),
        ([0.0, 0.0], [3.0, 3.0], (math.inf, math.inf, math.inf)),
    ],
)
def test_figures_that_repeat(old: list[float], new: list[float], change: tuple[float, float, float]) -> None:
    found = compare(series(old, new, "instructions"), Criteria())
    assert found.metric.exact
    assert found.change
    assert (found.change.estimate, found.change.low, found.change.high) == pytest.approx(change)
    assert found.confidence is None
    assert bool(found.warnings) is (old[0] != old[1])


def test_one_run_a_side_says_that_it_was_not_checked_where_it_shows_a_change() -> None:
    found = [compare(series([1000.0], [value], "instructions"), Criteria()).warnings for value in (1000.0, 1001.0)]
    assert [[text.partition(",")[0] for text in texts] for texts in found] == [[], ["one run per side"]]


def test_the_runs_that_count_are_those_of_the_last_look_or_whole_block() -> None:
    assert [comparison._judged("few", runs) for runs in (4, 5, 7, 8, 10, 98, 200)] == [4, 5, 5, 8, 8, 98, 98]
    assert [comparison._judged("looks", pairs) for pairs in (3, 12, 4096, 5000)] == [3, 12, 4096, 4096]
    assert comparison._judged("fixed", 5000) == 5000
    old, new = ramp(7), ramp(7, 1.4)
    found = compare(series(old, new, design="few", paired=False), Criteria())
    expected = permutation_interval(old[:5], new[:5], 1 - 0.00794, blocks_of(5))
    assert found.pairs == 5
    assert found.change
    assert found.change.low == pytest.approx(math.expm1(expected.low))
    short = compare(series(old[:4], new[:4], design="few", paired=False), Criteria())
    assert (short.pairs, short.warnings) == (4, (comparison._TOO_FEW_PAIRS,))
    more = compare(series(ramp(8), ramp(8, 1.4), design="few", paired=False), Criteria())
    assert more.change
    expected = permutation_interval(ramp(8), ramp(8, 1.4), 1 - 0.0004, blocks_of(8))
    assert more.pairs == 8
    assert more.change.low == pytest.approx(math.expm1(expected.low))


def test_a_rate_is_judged_by_its_reciprocal() -> None:
    old, new = ramp(20), ramp(20, 1.3)
    found = compare(series(old, new, "rate"), Criteria())
    turned = paired_interval([1 / value for value in old], [1 / value for value in new], found.confidence or 0.0)
    assert found.change
    assert (found.change.low, found.change.high) == pytest.approx((math.expm1(-turned.high), math.expm1(-turned.low)))
    assert p_of_no_change(old, ramp(20, 1.001), RATE) == p_of_no_change(
        [1 / value for value in old], [1 / value for value in ramp(20, 1.001)], TIME
    )


def test_no_p_without_positive_values() -> None:
    assert p_of_no_change([], [], TIME) == 1.0
    assert p_of_no_change([1.0] * 12, [0.0] * 12, TIME) == 1.0
    assert p_of_no_change([0.1] * 12, [0.2] * 12, TIME) == pytest.approx(2**-11)


def test_a_rate_of_p_is_that_of_its_reciprocals() -> None:
    old, new = ramp(12), ramp(12, 1.05)[::-1]
    assert p_of_no_change(old, new, RATE) == paired_p([1 / value for value in old], [1 / value for value in new])


def test_a_change_beyond_all_floats_is_infinite() -> None:
    found = [comparison._growth(theta) for theta in (-math.inf, -1e9, 699.5, 700.0, 1e9)]
    assert found == [-math.inf, -1.0, math.expm1(699.5), math.inf, math.inf]


def test_what_was_not_taken_in_pairs_has_none() -> None:
    found = compare(series(ramp(12), ramp(12, 1.3), design="unpaired", paired=False), Criteria())
    assert found.pairs == 0
    assert found.change


def test_one_run_of_one_side_was_not_checked_either() -> None:
    found = compare(series([1000.0, 1000.0], [1001.0], "instructions"), Criteria())
    assert found.warnings == (comparison._UNCHECKED,)


def test_before_the_first_look_all_pairs_count_and_from_it_on_whole_ones() -> None:
    values = ramp(12), ramp(12, 1.3)
    assert comparison._of_schedule("looks", values[0][:3], values[1][:4]) == (values[0][:3], values[1][:4])
    assert comparison._of_schedule("looks", values[0], values[1][:11]) == (values[0][:11], values[1][:11])
    # The first interim analysis: values of the longer side beyond it are not used.
    first = SCHEDULES["looks"][0][0]
    longer = comparison._of_schedule("looks", ramp(first), ramp(first + 2))
    assert [len(side) for side in longer] == [first, first]


def test_one_reading_that_is_an_upper_bound_leaves_the_low_end_open() -> None:
    readings = [Reading("rss", 5e6 + number, at_most=number == 3) for number in range(20)]
    found = comparison.summarise(readings, METRICS["rss"], "p50")
    assert found
    assert (found.low, found.sure.low) == (0.0, -math.inf)
    assert found.sure.high == 5e6 + 19


@pytest.mark.parametrize(
    ("metric", "values", "least"),
    [
        (TIME, [0.001, 0.001, 0.001, 0.001, 0.001, 3.0], 0.0),
        # Of a program's own figure nothing is known but its values.
        (Metric("balance", Dimension.COUNT, Better.LOWER), [1.0, 1.0, 1.0, 1.0, 1.0, 900.0], 0.0),
        (Metric("balance", Dimension.COUNT, Better.LOWER), [-1.0, 1.0, 1.0, 1.0, 1.0, 900.0], -math.inf),
    ],
)
def test_the_interval_of_what_is_never_negative_ends_at_zero(metric: Metric, values: list[float], least: float) -> None:
    found = comparison.summarise([Reading(metric.name, value) for value in values], metric, "mean")
    assert found
    assert found.low is not None
    assert (found.low == 0.0) is (least == 0.0)
    assert found.low >= least


def test_coarse_values_are_sure_to_half_a_step_beyond_the_extremes() -> None:
    readings = [Reading("time", 0.02 + 0.001 * (number % 2), tick=0.001) for number in range(20)]
    found = comparison.summarise(readings, TIME, "p50")
    assert found
    assert (found.sure.low, found.sure.high) == pytest.approx((0.0195, 0.0215))


def test_a_side_known_as_an_upper_bound_leaves_one_end_open() -> None:
    for bounded in Side:
        made = series(ramp(12), ramp(12, 1.3))
        made.sides[bounded] = [replace(item, at_most=True) for item in made.sides[bounded]]
        found = compare(made, Criteria()).change
        assert found
        assert (found.high == math.inf, found.low == -math.inf) == (bounded is OLD, bounded is NEW)


def test_all_of_five_pairs_on_one_side_are_told() -> None:
    old, new = ramp(5), [1.2, 1.3, 1.4, 1.5, 1.6]
    made = series(old, new)
    found = compare(made, Criteria())
    ratios = [b / a - 1 for a, b in zip(old, new, strict=True)]
    sure = sure_change(found, made)
    assert sure
    assert (sure.low, sure.high) == pytest.approx((min(ratios), max(ratios)))
    assert sure_change(replace(found, pairs=4), made) is None
    assert sure_change(replace(found, change=None), made) is None
    assert sure_change(replace(found, change=Interval(0.0, -0.1, 0.1)), made) is None
    made.sides[NEW][0] = replace(made.sides[NEW][0], at_most=True)
    assert sure_change(found, made) is None


@pytest.mark.parametrize(
    ("statistic", "runs", "low", "high"),
    [
        *[("p50", 5, True, True), ("p50", 4, False, False), ("p95", 5, True, False), ("p95", 58, True, False)],
        *[("p95", 59, True, True), ("max", 59, False, False)],
    ],
)
def test_a_quantile_surely_lies_between_the_least_and_the_greatest(
    statistic: str, runs: int, *, low: bool, high: bool
) -> None:
    """The probability that all of 59 samples lie below the 95th percentile is less than 5%."""
    found = comparison.summarise([Reading("time", value) for value in ramp(runs)], TIME, statistic)
    assert found
    assert found.sure.low == (min(ramp(runs)) if low else -math.inf)
    assert found.sure.high == (max(ramp(runs)) if high else math.inf)


def test_coarse_values_move_both_ends_out() -> None:
    """Values in whole milliseconds: half of one on a median of 20 is 2.5%, on one of 25 it is 2%."""
    made = series([0.02] * 12, [0.025] * 12)
    made.sides = {side: [replace(item, tick=0.001) for item in made.sides[side]] for side in Side}
    found = compare(made, Criteria())
    blur = max(math.log1p(0.025) - math.log1p(-0.02), math.log1p(0.02) - math.log1p(-0.025))
    assert found.blur == pytest.approx(blur)
    assert found.change
    assert found.change.low == pytest.approx(1.25 * math.exp(-blur) - 1)
    assert found.change.high == pytest.approx(1.25 * math.exp(blur) - 1)
    (said,) = found.warnings
    assert said.startswith("values come in steps of 1.00 ms, 5.0% of the value")
    assert found.baseline
    assert (found.baseline.low, found.baseline.high) == pytest.approx((0.0195, 0.0205))


def test_steps_as_large_as_the_values_leave_nothing_known() -> None:
    made = series([0.001] * 12, [0.001] * 12)
    made.sides = {side: [replace(item, tick=0.002) for item in made.sides[side]] for side in Side}
    found = compare(made, Criteria())
    assert found.blur == math.inf
    assert found.change
    assert (found.change.low, found.change.high) == (-math.inf, math.inf)


def layouts(per_side: int, runs: int, spread: float) -> MetricSeries:
    """Return ``per_side`` code layouts of each side, each run several times, and the programs as built."""
    built = series([1.0, 1.01, 0.99, 1.02, 0.98] * 4, [1.3, 1.31, 1.29, 1.32, 1.28] * 4)
    values = [1 + spread * (number % 5 - 2) for number in range(per_side) for _ in range(runs)]
    made = series(values, [1.1 * value for value in values], design="few layouts", paired=False)
    made.built = built
    made.layouts = {side: [number for number in range(per_side) for _ in range(runs)] for side in Side}
    return made


def test_layouts_decide_by_the_median_of_each() -> None:
    made = layouts(10, 3, 0.02)
    made.sides[NEW][0] = replace(made.sides[NEW][0], value=50.0)  # an outlier among three runs of one layout
    found = compare(made, Criteria())
    assert found.change
    assert found.change.estimate == pytest.approx(0.1, abs=1e-3)
    assert found.pairs == 10
    assert found.layouts
    assert found.layouts.n == 10
    assert found.layouts.built.change
    assert found.layouts.built.change.estimate == pytest.approx(0.3, abs=0.01)


def test_the_side_with_fewer_layouts_and_runs_counts() -> None:
    made = layouts(10, 3, 0.02)
    made.sides[NEW], made.layouts[NEW] = made.sides[NEW][:-4], made.layouts[NEW][:-4]
    found = compare(made, Criteria())
    assert found.layouts
    assert (found.pairs, found.layouts.n) == (9, 9)
    # The last layout has two runs, so the first two of each layout count.
    made.sides[NEW] = [
        replace(item, value=item.value * (9 if at % 3 == 2 else 1)) for at, item in enumerate(made.sides[NEW])
    ]
    values = comparison._values(made, NEW)
    assert values == pytest.approx([item.value for item in made.sides[NEW]][::3])


def test_the_deviation_of_runs_that_were_cut_short_is_net_of_the_noise_of_whole_ones() -> None:
    made = layouts(4, 2, 0.1)
    assert made.built
    for side in Side:
        made.sides[side], made.layouts[side] = made.sides[side] + made.sides[side][-1:], [0, 0, 1, 1, 2, 2, 3, 3, 3]
    noise = [comparison._variance([item.value for item in made.built.readings(side)]) or 0.0 for side in Side]
    spread = variance(map(math.log, (0.8, 0.9, 1.0, 1.1)))
    assert comparison._deviation(made) == pytest.approx(math.sqrt(spread - sum(noise) / 2 / 2))
    made.built.sides[NEW] = made.built.sides[NEW][:1]
    assert comparison._deviation(made) == pytest.approx(math.sqrt(spread - noise[0] / 2))


def test_the_deviation_between_layouts_is_net_of_noise() -> None:
    logs = [math.log(1 + 0.1 * (number % 5 - 2)) for number in range(10)]
    noise = variance(map(math.log, sorted([1.0, 1.01, 0.99, 1.02, 0.98] * 4)[:19]))
    other = variance(map(math.log, sorted([1.3, 1.31, 1.29, 1.32, 1.28] * 4)[:19]))
    found = compare(layouts(10, 2, 0.1), Criteria()).layouts
    assert found
    assert found.deviation == pytest.approx(math.sqrt(variance(logs) - (noise + other) / 2 / 2))
    unknown = layouts(10, 2, 0.1)
    unknown.built = series([1.0], [1.3])
    assert comparison._deviation(unknown) == 0.0
    quiet = compare(layouts(10, 2, 0.0), Criteria()).layouts
    assert quiet
    assert quiet.deviation == 0.0


def test_a_variance_leaves_the_largest_twentieth_out() -> None:
    assert comparison._variance([1.0]) is None
    assert comparison._variance([0.0, 1.0, 2.0]) is None
    assert comparison._variance([1.0, math.e]) == pytest.approx(0.5)
    assert comparison._variance([1.0, math.e] * 9 + [1e9]) == pytest.approx(variance([0.0, 1.0] * 9 + [math.log(1e9)]))
    assert comparison._variance([1.0, math.e] * 9 + [1.0, 1e9]) == pytest.approx(variance([0.0] * 10 + [1.0] * 9))


@pytest.mark.parametrize(
    ("name", "reason", "role", "told"),
    [
        ("sort", "it failed", "measure", " (sort)"),
        ("sort", "sort failed", "measure", ""),
        ("step", "it failed", "measure", ""),
        ("so*", "it failed", "measure", ""),
        ("sort", "it failed", "profile", ""),
    ],
)
def test_a_failure_names_its_benchmark_once(name: str, reason: str, role: str, told: str) -> None:
    planned = PlannedStep(id="step", stage="baseline", tool="command", role=role, benchmark=name)
    assert judge._about("step", planned, reason) == told


def test_what_removing_a_place_can_bring_is_bounded() -> None:
    assert judge._impact(0.5, "time") == "at most 2.00x faster without it"
    assert judge._impact(1.0, "time") == "all of the time"
    assert judge._impact(0.999, "time") == "nearly all of the time"
    assert judge._impact(0.25, "allocations") == "at most 25% fewer allocations without it"


def test_a_run_says_what_is_missing() -> None:
    steps = [planned("b", expect=["b", "other"]), planned("c", expect=["c"])]
    result = judged(*pairs("b", ramp(12), ramp(12)), ended("b"), ended("c", "skipped", "no"), steps=steps)
    missing = [text for text in result.reason_texts if text.startswith("expected")]
    assert missing == [
        "expected benchmark did not appear: other (step b)",
        "expected benchmark did not appear: c (step c)",
    ]
    gone = pairs("b", ramp(12), ramp(12))
    lone = [{key: value for key, value in event.items() if key != "candidate"} | {"alone": True} for event in gone]
    lost = judged(*lone, *pairs("c", ramp(12), ramp(12)), ended("b"), ended("c"), steps=[planned("b"), planned("c")])
    assert "no longer measured: b time" in lost.reason_texts
    assert judged(ended("b")).reason_texts == [NOTHING]


def test_what_is_measured_twice_is_an_error() -> None:
    steps = [planned("b"), planned("c", benchmark="b")]
    events = [event for name in "bc" for event in (*pairs(name, ramp(12), ramp(12)), ended(name))]
    result = judged(*events, steps=steps)
    assert result.verdict == "error"
    assert result.reason_texts[0].startswith("step c: measured twice: `time` of `b` was already measured by step `b`")


def test_a_comparison_made_of_nothing_is_nothing() -> None:
    empty = ComparedMetric("b", COUNT, "p50", "s", "t", None, None)
    assert (empty.pairs, empty.blur, empty.change, empty.warnings) == (0, 0.0, None, ())
    assert comparison.SideSummary(1.0, None, None, 1, (1.0,)).factor == 1.0
