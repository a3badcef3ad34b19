"""When measuring stops: exact bounds of the stop rule, with artificial readings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from perfflow.model.criteria import Criteria, MemoryThresholds
from perfflow.model.metrics import Better, Metric
from perfflow.model.readings import SCHEDULES, Design
from perfflow.model.units import Dimension
from perfflow.sampling.pairs import BenchmarkToSample
from perfflow.sampling.stop_rule import ALONE, Stop, StopRule
from perfflow.stats.paired_test import ENOUGH, Looks
from perfflow.verdict import comparison
from perfflow.verdict.acceptance import Goal
from tests.sampling.worlds import BOTH, plan
from tests.verdict.records import criteria

A, ONE = (BenchmarkToSample("a", sides, lambda _: ()) for sides in (BOTH, BOTH[:1]))
GUARDS = ("**",)
REACHED = Goal((("a", ""),), GUARDS)


def taken(
    rule: StopRule,
    baseline: Sequence[float],
    candidate: Sequence[float] | None = None,
    *,
    name: str = "a",
    metric: str = "time",
    confirmation: int = 0,
    many: bool = False,
) -> StopRule:
    (step,) = rule.record.planned
    for number, value in enumerate(baseline):
        design = Design.CONFIRM if confirmation else Design.LOOKS
        event: dict[str, Any] = {"event": "sample", "step": step, "design": design.value, "pair": number}
        event |= {"confirmation": confirmation} if confirmation else {}
        event |= {"many": many}
        event |= {"first": "baseline", "baseline": [{"metric": metric, "value": value, "benchmark": name}]}
        if candidate is not None:
            event["candidate"] = [{"metric": metric, "value": candidate[number], "benchmark": name}]
        rule.happened(event)
    return rule


def wave(count: int, width: float, factor: float = 1.0) -> list[float]:
    return [factor * (1 + width * (number * 7 % 5 - 2) / 2) for number in range(count)]


def rule_of(own: Criteria | None = None, budget: float = math.inf, **keys: Any) -> StopRule:
    return StopRule(own or Criteria(), plan().steps[0], budget, clock=lambda: 100.0, **keys)


def several(rule: StopRule, factors: Mapping[tuple[str, str], float], count: int = 20, width: float = 0.0) -> StopRule:
    """Return pairs with these benchmarks and metrics, multiplied by the factors for the candidate."""
    for (name, metric), factor in factors.items():
        base = 1e8 if metric == "rss" else 1.0
        after = wave(count, width, base * factor)[::-1]
        taken(rule, wave(count, width, base), after, name=name, metric=metric)
    return rule


@pytest.fixture
def independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give values the interval of independent samples, although these are correlated."""
    monkeypatch.setattr(comparison, "serial_factor", lambda _: 1.0)


# -- budgets


@pytest.mark.parametrize(
    ("budget", "total", "ahead", "why"),
    [
        *[(10.0, math.inf, 0.0, None), (0.0, math.inf, 0.0, Stop.BUDGET), (10.0, math.inf, 10.0, Stop.BUDGET)],
        *[(10.0, math.inf, 9.0, None), (0.5, math.inf, 0.0, None)],
        *[(10.0, 100.0, 0.0, Stop.TOTAL_BUDGET), (10.0, 105.0, 5.0, Stop.TOTAL_BUDGET)],
        *[(10.0, 110.0, 10.0, Stop.BUDGET), (10.0, 111.0, 10.0, Stop.BUDGET)],
    ],
)
def test_time_that_is_left_for_the_next_round(budget: float, total: float, ahead: float, why: Stop | None) -> None:
    rule = rule_of(budget=budget)
    rule.start([A], total)
    taken(rule, [1.0], [1.0])
    assert rule.decided(A, 0, ahead=ahead) is False
    assert rule.decided(A, 1, ahead=ahead) is (why is not None)
    assert rule.stopped.get("a") is why


