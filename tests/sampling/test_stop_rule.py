"""Turns, warm-up and the end of sampling at their exact bounds, with a manual clock and artificial readings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from perfflow.model.criteria import Criteria
from perfflow.model.readings import Design, Reading, Side
from perfflow.plan.plan import Plan
from perfflow.sampling import pairs, sampling
from perfflow.sampling.pairs import IDLE, BenchmarkToSample, PairScheduler, Request, Turn, coin
from perfflow.sampling.stop_rule import ALONE, Stop, StopRule
from perfflow.stats.paired_test import ENOUGH, FEW, FEW_MORE, MANY
from perfflow.verdict import comparison
from perfflow.verdict.acceptance import Goal
from tests.sampling.test_sampling import BOTH, START, made
from tests.verdict.records import criteria

BASELINE, CANDIDATE = Side


def nothing(_: Request) -> tuple[Reading, ...]:
    return ()


# -- order of turns


def test_the_same_seed_gives_the_same_coins_and_orders_in_every_version() -> None:
    """A run that is resumed by a later version keeps its orders."""
    assert "".join("01"[coin(7, "a", pair)] for pair in range(16)) == "1110001010010011"
    scheduler, subject = PairScheduler(7), BenchmarkToSample("a", BOTH, nothing)
    first, later = (list(scheduler.random_block(subject, *block)) for block in ((), (FEW_MORE, FEW)))
    assert "".join(turn.order[0].value[0] for turn in first) == "bccbcbbcbc"
    assert "".join(turn.order[0].value[0] for turn in later) == "bbcbcc"
    assert [turn.number for turn in later] == list(range(10, 16))
    found = [(turn.order[0].value[0], turn.layout) for turn in scheduler.layouts_in_turn(subject, 3, 4)]
    assert found == [("b", 1), ("c", 3), ("c", 2), ("c", 1), ("b", 3), ("b", 2)]
    rounds = [
        scheduler.round([BenchmarkToSample(name, BOTH, nothing) for name in "abcd"], number) for number in range(3)
    ]
    assert "".join(turn.benchmarks[0].name for turns in rounds for turn in turns) == "abdcabcdbcda"


class Clock:
    """A manual clock for processes of half a second each, with a record of the state during each process."""

    def __init__(self, warmup: int = 1) -> None:
        self.now = START
        self.seen: list[tuple[bool, int, int]] = []
        self.runs: list[str] = []
        self.scheduler = PairScheduler(7, warmup=warmup, clock=lambda: self.now)
        self.subject = BenchmarkToSample("a", BOTH, self._take)

    def _take(self, request: Request) -> tuple[Reading, ...]:
        self.now += 0.5
        self.runs.append(request.side.value[0])
        self.seen.append((request.warming, request.number, request.layout))
        return (Reading("time", 1.0),)


def test_a_process_knows_whether_it_warms_up() -> None:
    clock = Clock()
    scheduler = clock.scheduler
    assert scheduler.seconds == 0.0
    for turn in scheduler.warm_ups((clock.subject,)):
        list(scheduler.take(turn))
        assert scheduler.seconds == 0.5
    assert clock.seen == [(True, 0, 0)] * 2
    list(scheduler.take(Turn((clock.subject,), 3, BOTH, 2)))
    assert clock.seen[-1] == (False, 3, 2)


@pytest.mark.parametrize(("idle", "runs"), [(IDLE, "bc"), (2 * IDLE, "bbc")])
def test_a_side_that_has_gone_cold_runs_once_more(idle: float, runs: str) -> None:
    clock = Clock()
    clock.now = 0.0  # so that a pause is not rounded
    list(clock.scheduler.take(Turn((clock.subject,), 0, BOTH)))
    assert clock.runs == ["b", "b", "c"]  # nothing has run before
    clock.runs.clear()
    clock.scheduler._last = 0.0
    clock.now = idle
    list(clock.scheduler.take(Turn((clock.subject,), 1, BOTH)))
    assert "".join(clock.runs) == runs
    without = Clock(warmup=0)
    list(without.scheduler.take(Turn((without.subject,), 0, BOTH)))
    assert without.runs == ["b", "c"]


@pytest.mark.parametrize(
    ("order", "layout", "single", "seconds"),
    [
        (BOTH, 0, False, 1.5),
        (BOTH, 2, False, 1.5),
        ((BASELINE,), 0, True, 0.5),
        # A single run of a layout is not a round, so its duration is not stored.
        ((BASELINE,), 2, True, 0.0),
    ],
)
def test_what_a_round_took(order: tuple[Side, ...], layout: int, seconds: float, *, single: bool) -> None:
    clock = Clock()
    (found,) = clock.scheduler.take(Turn((clock.subject,), 0, order, layout, single=single))
    assert found.seconds == seconds


def test_what_is_recalled_began_with_the_side_that_began() -> None:
    clock = Clock()
    known = dict.fromkeys(BOTH, (Reading("time", 1.0),))
    clock.scheduler.taken = {("a", 0): known}
    (found,) = clock.scheduler.take(Turn((clock.subject,), 0, (CANDIDATE, BASELINE)))
    assert (found.first, found.recalled, clock.runs) == (CANDIDATE, True, [])
    clock.scheduler.taken = {("a", 0): {BASELINE: ()}}
    (found,) = clock.scheduler.take(Turn((clock.subject,), 0, BOTH))
    assert not found.recalled


# -- sampling


def test_a_single_run_is_told_as_one_and_a_pair_as_a_pair(plan: Plan) -> None:
    world = made(plan, lasts=0.123456789)
    subjects = [world.subject("a"), world.subject("b")]
    world.sampling.take_rounds(subjects, Design.FEW, 1, math.inf)
    assert {(item.unit, item.turn) for item in world.told if item.count} == {("pair", (1, 1))}
    world.sampling.take_rounds(subjects[:1], Design.CONFIRM, 1, math.inf, start=1)
    assert "confirmation" not in world.events[-1]
    assert world.events[-1]["seconds"] == 0.246914
    assert world.sampling.next_number([]) == 0
    assert world.sampling.next_number(subjects) == 2
    world.rule.stop(subjects[:1], Stop.BUDGET)
    assert [world.sampling.was_stopped(subject) for subject in subjects] == [True, False]


def test_a_round_that_would_begin_at_the_end_is_not_begun(plan: Plan) -> None:
    world = made(plan, lasts=0.5)
    world.sampling.take_rounds([world.subject("a")], Design.FIXED, 9, START + 4.0)
    assert len(world.events) == 3  # a second to warm up, and three rounds


@pytest.mark.parametrize("taken", [1, 3])
@pytest.mark.parametrize("lasts", [0.5, 4.0])
def test_what_has_begun_is_not_warmed_up_again(plan: Plan, lasts: float, taken: int) -> None:
    whole, again = (made(plan, lasts=lasts, slower=1.5) for _ in range(2))
    benchmark_budget = 90.0 if lasts > 1 else 13.0
    whole.sampling.take_until_decided([whole.subject("a")], math.inf, benchmark_budget)
    subject = again.subject("a")
    again.sampling.recall(whole.events[:taken], [subject])
    # 4 s are too short for the first few runs, but those have been taken before.
    again.sampling.take_until_decided([subject], START + 4.0 if lasts > 1 else math.inf, benchmark_budget)
    assert [item["pair"] for item in again.events] == [item["pair"] for item in whole.events[taken:]]
    per_round = 1 if lasts > 1 else 2
    assert again.runs["a"] == per_round * len(again.events) + (0 if lasts > 1 else 1)
    assert again.warnings == {}


@pytest.mark.parametrize(("spare", "runs"), [(24.0, FEW), (24.5, FEW + FEW_MORE)])
def test_a_further_block_is_begun_with_time_for_all_of_it(plan: Plan, spare: float, runs: int) -> None:
    world = made(plan, lasts=4.0, noise=0.2, budget=4.0 * 2 * FEW + spare)
    world.sampling.take_until_decided([world.subject("a")], math.inf, 1000.0)
    assert len(world.events) == 2 * runs


def test_further_blocks_are_told_in_turns(plan: Plan) -> None:
    world = made(plan, lasts=4.0, noise=0.2, budget=4.0 * 2 * (FEW + FEW_MORE) + 1)
    world.sampling.take_until_decided([world.subject("a"), world.subject("b")], math.inf, 1000.0)
    turns = {name: {item.turn for item in world.told if item.benchmark == name} for name in "ab"}
    assert turns == {"a": {(1, 2)}, "b": {(2, 2)}}


# -- the stop rule


def taken(
    rule: StopRule,
    baseline: Sequence[float],
    candidate: Sequence[float] | None = None,
    *,
    name: str = "a",
    metric: str = "time",
    confirmation: int = 0,
) -> None:
    (step,) = rule.record.planned
    for number, value in enumerate(baseline):
        design = Design.CONFIRM if confirmation else Design.LOOKS
        event: dict[str, Any] = {"event": "sample", "step": step, "design": design.value, "pair": number}
        event |= {"confirmation": confirmation} if confirmation else {}
        event |= {"first": "baseline", "baseline": [{"metric": metric, "value": value, "benchmark": name}]}
        if candidate is not None:
            event["candidate"] = [{"metric": metric, "value": candidate[number], "benchmark": name}]
        rule.happened(event)


def wave(count: int, width: float, factor: float = 1.0) -> list[float]:
    return [factor * (1 + width * (number * 7 % 5 - 2) / 2) for number in range(count)]


A = BenchmarkToSample("a", BOTH, nothing)
ONE = BenchmarkToSample("a", (BASELINE,), nothing)


def rule_of(plan: Plan, own: Criteria | None = None, budget: float = math.inf, **keys: Any) -> StopRule:
    return StopRule(own or Criteria(), plan.steps[0], budget, clock=lambda: 100.0, **keys)


@pytest.mark.parametrize(
    ("budget", "total", "ahead", "why"),
    [
        (10.0, math.inf, 0.0, None),
        (0.0, math.inf, 0.0, Stop.BUDGET),
        (10.0, math.inf, 10.0, Stop.BUDGET),
        (10.0, math.inf, 9.0, None),
        (10.0, 100.0, 0.0, Stop.TOTAL_BUDGET),
        (10.0, 105.0, 5.0, Stop.TOTAL_BUDGET),
        (10.0, 110.0, 10.0, Stop.BUDGET),
        (10.0, 111.0, 10.0, Stop.BUDGET),
    ],
)
def test_time_is_spent_once_none_is_left_for_the_next_round(
    plan: Plan, budget: float, total: float, ahead: float, why: Stop | None
) -> None:
    rule = rule_of(plan, budget=budget)
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
def test_what_should_repeat_has_two_rounds_whatever_its_own_budget(
    plan: Plan, values: list[float], total: float, ends: dict[int, Stop | None]
) -> None:
    for finished, why in ends.items():
        rule = rule_of(plan, budget=0.0, repeats=True)
        rule.start([A], total)
        taken(rule, values[:finished], values[:finished], metric="instructions")
        assert rule.decided(A, finished) is (why is not None)
        assert rule.stopped.get("a") is why


def test_one_subject_may_report_benchmarks_of_any_name_and_one_of_several_may_not(plan: Plan) -> None:
    found = {}
    for text, started in (("new", None), ("one", ([A], 0)), ("beside", ([A], 1)), ("two", ([A, A], 0))):
        rule = rule_of(plan)
        if started:
            rule.start(started[0], others=started[1])
        taken(rule, [1.0] * 11, [1.5] * 11, name="other")
        found[text] = rule.regressed(A)
    assert found == {"new": True, "one": True, "beside": False, "two": False}
    assert rule.record.series["other", "time"].tool == "command"


def test_pairs_are_judged_at_the_looks_alone(plan: Plan) -> None:
    ends = []
    for finished in (*range(8, 21), 27, 28):
        rule = rule_of(plan)
        rule.start([A])
        taken(rule, [1.0] * finished, [1.5] * finished)
        ends += [finished] if rule.decided(A, finished) else []
    assert ends == [11, 15, 20, 28]


def test_two_builds_are_known_to_two_percent_and_one_file_to_one(plan: Plan) -> None:
    ends = {}
    same: dict[bool | None, dict[str, Any]] = {None: {}, True: {"identical": lambda: True}}
    for identical, keys in (same | {False: {"identical": lambda: False}}).items():
        rule = rule_of(plan, **keys)
        taken(rule, wave(11, 0.0), wave(11, 0.014))
        ends[identical] = rule.decided(A, 11)
    assert ends == {None: True, True: False, False: True}


def test_a_benchmark_that_is_not_compared_has_as_many_samples_as_its_median_needs(
    plan: Plan, independent: None
) -> None:
    ends = [number for number in range(1, 16) if _alone(plan, [1.0] * number).decided(ONE, number)]
    assert ends == [ALONE, ALONE + 1][:1] == [14]


@pytest.fixture
def independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give values the interval of independent samples, although these are correlated."""
    monkeypatch.setattr(comparison, "serial_factor", lambda _: 1.0)


