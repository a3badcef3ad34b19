"""Sampling of a step with a clock that runs only while a process does: rounds, events and the end."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from perfflow.execute.layouts.refusal import LayoutsRefusedError
from perfflow.jobs.calibrate.calibrate import disturbed
from perfflow.model.criteria import Criteria
from perfflow.model.readings import Design, Reading, Side
from perfflow.sampling import stop_rule
from perfflow.sampling.pairs import BenchmarkToSample, Request, SamplingProgress, coin
from perfflow.sampling.sampling import EXPENSIVE, FIRST_ANALYSIS, MOST_ALONE
from perfflow.sampling.stop_rule import Stop
from perfflow.session.steps import over_layouts
from perfflow.session.steps.over_layouts import _Deciding
from perfflow.stats.paired_test import CONFIRMING, ENOUGH, FEW, FEW_MORE
from perfflow.store.record import MetricSeries, Record
from perfflow.verdict.decide import rule
from perfflow.verdict.gating import compared
from tests.sampling.worlds import BOTH, MUCH, START, Readings, Together, World, plan, taken_up, without

CONFIRMED = {"looks": 11, "confirm": min(CONFIRMING)}


@pytest.fixture
def world() -> World:
    return World()


# -- rounds


def test_as_many_rounds_are_taken_as_were_asked_for(world: World) -> None:
    subjects = world.subjects("ab")
    world.sampling.take_rounds(subjects, Design.FIXED, 3, math.inf)
    assert world.runs == {"a": 8, "b": 8}  # including one warm-up run of each side
    assert world.told[:2] == [SamplingProgress("a", 0, "pair", (1, 2)), SamplingProgress("b", 0, "pair", (2, 2))]
    assert sorted((item.benchmark, item.count) for item in world.told[2:]) == [(b, n) for b in "ab" for n in (1, 2, 3)]
    assert {item.turn for item in world.told[2:]} == {(1, 2), (2, 2)}
    known = {"event": "sample", "step": "s", "design": "fixed", "seconds": 0.1}
    for name in "ab":
        firsts = [BOTH[coin(7, name, number)].value for number in range(3)]
        expected = [known | {"pair": number, "first": first} for number, first in enumerate(firsts)]
        assert without(world.samples(name), "baseline", "candidate") == expected
    assert not any(map(world.sampling.was_stopped, subjects))
    assert world.sampling.next_number(subjects) == 3
    assert world.sampling.next_number([]) == 0
    world.sampling.take_rounds(subjects, Design.FIXED, 2, math.inf, start=3)
    assert world.runs == {"a": 12, "b": 12}
    assert [item["pair"] for item in world.samples("a")] == [0, 1, 2, 3, 4]


def test_a_single_run_is_told_as_one_and_a_pair_as_a_pair() -> None:
    world = World(lasts=0.123456789)
    subjects = world.subjects("ab")
    world.sampling.take_rounds(subjects, Design.FEW, 1, math.inf)
    assert {(item.unit, item.turn) for item in world.told if item.count} == {("pair", (1, 1))}
    world.sampling.take_rounds(subjects[:1], Design.CONFIRM, 1, math.inf, start=1)
    assert "confirmation" not in world.events[-1]
    assert world.events[-1]["seconds"] == 0.246914
    assert world.sampling.next_number(subjects) == 2


def test_one_side_is_taken_in_runs(world: World) -> None:
    subject = world.subject("a", (Side.BASELINE,), one_sided=True)
    world.sampling.take_rounds([subject, world.subject("b")], Design.FIXED, 1, math.inf)
    assert SamplingProgress("a", 0, "run", (1, 2)) in world.told
    assert {item.unit for item in world.told if item.benchmark == "a"} == {"run"}
    (event,) = world.samples("a")
    assert (event["alone"], "candidate" in event) == (True, False)


def test_every_benchmark_has_a_round_when_the_time_is_spent(world: World) -> None:
    subjects = world.subjects("abc")
    world.rule.stop(subjects[:1], Stop.BUDGET)
    world.sampling.take_rounds(subjects, Design.FIXED, 3, world.now)
    assert [len(world.samples(name)) for name in "abc"] == [1, 1, 1]
    assert {name: world.rule.stopped.get(name) for name in "bc"} == dict.fromkeys("bc", Stop.TOTAL_BUDGET)
    world.sampling.tell_why_stopped(subjects[1:])
    told = {"event": "stopped", "step": "s", "benchmark": "b", "reason": "total budget"}
    assert world.events[-2:] == [told, told | {"benchmark": "c"}]
    world.sampling.tell_why_stopped(subjects[1:2])
    assert world.events[-1]["benchmark"] == ""
    world.rule.stop(subjects[1:2], None)
    assert [world.sampling.was_stopped(subject) for subject in subjects] == [True, False, True]


def test_what_had_all_its_rounds_was_not_stopped(world: World) -> None:
    subject = world.subject("a")
    world.rule.stop([subject], Stop.BUDGET)
    world.sampling.take_rounds([subject], Design.FIXED, 1, 0.0)
    assert not world.sampling.was_stopped(subject)


@pytest.mark.parametrize(("lasts", "seconds"), [(0.05, 0.4 - 1e-9), (0.5, 4.0), (0.5, 3.001)])
def test_rounds_end_at_the_moment_that_was_given(lasts: float, seconds: float) -> None:
    """Two warm-up processes, and two for each pair: no round begins once the time is up."""
    world = World(lasts=lasts)
    world.sampling.take_rounds([world.subject("a")], Design.FIXED, 9, START + seconds)
    assert len(world.events) == 3


def test_a_benchmark_that_is_lost_has_no_further_rounds_and_the_others_go_on(world: World) -> None:
    world.lost_after = {"a": 4, "b": 1}
    subjects = world.subjects("abc")
    world.sampling.take_rounds(subjects, Design.FIXED, 3, math.inf)
    assert [len(world.samples(name)) for name in "abc"] == [1, 0, 3]
    assert world.sampling.able(subjects) == subjects[2:]
    assert world.sampling.next_number(subjects[1:2]) == 0


# -- a few runs of an expensive command


@pytest.mark.parametrize(
    ("lasts", "budget", "sides", "design"),
    [
        (EXPENSIVE * 1.01, 1000.0, BOTH, "few"),
        (EXPENSIVE, 1000.0, BOTH, "looks"),
        (1.0, FIRST_ANALYSIS * 0.99, BOTH, "few"),
        (1.0, FIRST_ANALYSIS * 1.01, BOTH, "looks"),
        (EXPENSIVE * 2, 1000.0, (Side.BASELINE,), "looks"),
    ],
)
def test_an_expensive_command_is_run_a_few(lasts: float, budget: float, sides: tuple[Side, ...], design: str) -> None:
    world = World(lasts=lasts, slower=1.5)
    world.decided([world.subject("a", sides)], budget=budget)
    assert set(world.designs()) == {design}
    assert world.rule.stopped["a"] is Stop.SETTLED
    if design == "few":
        assert Counter(side.value for item in world.events for side in Side if side in item) == dict.fromkeys(Side, FEW)
        assert [item["pair"] for item in world.events] == list(range(2 * FEW))
        told = [(item.count, item.unit, item.turn) for item in world.told]
        assert told == [(number, "run", (1, 1)) for number in range(1, 2 * FEW + 1)]


ONE_OF_EACH = "5 runs of each side would take about 40.0 s, but the budget is too short: took one of each"
EXCEEDED = "5 runs of each side, the fewest that can prove a change, exceeded the budget of 39.9 s"


@pytest.mark.parametrize(
    ("seconds", "budget", "runs", "said", "why"),
    [
        # Two warm-up runs come first.
        (8.0 + FEW * 8.0, 1000.0, FEW, [], Stop.SETTLED),
        (8.0 + FEW * 8.0 - 0.1, 1000.0, 1, [ONE_OF_EACH], Stop.TOTAL_BUDGET),
        # Runs that take longer than a benchmark may say so.
        (math.inf, 40.0, FEW, [], Stop.SETTLED),
        (math.inf, 39.9, FEW, [EXCEEDED], Stop.SETTLED),
    ],
)
def test_few_runs_beyond_the_budget(seconds: float, budget: float, runs: int, said: list[str], why: Stop) -> None:
    world = World(lasts=4.0, slower=1.5).decided("a", START + seconds, budget)
    assert (len(world.events), list(world.warnings), world.rule.stopped["a"]) == (2 * runs, said, why)


@pytest.mark.parametrize(("spare", "runs"), [(24.0, FEW), (24.5, FEW + FEW_MORE)])
def test_a_further_block_is_begun_with_time_for_all_of_it(spare: float, runs: int) -> None:
    world = World(lasts=4.0, noise=0.2, budget=4.0 * 2 * FEW + spare).decided("a", budget=1000.0)
    assert len(world.events) == 2 * runs


@pytest.mark.parametrize(
    ("blocks", "spare", "turns"), [(2, 0.0, [{(1, 2), (2, 2)}] * 2), (1, 1.0, [{(1, 2)}, {(2, 2)}])]
)
def test_further_blocks_are_taken_in_turns(blocks: int, spare: float, turns: list[set[tuple[int, int]]]) -> None:
    world = World(lasts=4.0, noise=0.2, budget=4.0 * 2 * (FEW + blocks * FEW_MORE) + spare)
    world.decided("ab", budget=1000.0)
    for name, own in zip("ab", turns, strict=True):
        samples = world.samples(name)
        assert [item["pair"] for item in samples] == list(range(2 * (FEW + blocks * FEW_MORE)))
        for block in (slice(0, 10), slice(10, 16), slice(16, 22))[: blocks + 1]:
            sides = Counter("baseline" in item for item in samples[block])
            assert sides[True] == sides[False]
        assert {item.turn for item in world.told if item.benchmark == name} <= own
    assert {item.turn for item in world.told if item.count} == {(1, 2), (2, 2)}
    assert [world.rule.stopped[name] for name in "ab"] == [Stop.BUDGET] * 2


def test_a_change_that_few_runs_of_many_benchmarks_prove_is_confirmed_by_fresh_ones() -> None:
    world = World(lasts=4.0, slower=1.5)
    subjects = world.subjects("ab")
    world.decided(subjects, others=MUCH).sampling.confirm(subjects, math.inf, 2)
    for name in "ab":
        own = world.samples(name)
        assert [item["pair"] for item in own] == list(range(len(own)))
        assert [item.get("confirmation", 0) for item in own] == [0] * 2 * FEW + [1] * 4 * FEW_MORE + [2] * 4 * FEW_MORE
        row = world.row(name)
        assert [item.pairs for item in row.confirmations] == [2 * FEW_MORE] * 2
        assert (row.pairs, row.is_confirmed) == (FEW + 4 * FEW_MORE, True)
    calm = World(lasts=4.0, noise=0.001).decided("ab", others=MUCH)
    assert not any("confirmation" in item for item in calm.events)


def test_fresh_runs_go_on_until_they_confirm_a_change_or_hardly_will() -> None:
    world = World(lasts=4.0, noise=0.25, slower=1.3).decided(names := "abc", others=MUCH)
    # Six of each would have confirmed none.
    assert [(item.pairs, item.agrees) for name in names for item in world.row(name).confirmations] == [
        (4 * FEW_MORE, True),
        (4 * FEW_MORE, False),
        (4 * FEW_MORE, True),
    ]


def test_fresh_runs_are_taken_only_if_there_is_time_for_all_of_them() -> None:
    # There is time for the warm-up and the first runs, but not for the fresh ones.
    world = World(lasts=4.0, slower=1.5).decided("a", START + 8.0 + FEW * 8.0 + 20.0, others=MUCH)
    assert (len(world.events), world.row("a").is_confirmed) == (2 * FEW, False)


def test_what_is_undecided_leaves_time_to_confirm_what_changed() -> None:
    world = World(lasts=4.0, slower=1.5)

    def take(request: Request) -> Readings:
        world.now += world.lasts
        luck = random.Random(f"{request.side} {request.number}").gauss(0, 0.3)
        return (Reading("time", math.exp(luck), "noisy"),)

    subjects = [world.subject("a"), BenchmarkToSample("noisy", BOTH, take)]
    confirmed = 2 * FEW_MORE * 8.0
    # The other one could take three more blocks.
    world.decided(subjects, START + 2 * (8.0 + FEW * 8.0) + confirmed + 30.0, others=MUCH)
    assert world.row("a").is_confirmed
    assert len(world.samples("noisy")) == 2 * (FEW + FEW_MORE)


def test_hardly_any_gate_of_slow_benchmarks_alarms() -> None:
    alarms = first = 0
    for suite in range(6):
        world = World(lasts=4.0, noise=0.2, budget=1.0)
        names = [f"{suite}.{number}" for number in range(40)]
        world.decided([world.subject(name) for name in names], others=MUCH)
        first += any("confirmation" in item for item in world.events)
        for name in names:
            found = rule(world.row(name), Criteria().thresholds_of("", "time"), identical=False)
            alarms += found.decision in ("regressed", "improved")
    # Each block alone would have a false alarm in one of 126 comparisons.
    assert first > 0
    assert alarms == 0


# -- runs that were cut are taken up


@pytest.mark.parametrize(
    ("world", "names", "others", "cuts"),
    [
        *[((0.05, 0.03, 1.03), names, 0, (1, 11, 14)) for names in ("a", "ab")],
        *[((4.0, 0.02, 1.03), names, 0, (1, 11, 14)) for names in ("a", "ab")],
        # A confirmation of few runs.
        ((4.0, 0.05, 1.5, 200.0), "ab", MUCH, (9, 12, 21, 25)),
        ((4.0, 0.25, 1.5), "a", MUCH, (30, 41, 43)),
    ],
)
def test_the_rest_is_taken_as_it_would_have_been(world: Any, names: str, others: int, cuts: tuple[int, ...]) -> None:
    def subjects(own: World) -> list[BenchmarkToSample]:
        return own.subjects(names)

    for cut, whole, again in taken_up(lambda: World(*world), subjects, cuts, others=others):
        assert without(again.events, "seconds") == without(whole.events[cut:], "seconds")
        told, expected = ([item for item in one.told if item.count] for one in (again, whole))
        assert others or told == expected


def test_the_rest_of_a_suite_is_taken_as_it_would_have_been() -> None:
    def suite(world: World) -> list[BenchmarkToSample]:
        return Together(world, "abc", 1.2, 1.2).benchmarks

    for cut, whole, again in taken_up(World, suite, (1, 2, 3, 31, 34, 36)):
        assert without(again.events, "seconds", "together") == without(whole.events[cut:], "seconds", "together")


@pytest.mark.parametrize("taken", [1, 3])
@pytest.mark.parametrize(("lasts", "budget", "end"), [(0.5, 13.0, math.inf), (4.0, 90.0, START + 4.0)])
def test_what_has_begun_is_not_warmed_up_again(lasts: float, budget: float, end: float, taken: int) -> None:
    whole, again = (World(lasts=lasts, slower=1.5) for _ in range(2))
    whole.decided("a", budget=budget)
    subject = again.subject("a")
    again.sampling.recall(whole.events[:taken], [subject])
    # 4 s are too short for the first few runs, but those have been taken before.
    again.decided([subject], end, budget)
    assert [item["pair"] for item in again.events] == [item["pair"] for item in whole.events[taken:]]
    assert again.runs["a"] == (len(again.events) if lasts > 1 else 2 * len(again.events) + 1)
    assert again.warnings == {}


def test_what_is_recalled_is_known_by_its_kind(world: World) -> None:
    pair = {"design": "looks", "pair": 3, "baseline": [{"metric": "time", "value": 1.0}]}
    subject = world.subject("a")
    world.sampling.recall([pair, pair | {"design": "few layouts", "pair": 4}], [subject])
    known = {
        number: [world.sampling.is_recalled(subject, number, single=single) for single in (None, False, True)]
        for number in (3, 4, 5)
    }
    assert known == {3: [True, True, False], 4: [True, False, True], 5: [False, False, False]}


# -- confirmations


def test_a_change_of_many_benchmarks_is_confirmed_by_fresh_pairs() -> None:
    world = World(slower=1.2).decided("a", others=MUCH)
    designs = Counter((item["design"], item.get("confirmation")) for item in world.events)
    assert designs == {("looks", None): 11, ("confirm", 1): min(CONFIRMING)}
    assert [item["pair"] for item in world.events] == list(range(len(world.events)))
    assert all(item["many"] for item in world.events)
    assert world.rule.stopped["a"] is Stop.SETTLED
    row = world.row("a")
    assert (row.pairs, row.confidence, row.is_confirmed) == (11 + min(CONFIRMING), 0.99, True)
    for other in (World(noise=0.001).decided("a", others=MUCH), World(slower=1.2).decided("a")):
        assert other.designs() == {"looks": 11}


@pytest.mark.parametrize(("others", "first"), [(MUCH, [1]), (0, [])])
def test_a_regression_is_confirmed_as_often_as_asked(others: int, first: list[int]) -> None:
    world = World(slower=1.2)
    subject = world.subject("a")
    taken = len(world.decided([subject], others=others).events)
    world.sampling.confirm([subject], world.now, 3)
    assert len(world.events) == taken  # no time is left
    world.sampling.confirm([subject], math.inf, 3)
    found = list(dict.fromkeys(item["confirmation"] for item in world.events if "confirmation" in item))
    assert found == [*first, *({1, 2, 3} - set(first))]


def test_a_change_that_does_not_show_again_is_not_confirmed() -> None:
    world = World(slower=1.2)
    subject = world.subject("a")
    world.decided([subject]).slower = 1.0
    world.sampling.confirm([subject], math.inf, 1)
    assert world.designs()["confirm"] in CONFIRMING[2:4]
    row = world.row("a")
    ruling = rule(row, Criteria().thresholds_of("a", "time"), identical=False)
    assert (row.is_confirmed, ruling.decision, ruling.level) == (False, "unproven", None)


def test_a_change_is_confirmed_before_others_take_the_time() -> None:
    world = World(lasts=0.5, noise=0.3)
    steady = replace(world.subject("s"), take=lambda request: world.steady(request, 1.5))
    world.decided([steady, world.subject("n")], START + 40.0, others=MUCH)
    assert {name: world.designs(name) for name in "sn"} == {"s": CONFIRMED, "n": {"looks": 21}}
    assert world.rule.stopped == {"s": Stop.SETTLED, "n": Stop.TOTAL_BUDGET}


def test_time_is_kept_to_confirm_what_is_changed_but_not_settled() -> None:
    # An interval from 5% to 15% is a regression, but contains a threshold.
    world = World(lasts=0.5, noise=0.04, slower=1.1).decided("a", START + 20.0, others=MUCH)
    assert world.designs()["confirm"] > 0
    assert len(world.events) <= 19


def test_a_benchmark_is_compared_once_after_each_of_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    # Between two rounds of a large suite, comparisons take longer than processes.
    seen = Counter[tuple[str, int]]()

    def counted(record: Record, criteria: Criteria, series: Mapping[tuple[str, str], MetricSeries], *more: int) -> Any:
        for (name, _), item in series.items():
            seen[name, len(item.sides[Side.BASELINE])] += 1
        return compared(record, criteria, series, *more)

    monkeypatch.setattr(stop_rule, "compared", counted)
    world = World(noise=0.04, slower=1.1).decided("abc", START + 60.0, others=MUCH, kept=0.3)
    assert {name for name, _ in seen} == {"a", "b", "c"}
    assert set(seen.values()) == {1}
    assert world.rule.changed(world.subject("a"))


def test_time_is_kept_to_confirm_each_change_that_is_not_settled() -> None:
    world = World(lasts=0.5, noise=0.04, slower=1.1).decided("ab", START + 60.0, others=MUCH)
    assert min(world.designs(name)["confirm"] for name in "ab") >= CONFIRMING[0]


@pytest.mark.parametrize(
    ("noise", "slower", "took"),
    [
        (0.3, 1.0, pytest.approx(20.0, abs=1.0)),
        # That it seems changed is known after 15 pairs of one second each.
        (0.04, 1.1, pytest.approx(16.0, abs=0.1)),
    ],
)
def test_time_is_kept_to_measure_a_change_over_code_layouts(noise: float, slower: float, took: object) -> None:
    world = World(lasts=0.5, noise=noise, slower=slower).decided("a", START + 20.0, kept=0.3)
    assert world.now - START == took


def test_time_is_kept_for_a_change_that_is_decided_before_the_others() -> None:
    world = World(lasts=0.5, noise=0.3)
    changed = replace(world.subject("s"), take=lambda request: world.steady(request, 0.7))
    world.decided([changed, world.subject("n")], START + 60.0, kept=0.3)
    assert world.rule.stopped == {"s": Stop.SETTLED, "n": Stop.TOTAL_BUDGET}
    assert world.now - START <= 60.0 * 0.75


def test_slow_commands_leave_the_quick_ones_their_part_of_the_time() -> None:
    world = World(lasts=4.0, noise=0.3)
    slow = world.subject("a")

    def take(request: Request) -> Readings:
        world.lasts = 4.0 if request.benchmarks[0].name == "a" else 0.1
        return slow.take(request) if request.benchmarks[0].name == "a" else world.steady(request, 1.0)

    world.decided([replace(item, take=take) for item in world.subjects("abcd")], START + 400.0)
    assert world.rule.stopped == {"a": Stop.TOTAL_BUDGET} | dict.fromkeys("bcd", Stop.SETTLED)
    assert world.now < START + 200.0


def test_what_is_the_same_within_the_concern_threshold_leaves_if_that_is_enough() -> None:
    fine, coarse = (World(noise=0.02).decided("ab", others=MUCH, coarsely=coarsely) for coarsely in (False, True))
    assert max(item["pair"] for item in coarse.events) + 1 <= 15 < max(item["pair"] for item in fine.events) + 1


# -- benchmarks that one process measures


@pytest.mark.parametrize("kept", [0.0, 0.3])
def test_what_would_fail_is_confirmed_alone_before_layouts_are_drawn(world: World, kept: float) -> None:
    suite = Together(world, "abc", among=1.2, alone=1.2)
    world.decided(suite.benchmarks, kept=kept)
    assert Counter(suite.requests) == {"abc": 2 * 12, "a": 2 * min(CONFIRMING)}
    assert {item.get("together") for item in world.samples("a")} == {3, None}
    assert kept or world.rule.stopped == dict.fromkeys("abc", Stop.SETTLED)
    assert world.warnings == {}


def test_what_would_not_fail_is_confirmed_among_others(world: World) -> None:
    suite = Together(world, "abc", among=0.8, alone=0.8)
    world.decided(suite.benchmarks)
    assert (suite.requests.count("abc"), world.row("a").is_confirmed) == (2 * 12, True)


@pytest.mark.parametrize(("change", "beyond_concern"), [(0.8, True), (0.97, False)])
def test_what_layouts_confirm_gets_no_fresh_pairs(world: World, change: float, *, beyond_concern: bool) -> None:
    suite = Together(world, "abc", among=change, alone=change)
    world.decided(suite.benchmarks, kept=0.3)
    assert world.designs("a") == ({"looks": 11} if beyond_concern else CONFIRMED)
    assert world.rule.rests_on_layout(suite.benchmarks[0]) == beyond_concern
    # If no layouts can be drawn, fresh pairs of the programs as built confirm it.
    for _ in range(2):
        world.sampling.confirm_waiting(math.inf)
        assert world.designs("a") == CONFIRMED
    assert world.row("a").is_confirmed


def test_benchmarks_that_disturb_each_other_are_told(world: World) -> None:
    world.decided(Together(world, "abc", among=1.2, alone=1.0).benchmarks)
    (warning,) = world.warnings
    assert warning.startswith("a changed by +2")
    assert warning.endswith("alone: they disturb each other; set `rounds: benchmark`")
    assert rule(world.row("a"), Criteria().thresholds_of("a", "time"), identical=False).decision == "unproven"


def test_benchmarks_that_take_another_time_among_others_are_named(world: World) -> None:
    requests = Counter[int]()

    def take(request: Request) -> Readings:
        requests[len(request.benchmarks)] += 1
        found = []
        for item in request.benchmarks:
            # Different code on a side would be another effect.
            assert request.side is Side.BASELINE
            (reading,) = world.steady(replace(request, benchmarks=(item,)), 1.0)
            factors = {"b0": 2.0, "b4": 0.5, "b8": 1.02} if len(request.benchmarks) > 1 else {}
            found.append(replace(reading, value=reading.value * factors.get(item.name, 1.0)))
        return tuple(found)

    names = [f"b{number}" for number in range(32)]
    suite = [BenchmarkToSample(name, BOTH, take, own_id=name, together=math.inf) for name in names]
    changes = dict(disturbed(world.sampling, [suite, [BenchmarkToSample("own", BOTH, take)]], Criteria()))
    assert changes == {"b0": pytest.approx(-0.5, abs=0.01), "b4": pytest.approx(1.0, abs=0.01)}
    # One process of the whole suite for each pair and for the warm-up, whatever the number of benchmarks.
    assert requests[32] == ENOUGH + 1
    assert requests[1] <= MOST_ALONE * (2 * ENOUGH + 2)


# -- code layouts


def test_layouts_are_numbered_from_the_round_that_has_the_first(world: World) -> None:
    subject = world.subject("a")
    for start, first, design, count in ((0, None, "fixed", 2), (2, 2, "fixed layouts", 3), (5, None, "fixed", 1)):
        world.sampling.with_layouts_from(first)
        world.sampling.take_rounds([subject], Design(design), count, math.inf, start=start)
    assert [item.get("layout") for item in world.events] == [None, None, 1, 2, 3, None]


def test_each_layout_of_each_side_has_a_run_in_random_order(world: World) -> None:
    subject = world.subject("a")
    world.sampling.take_layouts_in_turn(subject, 6, 20)
    found = [("candidate" in item, item["layout"]) for item in world.events]
    assert sorted(found) == [(side, layout) for side in (False, True) for layout in range(1, 7)]
    assert found != sorted(found)
    assert [item["pair"] for item in world.events] == list(range(20, 32))
    assert set(world.designs()) == {"few layouts"}
    assert {item.turn for item in world.told} == {(1, 1)}
    world.sampling.take_layouts_in_turn(subject, 6, 32)
    assert [("candidate" in item, item["layout"]) for item in world.events[12:]] != found


def test_layouts_that_were_run_before_are_not_run_again() -> None:
    whole, again = World(), World()
    whole.sampling.take_layouts_in_turn(whole.subject("a"), 3, 4)
    subject = again.subject("a")
    again.sampling.recall(whole.events[:4], [subject])
    again.sampling.take_layouts_in_turn(subject, 3, 4)
    assert (again.events, again.runs["a"]) == (whole.events[4:], 2)
    assert again.sampling.seconds == pytest.approx(again.lasts)


def deciding(world: World, subjects: list[BenchmarkToSample], told: list[Any], end: float) -> _Deciding:
    session = SimpleNamespace(folder=SimpleNamespace(append=told.append), context=SimpleNamespace(seed=1))
    known = {"sampling": world.sampling, "planned": plan().steps[0], "session": session}
    bench = SimpleNamespace(**known, budget=math.inf, drawn=None, able=BOTH)
    return _Deciding(bench, subjects, None, end, several=True)  # type: ignore[arg-type]


def test_layouts_are_for_the_worst_first_if_there_is_no_time_for_all() -> None:
    world = World(lasts=0.5)
    slower = {"a": 1.1, "b": 1.4, "c": 0.7, "d": 1.2}
    take = lambda request: world.steady(request, slower[request.benchmarks[0].name])  # noqa: E731
    subjects = [replace(item, take=take) for item in world.subjects("abcd")]
    world.decided(subjects)
    # A pair takes a second.
    for seconds, names in ((1000.0, "bdac"), (25.0, "bd"), (1.0, "b")):
        told: list[dict[str, Any]] = []
        one = deciding(world, subjects, told, time.monotonic() + seconds)
        one.first, one.own_end = world.sampling.next_number(subjects), math.inf
        assert [item.name for item in one._affordable(11)] == list(names)
        assert sorted([*names, *(item["benchmark"] for item in told)]) == list("abcd")


def test_fresh_pairs_where_no_layouts_can_be_drawn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any) -> None:
        raise LayoutsRefusedError("it is linked statically")

    monkeypatch.setattr(over_layouts, "DrawnLayouts", refuses)
    monkeypatch.setattr(_Deciding, "_builds", lambda _: {})
    suite = Together(world, "abc", among=0.8, alone=0.8)
    world.decided(suite.benchmarks, kept=0.3)
    deciding(world, suite.benchmarks[:1], [], math.inf).run()
    assert world.designs("a") == CONFIRMED


def test_what_has_no_time_for_enough_layouts_is_judged_as_built(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # A layout of each side takes a second to make, and 11 pairs or 8 layouts of each side are the fewest that decide.
    drawn = SimpleNamespace(begin=lambda: 1.0, clear=lambda: None)
    monkeypatch.setattr(over_layouts, "DrawnLayouts", lambda *_: drawn)
    monkeypatch.setattr(_Deciding, "_builds", lambda _: {})
    subjects, told = world.subjects("a"), list[dict[str, Any]]()
    world.decided(subjects)
    before = world.sampling.next_number(subjects)
    deciding(world, subjects, told, time.monotonic() + 7.9).run()
    assert [item["event"] for item in told] == ["layouts"]
    assert world.sampling.next_number(subjects) == before
