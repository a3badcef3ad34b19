"""A suite of many benchmarks: few pairs for quiet ones, more for noisy ones, and new pairs decide."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from perfflow.jobs.compare.compare_stored import Question, workflow_of
from perfflow.model.criteria import Criteria
from perfflow.model.readings import Reading, Side
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import BenchmarkToSample, PairScheduler, Request, Take
from perfflow.sampling.sampling import StepSampling
from perfflow.sampling.stop_rule import StopRule
from perfflow.session.open_workflow import open_workflow
from perfflow.verdict.comparison import compare
from perfflow.verdict.decide import rule

CRITERIA = Criteria()
SUITE = 20


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = tmp_path_factory.mktemp("plan") / "compare.yaml"
    path.write_text(json.dumps(workflow_of(Question("old", "new"))))
    return open_workflow(str(path)).plan


def sampled(plan: Plan, noise: float, slower: Mapping[str, float], seed: int) -> tuple[Counter[str], list[str]]:
    """Sample a suite; return the pairs of each benchmark, and the changed ones."""
    luck = random.Random(seed)
    events: list[Mapping[str, Any]] = []

    def taker(name: str) -> Take:
        def take(request: Request) -> tuple[Reading, ...]:
            factor = slower.get(name, 1.0) if request.side is Side.CANDIDATE else 1.0
            return (Reading("time", factor * math.exp(luck.gauss(0, noise)), name),)

        return take

    stop_rule = StopRule(CRITERIA, plan.steps[0], math.inf, identical=lambda: True, clock=lambda: 0.0)
    scheduler = PairScheduler(seed, warmup=0, clock=lambda: 0.0)
    sampling = StepSampling(plan.steps[0].id, scheduler, stop_rule, events.append, {})
    benchmarks = [BenchmarkToSample(name, tuple(Side), taker(name)) for name in map("b{}".format, range(SUITE))]
    sampling.take_until_decided(benchmarks, math.inf, math.inf, coarsely=True)
    pairs = Counter(event["baseline"][0]["benchmark"] for event in events)
    rulings = {
        name: rule(compare(series, CRITERIA), CRITERIA.thresholds_of(name, "time"), identical=True).decision
        for (name, _), series in stop_rule.record.series.items()
    }
    return pairs, [name for name, decision in rulings.items() if decision in ("regressed", "improved")]


def test_quiet_benchmarks_take_few_pairs(plan: Plan) -> None:
    pairs, called = sampled(plan, 0.002, {"b3": 1.02}, seed=1)
    assert called == ["b3"]
    assert {count for name, count in pairs.items() if name != "b3"} == {11}
    assert pairs["b3"] == 17


def test_at_a_noise_of_three_percent_a_suite_is_decided_in_few_pairs(plan: Plan) -> None:
    # The ratio of two runs varies by 3%.
    for seed in range(5):
        pairs, called = sampled(plan, 0.03 / math.sqrt(2), {"b3": 1.15}, seed)
        assert called == ["b3"]
        counts = sorted(pairs.values())
        assert counts[SUITE // 2] == 11
        assert counts[SUITE * 9 // 10] <= 28


def test_hardly_any_suite_of_unchanged_benchmarks_has_a_change(plan: Plan) -> None:
    assert sum(len(sampled(plan, 0.02, {}, seed)[1]) for seed in range(20)) == 0


def test_a_suite_of_slow_processes_is_decided_by_a_few_runs_of_each(plan: Plan) -> None:
    """Pairs would use all of the budget before the first interim analysis, and all benchmarks would stay unproven."""
    now, luck = [0.0], random.Random(3)
    events: list[Mapping[str, Any]] = []

    def taker(name: str, seconds: float) -> Take:
        def take(request: Request) -> tuple[Reading, ...]:
            now[0] += seconds
            factor = 1.34 if name == "b7" and request.side is Side.CANDIDATE else 1.0
            return (Reading("time", factor * math.exp(luck.gauss(0, 0.01)), name),)

        return take

    budget = 15.0
    stop_rule = StopRule(CRITERIA, plan.steps[0], budget, clock=lambda: now[0])
    scheduler = PairScheduler(1, warmup=1, clock=lambda: now[0])
    sampling = StepSampling(plan.steps[0].id, scheduler, stop_rule, events.append, {})
    # The last one is fast, and is measured in pairs.
    subjects = [BenchmarkToSample(f"b{number}", tuple(Side), taker(f"b{number}", 1.2)) for number in range(SUITE)]
    quick = BenchmarkToSample("quick", tuple(Side), taker("quick", 0.01))
    sampling.take_until_decided([*subjects, quick], math.inf, budget)
    sides = [next(event[side][0] for side in Side if side in event) for event in events]
    designs = Counter((side["benchmark"], event["design"]) for side, event in zip(sides, events, strict=True))
    assert designs["b7", "few"] >= 10
    assert designs["quick", "looks"] >= 11
    assert not any(design != "few" for name, design in designs if name != "quick")
    found = {
        name: rule(compare(series, CRITERIA), CRITERIA.thresholds_of(name, "time"), identical=False).decision
        for (name, _), series in stop_rule.record.series.items()
    }
    assert [name for name, decision in found.items() if decision == "regressed"] == ["b7"]
