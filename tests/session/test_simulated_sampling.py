"""Sampling of simulated programs with known noise: how many pairs, when it ends, and how often it is wrong.

The clocks are simulated as well, so no decision depends on the machine.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perfflow.jobs.compare.compare_stored import Question, workflow_of
from perfflow.model.criteria import Criteria
from perfflow.model.readings import SCHEDULES, Design, Reading, Side, reading_of_process
from perfflow.model.targets import parse_target
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import BenchmarkToSample, PairScheduler, Request
from perfflow.sampling.sampling import StepSampling
from perfflow.sampling.stop_rule import ALONE, BUDGET, Stop, StopRule
from perfflow.session.bench import Paces
from perfflow.session.open_workflow import open_workflow
from perfflow.stats.paired_test import MANY, Looks
from perfflow.store.record import Record, reading_to_json
from perfflow.tools.adapter import Pace, samples_of_pace
from perfflow.verdict import targets
from perfflow.verdict.comparison import compare
from perfflow.verdict.decide import rule
from tests.long import rest_long

CRITERIA = Criteria()
LOOKS = [pairs for pairs, _ in SCHEDULES[Design.LOOKS]]
SUITE = 20
Clock = Callable[[], float]
Seconds = Callable[[str, Side], float]
"""What a process of a benchmark takes."""
Event = Mapping[str, Any]


def standing() -> float:
    """Return what a clock shows that stands still."""
    return 0.0


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = tmp_path_factory.mktemp("plan") / "compare.yaml"
    path.write_text(json.dumps(workflow_of(Question("old", "new"))))
    return open_workflow(str(path)).plan


def benchmark(name: str, seconds: Seconds, sides: Sequence[Side] = tuple(Side)) -> BenchmarkToSample:
    def take(request: Request) -> tuple[Reading, ...]:
        return (Reading("time", seconds(name, request.side), name),)

    return BenchmarkToSample(name, tuple(sides), take)


def simulate(
    plan: Plan,
    benchmarks: Sequence[BenchmarkToSample],
    stop_rule: StopRule,
    scheduler: PairScheduler,
    *,
    budget: float = math.inf,
    coarsely: bool = False,
    events: list[Event] | None = None,
) -> list[Event]:
    """Sample until all is decided; ``events`` are those of an earlier part, to which the further ones are added."""
    events = [] if events is None else events
    before = [dict(event) for event in events]
    sampling = StepSampling(plan.steps[0].id, scheduler, stop_rule, events.append, {})
    sampling.recall(before, benchmarks)
    sampling.take_until_decided(benchmarks, math.inf, budget, coarsely=coarsely)
    return events


def changed(stop_rule: StopRule, *, identical: bool) -> list[str]:
    """Return the benchmarks that are called slower or faster."""
    rulings = {
        name: rule(compare(series, CRITERIA), CRITERIA.thresholds_of(name, "time"), identical=identical).decision
        for (name, _), series in stop_rule.record.series.items()
    }
    return [name for name, decision in rulings.items() if decision in ("regressed", "improved")]


def sampled_suite(plan: Plan, noise: float, slower: Mapping[str, float], seed: int) -> tuple[Counter[str], list[str]]:
    """Sample a suite; return the pairs of each benchmark, and the changed ones."""
    luck = random.Random(seed)

    def seconds(name: str, side: Side) -> float:
        return (slower.get(name, 1.0) if side is Side.CANDIDATE else 1.0) * math.exp(luck.gauss(0, noise))

    stop_rule = StopRule(CRITERIA, plan.steps[0], math.inf, identical=lambda: True, clock=standing)
    benchmarks = [benchmark(f"b{number}", seconds) for number in range(SUITE)]
    events = simulate(plan, benchmarks, stop_rule, PairScheduler(seed, warmup=0, clock=standing), coarsely=True)
    pairs = Counter(event["baseline"][0]["benchmark"] for event in events)
    return pairs, changed(stop_rule, identical=True)


def test_quiet_benchmarks_take_few_pairs(plan: Plan) -> None:
    pairs, called = sampled_suite(plan, 0.002, {"b3": 1.02}, seed=1)
    assert called == ["b3"]
    assert {count for name, count in pairs.items() if name != "b3"} == {11}
    assert pairs["b3"] == 17


def test_at_a_noise_of_three_percent_a_suite_is_decided_in_few_pairs(plan: Plan) -> None:
    # The ratio of two runs varies by 3%.
    for seed in range(5):
        pairs, called = sampled_suite(plan, 0.03 / math.sqrt(2), {"b3": 1.15}, seed)
        assert called == ["b3"]
        counts = sorted(pairs.values())
        assert counts[SUITE // 2] == 11
        assert counts[SUITE * 9 // 10] <= 28


@pytest.mark.parametrize("suites", rest_long([7, 20]))
def test_hardly_any_suite_of_unchanged_benchmarks_has_a_change(plan: Plan, suites: int) -> None:
    assert sum(len(sampled_suite(plan, 0.02, {}, seed)[1]) for seed in range(suites)) == 0


def test_a_suite_of_slow_processes_is_decided_by_a_few_runs_of_each(plan: Plan) -> None:
    """Pairs would use all of the budget before the first interim analysis, and all benchmarks would stay unproven."""
    now, luck = [0.0], random.Random(3)

    def seconds(name: str, side: Side) -> float:
        # The last one is fast, and is measured in pairs.
        now[0] += 0.01 if name == "quick" else 1.2
        return (1.34 if name == "b7" and side is Side.CANDIDATE else 1.0) * math.exp(luck.gauss(0, 0.01))

    stop_rule = StopRule(CRITERIA, plan.steps[0], 15.0, clock=lambda: now[0])
    names = [*(f"b{number}" for number in range(SUITE)), "quick"]
    scheduler = PairScheduler(1, warmup=1, clock=lambda: now[0])
    events = simulate(plan, [benchmark(name, seconds) for name in names], stop_rule, scheduler, budget=15.0)
    sides = [next(event[side][0] for side in Side if side in event) for event in events]
    designs = Counter((side["benchmark"], event["design"]) for side, event in zip(sides, events, strict=True))
    assert designs["b7", "few"] >= 10
    assert designs["quick", "looks"] >= 11
    assert not any(design != "few" for name, design in designs if name != "quick")
    assert changed(stop_rule, identical=False) == ["b7"]


# -- targets that end the sampling


def measured(
    plan: Plan, requirement: tuple[str, str], sides: tuple[Side, ...], slower: float, seed: int, rounds: int
) -> tuple[str, Stop, Record]:
    """Sample a noisy program (median 1 s, the candidate ``slower`` times as long) until decided, at most ``rounds``."""
    luck = random.Random(seed)
    criteria = replace(CRITERIA, targets=(parse_target("b", *requirement, {}),))
    events: list[Event] = []

    def seconds(_name: str, side: Side) -> float:
        return (slower if side is Side.CANDIDATE else 1.0) * math.exp(luck.gauss(0, 0.05))

    # The clock counts rounds.
    stop_rule = StopRule(criteria, plan.steps[0], rounds, clock=lambda: float(len(events)))
    scheduler = PairScheduler(seed, warmup=0, clock=standing)
    simulate(plan, [benchmark("b", seconds, sides)], stop_rule, scheduler, events=events)
    record = stop_rule.record
    rows = {key: compare(series, criteria) for key, series in record.series.items()}
    (found,) = targets.judge(criteria, rows, record)
    return found.status, stop_rule.stopped["b"], record


def rounds_of(record: Record) -> int:
    return len(record.series["b", "time"].readings(Side.BASELINE))


@pytest.mark.parametrize("trials", rest_long([50, 150]))
def test_a_target_at_its_very_bound_is_seldom_called_met_or_not_met(plan: Plan, trials: int) -> None:
    said = Counter(measured(plan, ("time p50", "<1s"), (Side.BASELINE,), 1.0, seed, 500)[0] for seed in range(trials))
    # 2.5% on each side for the interval at the end, and a little for the interim analyses.
    for word in ("met", "not met"):
        assert said[word] <= stats.binom.ppf(0.999, trials, 0.045), said


def test_a_clear_target_ends_it_at_the_first_look(plan: Plan) -> None:
    status, why, record = measured(plan, ("time p50", "<1.2s"), (Side.BASELINE,), 1.0, 1, 10_000)
    assert (status, why, rounds_of(record)) == ("met", Stop.SETTLED, ALONE)


def test_a_speedup_is_known_as_well_as_it_will_be_after_the_last_look(plan: Plan) -> None:
    status, why, record = measured(plan, ("time speedup", ">=1.2"), tuple(Side), 1 / 1.2, 3, 10_000)
    assert status == "unproven"
    assert why in (Stop.SETTLED, Stop.LAST_LOOK)
    assert rounds_of(record) <= LOOKS[-1]


def test_a_percentile_of_two_sides_goes_on_after_the_change_is_known(plan: Plan) -> None:
    status, why, record = measured(plan, ("time p95", "<1.5s"), tuple(Side), 1.0, 3, 10_000)
    assert (status, why) == ("met", Stop.SETTLED)
    assert rounds_of(record) in LOOKS


def test_a_percentile_of_two_sides_goes_on_beyond_the_last_look(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    six = SCHEDULES[Design.LOOKS][:6]
    monkeypatch.setitem(cast("dict[str, Looks]", SCHEDULES), Design.LOOKS, six)
    status, why, record = measured(plan, ("time p95", "<1.5s"), tuple(Side), 1.0, 3, 10_000)
    assert status == "met"
    assert why in (Stop.SETTLED, Stop.LAST_LOOK)
    assert rounds_of(record) == 2 * six[-1][0]
    assert compare(record.series["b", "time"], CRITERIA).pairs == six[-1][0]


@pytest.mark.parametrize(("each", "design"), [(0.8, Design.LOOKS), (1.2, Design.FEW)])
def test_what_cannot_reach_the_first_look_within_its_budget_is_run_a_few_times(
    plan: Plan, each: float, design: Design
) -> None:
    luck, now = random.Random(1), [0.0]

    def seconds(_name: str, side: Side) -> float:
        took = each * (1.3 if side is Side.CANDIDATE else 1.0) * math.exp(luck.gauss(0, 0.01))
        now[0] += took / 1.3
        return took

    stop_rule = StopRule(CRITERIA, plan.steps[0], 20.0, clock=lambda: now[0])
    scheduler = PairScheduler(1, clock=lambda: now[0])
    events = simulate(plan, [benchmark("b", seconds)], stop_rule, scheduler, budget=20.0)
    assert {event["design"] for event in events} == {design.value}
    change = compare(stop_rule.record.series["b", "time"], CRITERIA).change
    assert change
    assert change.low > 0
    assert stop_rule.stopped["b"] is Stop.SETTLED


# -- sampling that is resumed


def resumed(plan: Plan, names: list[str], noise: float, before: Sequence[Event]) -> list[Event]:
    """All events of a sampling that resumes after ``before``. The reading of a process depends only on its position."""
    counts: Counter[tuple[str, Side]] = Counter()
    for event in before:
        counts.update((event[side.value][0]["benchmark"], side) for side in Side if side.value in event)

    def seconds(name: str, side: Side) -> float:
        number = counts[name, side]
        counts[name, side] += 1
        luck = random.Random(f"{name} {side} {number}").gauss(0, noise)
        slower = 1.08 if name.endswith("1") and side is Side.CANDIDATE else 1.0
        return 0.02 * slower * math.exp(luck)

    stop_rule = StopRule(plan.criteria, plan.steps[0], BUDGET, clock=standing)
    subjects = [benchmark(name, seconds) for name in names]
    scheduler = PairScheduler(1, warmup=0, clock=standing)
    return [dict(event) for event in simulate(plan, subjects, stop_rule, scheduler, events=list(before))]


# Each example takes half a second.
@settings(max_examples=int(os.environ["PERFFLOW_FUZZ_EXAMPLES"]) // 8)
@given(st.sampled_from([1, 2, MANY + 1]), st.sampled_from([0.002, 0.02, 0.04]), st.floats(0, 1))
def test_wherever_it_is_cut_a_sampling_ends_as_if_it_had_not_been(
    plan: Plan, benchmarks: int, noise: float, share: float
) -> None:
    names = [f"b{number}" for number in range(benchmarks)]
    whole = resumed(plan, names, noise, [])
    assert resumed(plan, names, noise, whole[: int(share * len(whole))]) == whole


@given(st.integers(1, 3), st.sampled_from([0.002, 0.02, 0.05]), st.floats(0, 1))
@settings(max_examples=int(os.environ["PERFFLOW_FUZZ_EXAMPLES"]) // 20)
def test_blocks_of_expensive_programs_are_gone_on_with(plan: Plan, benchmarks: int, noise: float, share: float) -> None:
    names = [f"b{number}" for number in range(benchmarks)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("perfflow.sampling.sampling.EXPENSIVE", -1.0)
        whole = resumed(plan, names, noise, [])
        assert {event["design"] for event in whole} == {"few"}
        assert resumed(plan, names, noise, whole[: int(share * len(whole))]) == whole


# -- durations of benchmarks

FAST, SLOW = (reading_of_process("time", [seconds] * 10, "b") for seconds in (0.01, 0.1))


def test_the_slower_side_counts_and_memory_is_no_pace() -> None:
    paces = Paces()
    assert paces.slowest(["b"]) is None
    for reading in (FAST, SLOW, FAST):
        paces.notice("b", [Reading("rss", 1e9, "b"), reading])
    assert paces.slowest(["b"]) == Pace(0.1, 1.0)


def test_a_resumed_run_takes_the_pace_from_its_first_samples() -> None:
    first = {"pair": 0, "baseline": [reading_to_json(FAST)], "candidate": [reading_to_json(SLOW)]}
    paces = Paces()
    paces.recall([{**first, "pair": 1}, {"event": "stopped"}])
    assert paces.slowest(["b"]) is None
    paces.recall([first])
    assert paces.slowest(["b"]) == Pace(0.1, 1.0)


def test_samples_fit_into_half_a_second() -> None:
    found = [samples_of_pace(Pace(seconds, 0.0), 10, 100) for seconds in (1e-6, 0.005, 0.01, 0.1, 3.0)]
    assert found == [100, 100, 50, 10, 10]
    assert samples_of_pace(None, 3, 20) == 3
