"""Coarse values: the tick is detected, and widens intervals so that they still contain the true change."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.metrics import METRICS
from perfflow.model.readings import Reading, Side, tick_of
from perfflow.model.units import Dimension
from perfflow.store.record import MetricSeries
from perfflow.verdict.comparison import ComparedMetric, compare
from perfflow.verdict.decide import rule

TIME = Dimension.TIME


def readings(values: list[float], tick: float = 0.0) -> list[Reading]:
    return [Reading("time", value, tick=tick) for value in values]


_STARTS = [1.0, 2.0, 70.0, 900.0]


@pytest.mark.parametrize(
    ("values", "tick"),
    [
        ([1.2, 1.3, 1.2, 1.4, 1.3], 0.1),
        ([1.2, 1.5, 1.7, 1.2, 1.7], 0.1),
        ([0.0156, 0.0312, 0.0156, 0.0312, 0.0156], 0.0156),
        ([0.0012, 0.0013, 0.0012, 0.0014, 0.0013], 0.0001),
        *(([1.2] * 6, 0.0), ([1.2, 1.3, 1.4, 1.5, 1.6], 0.0), ([1.2, 1.3], 0.0), ([0.0] * 6, 0.0), ([], 0.0)),
        ([1.20001, 1.30013, 1.20001, 1.41207, 1.30013], 0.0),
        ([1.001, 1.002, 1.001, 1.003, 1.002], 0.0),
        # Differences of a clock's floats: one value, and values in steps of 1 μs.
        ([after - before for before, after in zip(_STARTS, [1.0107, 2.0107, 70.0107, 900.0107], strict=True)], 0.0),
        ([after - before for before, after in zip(_STARTS, [1.021, 2.021, 70.023, 900.023], strict=True)], 0.001),
    ],
)
def test_the_step_of_values(values: list[float], tick: float) -> None:
    assert tick_of([readings(values)], TIME) == pytest.approx(tick)


def test_printed_digits_tell_without_ties_and_whole_numbers_are_not_rounded() -> None:
    assert tick_of([readings([1.2, 1.9], tick=0.1)], TIME) == 0.1
    assert tick_of([readings([1.2] * 9, tick=0.001)], TIME) == 0.0
    assert tick_of([readings([1.2] * 9, tick=0.1)], Dimension.COUNT) == 0.0
    assert tick_of([readings([4096.0, 8192.0, 4096.0, 8192.0, 4096.0])], Dimension.BYTES) == 0.0


def test_what_one_side_shows_holds_for_the_other() -> None:
    still, coarse, fine = [1.0] * 6, [1.2, 1.3, 1.2, 1.3, 1.2, 1.4], [1.01, 1.02003, 1.0001, 1.1, 1.07, 1.02]
    assert tick_of([readings(still), readings(coarse)], TIME) == pytest.approx(0.1)
    assert tick_of([readings(fine), readings(still)], TIME) == 0.0
    assert tick_of([readings(still), readings(still)], TIME) == 0.0


def compared(tick: float, change: float, noise: float, seed: int, *, declared: bool = True) -> ComparedMetric:
    """The comparison of two programs of about 1 s.

    ``declared``: they print their times rounded to a tick; else a clock ticks while they run, of an unknown step.
    """
    chance = random.Random(seed)
    series = MetricSeries("b", "time", "s", "t", paired=True, two_sided=True)
    start = 1 + chance.random() * tick
    for _ in range(20):
        for side, factor in zip(Side, (1.0, 1 + change), strict=True):
            time = start * factor * math.exp(chance.gauss(0, noise))
            steps = max(1, round(time / tick)) if declared else math.floor(chance.random() + time / tick)
            series.sides[side].append(Reading("time", steps * tick, tick=tick if declared else 0.0))
    return compare(series, Criteria())


def missed(found: ComparedMetric, change: float) -> bool:
    assert found.change
    return not found.change.low <= change <= found.change.high


@pytest.mark.parametrize("declared", [True, False])
@settings(max_examples=10, deadline=None)
@given(
    *(st.floats(0.006, 0.3), st.sampled_from([-0.1, -0.03, 0.0, 0.02, 0.06, 0.2])),
    *(st.floats(0.0005, 0.1), st.integers(0, 10**9)),
)
def test_the_widened_interval_holds_the_true_change(
    declared: bool, tick: float, change: float, noise: float, seed: int
) -> None:
    """Of 20 intervals of 99%, four or more miss by chance in one of 25,000 cases.

    Where all values of both sides are equal, nothing shows that a clock ticks, so those are left out.
    """
    compared_ones = [compared(tick, change, noise, seed + number, declared=declared) for number in range(20)]
    varied = [item for item in compared_ones if item.change and item.change.high - item.change.low > 1e-6]
    assert sum(missed(item, change) for item in varied) <= 3


def test_a_change_of_less_than_the_tick_is_not_called_same() -> None:
    found = [compared(0.1, 0.06, 0.01, seed) for seed in range(100)]
    words = [rule(item, Thresholds(), identical=False).decision for item in found]
    assert "same" not in words
    assert sum(missed(item, 0.06) for item in found) <= 1


def test_the_warning_names_the_step_and_the_remedy() -> None:
    found = compared(0.1, 0.06, 0.01, 1)
    assert found.blur == pytest.approx(0.09, abs=0.02)
    (said,) = found.warnings
    assert said.startswith("values come in steps of 100 ms, ")
    assert said.endswith("print more digits, or give each run more work")
    assert rule(found, Thresholds(), identical=False).more is None
    fine = compared(1e-6, 0.06, 0.01, 1)
    assert (fine.blur, fine.warnings) == (0.0, ())


def test_identical_coarse_programs_are_the_same_where_the_step_is_within_the_concern() -> None:
    for tick, word in ((0.02, "same"), (0.1, "unproven")):
        found = compared(tick, 0.0, 0.001, 1)
        assert rule(found, Thresholds(), identical=False).decision == word


def test_steps_widen_intervals_by_half_a_step_on_each_end_and_as_large_as_values_leave_nothing_known() -> None:
    series = MetricSeries("b", "time", "s", "t", paired=True, two_sided=True)
    series.sides |= {side: readings([0.01] * 12, tick=0.03) for side in Side}
    found = compare(series, Criteria())
    assert found.change
    assert (found.change.low, found.change.high) == (-math.inf, math.inf)
    alone = MetricSeries("b", METRICS["time"].name, "s", "t", paired=False, two_sided=False)
    alone.sides[Side.BASELINE] = readings([1.2] * 10, tick=0.1)
    baseline = compare(alone, Criteria()).baseline
    assert baseline
    assert [baseline.low, baseline.high] == pytest.approx([1.15, 1.25])
