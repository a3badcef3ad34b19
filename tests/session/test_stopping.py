"""Targets that end the sampling: rarely wrong in spite of several interim analyses, and never without a decision."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from scipy import stats

from perfflow.jobs.compare.compare_stored import Question, workflow_of
from perfflow.model.criteria import Criteria
from perfflow.model.readings import SCHEDULES, Design, Reading, Side
from perfflow.model.targets import parse_target
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import BenchmarkToSample, PairScheduler, Request
from perfflow.sampling.sampling import StepSampling
from perfflow.sampling.stop_rule import ALONE, Stop, StopRule
from perfflow.session.open_workflow import open_workflow
from perfflow.stats.paired_test import Looks
from perfflow.store.record import Record
from perfflow.verdict import targets
from perfflow.verdict.comparison import compare

LOOKS = [pairs for pairs, _ in SCHEDULES[Design.LOOKS]]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = tmp_path_factory.mktemp("plan") / "compare.yaml"
    path.write_text(json.dumps(workflow_of(Question("old", "new"))))
    return open_workflow(str(path)).plan


CRITERIA = Criteria()


def measured(
    plan: Plan, requirement: tuple[str, str], sides: tuple[Side, ...], slower: float, seed: int, rounds: int
) -> tuple[Record, Criteria, Stop]:
    """Sample a noisy program (median 1 s, the candidate ``slower`` times as long) until decided, at most ``rounds``."""
    luck = random.Random(seed)
    criteria = replace(CRITERIA, targets=(parse_target("b", *requirement, {}),))
    events: list[object] = []

    def take(request: Request) -> tuple[Reading, ...]:
        factor = slower if request.side is Side.CANDIDATE else 1.0
        return (Reading("time", factor * math.exp(luck.gauss(0, 0.05)), "b"),)

    # The clock counts rounds.
    stop_rule = StopRule(criteria, plan.steps[0], rounds, clock=lambda: float(len(events)))
    sampling = StepSampling(
        plan.steps[0].id, PairScheduler(seed, warmup=0, clock=lambda: 0.0), stop_rule, events.append, {}
    )
    sampling.take_until_decided([BenchmarkToSample("b", sides, take)], math.inf, math.inf)
    return stop_rule.record, criteria, stop_rule.stopped["b"]


def status(record: Record, criteria: Criteria) -> str:
    rows = {key: compare(series, criteria) for key, series in record.series.items()}
    (found,) = targets.judge(criteria, rows, record)
    return found.status


def test_a_target_at_its_very_bound_is_seldom_called_met_or_not_met(plan: Plan) -> None:
    trials = 150
    said = Counter(
        status(*measured(plan, ("time p50", "<1s"), (Side.BASELINE,), 1.0, seed, 500)[:2]) for seed in range(trials)
    )
    # 2.5% on each side for the interval at the end, and a little for the interim analyses.
    for word in ("met", "not met"):
        assert said[word] <= stats.binom.ppf(0.999, trials, 0.045), said


def test_a_clear_target_ends_it_at_the_first_look(plan: Plan) -> None:
    record, criteria, why = measured(plan, ("time p50", "<1.2s"), (Side.BASELINE,), 1.0, 1, 10_000)
    assert (status(record, criteria), why) == ("met", Stop.SETTLED)
    assert len(record.series["b", "time"].readings(Side.BASELINE)) == ALONE


def test_a_speedup_is_known_as_well_as_it_will_be_after_the_last_look(plan: Plan) -> None:
    record, criteria, why = measured(plan, ("time speedup", ">=1.2"), tuple(Side), 1 / 1.2, 3, 10_000)
    assert status(record, criteria) == "unproven"
    assert why in (Stop.SETTLED, Stop.LAST_LOOK)
    assert len(record.series["b", "time"].readings(Side.BASELINE)) <= LOOKS[-1]


def test_a_percentile_of_two_sides_goes_on_after_the_change_is_known(plan: Plan) -> None:
    record, criteria, why = measured(plan, ("time p95", "<1.5s"), tuple(Side), 1.0, 3, 10_000)
    assert (status(record, criteria), why) == ("met", Stop.SETTLED)
    series = record.series["b", "time"]
    assert len(series.readings(Side.BASELINE)) in LOOKS


def test_a_percentile_of_two_sides_goes_on_beyond_the_last_look(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    six = SCHEDULES[Design.LOOKS][:6]
    monkeypatch.setitem(cast("dict[str, Looks]", SCHEDULES), Design.LOOKS, six)
    record, criteria, why = measured(plan, ("time p95", "<1.5s"), tuple(Side), 1.0, 3, 10_000)
    assert status(record, criteria) == "met"
    assert why in (Stop.SETTLED, Stop.LAST_LOOK)
    series = record.series["b", "time"]
    assert len(series.readings(Side.BASELINE)) == 2 * six[-1][0]
    assert compare(series, criteria).pairs == six[-1][0]


@pytest.mark.parametrize(("seconds", "design"), [(0.8, Design.LOOKS), (1.2, Design.FEW)])
def test_what_cannot_reach_the_first_look_within_its_budget_is_run_a_few_times(
    plan: Plan, seconds: float, design: Design
) -> None:
    luck, now = random.Random(1), [0.0]
    events: list[Mapping[str, Any]] = []

    def take(request: Request) -> tuple[Reading, ...]:
        took = seconds * (1.3 if request.side is Side.CANDIDATE else 1.0) * math.exp(luck.gauss(0, 0.01))
        now[0] += took / 1.3
        return (Reading("time", took, "b"),)

    step = plan.steps[0]
    stop_rule = StopRule(CRITERIA, step, 20.0, clock=lambda: now[0])
    sampling = StepSampling(step.id, PairScheduler(1, clock=lambda: now[0]), stop_rule, events.append, {})
    sampling.take_until_decided([BenchmarkToSample("b", tuple(Side), take)], math.inf, 20.0)
    assert {event["design"] for event in events} == {design.value}
    change = compare(stop_rule.record.series["b", "time"], CRITERIA).change
    assert change
    assert change.low > 0
    assert stop_rule.stopped["b"] is Stop.SETTLED
