"""Sampling of a step with a clock that runs only while a process does: rounds, events and the end."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from perfflow.execute.layouts.refusal import LayoutsRefusedError
from perfflow.model.criteria import Criteria
from perfflow.model.readings import Design, Reading, Side
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import BenchmarkToSample, LostError, PairScheduler, Request, SamplingProgress, coin
from perfflow.sampling.sampling import EXPENSIVE, FIRST_ANALYSIS, StepSampling
from perfflow.sampling.stop_rule import Stop, StopRule
from perfflow.session.steps import over_layouts
from perfflow.session.steps.over_layouts import _Deciding
from perfflow.stats.paired_test import CONFIRMING, FEW, FEW_MORE
from perfflow.verdict.comparison import compare
from perfflow.verdict.decide import rule

BOTH = tuple(Side)
START = 1000.0


class World:
    """A step whose processes take ``lasts`` seconds; readings of the candidate are ``slower`` times as large."""

    def __init__(
        self, plan: Plan, *, lasts: float = 0.05, noise: float = 0.01, slower: float = 1.0, budget: float = math.inf
    ) -> None:
        self.now, self.lasts, self.noise, self.slower = START, lasts, noise, slower
        self.events: list[dict[str, Any]] = []
        self.told: list[SamplingProgress] = []
        self.warnings: dict[str, None] = {}
        self.runs: Counter[str] = Counter()
        self.lost_after: dict[str, int] = {}
        step = plan.steps[0]
        self.rule = StopRule(Criteria(), step, budget, clock=self.clock)
        self.scheduler = PairScheduler(7, clock=self.clock)
        self.sampling = StepSampling("s", self.scheduler, self.rule, self._store, self.warnings, self.told.append)

    def clock(self) -> float:
        return self.now

    def _store(self, event: Any) -> None:
        self.events.append(dict(event))

    def subject(self, name: str, sides: tuple[Side, ...] = BOTH, *, one_sided: bool = False) -> BenchmarkToSample:
        def take(request: Request) -> tuple[Reading, ...]:
            self.runs[name] += 1
            self.now += self.lasts
            if self.runs[name] > self.lost_after.get(name, 10**6):
                raise LostError
            # The value does not depend on the order of the processes, so a resumed run gives the same.
            luck = random.Random(f"{name} {request.side} {request.number} {request.layout}")
            slower = self.slower if request.side is Side.CANDIDATE else 1.0
            return (Reading("time", slower * math.exp(luck.gauss(0, self.noise)), name),)

        return BenchmarkToSample(name, sides, take, one_sided)

    def steady(self, request: Request, slower: float) -> tuple[Reading, ...]:
        """Take a reading with hardly any noise; the candidate's is ``slower`` times as large."""
        self.now += self.lasts
        name = request.benchmarks[0].name
        luck = random.Random(f"{name} {request.side} {request.number}").gauss(0, 0.002)
        return (Reading("time", math.exp(luck) * (slower if request.side is Side.CANDIDATE else 1.0), name),)

    def samples(self, name: str) -> list[dict[str, Any]]:
        return [item for item in self.events if name in (item.get("baseline") or item["candidate"])[0]["benchmark"]]


@pytest.fixture
def world(plan: Plan) -> World:
    return made(plan)


def made(plan: Plan, **keys: float) -> World:
    return World(plan, **keys)


def test_as_many_rounds_are_taken_as_were_asked_for(world: World) -> None:
    subjects = [world.subject("a"), world.subject("b")]
    world.sampling.take_rounds(subjects, Design.FIXED, 3, math.inf)
    assert world.runs == {"a": 8, "b": 8}  # including one warm-up run of each side
    assert world.told[:2] == [SamplingProgress("a", 0, "pair", (1, 2)), SamplingProgress("b", 0, "pair", (2, 2))]
    assert sorted((item.benchmark, item.count) for item in world.told[2:]) == [(b, n) for b in "ab" for n in (1, 2, 3)]
    assert {item.turn for item in world.told[2:]} == {(1, 2), (2, 2)}
    for name in "ab":
        found = world.samples(name)
        assert [item["pair"] for item in found] == [0, 1, 2]
        for item in found:
            first = Side.CANDIDATE if coin(7, name, item["pair"]) else Side.BASELINE
            assert (item["event"], item["step"], item["design"]) == ("sample", "s", "fixed")
            assert (item["first"], item["seconds"]) == (first.value, 0.1)
            assert not {"alone", "confirmation", "layout"} & set(item)
    assert not any(map(world.sampling.was_stopped, subjects))
    assert world.sampling.next_number(subjects) == 3
    world.sampling.take_rounds(subjects, Design.FIXED, 2, math.inf, start=3)
    assert world.runs == {"a": 12, "b": 12}
    assert [item["pair"] for item in world.samples("a")] == [0, 1, 2, 3, 4]


