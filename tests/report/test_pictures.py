"""Pictures of a page: places match the figures, and the content matches the result."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import criteria_from_json
from perfflow.model.memory_curve import MOST, memory_curve
from perfflow.model.result import Bounds, Result
from perfflow.report.growth_table import growth_lines
from perfflow.report.html import charts, document
from perfflow.report.html.svg import Scale
from perfflow.report.page import page_of
from perfflow.report.rows import MATTERS
from perfflow.report.terminal import ladders_of
from perfflow.store.sample_order import TakingOrder, taking_order
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.report.gated import gated
from tests.report.optimized import optimized
from tests.report.pictured import SIZES, followed, growing, over_layouts
from tests.report.results import everything
from tests.report.test_html import Parsed, page
from tests.verdict.records import criteria, ended, judged, pairs, row
from tests.verdict.test_roofs import ROOF, kernel, point

NUMBERS = st.floats(0, 2.0**62)


def drawn(kind: str, found: Parsed) -> list[dict[str, str]]:
    """Return the attributes of the drawn elements of a class."""
    return [item for _, item in found.elements if item.get("class", "").split()[:1] == [kind]]


def corners(figure: str, kind: str) -> list[tuple[float, float]]:
    """Return the corners of the path of a class."""
    (path,) = re.findall(rf'class="{kind}" d="M([^"]+)"', figure)
    return [(float(x), float(y)) for x, y in (corner.split() for corner in path.split("L"))]


def points(figure: str, kind: str) -> list[tuple[float, float]]:
    found = re.findall(rf'class="{kind}" cx="([\d.]+)" cy="([\d.]+)"', figure)
    return [(float(x), float(y)) for x, y in found]


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
    (figure,) = charts.memory_figures(result, criteria_from_json(result.criteria))
    assert "peak 2.86 MiB" in figure
    assert "peak 879 KiB" in figure
    ((x, y),) = points(figure, "sample before")
    curve = corners(figure, "curve before")
    assert min(corner[1] for corner in curve) == y
    assert (x, y) in curve
    # A bound of 2 MB is two thirds of the way up to a peak of 3 MB.
    foot = curve[0][1]
    (bound,) = re.findall(r'class="bound" d="M[\d.]+ ([\d.]+)H', figure)
    assert (foot - float(bound)) / (foot - y) == pytest.approx(2 / 3, abs=0.01)


def test_names_of_peaks_that_nearly_meet_do_not_cover_each_other() -> None:
    result = followed()
    first = result.memory[0]
    held = tuple(size * 1.01 for size in first.held)
    curves = [first, first.model_copy(update={"tree": "candidate", "held": held})]
    figure = charts.memory_chart(curves, (), criteria_from_json(result.criteria))
    high, low = re.findall(r'<text class="(?:before|after)[^"]*" x="[\d.]+" y="([\d.]+)">peak', figure)
    assert abs(float(high) - float(low)) >= 11


def test_a_curve_of_a_growth_goes_through_its_points() -> None:
    (found,) = growing().growth
    assert found.decision == "worse"
    for side, exponent in ((found.baseline, 1.0), (found.candidate, 2.0)):
        assert side
        assert [point.size for point in side.points] == list(SIZES)
        assert (side.curve[0].size, side.curve[-1].size) == pytest.approx((SIZES[0], SIZES[-1]))
        bounds = [[point.low or 0.0, point.value or 0.0, point.high or 0.0] for point in side.curve]
        assert all(bound == sorted(bound) and bound[0] > 0 for bound in bounds)
        first, last = bounds[0][1], bounds[-1][1]
        assert math.log(last / first) / math.log(SIZES[-1] / SIZES[0]) == pytest.approx(exponent, abs=0.02)
        assert last == pytest.approx(side.points[-1].value, rel=0.02)


def test_a_growth_is_a_straight_line_where_it_is_a_power() -> None:
    result = growing()
    (line,) = growth_lines(result)
    assert line.baseline.startswith("linear, n^1.00 [")
    assert line.candidate.startswith("quadratic, n^2.00 [")
    figure = charts.growth_figure(line, criteria_from_json(result.criteria))
    assert "grows faster" in figure
    slopes = []
    for kind in ("curve before", "curve after"):
        found = corners(figure, kind)
        (x, y), (middle, height), (end, top) = found[0], found[12], found[-1]
        slopes.append((y - top) / (end - x))
        assert (y - height) / (middle - x) == pytest.approx(slopes[-1], rel=0.05)
    assert slopes[1] / slopes[0] == pytest.approx(2, rel=0.05)


def test_points_of_other_pictures_tell_their_values_and_intervals() -> None:
    result = growing()
    (line,) = growth_lines(result)
    figure = charts.growth_figure(line, criteria_from_json(result.criteria))
    told = re.findall(r'data-tips="([^"]+)"', figure)
    assert [text.partition(":")[0] for text in told] == 2 * [f"{size:g}" for size in SIZES]
    assert re.fullmatch(r"100: [\d.]+ μs \[[\d.]+ μs, [\d.]+ μs\]", told[0])
    heap = followed()
    (figure,) = charts.memory_figures(heap, criteria_from_json(heap.criteria))
    (curve,) = (text for text in re.findall(r'data-tips="([^"]+)"', figure) if text.startswith("baseline"))
    assert len(curve.split("\n")) == len(corners(figure, "curve before"))
    assert "baseline 2.86 MiB at " in curve


def test_a_growth_without_a_curve_has_its_words_alone() -> None:
    (found,) = growing().growth
    old: dict[str, list[Any]] = {"points": [], "curve": []}
    sides = {name: getattr(found, name).model_copy(update=old) for name in ("baseline", "candidate")}
    result = growing().model_copy(update={"growth": [found.model_copy(update=sides)]})
    (line,) = growth_lines(result)
    assert line.baseline.startswith("linear")
    assert charts.growth_figure(line, criteria_from_json(result.criteria)) == ""


def test_each_layout_is_a_point_and_the_program_as_built_a_line() -> None:
    result = over_layouts()
    found = row(result, "cpu", "decode")
    assert found.layouts
    figure = charts.layout_figure(found, criteria_from_json(result.criteria))
    assert f"between layouts ±{found.layouts.deviation:.1%}" in figure
    before = [x for x, _ in points(figure, "sample before")]
    after = [float(x) for x in re.findall(r'class="sample after" d="M([\d.]+)', figure)]
    assert (len(before), len(after)) == (20, 20)
    built_before, built_after = (float(x) for x in re.findall(r'class="built \w+" d="M([\d.]+)', figure))
    assert min(before) < built_before < max(before)
    # 12% slower lies to the right of every layout, whose spread is 2%.
    assert built_after > max(after)


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
    figure = charts.ladder_figure(ladder)
    places = [x for x, _ in points(figure, r"point \w+")]
    assert places[0] < places[1] < places[2]
    assert len(places) == len(ladder.rungs) + 1
    assert "ideas.1" in figure
    assert "reverted" in figure


def test_an_effect_of_one_pair_is_drawn_without_bounds() -> None:
    """Its interval is not known, so its bar and its rung span the whole axis."""
    result = optimized()
    unknown = {"effect": Bounds(value=0.2, low=None, high=None)}
    tries = [item.model_copy(update=unknown if item.effect else {}) for item in result.optimizations]
    result = result.model_copy(update={"optimizations": tries})
    bar = str(charts.effect_bar(tries[0], 0.1))
    ((left, right),) = re.findall(r'class="interval good" d="M([\d.]+) \d+H([\d.]+)', bar)
    assert (float(left), float(right)) == (2, charts.BAR_WIDTH - 2)
    (ladder,) = ladders_of(result, criteria_from_json(result.criteria))
    assert (ladder.rungs[0].reached.low, ladder.rungs[0].reached.high) == (0, math.inf)
    assert "1.25x kept" in charts.ladder_figure(ladder)
    assert "not tried" in document.render(result, TakingOrder({}))


def test_samples_stand_in_the_order_they_were_taken() -> None:
    """The candidate was taken first in each pair, so its first sample is left of the baseline's.

    Beside them are the same samples by side, and all have their values.
    """
    events = [event | {"first": "candidate"} for event in pairs("b", [0.010, 0.011, 0.012], [0.005, 0.006, 0.007])]
    run = {"event": "run", "steps": [{"id": "b", "benchmark": "b"}]}
    found = Parsed(document.render(judged(*events, ended("b")), taking_order([run, *events])))
    places = {
        item["class"]: [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h", item["d"])]
        for item in drawn("dots", found)
        if "data-tips" in item
    }
    baseline, candidate = places["dots before"], places["dots after"]
    in_turn = [x for pair in zip(candidate, baseline, strict=True) for x, _ in pair]
    assert len(in_turn) == 6
    assert in_turn == sorted(set(in_turn))
    by_side = [item["d"] for item in drawn("dots", found) if "data-tips" not in item]
    assert [{height for _, height in re.findall(r"M([\d.]+) ([\d.]+)h", path)} for path in by_side] == [
        {f"{y:.4g}" for _, y in side} for side in (baseline, candidate)
    ]
    told = [item["data-tips"].split("\n") for item in drawn("dots", found) if "data-tips" in item]
    values = {"baseline": ("10.0", "11.0", "12.0"), "candidate": ("5.00", "6.00", "7.00")}
    assert told == [[f"{side} {value} ms" for value in each] for side, each in values.items()]
    assert "in the order they were taken" in found.text()


def test_every_change_is_a_row_and_what_matters_is_on_top() -> None:
    result = gated()
    found = page_of(result)
    names = [row.operation for row in found.forest]
    assert names[0] == "io/read"
    assert {row.name for row in result.benchmarks if row.gating and row.change} == set(names)
    groups = [row.group for row in found.forest]
    assert groups == sorted(groups, key=MATTERS.index)
    assert set(groups) == set(MATTERS)
    text = document.render(result, TakingOrder({}))
    assert "the concern threshold (5%) and the action threshold (10%)" in text
    shown = re.findall(
        r'<details id="change-(\d+)">\n<summary class="row (\w+)">\n<span class="what"><code>([^<]+)', text
    )
    assert [(int(number), name) for number, _, name in shown] == list(enumerate(names, 1))


@pytest.mark.parametrize(
    ("changes", "top"), [([0.01], 1.25), ([0.3, 0.01], 1.5), ([5.0, 0.1, 0.1], 1.5), ([-0.5], 2.0), ([99.0], 10.0)]
)
def test_the_axis_of_changes_fits_most_of_them(changes: list[float], top: float) -> None:
    (line,) = (row for row in page_of(gated()).forest if row.operation == "core/same")
    rows = [
        replace(line, source=line.source.model_copy(update={"change": Bounds(value=each, low=each, high=each)}))
        for each in changes
    ]
    assert charts.forest_top(rows) == top


def test_an_interval_stands_on_bands_up_to_the_thresholds_of_its_benchmark() -> None:
    result = gated()
    known = criteria_from_json(result.criteria)
    rows = {row.operation: row for row in page_of(result).forest}
    top = charts.forest_top(rows.values())

    def place(change: float) -> float:
        return 1000 * (0.5 + math.log1p(change) / (2 * math.log(top)))

    for name, action in (("core/same", 0.10), ("io/accepted", 0.20)):
        row = rows[name]
        bar = charts.forest_bar(row, known.thresholds_of(name, "time"), top)
        ((left, width),) = re.findall(r'class="action" x="([\d.]+)" y="0" width="([\d.]+)"', bar)
        assert (float(left), float(left) + float(width)) == pytest.approx((place(-action), place(action)), abs=0.2)
        ((low, high),) = re.findall(r'class="interval \w+" d="M([\d.]+) 12H([\d.]+)"', bar)
        change = row.source.change
        assert change
        assert None not in (change.low, change.high)
        assert (float(low), float(high)) == pytest.approx((place(change.low or 0), place(change.high or 0)), abs=0.2)
    # What lies beyond the axis has an arrow and no point.
    noisy = charts.forest_bar(rows["noisy"], known.thresholds, top)
    assert ("beyond unsure" in noisy, "estimate" in noisy) == (True, False)
    # A rounding error beyond it is none.
    farthest = rows["io/accepted"].source.change
    assert farthest
    assert farthest.high
    assert "beyond" not in charts.forest_bar(rows["io/accepted"], known.thresholds, (1 + farthest.high) * (1 - 1e-15))


def test_bars_show_which_side_of_the_bound_an_interval_lies_on() -> None:
    result = everything()
    found = page(result)
    assert len(drawn("bound", found)) >= len([target for target in result.targets if target.measured is not None])
    kinds = {word for item in drawn("interval", found) for word in item["class"].split()}
    assert {"good", "bad"} <= kinds


def test_a_kernel_stands_below_its_roof_by_its_share_of_it() -> None:
    """On logarithmic axes, the distance of a kernel to its roof is the logarithm of its share."""
    result = kernel(ROOF)
    charted = charts.roofline_chart(result)
    assert drawn("roof", page(result))
    (left, foot), (knee, top), (_, end) = corners(charted, "roof")[:3]
    assert end == top < foot
    x, y = points(charted, "sample before")[0]
    above = foot + (top - foot) * (x - left) / (knee - left)
    decade = (foot - top) / math.log10(ROOF["flops f32"] / (ROOF["bandwidth"] * 0.125))
    share = point(result).share
    assert share is not None
    assert 10 ** ((above - y) / decade) == pytest.approx(share, rel=0.05)
    assert f"b: {share:.0%} of its roof" in charted


def test_effects_stand_on_the_side_of_the_threshold_that_they_reached() -> None:
    result = optimized()
    assert result.run.accept is not None
    for item in result.optimizations:
        bar = str(charts.effect_bar(item, result.run.accept))
        if item.effect is None or item.effect.value is None:
            assert bar == ""
            continue
        (threshold,) = re.findall(r'class="bound" d="M([\d.]+)', bar)
        (at,) = re.findall(r'cx="([\d.]+)"', bar)
        assert (float(at) > float(threshold)) == (item.effect.value > result.run.accept)
        assert ('class="point good"' in bar) == (item.decision == "accepted")


def test_shares_of_functions_are_as_long_as_they_are_large() -> None:
    found = Parsed(charts.share_bar(0.5, 0.25))
    assert [(item["class"], float(item["width"])) for item in drawn("share", found)] == [
        ("share before", charts.BAR_WIDTH / 2),
        ("share after", charts.BAR_WIDTH / 4),
    ]
    assert drawn("share", page(optimized()))


def test_bytes_have_round_ticks_in_the_units_that_are_shown() -> None:
    result = judged(*pairs("b", [14.2 * 2**20] * 3, [8.6 * 2**20] * 3, "rss"), ended("b"))
    chart = charts.samples_chart(result.benchmarks[0], {}, criteria({}))
    assert {float(number) for number in re.findall(r">([\d.]+) MiB</text>", chart)} <= {0.0, 5.0, 8.0, 10.0, 12.0, 14.0}


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.floats())
def test_a_scale_stays_in_its_picture(low: float, high: float, value: float) -> None:
    if not math.isnan(value):
        assert 2 <= Scale(min(low, high), max(low, high), 2, 158)(value) <= 158


@given(st.floats(1e-12, 1e12), st.floats(1.001, 1e9))
def test_ticks_are_few_and_inside(low: float, factor: float) -> None:
    linear = charts.ticks(low, low * min(factor, 1e6))
    logarithmic = charts.log_ticks(low, low * max(factor, 1.01))
    assert 1 <= len(linear) <= 7
    assert 1 <= len(logarithmic) <= 6
    for found, most in ((linear, min(factor, 1e6)), (logarithmic, max(factor, 1.01))):
        assert all(low * (1 - 1e-9) <= tick <= low * most * (1 + 1e-9) for tick in found)