@pytest.mark.parametrize(
    ("values", "total", "ends"),
    [
        ([5.0, 5.0, 5.0], math.inf, {1: None, 2: Stop.SETTLED}),
        ([5.0, 9.0, 5.0], math.inf, {1: None, 2: None, 3: Stop.BUDGET}),
        ([5.0, 5.0, 5.0], 100.0, {1: Stop.BUDGET}),
        ([5.0, 5.0, 5.0], 99.0, {1: Stop.TOTAL_BUDGET}),
    ],
)
def test_what_should_repeat_has_two_rounds(values: list[float], total: float, ends: dict[int, Stop | None]) -> None:
    for finished, why in ends.items():
        rule = rule_of(budget=0.0, repeats=True)
        rule.start([A], total)
        taken(rule, values[:finished], values[:finished], metric="instructions")
        assert rule.decided(A, finished) is (why is not None)
        assert rule.stopped.get("a") is why


# -- which series count


@pytest.mark.parametrize(
    ("started", "regressed"), [(None, True), (([A], 0), True), (([A], 1), False), (([A, A], 0), False)]
)
def test_one_subject_may_report_any_name_and_one_of_several_may_not(started: Any, regressed: bool) -> None:
    rule = rule_of()
    if started:
        rule.start(started[0], others=started[1])
    taken(rule, [1.0] * 11, [1.5] * 11, name="other")
    assert rule.regressed(A) is regressed
    assert rule.record.series["other", "time"].tool == "command"


def test_beside_what_times_a_benchmark_other_metrics_cost_no_time_between_rounds() -> None:
    factors = {("a", "time"): 1.0, ("a", "rss"): 1.0, ("a", "main_share"): 1.0, ("b", "rss"): 1.0}
    rule = several(rule_of(), factors, 2)
    assert set(rule._series_of(A)) == {("a", "time"), ("a", "main_share"), ("b", "rss")}
    targeted = several(rule_of(criteria({"a": {"rss": "<9 GiB"}})), factors, 2)
    assert set(targeted._series_of(A)) == set(factors)
    # All benchmarks that the single subject of a step reports belong to it, unless there are other subjects.
    rule.start([A])
    assert ("b", "rss") in rule._series_of(A)


# -- looks


def test_pairs_are_judged_at_the_looks_alone() -> None:
    ends = []
    for finished in (*range(8, 21), 27, 28):
        rule = rule_of()
        rule.start([A])
        taken(rule, [1.0] * finished, [1.5] * finished)
        ends += [finished] if rule.decided(A, finished) else []
    assert ends == [11, 15, 20, 28]


@pytest.fixture
def six_looks(monkeypatch: pytest.MonkeyPatch, independent: None) -> None:
    """End the interim analyses after 64 pairs."""
    monkeypatch.setitem(cast("dict[str, Looks]", SCHEDULES), Design.LOOKS, SCHEDULES[Design.LOOKS][:6])


def test_after_the_last_look_a_change_is_as_open_as_it_stays(six_looks: None) -> None:
    for count, why in ((63, None), (64, Stop.LAST_LOOK), (65, None), (128, Stop.LAST_LOOK)):
        rule = taken(rule_of(), wave(count, 1.0), wave(count, 1.0)[::-1])
        assert rule.decided(A, count) is (why is not None)
        assert rule.stopped.get("a") is why
    # Twice the first look is not a look.
    assert several(rule_of(), {("a", "time"): 1.5}, 22).decided(A, 22) is False


@pytest.mark.parametrize(
    ("keys", "ends"), [({}, True), ({"identical": lambda: True}, False), ({"identical": lambda: False}, True)]
)
def test_two_builds_are_known_to_two_percent_and_one_file_to_one(keys: dict[str, Any], *, ends: bool) -> None:
    assert taken(rule_of(**keys), wave(11, 0.0), wave(11, 0.014)).decided(A, 11) is ends


# -- targets


def alone(values: Sequence[float], requirement: str = "") -> StopRule:
    return taken(rule_of(criteria({"a": {"time": requirement}}) if requirement else None), values)


def test_a_benchmark_that_is_not_compared_has_as_many_samples_as_its_median_needs(independent: None) -> None:
    ends = [number for number in range(1, 16) if alone([1.0] * number).decided(ONE, number)]
    assert ends == [ALONE] == [14]
    assert taken(rule_of(criteria({"a": {"change": "<50%"}})), [1.0] * 14).decided(ONE, 14)


def test_a_target_is_looked_at_when_there_are_twice_as_many_samples(independent: None) -> None:
    """After 14 samples the target is open; later it would be met, but it is checked only at 28 and 56 samples."""
    values = wave(14, 0.5) + [0.5] * 50
    counts = (14, 15, 21, 27, 28, 29, 41, 42, 43, 55, 56, 57)
    ends = [count for count in counts if alone(values[:count], "<1.3 s").decided(ONE, count)]
    assert ends == [28, 56]
    assert alone(values[:14], "<9 s").decided(ONE, 14)


