"""Rules for values exactly on a threshold: candidates, clocks, decisions, memory and rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.result import Decision, Sample
from perfflow.stats.paired_test import Interval
from perfflow.store.record import Record
from perfflow.verdict import acceptance, comparison, decide, gating
from perfflow.verdict.acceptance import Acceptance, Goal, accept, clear, deciding_rows, is_reached
from perfflow.verdict.clocks import OtherClocks, contradiction, timing_metric, witnesses, worse_by
from perfflow.verdict.decide import Ruling, over_layouts, rule, settled
from perfflow.verdict.gating import compared
from tests.verdict.records import criteria, ended, pairs, planned, reading, record
from tests.verdict.test_acceptance import ALL, NOTHING, candidate, faster
from tests.verdict.test_bounds import clock, side, sides
from tests.verdict.test_bounds import row as shown

THRESHOLDS = Thresholds()
"""Floor 2%, concern 5%, action 10%."""
FLAT = [1.0] * 20


# -- a candidate


def test_one_of_several_guards_is_enough() -> None:
    goal = Goal((("c", ""), ("b", "")), ("c", "b"))
    assert goal.is_guarded("b", "time")
    assert goal.is_objective("b", "time")


def test_without_an_objective_nothing_is_kept() -> None:
    found = candidate({("b", "time"): faster(0.3), ("c", "time"): faster(0.3)}, Goal((("d", ""),), ("**",)))
    assert found == Acceptance(accepted=False, reason="no objective was measured", row=None)


def timed(changes: Mapping[tuple[str, str], Interval], goal: Goal) -> Acceptance:
    """Judge a candidate by clocks of the same processes."""
    names = list(dict.fromkeys(name for name, _ in changes))
    metrics = list(dict.fromkeys(metric for _, metric in changes))
    events = []
    for name in names:
        for event in pairs(name, FLAT, FLAT, metrics[0]):
            for each in ("baseline", "candidate"):
                event[each] = [reading(metric, 1.0) for metric in metrics]
            events.append(event)
    taken = record(*events, *map(ended, names), steps=[planned(name) for name in names])
    rows = compared(taken, Criteria())
    rows = {key: replace(row, change=changes.get(key, row.change)) for key, row in rows.items()}
    return accept(taken, rows, Criteria(), goal, lambda _: False)


def test_only_the_clocks_of_the_objective_itself_contradict_its_gain() -> None:
    gain = {("b", "cpu"): faster(0.3), ("b", "time"): faster(0.3)}
    other = {("c", "cpu"): faster(0.0), ("c", "time"): faster(0.0)}
    assert timed(gain | other, ALL).accepted
    waits = gain | {("b", "time"): faster(0.0)}
    found = timed(waits | other, ALL)
    assert (found.accepted, found.reason.partition(",")[0]) == (False, "unproven: cpu shows -30.0%")


@pytest.mark.parametrize(
    ("objectives", "accepted"),
    [
        ((("b", "cpu"),), True),  # the workflow names this clock
        ((("b", ""),), False),
        ((("b", "time"),), False),
        ((("b", "time"), ("c", "cpu")), False),
        ((("b", "time"), ("b", "cpu")), True),
    ],
)
def test_a_clock_that_was_asked_for_needs_no_other(objectives: tuple[tuple[str, str], ...], *, accepted: bool) -> None:
    changes = {("b", "cpu"): faster(0.3), ("b", "time"): faster(0.0)}
    assert timed(changes, Goal(objectives, (), 0.1)).accepted is accepted


def test_what_reached_the_goal_with_one_code_layout_says_so() -> None:
    told = {"event": "as built", "step": "b", "benchmark": "", "reason": "no linker"}
    taken = record(*pairs("b", FLAT, [0.5] * 20), ended("b"))
    taken.without_layouts["b", ""] = str(told["reason"])
    rows = compared(taken, Criteria())
    goal = Goal((("b", ""),), (), 0.1)
    assert accept(taken, rows, Criteria(), goal, lambda _: False).reason == (
        "b +50.0% [+50.0%, +50.0%]; with one code layout per side: no linker"
    )


def test_a_target_of_a_clock_that_was_not_chosen_does_not_judge_a_candidate() -> None:
    own = criteria({"b": {"time": "<10 s"}})
    events = pairs("b", FLAT, FLAT, "cpu")
    for event in events:
        for each in ("baseline", "candidate"):
            event[each].append(reading("time", 1.0))
    taken = record(*events, ended("b"), criteria=own)
    assert deciding_rows(taken, compared(taken, own), own, ALL) == [("b", "cpu")]


def test_an_objective_exactly_at_the_goal_has_not_reached_it() -> None:
    both = Goal((("b", "time"), ("c", "instructions")), (), 0.1)
    at = {("b", "time"): Interval(-0.2, -0.3, -0.1), ("c", "instructions"): Interval(-0.15, -0.15, -0.15)}
    assert candidate(at, both).reason == "c instructions +15.0%"


def test_an_effect_without_a_lower_bound_is_the_least_proven() -> None:
    open_ended = {("b", "time"): Interval(-0.3, -math.inf, math.inf), ("c", "time"): faster(0.05)}
    assert candidate(open_ended).reason.endswith(" c +5.0% [+3.0%, +7.0%]")
    one_sided = {("b", "time"): Interval(-0.3, -math.inf, -0.2)}
    assert candidate(one_sided).reason == "b +30.0%"


def test_a_note_is_told_of_code_layouts_alone() -> None:
    tiny = {("b", "time"): faster(0.01, 0.005)}
    assert candidate(tiny).reason == "same: b +1.0% [+0.5%, +1.5%]"
    assert acceptance._told(clock("time", *[math.nan] * 3)) == "unknown"


def test_what_is_no_objective_is_not_reached() -> None:
    elsewhere = Goal((("c", ""),), (), 0.1)
    assert is_reached(clock("time", -0.5, -0.5, -0.5), elsewhere) is False
    assert is_reached(clock("time", -0.5, -0.5, -0.5), ALL) is True


def test_an_effect_known_to_half_a_percent_is_clear_and_a_loss_at_the_concern_threshold_is_not() -> None:
    assert clear(clock("time", 0.0, -0.005, 0.005), THRESHOLDS, Goal((("b", ""),), (), 0.0)) is True
    assert clear(clock("time", 0.1, 0.05, 0.15), THRESHOLDS, Goal((("c", ""),), (), 0.1)) is False
    assert clear(clock("time", 0.0, 0.0, 0.05), THRESHOLDS, Goal((("c", ""),), (), 0.1)) is True


# -- clocks


def test_the_side_that_waits_more_tells_whether_a_program_waits() -> None:
    wall = sides("time", 2.0, 2.0, 2.0)
    found = {"time": wall, "cpu": sides("cpu", 0.5, 0.5, 0.5), "uncontended": sides("uncontended", 2.0, 2.0, 2.0)}
    assert timing_metric(found)[0] == "uncontended"
    one = sides("cpu", 2.0, 2.0, 2.0, after=(0.5, 0.5, 0.5))
    assert timing_metric(found | {"cpu": one})[0] == "uncontended"
    nothing = {name: sides(name, 0.0, 0.0, 0.0) for name in found}
    assert timing_metric(nothing)[0] == "cpu"


def test_the_side_that_lacks_more_uncontended_times_tells_whether_some_are_missing() -> None:
    full, fewer = (1.0,) * 4, (1.0,) * 3
    found = {"time": sides("time", *full), "cpu": sides("cpu", *full)}
    lacking = sides("uncontended", *full, after=fewer)
    assert timing_metric(found | {"uncontended": lacking})[1].startswith("some runs have threads")
    assert timing_metric(found | {"uncontended": sides("uncontended", *full)})[0] == "cpu"


def test_half_of_the_processes_tell_whether_there_are_threads() -> None:
    wall = sides("time", 1.0, 1.0, 1.0, 1.0)
    assert timing_metric({"time": wall, "cpu": sides("cpu", 1.0, 1.0, 1.2)})[0] == "cpu"
    assert timing_metric({"time": wall, "cpu": sides("cpu", 1.0, 1.2, 1.2)})[0] == "time"


def test_a_clock_without_a_change_contradicts_none() -> None:
    found = {name: sides(name, 1.0) for name in ("time", "cpu", "uncontended")}
    moved = replace(found["cpu"], change=Interval(0.2, 0.1, 0.3))
    assert timing_metric(found | {"cpu": moved, "time": replace(found["time"], change=None)})[0] == "cpu"
    back = replace(found["time"], change=Interval(-0.2, -0.3, -0.1))
    assert timing_metric(found | {"cpu": replace(moved, change=None), "time": back})[0] == "cpu"


def test_one_pair_is_enough_for_a_witness() -> None:
    one = {name: replace(clock(name, 0.0, -0.1, 0.1), pairs=1) for name in ("cpu", "time")}
    assert witnesses(one, "cpu") == [one["time"]]


def test_clocks_are_judged_by_the_floor_of_two_builds() -> None:
    """A change of 0.6% is proven for identical files, but not for two builds: it may be code layout."""
    unproven = clock("cpu", 0.06, 0.006, 0.2)
    witness = clock("time", 0.07, 0.051, 0.09)
    assert worse_by(unproven, [witness], THRESHOLDS) == witness
    clocks = OtherClocks()
    clocks.check({"cpu": unproven, "time": clock("time", 0.06, 0.01, 0.2)}, "cpu", THRESHOLDS)
    assert list(clocks.undecided) == [("b", "cpu")]
    before, after = side(1e9), side(1.5e9)
    grown = clock("rss", 0.06, 0.006, 0.2, baseline=before, candidate=after)
    assert gating.memory_has_grown(grown, THRESHOLDS) is False
    assert gating.memory_has_grown(replace(grown, change=Interval(0.06, 0.021, 0.2)), THRESHOLDS) is True


@pytest.mark.parametrize(
    ("high", "text"),
    [
        (0.01, "time changed by -2.0% [-5.0%, +1.0%]"),
        (math.inf, "time changed by -2.0% [-5.0%, unbounded]"),
    ],
)
def test_a_contradiction_is_told_with_the_interval_of_the_clock(high: float, text: str) -> None:
    said = contradiction(clock("cpu", -0.08, -0.1, -0.06), [clock("time", -0.02, -0.05, high)], 0.02)
    assert said == f"cpu shows -8.0%, which time contradicts: {text}"


def test_a_clock_that_bounds_nothing_has_no_interval() -> None:
    clocks = OtherClocks()
    open_ended = clock("time", 0.07, -math.inf, math.inf)
    clocks.check({"cpu": clock("cpu", 0.0, -0.01, 0.01), "time": open_ended}, "cpu", THRESHOLDS)
    assert clocks.undecided == {
        ("b", "cpu"): "time changed by +7.0% (no interval yet), which is not proven to exceed the concern threshold"
    }


@pytest.mark.parametrize(
    ("chosen", "finest", "undecided"),
    [
        # The chosen clock shows a regression, and the finest other clock suggests a higher level.
        ((0.07, 0.06, 0.08), (0.11, 0.05, 0.20), True),
        ((0.07, 0.06, 0.08), (0.10, -0.05, 0.25), False),
        # Its lower end on the concern threshold, its estimate not beyond it.
        ((0.0, -0.01, 0.01), (0.05, 0.05, 0.08), True),
        ((0.0, -0.01, 0.01), (0.05, 0.05, 0.05), False),
    ],
)
def test_the_finest_other_clock_is_the_one_that_is_heard(
    chosen: tuple[float, float, float], finest: tuple[float, float, float], *, undecided: bool
) -> None:
    clocks = OtherClocks()
    every = {"cpu": clock("cpu", *chosen), "uncontended": clock("uncontended", *finest)}
    clocks.check(every | {"time": clock("time", 0.0, -0.1, 0.05)}, "cpu", THRESHOLDS)
    assert list(clocks.undecided) == ([("b", "cpu")] if undecided else [])


def test_the_less_fine_clock_is_not_asked_whether_it_seems_worse() -> None:
    clocks = OtherClocks()
    calm, wild = clock("uncontended", 0.0, -0.1, 0.05), clock("time", 0.06, -0.1, 0.2)
    clocks.check({"cpu": clock("cpu", 0.0, -0.01, 0.01), "uncontended": calm, "time": wild}, "cpu", THRESHOLDS)
    assert clocks.undecided == {}
    clocks.check({"cpu": clock("cpu", 0.0, -0.01, 0.01), "time": wild}, "cpu", THRESHOLDS)
    assert list(clocks.undecided) == [("b", "cpu")]


# -- decisions


@pytest.mark.parametrize(
    ("low", "high", "proven"), [(-0.015, -0.005, True), (0.0, 0.03, False), (-0.03, 0.0, False), (0.001, 0.03, True)]
)
def test_a_tiny_change_is_proven_where_zero_is_excluded(low: float, high: float, *, proven: bool) -> None:
    ruling = rule(clock("time", (low + high) / 2, low, high), THRESHOLDS, identical=False)
    assert (ruling.decision, bool(ruling.note)) == ("same", proven)


@pytest.mark.parametrize(
    ("decision", "change", "enough"),
    [
        # Half-widths of exactly 0.5%.
        ("same", (0.021, 0.013, 0.023), True),
        ("unproven", (0.021, 0.013, 0.023), True),
        # With an estimate exactly on the floor, a change is as likely as none.
        ("same", (0.020, 0.001, 0.039), True),
        # An interval that ends exactly on a threshold does not include it.
        ("regressed", (0.150, 0.100, 0.200), True),
        ("regressed", (0.080, 0.060, 0.100), True),
        ("regressed", (0.150, 0.099, 0.200), False),
        ("regressed", (0.080, 0.060, 0.101), False),
        # The half-width is exactly half of the concern threshold.
        ("regressed", (0.050, 0.0255, 0.0755), True),
    ],
)
def test_measuring_ends_exactly_at_a_bound(
    decision: Decision, change: tuple[float, float, float], *, enough: bool
) -> None:
    assert settled(clock("time", *change), Ruling(decision, "ok"), THRESHOLDS, identical=False) is enough


def test_what_steps_leave_of_an_interval_may_be_half_a_percent() -> None:
    item = clock("time", 0.0, -0.01, 0.01, blur=0.005)
    assert settled(item, Ruling("unproven", None), THRESHOLDS, identical=False)
    gone = replace(item, change=None)
    assert settled(gone, Ruling("unproven", None), THRESHOLDS, identical=False)


def test_a_comparison_without_layouts_is_as_it_was_built() -> None:
    unproven = Ruling("unproven", None)
    assert over_layouts(clock("time", 0.0, -0.1, 0.1), unproven, Ruling("regressed", "action")) is unproven


@pytest.mark.parametrize(
    ("half", "blur", "more"),
    [
        # From 10 pairs to a half-width within the concern threshold of 5%: 10 (half / 0.05)^2, rounded up.
        (0.0525, 0.0, 2),
        (0.0510, 0.0, 1),
        (0.0400, 0.0, 1),
        (0.1000, 0.0, 30),
        (0.0100, 0.01, None),
    ],
)
def test_how_many_more_pairs_fit_a_zone(half: float, blur: float, more: int | None) -> None:
    assert decide._more(Interval(0.0, -half, half), 10, 0.02, 0.05, blur) == more


# -- memory and rates


@pytest.mark.parametrize(("grown", "matters"), [(2**20, False), (2**20 + 0.5, True)])
def test_memory_that_grew_from_nothing_matters_beyond_a_mebibyte(grown: float, *, matters: bool) -> None:
    before, after = (Sample(value=value, low=None, high=None, n=1, samples=[]) for value in (0.0, grown))
    item = shown("regressed", "action", 1.0, 0.9, 1.1, metric="rss", unit="B", baseline=before, candidate=after)
    silent = item.model_copy(update={"gating": False})
    assert bool(list(gating.memory_concerns([silent], Criteria()))) is matters


def rated(times: list[float], rates: list[float], candidates: int = 3) -> Record:
    """Return a benchmark with a time and a rate, some of which the candidate lacks."""
    events = pairs("b", times, times)
    for number, (event, rate) in enumerate(zip(events, rates, strict=True)):
        event["baseline"].append(reading("throughput", rate))
        if number < candidates:
            event["candidate"].append(reading("throughput", rate))
    return record(*events, ended("b"))


@pytest.mark.parametrize(
    ("times", "rates", "same"),
    [
        ([1.0, 2.0, 4.0], [4.0, 2.0, 1.0], True),
        ([0.25, 0.5, 0.125], [2.0, 1.0, 4.0], True),  # half a byte of work
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], False),
        ([1.0, 1.0, 1.0], [2.15625, 2.15625 * 1.001, 2.15625], True),
        ([1.0, 1.0, 1.0], [2.15625, 2.15625 * 1.0011, 2.15625], False),
    ],
)
def test_time_and_rate_are_one_where_their_product_is_constant(
    times: list[float], rates: list[float], *, same: bool
) -> None:
    assert comparison.source_of(rated(times, rates), "b", "throughput") == ("time" if same else "")


def test_rates_that_some_processes_lack_are_another_measurement() -> None:
    assert comparison.source_of(rated([1.0, 2.0, 4.0], [4.0, 2.0, 1.0], 2), "b", "throughput") == ""


def test_nothing_is_known_of_a_change_that_is_not_a_number() -> None:
    assert candidate({("b", "time"): NOTHING}).accepted is False