def test_one_side_is_taken_in_runs(world: World) -> None:
    subject = world.subject("a", (Side.BASELINE,), one_sided=True)
    world.sampling.take_rounds([subject, world.subject("b")], Design.FIXED, 1, math.inf)
    assert SamplingProgress("a", 0, "run", (1, 2)) in world.told
    assert {item.unit for item in world.told if item.benchmark == "a"} == {"run"}
    (event,) = world.samples("a")
    assert event["alone"] is True
    assert "candidate" not in event


def test_every_benchmark_has_a_round_when_the_time_is_spent(world: World) -> None:
    subjects = [world.subject("a"), world.subject("b"), world.subject("c")]
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
    assert not world.sampling.was_stopped(subjects[1])


def test_what_had_all_its_rounds_was_not_stopped(world: World) -> None:
    subject = world.subject("a")
    world.rule.stop([subject], Stop.BUDGET)
    world.sampling.take_rounds([subject], Design.FIXED, 1, 0.0)
    assert not world.sampling.was_stopped(subject)


def test_rounds_end_at_the_moment_that_was_given(world: World) -> None:
    subject = world.subject("a")
    # Two warm-up processes, and two for each pair: the time is up at the end of the third pair.
    world.sampling.take_rounds([subject], Design.FIXED, 9, START + 8 * world.lasts - 1e-9)
    assert len(world.samples("a")) == 3


@pytest.mark.parametrize(
    ("lasts", "benchmark_budget", "sides", "design"),
    [
        (EXPENSIVE * 1.01, 1000.0, BOTH, "few"),
        (EXPENSIVE, 1000.0, BOTH, "looks"),
        (1.0, FIRST_ANALYSIS * 0.99, BOTH, "few"),
        (1.0, FIRST_ANALYSIS * 1.01, BOTH, "looks"),
        (EXPENSIVE * 2, 1000.0, (Side.BASELINE,), "looks"),
    ],
)
def test_an_expensive_command_is_run_a_few_times(
    plan: Plan,
    lasts: float,
    benchmark_budget: float,
    sides: tuple[Side, ...],
    design: str,
) -> None:
    world = made(plan, lasts=lasts, slower=1.5)
    world.sampling.take_until_decided([world.subject("a", sides)], math.inf, benchmark_budget)
    assert {item["design"] for item in world.events} == {design}
    assert world.rule.stopped["a"] is Stop.SETTLED
    if design == "few":
        assert Counter(side.value for item in world.events for side in Side if side.value in item) == {
            "baseline": FEW,
            "candidate": FEW,
        }
        assert [item["pair"] for item in world.events] == list(range(2 * FEW))
        assert [(item.count, item.unit, item.turn) for item in world.told] == [
            (number, "run", (1, 1)) for number in range(1, 2 * FEW + 1)
        ]


@pytest.mark.parametrize(("spare", "runs"), [(0.0, FEW), (-0.1, 1)])
def test_few_runs_that_the_budget_cannot_hold_are_one_a_side(plan: Plan, spare: float, runs: int) -> None:
    world = made(plan, lasts=4.0, slower=1.5)
    # Two warm-up runs come first.
    world.sampling.take_until_decided([world.subject("a")], START + 8.0 + FEW * 8.0 + spare, 1000.0)
    assert len(world.events) == 2 * runs
    said = "5 runs of each side would take about 40.0 s, but the budget is too short: took one of each"
    assert list(world.warnings) == ([] if runs == FEW else [said])
    assert world.rule.stopped["a"] is (Stop.SETTLED if runs == FEW else Stop.TOTAL_BUDGET)