@pytest.mark.parametrize(
    ("wanted", "first_ends", "last_ends"),
    [
        ({"a": {"time": "<9 s"}}, True, True),
        # More samples may narrow the interval of a value; that of a change is final.
        ({"a": {"time": "<1.5 s"}}, False, False),
        ({"a": {"change": "<50%"}}, False, True),
        ({"a": {"change": "<90%"}}, True, True),
        ({"elsewhere": {"time": "<1.5 s"}}, True, True),
        ({"elsewhere": {"change": "<50%"}, "a": {"time": "<9 s"}}, True, True),
    ],
)
def test_open_targets_ask_for_more(six_looks: None, wanted: dict[str, Any], first_ends: bool, last_ends: bool) -> None:
    for count, ends in ((11, first_ends), (64, last_ends)):
        # A regression of 50%, which is proven at the first look.
        rule = several(rule_of(criteria(wanted)), {("a", "time"): 1.5, ("b", "time"): 1.5}, count, 0.02)
        assert rule.decided(A, count) is ends


# -- candidates


@pytest.mark.parametrize(("goal", "ends"), [(REACHED, True), (None, False)])
def test_a_candidates_fate_does_not_wait_for_targets(goal: Goal | None, *, ends: bool) -> None:
    values = wave(11, 0.02, 1.0001)
    rule = rule_of(criteria({"a": {"time": "<1.0001 s"}}), goal=goal)
    assert taken(rule, values, [0.5 + value / 2 for value in values]).decided(A, 11) is ends


@pytest.mark.parametrize(("width", "ends"), [(0.0, True), (0.3, False)])
def test_a_goal_is_clear_where_each_of_its_objectives_is(width: float, *, ends: bool) -> None:
    rule = taken(rule_of(goal=Goal((("a", "rss"), ("a", "")), GUARDS)), wave(11, 0.0), wave(11, 0.0, 0.5))
    taken(rule, wave(11, width, 1e8), wave(11, width, 1e8)[::-1], metric="rss")
    assert rule.decided(A, 11) is ends


@pytest.mark.parametrize(
    ("factor", "goal", "again"),
    [
        # The interval is about 5 points wide on each side.
        (0.85, REACHED, True),
        (0.83, REACHED, True),
        (0.94, REACHED, True),
        (0.8, REACHED, False),
        (0.89, REACHED, False),
        (1.0, REACHED, False),
        (0.85, None, False),
    ],
)
def test_an_interval_that_ends_near_the_goal_gets_the_budget_once_more(
    factor: float, goal: Goal | None, *, again: bool
) -> None:
    rule = rule_of(budget=0.0, goal=goal)
    rule.start([A])
    taken(rule, wave(12, 0.04), wave(12, 0.04, factor)[::-1])
    # Twelve pairs are no interim analysis, so only time ends it.
    assert [rule.decided(A, 12) for _ in range(2)] == [not again, True]
    assert rule.stopped["a"] is Stop.BUDGET


@pytest.mark.parametrize(
    ("count", "attempts", "factor", "ends"),
    [
        (11, 1, 0.5, True),
        # Eleven pairs that agree prove a gain, but not the best of ten. What gains nothing needs no more.
        (11, 10, 0.5, False),
        (20, 10, 0.5, True),
        (11, 10, 1.0, True),
    ],
)
def test_the_best_of_many_attempts_takes_more_pairs(count: int, attempts: int, factor: float, *, ends: bool) -> None:
    rule = rule_of(goal=replace(REACHED, attempts=attempts))
    values = wave(count, 0.002)
    assert taken(rule, values, [factor * value for value in values[::-1]]).decided(A, count) is ends


# -- changes and confirmations


@pytest.mark.parametrize(
    ("factor", "width", "changed", "regressed", "fails"),
    [
        (1.3, 0.001, True, True, 0.3),
        (1.08, 0.001, True, True, 0.0),
        (1.04, 0.001, True, False, 0.0),  # below the concern threshold
        (1.0, 0.0, False, False, 0.0),
        (0.8, 0.001, True, False, 0.0),
        (1.0, 1.0, False, False, 0.0),
    ],
)
def test_what_changed(factor: float, width: float, fails: float, *, changed: bool, regressed: bool) -> None:
    rule = taken(rule_of(), wave(30, width), wave(30, width, factor)[::-1])
    assert (rule.changed(A), rule.regressed(A)) == (changed, regressed)
    assert rule.fails(A) == pytest.approx(fails, abs=0.01)


