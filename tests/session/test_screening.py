"""A suite of many benchmarks: few pairs for quiet ones, more for noisy ones, and new pairs decide."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from perfflow.jobs.compare.compare_commands import Question, workflow_of
from perfflow.model.criteria import Criteria
from perfflow.model.design import SCHEDULES, Design
from perfflow.model.readings import Reading, Side
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import Sampler, Subject, Take
from perfflow.sampling.sampling import Sampling
from perfflow.sampling.stop_rule import StopRule
from perfflow.session.open_workflow import open_workflow
from perfflow.stats.designs import CONFIRMING, SCREENING
from perfflow.verdict.comparison import compare
from perfflow.verdict.decide import rule

CRITERIA = Criteria()
SUITE = 20


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = tmp_path_factory.mktemp("plan") / "compare.yaml"
    path.write_text(json.dumps(workflow_of(Question("old", "new"))))
    return open_workflow(str(path)).plan


def screened(plan: Plan, noise: float, slower: Mapping[str, float], seed: int) -> tuple[Counter[str], list[str]]:
    """Screen a suite of programs of 1 s each; return the pairs of each benchmark, and the changed ones."""
    luck = random.Random(seed)
    events: list[Mapping[str, Any]] = []

    def taker(name: str) -> Take:
        def take(side: Side) -> tuple[Reading, ...]:
            factor = slower.get(name, 1.0) if side is Side.CANDIDATE else 1.0
            return (Reading("time", factor * math.exp(luck.gauss(0, noise)), name),)

        return take

    stop_rule = StopRule(CRITERIA, plan.steps[0], math.inf, identical=lambda: True, clock=lambda: 0.0)
    sampler = Sampler(seed, warmup=0, clock=lambda: 0.0)
    sampling = Sampling(plan.steps[0].id, sampler, stop_rule, events.append, {})
    sampling.screen([Subject(f"b{number}", tuple(Side), taker(f"b{number}")) for number in range(SUITE)])
    pairs = Counter(event["baseline"][0]["benchmark"] for event in events)
    rulings = {
        name: rule(compare(series, CRITERIA), CRITERIA.thresholds_of(name, "time"), identical=True).decision
        for (name, _), series in stop_rule.record.series.items()
    }
    return pairs, [name for name, decision in rulings.items() if decision in ("regressed", "improved")]


def test_quiet_benchmarks_take_few_pairs(plan: Plan) -> None:
    pairs, called = screened(plan, 0.002, {"b3": 1.02}, seed=1)
    assert called == ["b3"]
    others = [count for name, count in pairs.items() if name != "b3"]
    assert min(others) == min(SCREENING)
    # Without the rule for benchmarks that are known to 1%, half of them would continue.
    assert sum(count == min(SCREENING) for count in others) > 0.7 * len(others)


def test_a_small_change_of_noisy_benchmarks_is_found_more_often_than_not(plan: Plan) -> None:
    found = alarms = 0
    for seed in range(15):
        pairs, called = screened(plan, 0.022, {"b3": 1.02, "b4": 0.98}, seed)
        found += len({"b3", "b4"} & set(called))
        alarms += len(set(called) - {"b3", "b4"})
        assert max(pairs.values()) <= max(SCREENING) + max(CONFIRMING)
    # A quarter with 9 and 15 pairs, and 40 new ones.
    assert found > 0.6 * 30
    assert alarms == 0


def test_a_suite_of_slow_processes_is_decided_by_a_few_runs_of_each(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Screening would use all of the budget except one new pair, and all benchmarks would stay unproven."""
    now, luck = [0.0], random.Random(3)
    monkeypatch.setattr("perfflow.sampling.sampling.time", SimpleNamespace(monotonic=lambda: now[0]))
    events: list[Mapping[str, Any]] = []

    def taker(name: str, seconds: float) -> Take:
        def take(side: Side) -> tuple[Reading, ...]:
            now[0] += seconds
            factor = 1.34 if name == "b7" and side is Side.CANDIDATE else 1.0
            return (Reading("time", factor * math.exp(luck.gauss(0, 0.01)), name),)

        return take

    budget = 15.0
    stop_rule = StopRule(CRITERIA, plan.steps[0], budget, clock=lambda: now[0])
    sampler = Sampler(1, warmup=1, clock=lambda: now[0])
    sampling = Sampling(plan.steps[0].id, sampler, stop_rule, events.append, {})
    # The last one is fast, and is screened as usual.
    subjects = [Subject(f"b{number}", tuple(Side), taker(f"b{number}", 1.2)) for number in range(SUITE)]
    sampling.screen([*subjects, Subject("quick", tuple(Side), taker("quick", 0.01))], patience=budget)
    sides = [next(event[side][0] for side in Side if side in event) for event in events]
    designs = Counter((side["benchmark"], event["design"]) for side, event in zip(sides, events, strict=True))
    assert designs["b7", "few"] >= 10
    assert designs["quick", "screen"] >= min(SCREENING)
    assert not any(design != "few" for name, design in designs if name != "quick")
    found = {
        name: rule(compare(series, CRITERIA), CRITERIA.thresholds_of(name, "time"), identical=False).decision
        for (name, _), series in stop_rule.record.series.items()
    }
    assert [name for name, decision in found.items() if decision == "regressed"] == ["b7"]


def test_fresh_pairs_that_show_nothing_end_it(plan: Plan) -> None:
    stopped: Counter[int] = Counter()
    for seed in range(10):
        pairs, _ = screened(plan, 0.03, {}, seed)
        stopped.update(count - max(SCREENING) for count in pairs.values() if count > max(SCREENING))
    assert set(stopped) <= set(CONFIRMING)
    assert stopped[min(CONFIRMING)] + stopped[40] > stopped[max(CONFIRMING)]


def test_every_analysis_of_fresh_pairs_has_its_part_of_the_false_alarms() -> None:
    assert [pairs for pairs, _ in SCHEDULES[Design.CONFIRM]] == list(CONFIRMING)
    # About one in twenty unchanged benchmarks gets a confirmation, so this is 2% of suites of 100.
    assert 100 / 20 * sum(alpha for _, alpha in SCHEDULES[Design.CONFIRM]) <= 0.021