@pytest.mark.parametrize(("benchmark_budget", "said"), [(40.0, False), (39.9, True)])
def test_few_runs_that_take_longer_than_a_benchmark_may_say_so(
    plan: Plan, benchmark_budget: float, *, said: bool
) -> None:
    world = made(plan, lasts=4.0, slower=1.5)
    world.sampling.take_until_decided([world.subject("a")], math.inf, benchmark_budget)
    assert len(world.events) == 2 * FEW
    about = "5 runs of each side, the fewest that can prove a change, exceeded the budget of 39.9 s"
    assert list(world.warnings) == ([about] if said else [])


def test_what_few_runs_leave_open_gets_further_blocks_in_turns(plan: Plan) -> None:
    world = made(plan, lasts=4.0, noise=0.2, budget=4.0 * 2 * (FEW + 2 * FEW_MORE))
    world.sampling.take_until_decided([world.subject("a"), world.subject("b")], math.inf, 1000.0)
    counts = [len(world.samples(name)) for name in "ab"]
    assert counts == [2 * (FEW + 2 * FEW_MORE)] * 2
    for name in "ab":
        assert [item["pair"] for item in world.samples(name)] == list(range(counts[0]))
        for block in (slice(0, 10), slice(10, 16), slice(16, 22)):
            sides = Counter("baseline" in item for item in world.samples(name)[block])
            assert sides[True] == sides[False]
    assert {item.turn for item in world.told if item.count} == {(1, 2), (2, 2)}
    assert [world.rule.stopped[name] for name in "ab"] == [Stop.BUDGET] * 2


def test_a_benchmark_that_is_lost_has_no_further_rounds_and_the_others_go_on(world: World) -> None:
    world.lost_after = {"a": 4, "b": 1}
    subjects = [world.subject(name) for name in "abc"]
    world.sampling.take_rounds(subjects, Design.FIXED, 3, math.inf)
    assert [len(world.samples(name)) for name in "abc"] == [1, 0, 3]
    assert world.sampling.able(subjects) == subjects[2:]
    assert world.sampling.next_number(subjects[1:2]) == 0


@pytest.mark.parametrize(("lasts", "noise"), [(0.05, 0.03), (4.0, 0.02)])
def test_wherever_it_is_cut_the_rest_is_taken_as_it_would_have_been(plan: Plan, lasts: float, noise: float) -> None:
    def taken(before: Sequence[dict[str, Any]], names: str) -> World:
        world = made(plan, lasts=lasts, noise=noise, slower=1.03)
        subjects = [world.subject(name) for name in names]
        world.sampling.recall(before, subjects)
        world.sampling.take_until_decided(subjects, math.inf, math.inf)
        return world

    wholes = {names: taken([], names) for names in ("a", "ab")}
    for (names, whole), cut in itertools.product(wholes.items(), (1, 11, 14)):
        again = taken(whole.events[:cut], names)
        plain = [[{**item, "seconds": 0} for item in world.events] for world in (whole, again)]
        assert plain[1] == plain[0][cut:]
        assert [item for item in again.told if item.count] == [item for item in whole.told if item.count]


def test_what_is_recalled_is_known_by_its_kind(world: World) -> None:
    pair = {"design": "looks", "pair": 3, "baseline": [{"metric": "time", "value": 1.0}]}
    run = pair | {"design": "few layouts", "pair": 4}
    subject = world.subject("a")
    world.sampling.recall([pair, run], [subject])
    known = {
        number: [world.sampling.is_recalled(subject, number, single=single) for single in (None, False, True)]
        for number in (3, 4, 5)
    }
    assert known == {3: [True, True, False], 4: [True, False, True], 5: [False, False, False]}


MUCH = 99
"""So many other benchmarks that changes must be confirmed."""


def test_a_change_of_many_benchmarks_is_confirmed_by_fresh_pairs(plan: Plan) -> None:
    world = made(plan, slower=1.2)
    world.sampling.take_until_decided([world.subject("a")], math.inf, math.inf, others=MUCH)
    assert Counter((item["design"], item.get("confirmation")) for item in world.events) == {
        ("looks", None): 11,
        ("confirm", 1): min(CONFIRMING),
    }
    assert [item["pair"] for item in world.events] == list(range(len(world.events)))
    assert all(item["many"] for item in world.events)
    assert world.rule.stopped["a"] is Stop.SETTLED
    (row,) = (compare(item, Criteria()) for item in world.rule.record.series.values())
    assert (row.pairs, row.confidence, row.is_confirmed) == (11 + min(CONFIRMING), 0.99, True)
    calm = made(plan, noise=0.001)
    calm.sampling.take_until_decided([calm.subject("a")], math.inf, math.inf, others=MUCH)
    assert Counter(item["design"] for item in calm.events) == {"looks": 11}
    few = made(plan, slower=1.2)
    few.sampling.take_until_decided([few.subject("a")], math.inf, math.inf)
    assert Counter(item["design"] for item in few.events) == {"looks": 11}