def test_readings_of_a_single_benchmark_need_no_name() -> None:
    rule = rule_of()
    (step,) = rule.record.planned
    for number in range(11):
        event = {"event": "sample", "step": step, "design": "looks", "pair": number, "first": "baseline"}
        sides = {"baseline": [{"metric": "time", "value": 1.0}], "candidate": [{"metric": "time", "value": 1.2}]}
        rule.happened({**event, **sides})
    assert rule.changed(A)


def test_exact_figures_need_no_confirmation() -> None:
    rule = taken(rule_of(), [1000.0] * 9, [1200.0] * 9, metric="heap_peak")
    assert (rule.changed(A), rule.regressed(A), rule.fails(A)) == (False, False, 0.0)


@pytest.mark.parametrize(("other", "changed"), [(1.0, False), (1.5, True), (0.5, True)])
def test_one_benchmark_of_a_process_that_changed_is_enough(other: float, *, changed: bool) -> None:
    rule = several(rule_of(), {("a", "time"): 1.0, ("b", "time"): other})
    assert (rule.changed(A), rule.regressed(A), rule.rests_on_layout(A)) == (changed, other > 1, changed)


@pytest.mark.parametrize(("memory", "ends"), [((0.05, 0.1), True), ((0.3, 0.4), False)])
def test_memory_has_thresholds_of_its_own(memory: tuple[float, float], *, ends: bool) -> None:
    # 20% to 60% more: above the general concern threshold, and at that of memory.
    rule = rule_of(replace(Criteria(), memory=MemoryThresholds(*memory)))
    assert taken(rule, wave(11, 0.1, 1e8), wave(11, 0.1, 1.36e8)[::-1], metric="rss").decided(A, 11) is ends


@pytest.mark.parametrize(
    ("before", "fresh", "factor", "enough"),
    [
        (11, 6, 1.06, True),  # they agree
        (11, 8, 1.0, False),
        (11, 11, 1.0, True),  # they will hardly do so
        (40, 11, 1.06, True),
        (40, 15, 1.03, False),
        (40, 40, 1.03, True),  # as many as before
    ],
)
def test_how_long_a_confirmation_is(before: int, fresh: int, factor: float, *, enough: bool) -> None:
    rule = taken(rule_of(), [1.0] * before, [1.06] * before)
    # Half of the pairs are slower, or 11 of 15, which is not unlikely by chance (p = 0.12).
    noisy = [1.1 if (number % 15 < 11 if factor > 1 else number % 2) else 0.97 for number in range(fresh)]
    taken(rule, [1.0] * fresh, [1.06] * fresh if factor == 1.06 else noisy, confirmation=1)
    assert rule.has_confirmation(A, fresh) is enough
    assert ENOUGH == 11


@pytest.mark.parametrize(
    ("fresh", "enough"),
    [
        ([1.06] * 11, True),
        ([1.01, 0.99] * 5 + [1.0], True),  # no change, and less than what was seen
        ([1.06] * 6 + [0.8, 1.3] * 2 + [0.8], False),  # no change either, but what was seen lies in the interval
        ([1.002] * 11, False),  # they agree, but leave it open whether all pairs show more than the floor
    ],
)
def test_noisy_pairs_do_not_give_up_a_confirmation(fresh: list[float], *, enough: bool) -> None:
    rule = taken(rule_of(), [1.0] * 20, [1.06] * 20)
    taken(rule, [1.0] * len(fresh), fresh, confirmation=1)
    assert rule.has_confirmation(A, len(fresh)) is enough


@pytest.mark.parametrize(("factor", "contradicts"), [(1.0, True), (1.2, False)])
def test_a_confirmation_that_excludes_what_was_seen_contradicts_it(factor: float, *, contradicts: bool) -> None:
    rule = taken(rule_of(), wave(11, 0.01), wave(11, 0.01, 1.2)[::-1])
    assert rule.contradicted(A) is None
    taken(rule, wave(8, 0.01), wave(8, 0.01, factor)[::-1], confirmation=1)
    assert (rule.contradicted(A) is not None) is contradicts