def _alone(plan: Plan, values: Sequence[float], requirement: str | None = None) -> StopRule:
    own = criteria({"a": {"time": requirement}}) if requirement else Criteria()
    rule = rule_of(plan, own)
    taken(rule, values)
    return rule


def test_a_target_is_looked_at_when_there_are_twice_as_many_samples(plan: Plan, independent: None) -> None:
    """After 14 samples the target is open; later it would be met, but it is checked only at 28 and 56 samples."""
    values = wave(14, 0.5) + [0.5] * 50
    counts = (14, 15, 21, 27, 28, 29, 41, 42, 43, 55, 56, 57)
    ends = [count for count in counts if _alone(plan, values[:count], "<1.3 s").decided(ONE, count)]
    assert ends == [28, 56]
    assert _alone(plan, values[:14], "<9 s").decided(ONE, 14)
    rule = _alone(plan, values[:14], "<1.3 s")
    assert rule.decided(ONE, 14) is False


def test_a_candidates_fate_does_not_wait_for_targets(plan: Plan) -> None:
    own = criteria({"a": {"time": "<1.0001 s"}})
    values = wave(11, 0.02, 1.0001)
    for goal, ends in ((Goal((("a", ""),), ("**",)), True), (None, False)):
        rule = rule_of(plan, own, goal=goal)
        taken(rule, values, [0.5 + value / 2 for value in values])
        assert rule.decided(A, 11) is ends


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
def test_what_changed_and_what_regressed(
    plan: Plan, factor: float, width: float, fails: float, *, changed: bool, regressed: bool
) -> None:
    rule = rule_of(plan)
    taken(rule, wave(30, width), wave(30, width, factor)[::-1])
    assert (rule.changed(A), rule.regressed(A)) == (changed, regressed)
    assert rule.fails(A) == pytest.approx(fails, abs=0.01)