def test_a_regression_is_confirmed_as_often_as_asked(plan: Plan) -> None:
    for others, first in ((MUCH, [1]), (0, [])):
        world = made(plan, slower=1.2)
        subject = world.subject("a")
        world.sampling.take_until_decided([subject], math.inf, math.inf, others=others)
        taken = len(world.events)
        world.sampling.confirm([subject], world.now, 3)
        assert len(world.events) == taken  # no time is left
        world.sampling.confirm([subject], math.inf, 3)
        found = list(dict.fromkeys(item["confirmation"] for item in world.events if "confirmation" in item))
        assert found == [*first, *({1, 2, 3} - set(first))]


def test_a_change_that_does_not_show_again_is_not_confirmed(plan: Plan) -> None:
    world = made(plan, slower=1.2)
    subject = world.subject("a")
    world.sampling.take_until_decided([subject], math.inf, math.inf)
    world.slower = 1.0
    world.sampling.confirm([subject], math.inf, 1)
    assert Counter(item["design"] for item in world.events)["confirm"] in CONFIRMING[2:4]
    (row,) = (compare(item, Criteria()) for item in world.rule.record.series.values())
    assert not row.is_confirmed
    ruling = rule(row, Criteria().thresholds_of("a", "time"), identical=False)
    assert (ruling.decision, ruling.level) == ("unproven", None)


def test_a_change_is_confirmed_before_others_take_the_time(plan: Plan) -> None:
    world = made(plan, lasts=0.5, noise=0.3)
    steady = replace(world.subject("s"), take=lambda request: world.steady(request, 1.5))
    world.sampling.take_until_decided([steady, world.subject("n")], START + 40.0, math.inf, others=MUCH)
    designs = {name: Counter(item["design"] for item in world.samples(name)) for name in "sn"}
    assert designs == {"s": {"looks": 11, "confirm": min(CONFIRMING)}, "n": {"looks": 21}}
    assert world.rule.stopped == {"s": Stop.SETTLED, "n": Stop.TOTAL_BUDGET}


def test_time_is_kept_to_confirm_what_is_changed_but_not_settled(plan: Plan) -> None:
    world = made(plan, lasts=0.5, noise=0.04, slower=1.1)
    # An interval from 5% to 15% is a regression, but contains a threshold.
    world.sampling.take_until_decided([world.subject("a")], START + 20.0, math.inf, others=MUCH)
    designs = Counter(item["design"] for item in world.events)
    assert designs["confirm"] > 0
    assert designs.total() <= 19


def test_time_is_kept_to_measure_a_change_over_code_layouts(plan: Plan) -> None:
    took = {}
    for slower in (1.0, 1.1):
        world = made(plan, lasts=0.5, noise=0.3 if slower == 1.0 else 0.04, slower=slower)
        world.sampling.take_until_decided([world.subject("a")], START + 20.0, math.inf, kept=0.3)
        took[slower] = world.now - START
    assert took[1.0] == pytest.approx(20.0, abs=1.0)
    # That it seems changed is known after 15 pairs of one second each.
    assert took[1.1] == pytest.approx(16.0, abs=0.1)


def test_slow_commands_leave_the_quick_ones_their_part_of_the_time(plan: Plan) -> None:
    world = made(plan, lasts=4.0, noise=0.3)
    quick = [replace(world.subject(name), take=lambda request: world.steady(request, 1.0)) for name in "bcd"]
    slow = world.subject("a")

    def take(request: Request) -> tuple[Reading, ...]:
        world.lasts = 4.0 if request.benchmarks[0].name == "a" else 0.1
        return slow.take(request) if request.benchmarks[0].name == "a" else world.steady(request, 1.0)

    world.sampling.take_until_decided([replace(item, take=take) for item in (slow, *quick)], START + 400.0, math.inf)
    assert {name: world.rule.stopped[name] for name in "abcd"} == {
        "a": Stop.TOTAL_BUDGET,
        **dict.fromkeys("bcd", Stop.SETTLED),
    }
    assert world.now < START + 200.0


