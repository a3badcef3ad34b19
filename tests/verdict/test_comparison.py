"""Effect and interval of two samples."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import METRICS, Better, Metric
from perfflow.model.readings import CAPPED, MEAN, SCHEDULES, Design, Reading, Side, reading_of_many, reading_of_process
from perfflow.model.units import Dimension
from perfflow.stats.paired_test import Interval, paired_interval
from perfflow.store.record import MetricSeries
from perfflow.verdict.clocks import timing_metric
from perfflow.verdict.comparison import CHANGE_CONFIDENCE, MEAN_SHARE, ComparedMetric, compare, speedup, summarise

BASELINE, CANDIDATE = Side.BASELINE, Side.CANDIDATE
TIME, RSS, HEAP, RATE = METRICS["time"], METRICS["rss"], METRICS["heap_peak"], METRICS["rate"]
NOISY = [1.0003, 1.0211, 0.9924, 1.0108, 1.0, 1.0313, 0.9807, 1.0001, 1.0102, 0.9913]


def series(
    baseline: list[float], candidate: list[float], metric: Metric = TIME, *, paired: bool = True, two_sided: bool = True
) -> MetricSeries:
    made = MetricSeries("b", metric.name, "step", "tool", paired, two_sided)
    made.sides[BASELINE] = [Reading(metric.name, value) for value in baseline]
    made.sides[CANDIDATE] = [Reading(metric.name, value) for value in candidate]
    return made


def bounded(made: MetricSeries, *sides: Side) -> MetricSeries:
    for side in sides:
        made.sides[side] = [Reading(item.metric, item.value, at_most=True) for item in made.sides[side]]
    return made


def test_the_change_is_the_paired_interval_as_a_share_of_the_baseline() -> None:
    faster = [value * 0.8 for value in NOISY]
    found = compare(series(NOISY, faster), Criteria())
    assert found.change
    interval = paired_interval(NOISY, faster, CHANGE_CONFIDENCE)
    assert found.change.estimate == pytest.approx(-0.2)
    assert (found.change.low, found.change.high) == (math.expm1(interval.low), math.expm1(interval.high))
    assert (found.pairs, found.confidence) == (10, 0.99)
    assert found.baseline
    assert found.baseline.value == 1.0002
    assert found.baseline.low is not None
    assert found.baseline.low <= 1.0


def test_fewer_pairs_than_can_reject_anything_leave_both_ends_open() -> None:
    found = compare(series(NOISY[:7], NOISY[:7]), Criteria())
    assert found.change
    assert (found.change.low, found.change.high) == (-math.inf, math.inf)
    assert compare(series(NOISY[:8], NOISY[:8]), Criteria()).change != found.change


def test_exact_metrics_are_their_value_and_say_when_it_is_not_checked() -> None:
    found = compare(series([100.0], [90.0], HEAP), Criteria())
    assert found.change
    assert found.change.low == found.change.high == pytest.approx(-0.1)
    assert found.confidence is None
    assert found.warnings == ("one run per side, so perfflow could not check that the value repeats; set `runs: 2`",)


def test_a_figure_is_exact_where_its_runs_agree() -> None:
    found = compare(series([100.0] * 2, [90.0] * 2, HEAP), Criteria())
    assert (found.statistic, found.metric.exact, found.warnings) == ("value", True, ())
    assert found.change is not None
    assert found.change.low == found.change.high == pytest.approx(-0.1)


def test_a_tick_between_two_runs_is_the_width_of_the_interval() -> None:
    found = compare(series([10000.0, 10004.0], [10100.0, 10106.0], HEAP), Criteria())
    assert found.metric.exact
    assert found.change is not None
    assert found.change.low == pytest.approx(10100 / 10004 - 1)
    assert found.change.high == pytest.approx(10106 / 10000 - 1)
    assert found.warnings == ("the runs of one side differ by up to 0.1%, which widens the interval",)


def test_a_figure_whose_runs_differ_is_judged_as_a_sample() -> None:
    found = compare(series([100.0, 104.0], [90.0] * 2, HEAP), Criteria())
    assert not found.metric.exact
    assert found.statistic == "p50"
    assert found.change is not None
    assert found.change.high == math.inf


@pytest.mark.parametrize(("a", "b", "change"), [(0.0, 0.0, 0.0), (0.0, 5.0, math.inf), (5.0, 0.0, -1.0)])
def test_counts_of_zero(a: float, b: float, change: float) -> None:
    found = compare(series([a], [b], HEAP), Criteria())
    assert found.change
    assert found.change.estimate == change


def test_noisy_values_of_zero_have_no_relative_change_unless_nothing_changed() -> None:
    found = compare(series([0.0] * 10, [0.0] * 10), Criteria())
    assert found.change == Interval(0.0, 0.0, 0.0)
    found = compare(series([0.0, *NOISY], [1.0, *NOISY]), Criteria())
    assert found.change
    assert math.isnan(found.change.estimate)
    assert found.warnings == ("some values are zero, so there is no relative change",)


def test_unpaired_values_prove_nothing() -> None:
    found = compare(series(NOISY, [2 * value for value in NOISY], paired=False), Criteria())
    assert found.change
    assert (found.change.low, found.change.high, found.confidence) == (-math.inf, math.inf, None)


def test_one_side_alone() -> None:
    single = compare(series(NOISY, [], paired=False, two_sided=False), Criteria())
    assert (single.change, single.only, single.candidate) == (None, None, None)
    made = series([], [])
    made.lone[BASELINE] = [Reading("time", 1.0)] * 3
    gone = compare(made, Criteria())
    assert (gone.only, gone.change) == (BASELINE, None)
    assert gone.baseline
    assert gone.baseline.n == 3


def test_upper_bounds_bound_the_change_on_one_side_only() -> None:
    values, more = [10e6] * 10, [20e6] * 10
    both = compare(bounded(series(values, more, RSS), BASELINE, CANDIDATE), Criteria())
    assert both.change is None
    grown = compare(bounded(series(values, more, RSS), BASELINE), Criteria()).change
    assert grown
    assert grown.low > 0.9
    assert grown.high == math.inf
    shrunk = compare(bounded(series(more, values, RSS), CANDIDATE), Criteria()).change
    assert shrunk
    assert shrunk.high < -0.4
    assert shrunk.low == -math.inf
    assert (
        compare(bounded(series(values, more, RSS), BASELINE), Criteria())
        .warnings[0]
        .startswith("only an upper bound is known")
    )


def test_a_metric_that_is_only_shown_is_not_compared() -> None:
    assert compare(series(NOISY, NOISY, METRICS["user"]), Criteria()).change is None


def test_summaries_of_one_side() -> None:
    readings = [Reading("time", float(value)) for value in range(1, 12)]
    median = summarise(readings, TIME, "p50", widened=False)
    assert median
    assert (median.value, median.low, median.high, median.n, median.needs) == (6.0, 2.0, 10.0, 11, 0)
    assert summarise([], TIME, "p50", widened=False) is None
    for statistic, value in (("min", 1.0), ("max", 11.0)):
        extreme = summarise(readings, TIME, statistic, widened=False)
        assert extreme
        assert (extreme.value, extreme.low, extreme.high) == (value, value, value)
    mean = summarise(readings, TIME, "mean", widened=False)
    assert mean
    assert mean.value == 6.0
    assert mean.low == pytest.approx(3.772, abs=0.01)
    single = summarise(readings[:1], TIME, "mean", widened=False)
    assert single
    assert (single.low, single.needs) == (None, 2)
    tail = summarise(readings, TIME, "p99", widened=False)
    assert tail
    assert (tail.high, tail.needs) == (None, 368)


def test_a_percentile_inside_each_process_is_taken_there_first() -> None:
    readings = [reading_of_many("time", [1.0, 2.0, 100.0 + number]) for number in range(10)]
    inner = summarise(readings, TIME, "max")
    assert inner
    assert (inner.value, inner.n) == (104.5, 10)
    assert inner.low is not None
    assert inner.low < 104.5 < (inner.high or 0)


@given(st.floats(-0.99, 50).filter(lambda value: abs(value) > 1e-9), st.floats(0, 0.5))
def test_speedup_is_above_1_where_it_is_better(change: float, half: float) -> None:
    interval = Interval(change, change - half, change + half)
    lower, higher = speedup(interval, Better.LOWER), speedup(interval, Better.HIGHER)
    assert (lower.estimate >= 1) == (change <= 0)
    assert (higher.estimate >= 1) == (change >= 0)
    for found in (lower, higher):
        assert found.low <= found.estimate <= found.high


@given(st.lists(st.tuples(st.floats(0.5, 2.0), st.floats(0.5, 2.0)), min_size=8, max_size=14), st.floats(0.3, 3.0))
def test_swapping_the_sides_turns_the_change_around(values: list[tuple[float, float]], factor: float) -> None:
    a, b = [x for x, _ in values], [y * factor for _, y in values]
    there, back = compare(series(a, b), Criteria()).change, compare(series(b, a), Criteria()).change
    assert there
    assert back
    assert 1 + there.estimate == pytest.approx(1 / (1 + back.estimate), rel=1e-6)
    if there.low > -1 and math.isfinite(there.high):
        assert 1 + there.low == pytest.approx(1 / (1 + back.high), rel=1e-3)


def timed(**figures: tuple[list[float], list[float]]) -> dict[str, ComparedMetric]:
    return {name: compare(series(*sides, METRICS[name]), Criteria()) for name, sides in figures.items()}


WALL = [value * 1.0 for value in NOISY]


@pytest.mark.parametrize(
    ("share", "uncontended_share", "chosen"),
    [(0.99, 0.995, "cpu"), (0.5, 0.995, "uncontended"), (0.99, None, "cpu"), (0.5, None, "time"), (1.7, None, "time")],
)
def test_the_timing_metric_by_what_the_program_does(share: float, uncontended_share: float | None, chosen: str) -> None:
    figures = {"time": (WALL, WALL), "cpu": ([share * value for value in WALL],) * 2}
    if uncontended_share:
        figures["uncontended"] = ([uncontended_share * value for value in WALL],) * 2
    name, why = timing_metric(timed(**figures))
    assert name == chosen
    assert why


def test_contention_in_most_processes_does_not_make_a_program_one_that_waits() -> None:
    """Without queueing times the least disturbed process decides: a waiting program stays below its wall time."""
    disturbed = [value * (1 if number == 4 else 2.5) for number, value in enumerate(WALL)]
    assert timing_metric(timed(time=(disturbed, disturbed), cpu=(WALL, WALL)))[0] == "cpu"
    waiting = [value + 0.2 for value in WALL]
    assert timing_metric(timed(time=(WALL, waiting), cpu=(WALL, WALL)))[0] == "time"


def test_a_program_that_comes_to_use_two_cores_is_judged_by_wall_time() -> None:
    """Its CPU time would show it as slower, although it finishes in half the time."""
    halved = [value / 2 for value in WALL]
    figures = timed(time=(WALL, halved), cpu=(WALL, [value * 1.01 for value in WALL]))
    assert timing_metric(figures)[0] == "time"


def test_uncontended_time_that_some_runs_lack_does_not_decide() -> None:
    name, why = timing_metric(timed(time=(WALL, WALL), cpu=(WALL, WALL), uncontended=(WALL[:-2], WALL[:-2])))
    assert (name, why) == ("time", "some runs have threads or children, so only wall time covers all of its work")


def test_uncontended_time_of_one_side_alone_means_threads_on_the_other() -> None:
    figures = timed(time=(WALL, WALL), cpu=(WALL, WALL))
    made = series([], [])
    made.lone[BASELINE] = [Reading("uncontended", 1.0)] * 10
    figures["uncontended"] = compare(made, Criteria())
    assert timing_metric(figures)[0] == "time"


def test_cpu_time_is_refused_where_wall_time_provably_moves_the_other_way() -> None:
    slower, faster = [value * 1.04 for value in WALL], [value * 0.96 for value in WALL]
    assert timing_metric(timed(time=(WALL, slower), cpu=(WALL, faster), uncontended=(WALL, WALL)))[0] == "time"


def test_what_is_there_is_chosen_and_nothing_where_nothing_is() -> None:
    assert timing_metric({}) == ("", "")
    assert timing_metric(timed(cpu=(WALL, WALL)))[0] == "cpu"
    assert timing_metric(timed(uncontended=(WALL, WALL), cpu=(WALL, WALL)))[0] == "cpu"


def test_a_metric_of_the_workflow_in_which_more_is_better() -> None:
    metric = Metric("frames", Dimension.COUNT, Better.HIGHER)
    found = compare(series(NOISY, [value * 2 for value in NOISY], metric), Criteria(metrics={metric.name: metric}))
    assert found.change
    assert speedup(found.change, metric.better).estimate == pytest.approx(2.0)
    assert RATE.better is Better.HIGHER


def processes(*sides: list[list[float]]) -> MetricSeries:
    made = MetricSeries("b", "time", "step", "tool", paired=True, two_sided=True, design="looks")
    for side, found in zip(Side, sides, strict=True):
        made.sides[side] = [reading_of_process("time", values) for values in found]
    return made


def test_half_of_the_operations_twice_as_slow_is_a_slowdown_of_the_process() -> None:
    found = compare(
        processes([[noise] * 100 for noise in NOISY * 2], [[noise, 2 * noise] * 50 for noise in NOISY * 2]), Criteria()
    )
    assert found.statistic == CAPPED
    assert found.change
    assert found.change.low == pytest.approx(0.5, abs=0.05)
    assert found.baseline
    assert found.baseline.value == pytest.approx(1.0, abs=0.01)


def test_what_the_rest_of_the_machine_adds_to_a_few_values_counts_for_little() -> None:
    disturbed = [[noise] * 99 + [noise * 50 * (number % 3)] for number, noise in enumerate(NOISY * 2)]
    found = compare(processes([[noise] * 100 for noise in NOISY * 2], disturbed), Criteria())
    assert found.statistic == CAPPED
    assert found.change
    assert -0.02 < found.change.low <= found.change.high < 0.02


def test_the_mean_decides_where_rare_operations_got_far_slower() -> None:
    rare = [[noise] * 49 + [21 * noise] for noise in NOISY * 2]
    found = compare(processes([[noise] * 50 for noise in NOISY * 2], rare), Criteria())
    assert found.statistic == MEAN
    assert found.change
    assert found.change.low == pytest.approx(0.4, abs=0.05)
    assert found.candidate
    assert found.candidate.value == pytest.approx(1.4, abs=0.01)
    assert any(text.startswith("judged by the mean") for text in found.warnings)


def test_the_mean_and_the_capped_mean_share_the_false_alarms() -> None:
    same = [[noise, noise * 1.01] for noise in NOISY * 2]
    found = compare(processes(same, same[::-1]), Criteria())
    assert found.confidence == pytest.approx(1 - (1 - MEAN_SHARE) * dict(SCHEDULES[Design.LOOKS])[20])
