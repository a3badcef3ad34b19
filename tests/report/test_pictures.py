"""Rare pictures: places match the figures, and the content matches the result."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import criteria_from_json
from perfflow.model.memory_curve import MOST, memory_curve
from perfflow.model.result import Bounds, Result
from perfflow.report.growth_table import growth_lines
from perfflow.report.html import charts, document
from perfflow.report.html.charts import (
    growth_figure,
    ladder_figure,
    layout_figure,
    log_ticks,
    memory_chart,
    memory_figures,
)
from perfflow.report.terminal import ladders_of
from perfflow.store.sample_order import TakingOrder
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.report.optimized import optimized
from tests.report.pictured import SIZES, followed, growing, over_layouts
from tests.verdict.records import row

NUMBERS = st.floats(0, 2.0**62)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=700))
def test_a_curve_keeps_its_peak_in_few_points(points: list[tuple[float, float]]) -> None:
    curve = memory_curve("time", points)
    if curve is None:
        assert not any(held for _, held in points)
        return
    assert len(curve.at) == len(curve.held) <= MOST
    assert max(curve.held) == max(held for _, held in points)
    assert list(curve.at) == sorted(curve.at)
    assert set(zip(curve.at, curve.held, strict=True)) <= set(points)


@pytest.mark.parametrize("result", [followed(), growing(), over_layouts()], ids=["heap", "growth", "layouts"])
def test_what_is_drawn_survives_judging_again(result: Result) -> None:
    again = judge(record_of_result(result), criteria_from_json(result.criteria))
    assert (again.memory, again.growth) == (result.memory, result.growth)
    assert result.memory or result.growth or row(result, "cpu", "decode").layouts


def test_the_heap_is_drawn_with_its_peaks_and_its_target() -> None:
    result = followed()
    (figure,) = memory_figures(result, criteria_from_json(result.criteria))
    assert "peak 2.86 MiB" in figure
    assert "peak 879 KiB" in figure
    ((x, y),) = re.findall(r'class="sample before" cx="([\d.]+)" cy="([\d.]+)"', figure)
    curve = re.findall(r'class="curve before" d="M([^"]+)"', figure)[0]
    corners = [tuple(map(float, corner.split())) for corner in curve.split("L")]
    assert min(corner[1] for corner in corners) == float(y)
    assert (float(x), float(y)) in corners
    # A bound of 2 MB is two thirds of the way up to a peak of 3 MB.
    foot = corners[0][1]
    (bound,) = re.findall(r'class="bound" d="M[\d.]+ ([\d.]+)H', figure)
    assert (foot - float(bound)) / (foot - float(y)) == pytest.approx(2 / 3, abs=0.01)


def test_names_of_peaks_that_nearly_meet_do_not_cover_each_other() -> None:
    result = followed()
    first = result.memory[0]
    held = tuple(size * 1.01 for size in first.held)
    curves = [first, first.model_copy(update={"tree": "candidate", "held": held})]
    figure = memory_chart(curves, (), criteria_from_json(result.criteria))
    high, low = re.findall(r'<text class="(?:before|after)[^"]*" x="[\d.]+" y="([\d.]+)">peak', figure)
    assert abs(float(high) - float(low)) >= 11


def test_a_curve_of_a_growth_goes_through_its_points() -> None:
    (found,) = growing().growth
    assert found.decision == "worse"
    for side, exponent in ((found.baseline, 1.0), (found.candidate, 2.0)):
        assert side
        assert [point.size for point in side.points] == list(SIZES)
        assert (side.curve[0].size, side.curve[-1].size) == pytest.approx((SIZES[0], SIZES[-1]))
        for point in side.curve:
            assert point.low is not None
            assert point.value is not None
            assert point.high is not None
            assert point.low <= point.value <= point.high
        last, first = side.curve[-1].value, side.curve[0].value
        assert first
        assert last
        assert math.log(last / first) / math.log(SIZES[-1] / SIZES[0]) == pytest.approx(exponent, abs=0.02)
        assert last == pytest.approx(side.points[-1].value, rel=0.02)


def test_a_growth_is_a_straight_line_where_it_is_a_power() -> None:
    result = growing()
    (line,) = growth_lines(result)
    assert line.baseline.startswith("linear, n^1.00 [")
    assert line.candidate.startswith("quadratic, n^2.00 [")
    figure = growth_figure(line, criteria_from_json(result.criteria))
    assert "grows faster" in figure
    slopes = []
    for kind in ("before", "after"):
        (path,) = re.findall(rf'class="curve {kind}" d="M([^"]+)"', figure)
        corners = [tuple(map(float, corner.split())) for corner in path.split("L")]
        (x, y), (middle, height), (end, top) = corners[0], corners[12], corners[-1]
        assert (y - height) / (middle - x) == pytest.approx((y - top) / (end - x), rel=0.05)
        slopes.append((y - top) / (end - x))
    assert slopes[1] / slopes[0] == pytest.approx(2, rel=0.05)


def test_a_growth_without_a_curve_has_its_words_alone() -> None:
    (found,) = growing().growth
    old: dict[str, list[Any]] = {"points": [], "curve": []}
    sides = {name: getattr(found, name).model_copy(update=old) for name in ("baseline", "candidate")}
    result = growing().model_copy(update={"growth": [found.model_copy(update=sides)]})
    (line,) = growth_lines(result)
    assert line.baseline.startswith("linear")
    assert growth_figure(line, criteria_from_json(result.criteria)) == ""


def test_each_layout_is_a_point_and_the_program_as_built_a_line() -> None:
    result = over_layouts()
    found = row(result, "cpu", "decode")
    assert found.layouts
    figure = layout_figure(found, criteria_from_json(result.criteria))
    assert f"between layouts ±{found.layouts.deviation:.1%}" in figure
    points = {
        "before": [float(x) for x in re.findall(r'class="sample before" cx="([\d.]+)"', figure)],
        "after": [float(x) + 0.0 for x in re.findall(r'class="sample after" d="M([\d.]+)', figure)],
    }
    assert {len(found) for found in points.values()} == {20}
    built = {kind: float(re.findall(rf'class="built {kind}" d="M([\d.]+)', figure)[0]) for kind in points}
    assert min(points["before"]) < built["before"] < max(points["before"])
    # 12% slower lies to the right of every layout, whose spread is 2%.
    assert built["after"] > max(points["after"])


def test_rungs_stand_on_what_was_kept_before_them() -> None:
    """12.5% less time is 1.14 times faster; half of what is left makes 2.29, and another 30% less 3.27."""
    result = optimized()
    (ladder,) = ladders_of(result, criteria_from_json(result.criteria))
    found = {rung.name: (rung.start, rung.reached.estimate) for rung in ladder.rungs}
    lto = 1 / 0.875
    assert found["lto"] == pytest.approx((1.0, lto))
    assert found["slab"] == pytest.approx((lto, lto / 0.5))
    assert found["level[n=3]"] == pytest.approx((lto / 0.5, lto / 0.5 / 0.7))
    # A reverted try is not a step: the next one starts where it started.
    assert found["ideas.1"][0] == pytest.approx(lto / 0.5 / 0.7)
    assert ladder.together
    assert ladder.together.estimate == pytest.approx(0.012 / 0.0055, rel=0.01)
    figure = ladder_figure(ladder)
    places = [float(x) for x in re.findall(r'class="point \w+" cx="([\d.]+)"', figure)]
    assert places[0] < places[1] < places[2]
    assert len(places) == len(ladder.rungs) + 1
    assert "ideas.1" in figure
    assert "reverted" in figure


def test_an_effect_of_one_pair_is_drawn_without_bounds() -> None:
    """Its interval is not known, so its bar and its rung span the whole axis."""
    result = optimized()
    tries = [
        item.model_copy(update={"effect": Bounds(value=0.2, low=None, high=None)}) if item.effect else item
        for item in result.optimizations
    ]
    result = result.model_copy(update={"optimizations": tries})
    bar = str(charts.effect_bar(tries[0], 0.1))
    ((left, right),) = re.findall(r'class="interval good" d="M([\d.]+) \d+H([\d.]+)', bar)
    assert (float(left), float(right)) == (2, charts.BAR_WIDTH - 2)
    (ladder,) = ladders_of(result, criteria_from_json(result.criteria))
    assert (ladder.rungs[0].reached.low, ladder.rungs[0].reached.high) == (0, math.inf)
    assert "1.25x kept" in ladder_figure(ladder)
    assert "not tried" in document.render(result, TakingOrder({}))


@given(st.floats(1e-12, 1e12), st.floats(1.01, 1e9))
def test_ticks_of_a_logarithmic_axis_are_few_and_inside(low: float, factor: float) -> None:
    found = log_ticks(low, low * factor)
    assert 1 <= len(found) <= 6
    assert all(low * (1 - 1e-9) <= tick <= low * factor * (1 + 1e-9) for tick in found)