def test_what_is_the_same_within_the_concern_threshold_leaves_if_that_is_enough(plan: Plan) -> None:
    taken = {}
    for coarsely in (False, True):
        world = made(plan, noise=0.02)
        names = [world.subject(name) for name in "ab"]
        world.sampling.take_until_decided(names, math.inf, math.inf, others=MUCH, coarsely=coarsely)
        taken[coarsely] = max(item["pair"] for item in world.events) + 1
    assert taken[True] <= 15 < taken[False]


class Together:
    """A suite of benchmarks that one process measures; ``among`` and ``alone``: how much slower the candidate is."""

    def __init__(self, world: World, names: str, among: float, alone: float) -> None:
        self.world, self.among, self.alone, self.requests = world, among, alone, list[str]()
        self.benchmarks = [BenchmarkToSample(name, BOTH, self.take, own_id=name, together=math.inf) for name in names]

    def take(self, request: Request) -> tuple[Reading, ...]:
        names = "".join(sorted(item.name for item in request.benchmarks))
        self.requests.append(names)
        slower = self.among if len(names) > 1 else self.alone
        return tuple(
            reading
            for item in request.benchmarks
            for reading in self.world.steady(replace(request, benchmarks=(item,)), slower if item.name == "a" else 1.0)
        )


def test_what_would_fail_is_confirmed_in_processes_of_its_own(world: World) -> None:
    suite = Together(world, "abc", among=1.2, alone=1.2)
    world.sampling.take_until_decided(suite.benchmarks, math.inf, math.inf)
    assert Counter(suite.requests) == {"abc": 2 * 12, "a": 2 * min(CONFIRMING)}
    assert {item.get("together") for item in world.samples("a")} == {3, None}
    assert world.rule.stopped == dict.fromkeys("abc", Stop.SETTLED)
    assert world.warnings == {}


def test_what_would_not_fail_is_confirmed_among_others(world: World) -> None:
    suite = Together(world, "abc", among=0.8, alone=0.8)
    world.sampling.take_until_decided(suite.benchmarks, math.inf, math.inf)
    assert suite.requests.count("abc") == 2 * 12
    (row,) = (compare(item, Criteria()) for (name, _), item in world.rule.record.series.items() if name == "a")
    assert row.is_confirmed


@pytest.mark.parametrize("change", [0.8, 0.97])
def test_what_layouts_will_confirm_gets_no_fresh_pairs_before(world: World, change: float) -> None:
    suite = Together(world, "abc", among=change, alone=change)
    world.sampling.take_until_decided(suite.benchmarks, math.inf, math.inf, kept=0.3)
    beyond_concern = change == 0.8
    designs = Counter(item["design"] for item in world.samples("a"))
    assert designs == {"looks": 11} | ({} if beyond_concern else {"confirm": min(CONFIRMING)})
    (item,) = (item for item in suite.benchmarks if item.name == "a")
    assert world.rule.rests_on_layout(item) == beyond_concern
    # If no layouts can be drawn, fresh pairs of the programs as built confirm it.
    for _ in range(2):
        world.sampling.confirm_waiting(math.inf)
        designs = Counter(item["design"] for item in world.samples("a"))
        assert designs == {"looks": 11, "confirm": min(CONFIRMING)}
    (row,) = (compare(item, Criteria()) for (name, _), item in world.rule.record.series.items() if name == "a")
    assert row.is_confirmed


def test_what_would_fail_is_confirmed_alone_before_layouts_are_drawn(world: World) -> None:
    suite = Together(world, "abc", among=1.2, alone=1.2)
    world.sampling.take_until_decided(suite.benchmarks, math.inf, math.inf, kept=0.3)
    assert Counter(suite.requests) == {"abc": 2 * 12, "a": 2 * min(CONFIRMING)}


def test_benchmarks_that_disturb_each_other_are_told(world: World) -> None:
    suite = Together(world, "abc", among=1.2, alone=1.0)
    world.sampling.take_until_decided(suite.benchmarks, math.inf, math.inf)
    (warning,) = world.warnings
    assert warning.startswith("a changed by +2")
    assert warning.endswith("alone: they disturb each other; set `rounds: benchmark`")
    (row,) = (compare(item, Criteria()) for (name, _), item in world.rule.record.series.items() if name == "a")
    assert rule(row, Criteria().thresholds_of("a", "time"), identical=False).decision == "unproven"


