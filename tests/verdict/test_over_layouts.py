"""Comparisons over fresh code layouts, from events alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.metrics import METRICS
from perfflow.model.readings import SCHEDULES, Design, Side
from perfflow.stats.paired_test import Interval
from perfflow.store.record import MetricSeries, Record
from perfflow.verdict.comparison import ComparedMetric, Layouts, SideSummary, compare
from perfflow.verdict.decide import after_rebuild, rule

ONE = SideSummary(1.0, 0.9, 1.1, 10, (1.0,) * 10)


def comparison(*change: float, layouts: Layouts | None = None) -> ComparedMetric:
    found = Interval(*change)
    return ComparedMetric("b", METRICS["cpu"], "p50", "s", "t", ONE, ONE, found, 20, 0.99, layouts=layouts)


@pytest.mark.parametrize(
    ("built", "over", "decision", "level", "note"),
    [
        ((0.12, 0.11, 0.13), (0.11, 0.09, 0.13), "regressed", "action", ""),
        ((0.12, 0.11, 0.13), (0.01, 0.006, 0.014), "regressed", "ok", ""),
        ((0.12, 0.11, 0.13), (0.00, -0.04, 0.04), "same", "ok", "an accident of code layout: as built +12.0% [+11.0%"),
        ((0.12, 0.11, 0.13), (-0.07, -0.09, -0.05), "same", "ok", "an accident of code layout"),
        ((-0.12, -0.13, -0.11), (0.00, -0.01, 0.01), "same", "ok", "an accident of code layout"),
        ((-0.12, -0.13, -0.11), (0.07, 0.05, 0.09), "regressed", "concern", "in spite of an accident of code layout"),
        (
            (0.12, 0.11, 0.13),
            (0.03, -0.05, 0.12),
            "unproven",
            None,
            "between layouts ±8%: 20 code layouts of each side",
        ),
        ((0.12, 0.11, 0.13), (0.03, -0.05, 0.07), "unproven", "ok", "they would show a change of about 9%"),
        ((0.00, -0.01, 0.01), (0.00, -0.01, 0.01), "same", "ok", ""),
        ((0.01, -0.01, 0.03), (0.12, 0.11, 0.13), "regressed", "action", ""),
    ],
)
def test_layouts_decide(
    built: tuple[float, ...], over: tuple[float, ...], decision: str, level: str | None, note: str
) -> None:
    found = comparison(*over, layouts=Layouts(20, 0.08, comparison(*built)))
    ruling = rule(found, Thresholds(), identical=False)
    assert (ruling.decision, ruling.level) == (decision, level)
    assert (note in ruling.note) if note else not ruling.note


@pytest.mark.parametrize(
    ("change", "decision", "level", "told"),
    [
        ((0.032, 0.023, 0.041), "same", "ok", True),
        ((-0.032, -0.041, -0.023), "same", "ok", True),
        ((0.045, 0.03, 0.06), "regressed", "ok", True),
        ((0.06, 0.03, 0.09), "regressed", "concern", False),
        ((0.0, -0.01, 0.01), "same", "ok", False),
    ],
)
def test_a_small_change_between_two_builds_is_not_one_of_the_code(
    change: tuple[float, ...], decision: str, level: str, told: bool
) -> None:
    found = comparison(*change)
    ruling = after_rebuild(found, rule(found, Thresholds(), identical=False), Thresholds())
    assert (ruling.decision, ruling.level) == (decision, level)
    assert ("which a rebuild alone can do" in ruling.note) is told


def test_fresh_layouts_are_no_accident_of_a_rebuild() -> None:
    found = comparison(0.032, 0.023, 0.041, layouts=Layouts(20, 0.08, comparison(0.03, 0.02, 0.04)))
    assert after_rebuild(found, rule(found, Thresholds(), identical=False), Thresholds()).decision == "regressed"


def event(design: str, number: int, layout: int, **sides: float) -> dict[str, Any]:
    values = {side: [{"metric": "cpu", "value": value}] for side, value in sides.items()}
    found: dict[str, Any] = {"event": "sample", "step": "s", "design": design, "pair": number, **values}
    return found | ({"layout": layout} if layout else {})


def series_of(events: Iterator[dict[str, Any]]) -> MetricSeries:
    record = Record()
    for item in events:
        record.fold(item)
    return record.series["s", "cpu"]


def taken(*, between: float, pairs: int = 20, noise: float = 0.003) -> Iterator[dict[str, Any]]:
    """As built, the head is 12% slower; over layouts there is no change."""
    chance = random.Random(7)

    def value(layout: float) -> float:
        return layout * chance.gauss(1, noise)

    for number in range(pairs):
        yield event("looks", number, 0, baseline=value(1.0), candidate=value(1.12))
    for number in range(pairs):
        layouts = {side.value: value(chance.gauss(1, between)) for side in Side}
        yield event("layouts", pairs + number, number + 1, **layouts)


def test_the_samples_as_built_are_set_aside_and_kept() -> None:
    found = compare(series_of(taken(between=0.02)), Criteria())
    assert found.layouts
    assert (found.pairs, found.layouts.n) == (20, 20)
    assert found.confidence == pytest.approx(1 - dict(SCHEDULES[Design.LAYOUTS])[20])
    assert found.change
    assert abs(found.change.estimate) < 0.03
    assert found.layouts.built.change
    assert found.layouts.built.change.estimate == pytest.approx(0.12, abs=0.01)
    assert 0.01 < found.layouts.deviation < 0.04


def test_memory_is_judged_as_built() -> None:
    record = Record()
    for number, layout in enumerate([0] * 6 + [1, 2, 3]):
        item = event("layouts" if layout else "looks", number, layout, baseline=1e6, candidate=1e6)
        for side in Side:
            item[side.value].append({"metric": "rss", "value": 1e7})
        record.fold(item)
    assert {key[1]: len(series.sides[Side.BASELINE]) for key, series in record.series.items()} == {"cpu": 3, "rss": 6}
    assert record.series["s", "rss"].built is None


def test_noise_alone_is_no_deviation_between_layouts() -> None:
    found = compare(series_of(taken(between=0.0, pairs=60, noise=0.02)), Criteria())
    assert found.layouts
    assert found.layouts.deviation < 0.01


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

    series = series_of(events())
    assert series.layouts[Side.BASELINE] == sorted(series.layouts[Side.BASELINE])
    found = compare(series, Criteria())
    assert found.layouts
    assert (found.pairs, found.layouts.n, found.confidence) == (8, 8, 0.99)
    assert 0.02 < found.layouts.deviation < 0.15
    assert rule(found, Thresholds(), identical=False).decision in ("same", "unproven")


@pytest.mark.parametrize("design", [Design.LOOKS, Design.LAYOUTS])
def test_all_looks_together_spend_one_percent(design: Design) -> None:
    looks = SCHEDULES[design]
    assert sum(alpha for _, alpha in looks) <= 0.01 + 1e-9
    assert [pairs for pairs, _ in looks] == sorted({pairs for pairs, _ in looks})
    # A share that the number of pairs cannot reach would be wasted.
    assert all(2.0 ** (1 - pairs) <= alpha for pairs, alpha in looks)
