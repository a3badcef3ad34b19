"""Other reasons to stop measuring: targets, goals with several objectives, and metrics that decide nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from perfflow.model.criteria import Criteria, MemoryThresholds
from perfflow.model.readings import SCHEDULES, Design
from perfflow.plan.plan import Plan
from perfflow.sampling.stop_rule import Stop, StopRule
from perfflow.stats.paired_test import Looks
from perfflow.verdict import comparison
from perfflow.verdict.acceptance import Goal
from tests.sampling.test_stop_rule import ONE, A, rule_of, taken, wave
from tests.verdict.records import criteria

GUARDS = ("**",)


@pytest.fixture
def six_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """End the interim analyses after 64 pairs, and let the interval of a value depend on its samples' spread alone."""
    monkeypatch.setitem(cast("dict[str, Looks]", SCHEDULES), Design.LOOKS, SCHEDULES[Design.LOOKS][:6])
    monkeypatch.setattr(comparison, "serial_factor", lambda _: 1.0)


def several(
    rule: StopRule, factors: dict[tuple[str, str], float], count: int = 20, width: float = 0.0, **keys: Any
) -> StopRule:
    """Return pairs with these benchmarks and metrics, multiplied by the factors for the candidate."""
    for (name, metric), factor in factors.items():
        base = 1e8 if metric == "rss" else 1.0
        baseline, candidate = wave(count, width, base), wave(count, width, base * factor)
        taken(rule, baseline, candidate[::-1], name=name, metric=metric, **keys)
    return rule


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
def test_targets_that_are_open_ask_for_more(
    plan: Plan, six_looks: None, wanted: dict[str, Any], *, first_ends: bool, last_ends: bool
) -> None:
    own = criteria(wanted)
    for count, ends in ((11, first_ends), (64, last_ends)):
        # A regression of 50%, which is proven at the first look.
        rule = several(rule_of(plan, own), {("a", "time"): 1.5, ("b", "time"): 1.5}, count, 0.02)
        assert rule.decided(A, count) is ends


def test_after_the_last_look_a_change_is_as_open_as_it_stays(plan: Plan, six_looks: None) -> None:
    own = Criteria()
    for count, ends in ((63, None), (64, Stop.LAST_LOOK), (65, None), (128, Stop.LAST_LOOK)):
        rule = rule_of(plan, own)
        taken(rule, wave(count, 1.0), wave(count, 1.0)[::-1])
        assert rule.decided(A, count) is (ends is not None)
        assert rule.stopped.get("a") is ends
    # Twice the first look is not a look.
    rule = several(rule_of(plan, own), {("a", "time"): 1.5}, 22)
    assert rule.decided(A, 22) is False


def test_a_goal_is_clear_where_each_of_its_objectives_is(plan: Plan) -> None:
    goal = Goal((("a", "rss"), ("a", "")), GUARDS)
    for width, ends in ((0.0, True), (0.3, False)):
        rule = rule_of(plan, goal=goal)
        taken(rule, wave(11, 0.0), wave(11, 0.0, 0.5))
        taken(rule, wave(11, width, 1e8), wave(11, width, 1e8)[::-1], metric="rss")
        assert rule.decided(A, 11) is ends


def test_one_objective_that_is_reached_may_be_an_accident_of_code_layout(plan: Plan) -> None:
    goal = Goal((("a", "time"), ("b", "time")), GUARDS)
    for factor, rests in ((0.5, True), (1.0, False)):
        rule = several(rule_of(plan, goal=goal), {("a", "time"): factor, ("b", "time"): 1.0})
        assert rule.rests_on_layout(A) is rests


def test_memory_does_not_rest_on_code_layout_and_has_thresholds_of_its_own(plan: Plan) -> None:
    assert several(rule_of(plan), {("a", "rss"): 1.5}).rests_on_layout(A) is False
    # 20% to 60% more: above the general concern threshold, and at that of memory.
    ends = []
    for memory in (MemoryThresholds(0.05, 0.1), MemoryThresholds(0.3, 0.4)):
        rule = rule_of(plan, replace(Criteria(), memory=memory))
        taken(rule, wave(11, 0.1, 1e8), wave(11, 0.1, 1.36e8)[::-1], metric="rss")
        ends.append(rule.decided(A, 11))
    assert ends == [True, False]


def test_one_benchmark_of_a_process_that_changed_is_enough(plan: Plan) -> None:
    for other, changed in ((1.0, False), (1.5, True), (0.5, True)):
        rule = several(rule_of(plan), {("a", "time"): 1.0, ("b", "time"): other})
        assert (rule.changed(A), rule.regressed(A)) == (changed, other > 1)
        assert rule.rests_on_layout(A) is changed


def test_beside_what_times_a_benchmark_other_metrics_cost_no_time_between_rounds(plan: Plan) -> None:
    factors = {("a", "time"): 1.0, ("a", "rss"): 1.0, ("a", "main_share"): 1.0, ("b", "rss"): 1.0}
    rule = several(rule_of(plan), factors, 2)
    assert set(rule._series_of(A)) == {("a", "time"), ("a", "main_share"), ("b", "rss")}
    targeted = several(rule_of(plan, criteria({"a": {"rss": "<9 GiB"}})), factors, 2)
    assert set(targeted._series_of(A)) == set(factors)
    # All benchmarks that the single subject of a step reports belong to it, unless there are other subjects.
    rule.start([A])
    assert ("b", "rss") in rule._series_of(A)


def test_a_round_is_taken_in_time_that_is_left_and_none_without(plan: Plan) -> None:
    rule = rule_of(plan, budget=0.5)
    rule.start([A])
    taken(rule, [1.0], [1.0])
    assert rule.decided(A, 1) is False
    # Figures are expected to repeat only if the step says so.
    spent = rule_of(plan, budget=0.0)
    spent.start([A])
    taken(spent, [1.0], [1.0])
    assert spent.decided(A, 1) is True


def test_one_side_alone_is_not_compared(plan: Plan) -> None:
    own = criteria({"a": {"change": "<50%"}})
    rule = rule_of(plan, own)
    taken(rule, [1.0] * 14)
    assert rule.decided(ONE, 14) is True