def test_wherever_a_suite_is_cut_the_rest_is_taken_as_it_would_have_been(plan: Plan) -> None:
    def taken(before: Sequence[dict[str, Any]]) -> World:
        world = made(plan, noise=0.01)
        suite = Together(world, "abc", among=1.2, alone=1.2)
        world.sampling.recall(before, suite.benchmarks)
        world.sampling.take_until_decided(suite.benchmarks, math.inf, math.inf)
        return world

    whole = taken([])
    for cut in (1, 2, 3, 31, 34, 36):
        plain = [
            {key: value for key, value in item.items() if key not in ("seconds", "together")}
            for item in whole.events[cut:]
        ]
        again = [
            {key: value for key, value in item.items() if key not in ("seconds", "together")}
            for item in taken(whole.events[:cut]).events
        ]
        assert again == plain


def test_a_change_that_few_runs_of_many_benchmarks_prove_is_confirmed_by_fresh_ones(plan: Plan) -> None:
    world = made(plan, lasts=4.0, slower=1.5)
    subjects = [world.subject("a"), world.subject("b")]
    world.sampling.take_until_decided(subjects, math.inf, math.inf, others=MUCH)
    world.sampling.confirm(subjects, math.inf, 2)
    for name in "ab":
        own = world.samples(name)
        assert [item["pair"] for item in own] == list(range(len(own)))
        assert [item.get("confirmation", 0) for item in own] == [0] * 2 * FEW + [1] * 4 * FEW_MORE + [2] * 4 * FEW_MORE
        row = compare(world.rule.record.series[name, "time"], Criteria())
        assert [item.pairs for item in row.confirmations] == [2 * FEW_MORE] * 2
        assert (row.pairs, row.is_confirmed) == (FEW + 4 * FEW_MORE, True)
    calm = made(plan, lasts=4.0, noise=0.001)
    calm.sampling.take_until_decided([calm.subject("a"), calm.subject("b")], math.inf, math.inf, others=MUCH)
    assert not any("confirmation" in item for item in calm.events)


def test_fresh_runs_are_taken_only_if_there_is_time_for_all_of_them(plan: Plan) -> None:
    world = made(plan, lasts=4.0, slower=1.5)
    # There is time for the warm-up and the first runs, but not for the fresh ones.
    world.sampling.take_until_decided([world.subject("a")], START + 8.0 + FEW * 8.0 + 20.0, math.inf, others=MUCH)
    assert len(world.events) == 2 * FEW
    (row,) = (compare(item, Criteria()) for item in world.rule.record.series.values())
    assert not row.is_confirmed


def test_hardly_any_gate_of_slow_benchmarks_alarms(plan: Plan) -> None:
    alarms = first = 0
    for suite in range(6):
        world = made(plan, lasts=4.0, noise=0.2, budget=1.0)
        names = [f"{suite}.{number}" for number in range(40)]
        world.sampling.take_until_decided([world.subject(name) for name in names], math.inf, math.inf, others=MUCH)
        first += any("confirmation" in item for item in world.events)
        for series in world.rule.record.series.values():
            found = rule(compare(series, Criteria()), Criteria().thresholds_of("", "time"), identical=False)
            alarms += found.decision in ("regressed", "improved")
    # Each block alone would have a false alarm in one of 126 comparisons.
    assert first > 0
    assert alarms == 0


@pytest.mark.parametrize("cut", [9, 12, 21, 25])
def test_a_confirmation_of_few_runs_is_taken_up_where_it_was_cut(plan: Plan, cut: int) -> None:
    def taken(before: Sequence[dict[str, Any]]) -> World:
        world = made(plan, lasts=4.0, noise=0.05, slower=1.5, budget=200.0)
        subjects = [world.subject(name) for name in "ab"]
        world.sampling.recall(before, subjects)
        world.sampling.take_until_decided(subjects, math.inf, math.inf, others=MUCH)
        return world

    whole = taken([])
    again = taken(whole.events[:cut])
    assert [{**item, "seconds": 0} for item in again.events] == [{**item, "seconds": 0} for item in whole.events[cut:]]