TWO = Goal((("a", "time"), ("b", "time")), GUARDS)


@pytest.mark.parametrize(
    ("factors", "goal", "rests"),
    [
        # A change of time beyond the concern threshold, but not one of what is exact or of memory.
        *[({("a", "time"): factor}, None, True) for factor in (1.2, 0.8)],
        *[({("a", "time"): factor}, None, False) for factor in (1.04, 1.0)],
        *[({("a", metric): 1.5}, None, False) for metric in ("heap_peak", "rss")],
        # A goal that is reached, or one of its objectives.
        *[({("a", "time"): factor}, REACHED, rests) for factor, rests in ((0.8, True), (0.95, False), (1.2, False))],
        *[({("a", "time"): factor, ("b", "time"): 1.0}, TWO, rests) for factor, rests in ((0.5, True), (1.0, False))],
    ],
)
def test_what_may_be_an_accident_of_code_layout(factors: Any, goal: Goal | None, rests: bool) -> None:
    assert several(rule_of(goal=goal), factors).rests_on_layout(A) is rests


# -- the false alarms that the rows of a benchmark share

TREES = {side.value: {"kind": "revision", "revision": side.value} for side in BOTH}
BEYOND_ACTION = [0.01, 0.02, -0.03, *[0.3] * 8]
"""Logarithms above 10% of eleven pairs; by chance, 5 of 1024 choices of signs are as far from none."""


@pytest.mark.parametrize(
    ("trees", "other", "settled"),
    [
        *[(TREES, "rss", False), (TREES, "own", False), (TREES, "instructions", True)],
        *[({}, "rss", True), ({}, "own", False)],
    ],
)
def test_what_may_gate_has_its_part_of_the_false_alarms_while_measuring(
    trees: Mapping[str, Any], other: str, settled: bool
) -> None:
    planned = plan().steps[0]
    reads = replace(planned, step=planned.step.model_copy(update={"uses": "run"}))
    own = criteria(metrics=[Metric("own", Dimension.BYTES, Better.LOWER)])
    rule = StopRule(own, reads, math.inf, trees=trees)
    rule.start([A], others=1)
    taken(rule, wave(11, 0.1, 1e8), wave(11, 0.1, 1e8)[::-1], metric=other)
    taken(rule, [1.0] * 11, [1.1 * math.exp(excess) for excess in BEYOND_ACTION])
    assert rule.decided(A, 11) is settled


def gate_rule(trees: Mapping[str, Any]) -> StopRule:
    """Return the rule of a step that runs one command in two trees."""
    planned = plan().steps[0]
    rule = StopRule(
        Criteria(), replace(planned, step=planned.step.model_copy(update={"candidate": None})), math.inf, trees=trees
    )
    rule.start([A], others=1)
    return rule


@pytest.mark.parametrize(("trees", "grown", "ends"), [(TREES, 1.5, 15), (TREES, 1.04, 11), ({}, 1.5, 11)])
def test_memory_that_seems_to_have_grown_is_measured_until_it_is_proven(
    trees: Mapping[str, Any], grown: float, ends: int
) -> None:
    for pairs in (11, 15):
        rule = gate_rule(trees)
        # Its part of the false alarms is so small because two more clocks have a part.
        for clock in ("cpu", "uncontended", "time"):
            taken(rule, wave(pairs, 0.001), wave(pairs, 0.001)[::-1], metric=clock)
        taken(rule, wave(pairs, 0.001, 1e8), wave(pairs, 0.001, 1e8 * grown), metric="rss")
        assert rule.decided(A, pairs) is (pairs >= ends)


def test_among_many_benchmarks_memory_that_seems_to_have_grown_is_confirmed() -> None:
    rule = gate_rule(TREES)
    for confirmation in (0, 1):
        for metric, base, grown in (("rss", 1e8, 1.5), ("time", 1.0, 1.0)):
            before, after = wave(15, 0.001, base), wave(15, 0.001, base * grown)[::-1]
            taken(rule, before, after, metric=metric, confirmation=confirmation, many=True)
        assert rule.changed(A)
        assert rule.fails(A) == pytest.approx(0.5, abs=0.01)
    assert rule.has_confirmation(A, 15)
