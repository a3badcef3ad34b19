"""The decision on one comparison: the verdict table, row by row and as properties."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import Thresholds
from perfflow.model.metrics import METRICS, Better, Metric
from perfflow.model.readings import Side
from perfflow.stats.paired_test import Interval
from perfflow.verdict.comparison import ComparedMetric, SideSummary
from perfflow.verdict.decide import MAX_MORE, Ruling, excludes_zero, rule, settled, worse_of

TIME, RATE, HEAP = METRICS["time"], METRICS["rate"], METRICS["heap_peak"]
ONE = SideSummary(1.0, 0.9, 1.1, 10, (1.0,) * 10)


def comparison(estimate: float, low: float, high: float, metric: Metric = TIME, pairs: int = 20) -> ComparedMetric:
    change = Interval(estimate, low, high)
    confidence = None if metric.exact else 0.99
    return ComparedMetric("b", metric, "p50", "s", "t", ONE, ONE, change, pairs, confidence)


def ruling(
    estimate: float, low: float, high: float, metric: Metric = TIME, *, identical: bool = False, **thresholds: float
) -> Ruling:
    return rule(comparison(estimate, low, high, metric), Thresholds(**thresholds), identical=identical)


@pytest.mark.parametrize(
    ("estimate", "low", "high", "decision", "level"),
    [
        # Up is worse, in shares; floor 2%, concern 5%, action 10%.
        (0.12, 0.110, 0.130, "regressed", "action"),
        (0.12, 0.021, 0.300, "regressed", "action"),
        (0.07, 0.050, 0.090, "regressed", "concern"),
        (0.10, 0.090, 0.110, "regressed", "concern"),
        (0.05, 0.045, 0.055, "regressed", "ok"),
        (0.03, 0.021, 0.039, "regressed", "ok"),
        (0.03, 0.020, 0.040, "same", "ok"),
        (-0.03, -0.039, -0.021, "improved", "ok"),
        (-0.03, -0.040, -0.020, "same", "ok"),
        (-0.50, -0.600, -0.400, "improved", "ok"),
        (0.00, -0.050, 0.050, "same", "ok"),
        (0.01, 0.005, 0.015, "same", "ok"),
        (0.00, -0.051, 0.040, "unproven", "ok"),
        (0.03, 0.010, 0.051, "unproven", "ok"),
        (0.03, -0.030, 0.099, "unproven", "ok"),
        (0.03, -0.030, 0.100, "unproven", None),
        (0.11, 0.015, 0.220, "unproven", None),
        (-0.06, -0.120, 0.010, "unproven", "ok"),
        (-0.20, -0.600, 0.300, "unproven", None),
        (0.00, -math.inf, math.inf, "unproven", None),
        (math.nan, -math.inf, math.inf, "unproven", None),
    ],
)
def test_the_table_of_the_contract(estimate: float, low: float, high: float, decision: str, level: str | None) -> None:
    found = ruling(estimate, low, high)
    assert (found.decision, found.level) == (decision, level)
    mirrored = ruling(-estimate, -high, -low, RATE)
    assert (mirrored.decision, mirrored.level) == (decision, level)


@pytest.mark.parametrize(
    ("low", "high", "identical", "decision"),
    [
        (0.006, 0.04, False, "same"),
        (0.006, 0.04, True, "regressed"),
        (-0.04, -0.006, True, "improved"),
        (0.004, 0.04, True, "same"),
    ],
)
def test_the_floor_is_lower_where_the_executed_files_are_identical(
    low: float, high: float, identical: bool, decision: str
) -> None:
    assert ruling((low + high) / 2, low, high, identical=identical).decision == decision


@pytest.mark.parametrize(
    ("change", "decision", "level"),
    [
        *[(0.0, "same", "ok"), (0.004, "same", "ok"), (0.006, "regressed", "ok"), (0.06, "regressed", "concern")],
        *[(0.11, "regressed", "action"), (-0.006, "improved", "ok"), (-1.0, "improved", "ok")],
        (math.inf, "regressed", "action"),
    ],
)
def test_exact_metrics_are_never_unproven(change: float, decision: str, level: str) -> None:
    found = ruling(change, change, change, HEAP)
    assert (found.decision, found.level) == (decision, level)


def test_a_floor_below_half_a_percent_holds_everywhere() -> None:
    assert ruling(0.003, 0.002, 0.004, floor=0.001).decision == "regressed"
    assert ruling(0.003, 0.003, 0.003, HEAP, floor=0.001).decision == "regressed"


def test_a_proven_change_under_the_floor_says_so() -> None:
    assert ruling(0.01, 0.005, 0.015).note == "a change is proven, but not that it exceeds the floor of 2%"
    assert ruling(0.002, 0.002, 0.002, HEAP).note == "a change is proven, but not that it exceeds the floor of 0.5%"
    assert ruling(0.0, -0.01, 0.01).note == ""


def test_sides_that_are_missing() -> None:
    made = replace(comparison(0, 0, 0), change=None)
    assert rule(made, Thresholds(), identical=False) == Ruling(None, "ok")
    removed = replace(made, only=Side.BASELINE, candidate=None)
    assert rule(removed, Thresholds(), identical=False) == Ruling("removed", None)
    new = replace(made, only=Side.CANDIDATE, baseline=None)
    assert rule(new, Thresholds(), identical=False) == Ruling("new", "ok")


def test_unpaired_values_are_unproven_whatever_they_are() -> None:
    made = replace(comparison(0.5, 0.4, 0.6), confidence=None)
    assert rule(made, Thresholds(), identical=False) == Ruling("unproven", None)


@pytest.mark.parametrize(
    ("estimate", "half", "pairs", "more"),
    [
        (0.00, 0.10, 10, 30),  # to fit into +-5% the half-width must halve: four times the pairs
        (0.10, 0.16, 10, 30),  # to exclude the floor of 2% it must halve as well
        (0.00, 50.0, 10, MAX_MORE),
    ],
)
def test_about_how_many_more_pairs_would_decide(estimate: float, half: float, pairs: int, more: int) -> None:
    found = rule(comparison(estimate, estimate - half, estimate + half, pairs=pairs), Thresholds(), identical=False)
    assert found.decision == "unproven"
    assert found.more == pytest.approx(more, abs=1)


def test_nobody_knows_how_many_more_where_an_end_is_open() -> None:
    assert ruling(0.0, -1.0, math.inf).more is None
    assert ruling(0.1, -0.1, 0.3).more


SHARES = st.floats(-0.9, 3.0)
WIDTHS = st.floats(0, 0.5)
THRESHOLDS = st.builds(
    lambda floor, concern, action: Thresholds(floor=floor, concern=floor + concern, action=floor + concern + action),
    *(st.floats(0.001, 0.05),) * 3,
)
ORDER = {"improved": 0, "same": 1, "unproven": 1, "regressed": 2}


@given(SHARES, WIDTHS, THRESHOLDS, st.booleans())
def test_swapping_the_direction_swaps_improved_and_regressed(
    estimate: float, half: float, thresholds: Thresholds, identical: bool
) -> None:
    there = rule(comparison(estimate, estimate - half, estimate + half), thresholds, identical=identical)
    back = rule(comparison(estimate, estimate - half, estimate + half, RATE), thresholds, identical=identical)
    swapped = {"improved": "regressed", "regressed": "improved"}
    assert back.decision == swapped.get(str(there.decision), there.decision)


@given(SHARES, WIDTHS, st.floats(1.0, 10.0), THRESHOLDS)
def test_more_noise_never_proves_more(estimate: float, half: float, factor: float, thresholds: Thresholds) -> None:
    """A wider interval around the same estimate says the same or less: never another side, never out of unproven."""
    narrow = rule(comparison(estimate, estimate - half, estimate + half), thresholds, identical=False)
    wide = rule(comparison(estimate, estimate - half * factor, estimate + half * factor), thresholds, identical=False)
    if narrow.decision == "unproven":
        assert wide.decision == "unproven"
    if narrow.decision == "same":
        assert wide.decision in ("same", "unproven")
    assert abs(ORDER[str(narrow.decision)] - ORDER[str(wide.decision)]) < 2
    if narrow.level is None:
        assert wide.level is None


@given(SHARES, WIDTHS, WIDTHS, THRESHOLDS)
def test_a_run_passes_only_where_a_regression_beyond_action_is_excluded_or_estimated_below(
    estimate: float, below: float, above: float, thresholds: Thresholds
) -> None:
    found = rule(comparison(estimate, estimate - below, estimate + above), thresholds, identical=False)
    passes = found.level in ("ok", "concern")
    if passes:
        assert estimate + above < thresholds.action or (found.decision == "regressed" and estimate <= thresholds.action)
    if found.decision == "improved":
        assert estimate + above < 0
    if found.decision == "same":
        assert max(abs(estimate - below), abs(estimate + above)) <= thresholds.concern


def test_what_is_only_shown_is_not_decided() -> None:
    shown = Metric("x", TIME.dimension, Better.NONE)
    made = replace(comparison(0, 0, 0, shown), change=None)
    assert rule(made, Thresholds(), identical=False).decision is None


@pytest.mark.parametrize(
    ("estimate", "low", "high", "identical", "enough"),
    [
        # `same`: half-width of 2% (identical files: 1%), and no change above the floor as likely as none.
        (0.000, -0.019, 0.019, False, True),
        (0.000, -0.021, 0.021, False, False),
        (0.018, 0.001, 0.035, False, True),
        (0.018, 0.001, 0.035, True, False),
        (0.004, -0.006, 0.014, True, True),
        (0.003, -0.008, 0.014, True, False),
        (0.009, -0.011, 0.029, True, False),
        (0.011, -0.009, 0.031, True, False),
        (-0.011, -0.031, 0.009, True, False),
        (0.009, 0.005, 0.013, True, False),
        (0.007, 0.005, 0.009, True, True),
        # On the floor of 2% the half-width is 0.5%.
        (0.021, 0.0175, 0.0245, False, True),
        (0.021, 0.0150, 0.0270, False, False),
        # `regressed`: in one zone of the table; half-width of half the threshold at concern, or of 0.5% at action.
        (0.030, 0.021, 0.045, False, True),
        (0.070, 0.051, 0.090, False, True),
        (0.120, 0.090, 0.150, False, False),
        (0.052, 0.048, 0.057, False, True),
        (0.050, 0.026, 0.074, False, True),
        (0.050, 0.024, 0.076, False, False),
        (0.090, 0.080, 0.101, False, False),
        # `improved` has no levels; `unproven` needs more pairs.
        (-0.300, -0.600, -0.021, False, True),
        (0.060, -0.010, 0.130, False, False),
    ],
)
def test_measuring_ends_once_more_pairs_could_say_nothing_that_matters(
    estimate: float, low: float, high: float, identical: bool, enough: bool
) -> None:
    item = comparison(estimate, low, high)
    found = rule(item, Thresholds(), identical=identical)
    assert settled(item, found, Thresholds(), identical=identical) is enough


def test_identical_files_are_known_to_one_percent_where_that_takes_few_pairs() -> None:
    item = comparison(0.003, -0.008, 0.014)
    assert rule(item, Thresholds(), identical=True).decision == "same"
    ends = {
        pairs: settled(replace(item, pairs=pairs), Ruling("same", "ok"), Thresholds(), identical=True)
        for pairs in (11, 64, 90, 128)
    }
    assert ends == {11: False, 64: False, 90: True, 128: True}


def test_there_is_nothing_to_go_on_for_without_a_second_side() -> None:
    item = replace(comparison(0.0, 0.0, 0.0), change=None, candidate=None)
    assert settled(item, rule(item, Thresholds(), identical=False), Thresholds(), identical=False)


def test_a_change_above_the_floor_that_is_as_likely_as_none_is_looked_at_again() -> None:
    item = comparison(0.006, -0.013, 0.025, pairs=90)
    assert settled(item, Ruling("same", "ok"), Thresholds(), identical=True)
    likely = comparison(0.0065, -0.0125, 0.0255, pairs=90)
    assert not settled(likely, Ruling("same", "ok"), Thresholds(), identical=True)


def test_what_is_left_of_coarse_values_is_not_waited_for() -> None:
    wide = replace(comparison(0.0, -0.1, 0.1), blur=0.0951)
    assert settled(wide, Ruling("unproven", None), Thresholds(), identical=False)
    assert not settled(replace(wide, blur=0.0949), Ruling("unproven", None), Thresholds(), identical=False)
    assert not settled(replace(wide, blur=0.0), Ruling("unproven", None), Thresholds(), identical=False)


def test_the_steps_of_coarse_values_are_no_room_for_more_pairs() -> None:
    # Half-width 0.1, of which 0.01 is blur: 0.09 must shrink to 0.04, the concern threshold without blur.
    found = rule(replace(comparison(0.0, -0.1, 0.1, pairs=16), blur=0.01), Thresholds(), identical=False)
    assert found.more == 65
    assert rule(replace(comparison(0.0, -0.1, 0.1), blur=0.05), Thresholds(), identical=False).more is None
    assert rule(replace(comparison(0.03, -0.1, 0.1), blur=0.1), Thresholds(), identical=False).more is None
    assert rule(replace(comparison(0.0, -0.1, 0.1), pairs=0), Thresholds(), identical=False).more is None


def test_what_is_known_of_a_change_is_turned_so_that_up_is_worse() -> None:
    assert worse_of(comparison(-0.1, -0.3, 0.2, RATE)) == Interval(0.1, -0.2, 0.3)
    assert worse_of(comparison(-0.1, -0.3, 0.2)) == Interval(-0.1, -0.3, 0.2)
    for change in (None, Interval(math.nan, 0.0, 0.0)):
        unknown = worse_of(replace(comparison(0, 0, 0), change=change))
        assert math.isnan(unknown.estimate)
        assert (unknown.low, unknown.high) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("low", "high", "proven"), [(-0.1, 0.1, False), (0.0, 0.1, False), (-0.1, 0.0, False), (0.01, 0.1, True)]
)
def test_a_change_of_any_size_is_proven_where_the_interval_lacks_zero(low: float, high: float, *, proven: bool) -> None:
    assert excludes_zero(comparison((low + high) / 2, low, high)) is proven
    assert excludes_zero(comparison((low + high) / -2, -high, -low)) is proven
    assert not excludes_zero(replace(comparison(0, 0, 0), change=None))