def test_layouts_are_numbered_from_the_round_that_has_the_first(world: World) -> None:
    subject = world.subject("a")
    world.sampling.take_rounds([subject], Design.FIXED, 2, math.inf)
    world.sampling.with_layouts_from(2)
    world.sampling.take_rounds([subject], Design.FIXED_LAYOUTS, 3, math.inf, start=2)
    assert [item.get("layout") for item in world.events] == [None, None, 1, 2, 3]
    world.sampling.with_layouts_from(None)
    world.sampling.take_rounds([subject], Design.FIXED, 1, math.inf, start=5)
    assert "layout" not in world.events[-1]


def test_each_layout_of_each_side_has_a_run_in_random_order(world: World) -> None:
    subject = world.subject("a")
    world.sampling.take_layouts_in_turn(subject, 6, 20)
    found = [("candidate" in item, item["layout"]) for item in world.events]
    assert sorted(found) == [(side, layout) for side in (False, True) for layout in range(1, 7)]
    assert found != sorted(found)
    assert [item["pair"] for item in world.events] == list(range(20, 32))
    assert {item["design"] for item in world.events} == {"few layouts"}
    assert {item.turn for item in world.told} == {(1, 1)}
    world.sampling.take_layouts_in_turn(subject, 6, 32)
    assert [("candidate" in item, item["layout"]) for item in world.events[12:]] != found


def test_layouts_that_were_run_before_are_not_run_again(plan: Plan) -> None:
    whole = made(plan)
    whole.sampling.take_layouts_in_turn(whole.subject("a"), 3, 4)
    again = made(plan)
    subject = again.subject("a")
    again.sampling.recall(whole.events[:4], [subject])
    again.sampling.take_layouts_in_turn(subject, 3, 4)
    assert again.events == whole.events[4:]
    assert again.runs["a"] == 2
    assert again.sampling.seconds == pytest.approx(again.lasts)


def test_layouts_are_for_the_worst_first_if_there_is_no_time_for_all(plan: Plan) -> None:
    world = made(plan, lasts=0.5)
    slower = {"a": 1.1, "b": 1.4, "c": 0.7, "d": 1.2}
    subjects = [
        replace(world.subject(name), take=lambda request: world.steady(request, slower[request.benchmarks[0].name]))
        for name in slower
    ]
    world.sampling.take_until_decided(subjects, math.inf, math.inf)
    told: list[dict[str, Any]] = []
    bench = SimpleNamespace(
        sampling=world.sampling,
        planned=plan.steps[0],
        session=SimpleNamespace(folder=SimpleNamespace(append=told.append)),
    )
    # A pair takes a second.
    for seconds, names in ((1000.0, ["b", "d", "a", "c"]), (25.0, ["b", "d"]), (1.0, ["b"])):
        deciding = _Deciding(bench, subjects, None, time.monotonic() + seconds, several=True)  # type: ignore[arg-type]
        deciding.first, deciding.own_end = world.sampling.next_number(subjects), math.inf
        told.clear()
        assert [item.name for item in deciding._affordable(11)] == names
        assert sorted([*names, *(item["benchmark"] for item in told)]) == list("abcd")


def test_what_waits_for_layouts_gets_fresh_pairs_if_none_can_be_drawn(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any) -> None:
        raise LayoutsRefusedError("it is linked statically")

    monkeypatch.setattr(over_layouts, "DrawnLayouts", refuses)
    monkeypatch.setattr(_Deciding, "_builds", lambda _: {})
    world = made(plan)
    suite = Together(world, "abc", among=0.8, alone=0.8)
    world.sampling.take_until_decided(suite.benchmarks, math.inf, math.inf, kept=0.3)
    folder = SimpleNamespace(append=lambda _: None)
    session = SimpleNamespace(folder=folder, context=SimpleNamespace(seed=1))
    bench = SimpleNamespace(
        sampling=world.sampling, planned=plan.steps[0], session=session, budget=math.inf, drawn=None, able=BOTH
    )
    changed = [item for item in suite.benchmarks if item.name == "a"]
    _Deciding(bench, changed, None, math.inf, several=True).run()  # type: ignore[arg-type]
    assert Counter(item["design"] for item in world.samples("a")) == {"looks": 11, "confirm": min(CONFIRMING)}