def test_exact_figures_need_no_confirmation(plan: Plan) -> None:
    rule = rule_of(plan)
    taken(rule, [1000.0] * 9, [1200.0] * 9, metric="heap_peak")
    assert (rule.changed(A), rule.regressed(A), rule.fails(A)) == (False, False, 0.0)


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
def test_a_confirmation_ends_when_it_agrees_or_will_hardly_do_so(
    plan: Plan, before: int, fresh: int, factor: float, *, enough: bool
) -> None:
    rule = rule_of(plan)
    taken(rule, [1.0] * before, [1.06] * before)
    # Half of the pairs are slower, or 11 of 15, which is not unlikely by chance (p = 0.12).
    noisy = [1.1 if (number % 15 < 11 if factor > 1 else number % 2) else 0.97 for number in range(fresh)]
    taken(rule, [1.0] * fresh, [1.06] * fresh if factor == 1.06 else noisy, confirmation=1)
    assert rule.has_confirmation(A, fresh) is enough
    assert ENOUGH == 11


def test_a_confirmation_that_excludes_what_was_seen_contradicts_it(plan: Plan) -> None:
    for factor, contradicts in ((1.0, True), (1.2, False)):
        rule = rule_of(plan)
        taken(rule, wave(11, 0.01), wave(11, 0.01, 1.2)[::-1])
        assert rule.contradicted(A) is None
        taken(rule, wave(8, 0.01), wave(8, 0.01, factor)[::-1], confirmation=1)
        assert (rule.contradicted(A) is not None) is contradicts


