"""Whether a candidate is kept, and when that is settled: each rule exactly at its bound, on hand-made changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.judging import Code, Flag
from perfflow.model.readings import Design, Side
from perfflow.stats.paired_test import Interval
from perfflow.verdict import acceptance
from perfflow.verdict.acceptance import (
    Acceptance,
    Goal,
    accept,
    clear,
    deciding_rows,
    effect_of,
    goal_of,
    is_reached,
    more_pairs,
)
from perfflow.verdict.gating import compared
from tests.report import optimized
from tests.verdict.comparisons import moved
from tests.verdict.records import beside, criteria, ended, judged, pairs, planned, record

ALL = Goal((("**", ""),), ("**",), 0.1)
FLAT = [1.0] * 20
UNKNOWN = Interval(math.nan, -math.inf, math.inf)


def candidate(
    changes: Mapping[tuple[str, str], Interval | None], goal: Goal = ALL, *, identical: bool = False
) -> Acceptance:
    """Judge a candidate that changed each metric of each benchmark by this; None: it was not measured."""
    names = list(dict.fromkeys(name for name, _ in changes))
    events = [event for name, metric in changes for event in pairs(name, FLAT, FLAT, metric)]
    taken = record(*events, *map(ended, names), steps=[planned(name) for name in names])
    rows = compared(taken, Criteria())
    for key, change in changes.items():
        rows[key] = replace(rows[key], change=change, only=Side.BASELINE if change is None else None)
    return accept(taken, rows, Criteria(), goal, lambda _: identical)


def faster(estimate: float, width: float = 0.02) -> Interval:
    return Interval(-estimate, -estimate - width, -estimate + width)


# -- goals


def test_an_effect_is_a_change_for_the_better() -> None:
    assert effect_of(moved("time", -0.2, -0.3, -0.1)) == Interval(0.2, 0.1, 0.3)
    assert effect_of(moved("rate", -0.2, -0.3, -0.1)) == Interval(-0.2, -0.3, -0.1)
    for unknown in (None, UNKNOWN):
        assert effect_of(moved("time", 0, 0, 0, change=unknown)) is None
    assert acceptance._told(moved("time", *[math.nan] * 3)) == "unknown"


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
def test_the_goal_of_a_stage(objective: Any, guard: list[str] | None, objectives: Any, guards: Any) -> None:
    own = criteria({"t": {"time": "<10 s"}})
    assert goal_of(own, objective, guard, 0.3) == Goal(objectives, guards, 0.3)


def test_without_a_target_every_timing_is_an_objective() -> None:
    assert goal_of(Criteria(), None, None, 0.1) == ALL


@pytest.mark.parametrize(
    ("wanted", "metric", "is_one"),
    [
        *[("", "time", True), ("", "cpu", True), ("time", "cpu", True), ("", "rss", False), ("time", "rss", False)],
        *[("rss", "rss", True), ("rss", "time", False)],
    ],
)
def test_any_timing_stands_for_the_others(wanted: str, metric: str, *, is_one: bool) -> None:
    # One of several objectives or guards is enough.
    goal = Goal((("other", ""), ("b*", wanted)), ("other", "b rss"))
    assert goal.is_objective("b", metric) is is_one
    assert not goal.is_objective("c", metric)
    assert (goal.is_guarded("b", "rss"), goal.is_guarded("b", "time")) == (True, False)


@pytest.mark.parametrize(
    ("reached", "at_least", "effects"),
    [
        (True, 0.1, [(0.12, 0.11, 0.13)]),
        (False, 0.1, [(0.12, 0.10, 0.14), (0.12, 0.09, 0.15)]),
        (True, 0.0, [(0.01, 0.005, 0.015)]),
        (True, -0.1, [(-0.12, -0.13, -0.11)]),
        (False, -0.1, [(-0.12, -0.14, -0.10), (0.0, -0.01, 0.01)]),
    ],
)
def test_a_goal_is_reached_beyond_it(reached: bool, at_least: float, effects: list[tuple[float, float, float]]) -> None:
    goal, rated = (Goal((("b", metric),), (), at_least) for metric in ("", "rate"))
    for estimate, low, high in effects:
        better, less = moved("rate", estimate, low, high), moved("time", -estimate, -high, -low)
        assert is_reached(better, rated) is is_reached(less, goal) is reached, estimate
        assert not is_reached(replace(better, change=UNKNOWN), rated)


def test_an_exact_count_needs_no_proof() -> None:
    assert not is_reached(moved("instructions", -0.5, -0.5, -0.5), Goal((("b", "instructions"),), ()))


@pytest.mark.parametrize(
    ("objective", "guard", "bounds"),
    [
        # Shares, up is better. 10% is excluded or proven, and so is a regression of 5%.
        (True, True, [(-0.04, 0.079), (0.121, 0.3), (-0.05, 0.05), (-0.05, 0.0), (-0.1, -0.051), (-0.06, -0.045)]),
        (False, True, [(0.1, 0.3), (0.0, 0.1)]),
        # An end within 2 points of the goal asks for a second look, on either side of it.
        (False, True, [(0.101, 0.3), (0.119, 0.3), (-0.04, 0.09), (0.0, 0.081)]),
        # The guard is open: a regression of 5% is neither proven nor excluded.
        (False, False, [(-0.06, 0.06), (-0.15, -0.05)]),
        # A half-width of 0.5%, or of half the threshold.
        (True, True, [(0.096, 0.106), (-0.07, -0.02)]),
        (False, True, [(0.095, 0.107)]),
        (False, False, [(-0.071, -0.02)]),
    ],
)
def test_more_pairs_change_nothing(objective: bool, guard: bool, bounds: list[tuple[float, float]]) -> None:
    for low, high in bounds:
        found = moved("time", -(low + high) / 2, -high, -low)
        settled = [clear(found, Thresholds(), ALL, is_objective=is_one) for is_one in (True, False)]
        assert settled == [objective, guard], (low, high)
    least = Goal((("b", ""),), (), 0.0)
    assert clear(moved("time", 0.0, -0.005, 0.005), Thresholds(), least, is_objective=True) is True


def test_what_is_not_known_takes_no_more_pairs() -> None:
    assert clear(moved("time", 0, 0, 0, change=UNKNOWN), Thresholds(), ALL, is_objective=True)


# -- candidates

COUNTED = Goal((("b", "time"), ("c", "instructions")), (), 0.1)
FEWER = Interval(-0.9, -0.9, -0.9)


@pytest.mark.parametrize(
    ("changes", "goal", "accepted", "row", "reason"),
    [
        # An effect is kept that is proven to be over the goal.
        ({"b time": Interval(-0.12, -0.2, -0.101)}, ALL, True, "b", "b +12.0% [+10.1%, +20.0%]"),
        (
            {"b time": Interval(-0.12, -0.2, -0.1)},
            ALL,
            False,
            "b",
            "not proven to exceed 10%: b +12.0% [+10.0%, +20.0%]",
        ),
        (
            {"b time": Interval(-0.12, -0.2, -0.03)},
            ALL,
            False,
            "b",
            "not proven to exceed 10%: b +12.0% [+3.0%, +20.0%]",
        ),
        ({"b time": Interval(-0.12, -0.2, -0.01)}, ALL, False, "b", "unproven: b +12.0% [+1.0%, +20.0%]"),
        ({"b time": faster(0.01, 0.005)}, ALL, False, "b", "same: b +1.0% [+0.5%, +1.5%]"),
        # What it lost decides first.
        ({"b time": faster(0.3), "c time": None}, ALL, False, None, "c time was not measured on the candidate"),
        ({"b time": UNKNOWN}, ALL, False, None, "no objective was measured"),
        ({"b time": faster(0.3)}, Goal((("d", ""),), ("**",)), False, None, "no objective was measured"),
        # The objective with the largest proven effect decides; a wider interval proves less, an open end least.
        ({"b time": faster(0.2), "c time": faster(0.3)}, ALL, True, "c", "c +30.0% [+28.0%, +32.0%]"),
        ({"b time": faster(0.3, 0.15), "c time": faster(0.2)}, ALL, True, "c", "c +20.0% [+18.0%, +22.0%]"),
        (
            {"b time": Interval(-0.3, -math.inf, math.inf), "c time": faster(0.05)},
            *(ALL, False, "c", "not proven to exceed 10%: c +5.0% [+3.0%, +7.0%]"),
        ),
        ({"b time": Interval(-0.3, -math.inf, -0.2)}, ALL, True, "b", "b +30.0%"),
        # A timing that is over the goal comes before a count that follows from it.
        ({"b time": faster(0.2), "c instructions": FEWER}, COUNTED, True, "b", "b +20.0% [+18.0%, +22.0%]"),
        ({"b time": faster(0.05), "c instructions": FEWER}, COUNTED, True, "c", "c instructions +90.0%"),
        ({"b time": faster(0.2, 0.1), "c instructions": FEWER}, COUNTED, True, "c", "c instructions +90.0%"),
    ],
)
def test_what_is_kept(changes: Any, goal: Goal, row: str | None, reason: str, accepted: bool) -> None:
    found = candidate({(key[0], key[2:]): change for key, change in changes.items()}, goal)
    assert (found.accepted, found.row and found.row.benchmark, found.reason) == (accepted, row, reason)


@pytest.mark.parametrize("identical", [False, True])
def test_one_that_executes_the_same_files_says_so(*, identical: bool) -> None:
    found = candidate({("b", "time"): faster(0.0, 0.003)}, identical=identical)
    assert (found.reason, found.code) == (
        "same: b 0.0% [-0.3%, +0.3%]",
        Code.SAME_FILES if identical else Code.NO_EFFECT,
    )
    open_still = candidate({("b", "time"): faster(0.0, 0.5)}, identical=identical)
    assert (open_still.reason[:12], open_still.code) == ("unproven: b ", Code.NOT_PROVEN)


@pytest.mark.parametrize(
    ("worse", "metric", "guard", "accepted"),
    [
        # 4% is beyond the floor, below the concern threshold.
        *[(0.07, "time", "**", False), (0.07, "time", "b", True), (0.04, "time", "**", True)],
        *[(0.07, "rss", "**", False), (0.07, "rss", "c time", True), (0.07, "rss", "c rss", False)],
    ],
)
def test_a_guard_that_regressed_outweighs_the_goal(worse: float, metric: str, guard: str, *, accepted: bool) -> None:
    changes = {("b", "time"): faster(0.3), ("c", metric): faster(-worse, 0.01)}
    found = candidate(changes, replace(ALL, guards=(guard,)))
    name = "c" if metric == "time" else f"c {metric}"
    lost = f"{name} regressed: {-worse:+.1%} [{-worse - 0.01:+.1%}, {-worse + 0.01:+.1%}]"
    assert (found.accepted, accepted or found.reason == lost) == (accepted, True)
    assert found.row
    assert found.row.benchmark == "b"


GAIN = {("b", "cpu"): faster(0.3), ("b", "time"): faster(0.3)}
WAITS = {("b", "cpu"): faster(0.3), ("b", "time"): faster(0.0)}
OTHER = {("c", "cpu"): faster(0.0), ("c", "time"): faster(0.0)}


@pytest.mark.parametrize(
    ("changes", "objectives", "accepted"),
    [
        # Only the clocks of the objective itself contradict its gain.
        (GAIN | OTHER, (("**", ""),), True),
        (WAITS | OTHER, (("**", ""),), False),
        # Also one that the workflow asks for: CPU time of a child that nobody waits for is not counted.
        (WAITS, (("b", "cpu"),), False),
        (WAITS, (("b", ""),), False),
        (WAITS, (("b", "time"),), False),
        (WAITS, (("b", "time"), ("c", "cpu")), False),
        (WAITS, (("b", "time"), ("b", "cpu")), False),
    ],
)
def test_a_clock_that_contradicts_the_gain_of_the_chosen_one(changes: Any, objectives: Any, accepted: bool) -> None:
    found = candidate(changes, Goal(objectives, ("**",) if "**" in objectives[0] else (), 0.1))
    assert found.code is (Code.PROVEN if accepted else Code.CLOCKS_DISAGREE)
    assert accepted or found.reason.startswith("unproven: cpu shows -30.0%,")


def test_threads_that_take_more_cpu_time_are_kept_and_say_so() -> None:
    several = {("b", "time"): faster(0.4), ("b", "cpu"): faster(-0.2), ("b", "main_share"): faster(0.5)}
    found = candidate(several, Goal((("b", "time"),), ("**",), 0.1))
    assert (found.code, found.row and found.row.metric.name) == (Code.PROVEN, "time")
    assert found.flags == (Flag.MORE_CPU,)
    assert candidate(GAIN, Goal((("b", "cpu"),), (), 0.1)).flags == ()


@pytest.mark.parametrize(
    ("low", "high", "code"),
    [
        # What is entirely below the goal needs no more time, nor what is known to half a percent.
        (0.03, 0.1, Code.NO_EFFECT),
        (0.03, 0.101, Code.NOT_PROVEN),
        (0.1, 0.3, Code.NOT_PROVEN),
        (0.096, 0.1055, Code.NO_EFFECT),
        (-0.04, -0.02, Code.NO_EFFECT),
    ],
)
def test_only_what_more_time_could_decide_is_not_proven(low: float, high: float, code: Code) -> None:
    middle = (low + high) / 2
    found = candidate({("b", "time"): Interval(-middle, -high, -low)})
    assert (found.code, found.accepted) == (code, False)


def test_the_code_of_what_was_lost_or_got_worse() -> None:
    assert candidate({("b", "time"): faster(0.3), ("c", "time"): None}).code is Code.NOT_MEASURED
    assert candidate({("b", "time"): faster(0.3), ("c", "time"): faster(-0.3)}).code is Code.REGRESSED
    assert candidate({("b", "time"): UNKNOWN}).code is Code.NO_OBJECTIVE


@pytest.mark.parametrize(
    ("estimate", "low", "high", "pairs", "design", "more"),
    [
        # Twice as near needs four times the pairs: the next analysis with at least so many.
        (0.15, 0.05, 0.25, 11, Design.LOOKS, 64 - 11),
        (0.3, 0.05, 0.55, 11, Design.LOOKS, 20 - 11),
        (0.3, -math.inf, math.inf, 5, Design.LOOKS, 11 - 5),
        (0.15, 0.05, 0.25, 28, Design.LAYOUTS, None),
        # At the goal itself, until half a percent is known; then no number decides.
        (0.1, 0.08, 0.12, 64, Design.LOOKS, 1024 - 64),
        (0.1, 0.0, 0.2, 64, Design.LOOKS, None),
        (0.15, 0.05, 0.25, 8, Design.FIXED, None),
    ],
)
def test_how_many_more_pairs_would_decide(
    estimate: float, low: float, high: float, pairs: int, design: Design, more: int | None
) -> None:
    found = replace(moved("time", -estimate, -high, -low), pairs=pairs)
    assert more_pairs(found, design, 0.1) == more


def test_what_reached_the_goal_with_one_code_layout_says_so() -> None:
    taken = record(*pairs("b", FLAT, [0.5] * 20), ended("b", rebuilt=True))
    taken.without_layouts["b", ""] = "no linker"
    found = accept(taken, compared(taken, Criteria()), Criteria(), Goal((("b", ""),), (), 0.1), lambda _: False)
    assert found.flags == (Flag.AS_BUILT,)
    assert found.reason == "b +50.0% [+50.0%, +50.0%]; with one code layout per side: no linker"


def test_a_candidate_is_judged_by_what_decides_and_not_by_what_is_merely_guarded() -> None:
    own = criteria({"b": {"rss": "<10 GB"}})
    events = [event for name in "bc" for event in beside(pairs(name, FLAT, FLAT), "rss", 1.0, 1.0)]
    taken = record(*events, ended("b"), ended("c"), steps=[planned("b"), planned("c")], guard=["**"])
    rows = compared(taken, own)
    found = deciding_rows(taken, rows, own, Goal((("b", "time"),), ("**",)))
    assert found == {("b", "time"): True, ("b", "rss"): False, ("c", "time"): False}
    found = deciding_rows(taken, rows, Criteria(), Goal((("c", "rss"),), ("**",)))
    assert found == {("b", "time"): False, ("c", "time"): False, ("c", "rss"): True}


def test_a_target_of_a_clock_that_was_not_chosen_does_not_judge_a_candidate() -> None:
    own = criteria({"b": {"time": "<10 s"}})
    taken = record(*beside(pairs("b", FLAT, FLAT, "cpu"), "time", 1.0, 1.0), ended("b"), criteria=own)
    assert deciding_rows(taken, compared(taken, own), own, ALL) == {("b", "cpu"): True}


@pytest.mark.parametrize(
    ("metric", "measured", "objectives"),
    [
        # A benchmark without a timing is judged by what was measured, and every one by the metric of its step.
        (None, ["instructions", "rss"], ["instructions", "rss"]),
        ("instructions", ["time", "instructions", "rss"], ["instructions"]),
        (None, ["time", "instructions", "rss"], ["time"]),
    ],
)
def test_an_objective_without_a_metric_is_what_decides(
    metric: str | None, measured: list[str], objectives: list[str]
) -> None:
    half = [0.5] * 20
    first, *others = measured
    events = pairs("b", FLAT, half, first)
    for other in others:
        events = beside(events, other, 1.0, 0.5)
    taken = record(*events, ended("b"), steps=[planned("b", metric=metric)])
    rows = compared(taken, Criteria())
    for goal in (ALL, Goal((("b", ""),), (), 0.1)):
        deciding = deciding_rows(taken, rows, Criteria(), goal)
        assert [name for (_, name), is_one in deciding.items() if is_one] == objectives
        found = accept(taken, rows, Criteria(), goal, lambda _: False)
        assert found.row
        assert (found.code, found.row.metric.name in objectives) == (Code.PROVEN, True)


@pytest.mark.parametrize(
    ("branch", "told"), [("perfflow/kept", "perfflow/kept"), ("", None), (None, None)], ids=["named", "empty", "none"]
)
def test_the_last_accepted_try_is_what_is_kept_and_its_branch_is_named(branch: str | None, told: str | None) -> None:
    tries = (("one", "accepted"), ("two", "rejected"), ("three", "accepted"), ("four", "rejected"))
    steps = [planned("b"), *(optimized.candidate(name, "memory", "") for name, _ in tries)]
    events = [*pairs("b", [1.0] * 12, None), ended("b")]
    events += [] if branch is None else [{"event": "branch", "name": branch, "revision": ""}]
    for name, decision in tries:
        events.append(ended(name, optimizations=[optimized.attempt(name, decision, "why", technique="memory")]))
        events.append({"event": "kept", "id": name, "revision": name[0] * 40, "tree": name})
    kept = judged(*events, steps=steps, accept=0.1).trees["candidate"]
    assert kept == {"kind": "kept", "revision": "t" * 40, "branch": told}
