"""Whether a candidate is kept, and when that is settled: each rule exactly at its bound, on hand-made changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.metrics import METRICS
from perfflow.model.readings import Side
from perfflow.stats.paired_test import Interval
from perfflow.verdict.acceptance import Acceptance, Goal, accept, clear, deciding_rows, effect_of, goal_of, is_reached
from perfflow.verdict.comparison import ComparedMetric
from perfflow.verdict.gating import compared
from tests.report import optimized
from tests.verdict.records import criteria, ended, judged, pairs, planned, record

TIME, RATE, COUNT = METRICS["time"], METRICS["rate"], METRICS["instructions"]
ALL = Goal((("**", ""),), ("**",), 0.1)
NOTHING = Interval(math.nan, -math.inf, math.inf)


def row(estimate: float, low: float, high: float, metric: str = "time", name: str = "b") -> ComparedMetric:
    change = Interval(estimate, low, high)
    exact = METRICS[metric].exact
    return ComparedMetric(name, METRICS[metric], "p50", name, "t", None, None, change, 20, None if exact else 0.99)


def candidate(
    changes: Mapping[tuple[str, str], Interval | None], goal: Goal = ALL, own: Criteria | None = None, **keys: bool
) -> Acceptance:
    """Judge a candidate that changed each metric of each benchmark by this."""
    own = own or Criteria()
    names = list(dict.fromkeys(name for name, _ in changes))
    events = [event for name, metric in changes for event in pairs(name, [1.0] * 20, [1.0] * 20, metric)]
    taken = record(*events, *map(ended, names), steps=[planned(name) for name in names], criteria=own)
    rows = compared(taken, own)
    for key, change in changes.items():
        gone = Side.BASELINE if change is None else None
        rows[key] = replace(rows[key], change=change, only=gone)
    return accept(taken, rows, own, goal, lambda _: keys.get("identical", False))


def faster(estimate: float, width: float = 0.02) -> Interval:
    return Interval(-estimate, -estimate - width, -estimate + width)


def test_an_effect_is_a_change_for_the_better() -> None:
    change = Interval(-0.2, -0.3, -0.1)
    assert effect_of(row(-0.2, -0.3, -0.1)) == Interval(0.2, 0.1, 0.3)
    assert effect_of(row(-0.2, -0.3, -0.1, "rate")) == change
    assert effect_of(replace(row(0, 0, 0), change=None)) is None
    assert effect_of(replace(row(0, 0, 0), change=NOTHING)) is None


@pytest.mark.parametrize(
    ("objective", "guard", "objectives", "guards"),
    [
        (None, None, (("t", "time"),), ("**",)),
        ("b", ["g"], (("b", ""),), ("g",)),
        ("b rss", [], (("b", "rss"),), ()),
        (["b", "c d rate"], None, (("b", ""), ("c d", "rate")), ("**",)),
        # A word that is not a metric belongs to the benchmark's name, and a metric alone is a benchmark.
        ("b c", None, (("b c", ""),), ("**",)),
        ("time", None, (("time", ""),), ("**",)),
    ],
)
def test_the_goal_is_what_the_stage_says_or_what_has_a_target(
    objective: str | list[str] | None,
    guard: list[str] | None,
    objectives: tuple[tuple[str, str], ...],
    guards: tuple[str, ...],
) -> None:
    own = criteria({"t": {"time": "<10 s"}})
    assert goal_of(own, objective, guard, 0.3) == Goal(objectives, guards, 0.3)


def test_without_a_target_every_timing_is_an_objective() -> None:
    assert goal_of(Criteria(), None, None, 0.1) == ALL


@pytest.mark.parametrize(
    ("wanted", "metric", "is_one"),
    [
        ("", "time", True),
        ("", "cpu", True),
        ("time", "cpu", True),
        ("", "rss", False),
        ("time", "rss", False),
        ("rss", "rss", True),
        ("rss", "time", False),
    ],
)
def test_any_timing_stands_for_the_others(wanted: str, metric: str, *, is_one: bool) -> None:
    goal = Goal((("b*", wanted),), ("b rss",))
    assert goal.is_objective("b", metric) is is_one
    assert not goal.is_objective("c", metric)
    assert goal.is_guarded("b", "rss")
    assert not goal.is_guarded("b", "time")


@pytest.mark.parametrize(
    ("effect", "at_least", "reached"),
    [
        ((0.12, 0.11, 0.13), 0.1, True),
        ((0.12, 0.10, 0.14), 0.1, False),
        ((0.12, 0.09, 0.15), 0.1, False),
        ((0.01, 0.005, 0.015), 0.0, True),
        ((-0.12, -0.13, -0.11), -0.1, True),
        ((-0.12, -0.14, -0.10), -0.1, False),
        ((0.0, -0.01, 0.01), -0.1, False),
    ],
)
def test_a_goal_is_reached_beyond_it(effect: tuple[float, float, float], at_least: float, *, reached: bool) -> None:
    goal = Goal((("b", ""),), (), at_least)
    better = row(*effect, "rate")
    rated = Goal((("b", "rate"),), (), at_least)
    assert is_reached(better, rated) is reached
    assert is_reached(row(-effect[0], -effect[2], -effect[1]), goal) is reached
    assert not is_reached(better, goal)
    assert not is_reached(replace(better, change=NOTHING), rated)
    assert not is_reached(row(-0.5, -0.5, -0.5, "instructions"), Goal((("b", "instructions"),), ()))


@pytest.mark.parametrize(
    ("low", "high", "objective", "guard"),
    [
        # Shares, up is better. 10% is excluded, and so is a regression of 5%.
        (-0.04, 0.09, True, True),
        (0.101, 0.3, True, True),
        (0.1, 0.3, False, True),
        (0.0, 0.1, False, True),
        (-0.05, 0.05, True, True),
        # The guard is open: a regression of 5% is neither proven nor excluded.
        (-0.06, 0.06, False, False),
        (-0.1, -0.051, True, True),
        (-0.06, -0.045, True, True),
        # A half-width of 0.5%, or of half the threshold.
        (0.096, 0.106, True, True),
        (0.095, 0.107, False, True),
        (-0.07, -0.02, True, True),
        (-0.071, -0.02, False, False),
    ],
)
def test_more_pairs_would_change_nothing(low: float, high: float, *, objective: bool, guard: bool) -> None:
    found = row(-(low + high) / 2, -high, -low)
    thresholds = Thresholds()
    assert clear(found, thresholds, Goal((("b", ""),), ("**",), 0.1)) is objective
    assert clear(found, thresholds, Goal((("c", ""),), ("**",), 0.1)) is guard


def test_what_is_not_known_takes_no_more_pairs() -> None:
    assert clear(replace(row(0, 0, 0), change=NOTHING), Thresholds(), ALL)


@pytest.mark.parametrize(
    ("low", "accepted", "reason"),
    [
        (0.101, True, "b +12.0% [+10.1%, +20.0%]"),
        (0.100, False, "not proven to exceed 10%: b +12.0% [+10.0%, +20.0%]"),
        (0.021, False, "not proven to exceed 10%: b +12.0% [+2.1%, +20.0%]"),
        (0.010, False, "unproven: b +12.0% [+1.0%, +20.0%]"),
    ],
)
def test_an_effect_is_kept_that_is_proven_to_be_over_the_goal(low: float, reason: str, *, accepted: bool) -> None:
    found = candidate({("b", "time"): Interval(-0.12, -0.2, -low)})
    assert (found.accepted, found.reason) == (accepted, reason)
    assert found.row
    assert found.row.benchmark == "b"


def test_one_that_executes_the_same_files_says_so() -> None:
    same = {("b", "time"): faster(0.0, 0.003)}
    for identical in (False, True):
        found = candidate(same, identical=identical)
        assert (found.reason, found.same_files) == ("same: b 0.0% [-0.3%, +0.3%]", identical)
    open_still = {("b", "time"): faster(0.0, 0.5)}
    assert candidate(open_still, identical=True).reason.startswith("unproven: b ")
    assert not candidate(open_still, identical=True).same_files


def test_what_a_candidate_lost_decides_first() -> None:
    found = candidate({("b", "time"): faster(0.3), ("c", "time"): None})
    assert (found.accepted, found.reason) == (False, "c time was not measured on the candidate")


@pytest.mark.parametrize(
    ("worse", "metric", "guard", "accepted"),
    [
        (0.07, "time", "**", False),
        (0.07, "time", "b", True),
        # Beyond the floor, below the concern threshold.
        (0.04, "time", "**", True),
        (0.07, "rss", "**", False),
        (0.07, "rss", "c time", True),
        (0.07, "rss", "c rss", False),
    ],
)
def test_a_guard_that_regressed_outweighs_the_goal(worse: float, metric: str, guard: str, *, accepted: bool) -> None:
    changes = {("b", "time"): faster(0.3), ("c", metric): faster(-worse, 0.01)}
    found = candidate(changes, replace(ALL, guards=(guard,)))
    assert found.accepted is accepted
    name = "c" if metric == "time" else f"c {metric}"
    assert accepted or found.reason == f"{name} regressed: {-worse:+.1%} [{-worse - 0.01:+.1%}, {-worse + 0.01:+.1%}]"
    assert found.row
    assert found.row.benchmark == "b"


def test_the_objective_with_the_largest_proven_effect_decides() -> None:
    assert candidate({("b", "time"): faster(0.2), ("c", "time"): faster(0.3)}).reason.startswith("c +30.0%")
    # A larger estimate with a wider interval proves less.
    found = candidate({("b", "time"): faster(0.3, 0.15), ("c", "time"): faster(0.2)})
    assert found.reason.startswith("c +20.0%")
    assert candidate({("b", "time"): NOTHING}).reason == "no objective was measured"


def test_a_timing_that_reaches_the_goal_comes_before_a_count_that_follows_from_it() -> None:
    changes = {("b", "time"): faster(0.2), ("c", "instructions"): Interval(-0.9, -0.9, -0.9)}
    both = Goal((("b", "time"), ("c", "instructions")), (), 0.1)
    assert candidate(changes, both).reason.startswith("b +20.0%")
    missed = changes | {("b", "time"): faster(0.05)}
    assert candidate(missed, both).reason == "c instructions +90.0%"


def test_a_candidate_is_judged_by_what_decides_and_not_by_what_is_merely_guarded() -> None:
    own = criteria({"b": {"rss": "<10 GB"}})
    events = [*pairs("b", [1.0] * 20, [1.0] * 20), *pairs("b", [1.0] * 20, [1.0] * 20, "rss")]
    events += [*pairs("c", [1.0] * 20, [1.0] * 20), *pairs("c", [1.0] * 20, [1.0] * 20, "rss")]
    taken = record(*events, ended("b"), ended("c"), steps=[planned("b"), planned("c")], guard=["**"])
    rows = compared(taken, own)
    found = deciding_rows(taken, rows, own, Goal((("b", "time"),), ("**",)))
    assert found == [("b", "time"), ("b", "rss"), ("c", "time")]
    found = deciding_rows(taken, rows, Criteria(), Goal((("c", "rss"),), ("**",)))
    assert found == [("b", "time"), ("c", "time"), ("c", "rss")]


def test_the_last_of_those_that_were_accepted_is_what_is_kept() -> None:
    tries = (("one", "accepted"), ("two", "rejected"), ("three", "accepted"), ("four", "rejected"))
    steps = [planned("b"), *(optimized.candidate(name, "memory", "") for name, _ in tries)]
    events = [*pairs("b", [1.0] * 12, None), ended("b")]
    for name, decision in tries:
        events.append(ended(name, optimizations=[optimized.attempt(name, decision, "why", technique="memory")]))
        events.append({"event": "kept", "id": name, "revision": name[0] * 40, "tree": name})
    kept = judged(*events, steps=steps, accept=0.1).trees["candidate"]
    assert kept == {"kind": "kept", "revision": "t" * 40, "branch": None}