@pytest.mark.parametrize(
    ("factor", "metric", "rests"),
    [(1.2, "time", True), (0.8, "time", True), (1.04, "time", False), (1.0, "time", False), (1.2, "heap_peak", False)],
)
def test_a_change_that_an_accident_of_code_layout_may_have_made(
    plan: Plan, factor: float, metric: str, *, rests: bool
) -> None:
    rule = rule_of(plan)
    taken(rule, wave(20, 0.0), wave(20, 0.0, factor), metric=metric)
    assert rule.rests_on_layout(A) is rests


@pytest.mark.parametrize(("factor", "rests"), [(0.8, True), (0.95, False), (1.2, False)])
def test_a_goal_that_is_reached_may_be_an_accident_of_code_layout(plan: Plan, factor: float, *, rests: bool) -> None:
    rule = rule_of(plan, goal=Goal((("a", ""),), ("**",)))
    taken(rule, wave(20, 0.0), wave(20, 0.0, factor))
    assert rule.rests_on_layout(A) is rests


def test_so_many_benchmarks_make_a_suite() -> None:
    assert (MANY, sampling.FIRST_ANALYSIS, sampling.EXPENSIVE, pairs.IDLE) == (12, 24, 2.0, 0.1)
    turn = Turn((A,), 0, BOTH)
    assert (turn.place, turn.layout, turn.single) == ((1, 1), 0, False)
    found = pairs.Round(A, 0, BASELINE, {})
    assert (found.recalled, found.seconds, found.layout, found.together) == (False, 0.0, 0, 1)
    assert pairs.SamplingProgress("a", 1, "pair").turn == (1, 1)
    assert A.one_sided is False
