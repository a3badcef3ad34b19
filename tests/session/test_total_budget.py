"""The budget of a whole run: how steps share it, and the report when it ends the sampling."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.model.design import SCHEDULES, Design
from perfflow.model.result import Benchmark, Result
from perfflow.session.total_budget import TotalBudget
from perfflow.stats.designs import FEW
from perfflow.store.result_file import to_text
from tests.session.project import Project, row, step
from tests.session.test_adaptive import NOISY, PARSE, end_after, workflow

LOOKS = [pairs for pairs, _ in SCHEDULES[Design.LOOKS]]

NEXT_TO_NOTHING = 0.001
"""Seconds that are too short for any program."""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def shared(budget: TotalBudget, clock: Clock, name: str, benchmarks: int, takes: float) -> float:
    """Return the seconds that a step may use; it uses ``takes`` of them."""
    with budget.share(name, benchmarks) as ends:
        seconds = ends - clock.now
        clock.now += takes
    return seconds


def test_steps_share_by_their_benchmarks_and_what_is_left_flows_on() -> None:
    clock = Clock()
    budget = TotalBudget(60, ["a", "b", "c"], clock)
    assert shared(budget, clock, "a", 1, takes=5) == pytest.approx(20)
    assert shared(budget, clock, "b", 10, takes=50) == pytest.approx(55 * 10 / 11)
    assert shared(budget, clock, "c", 1, takes=9) == pytest.approx(5)
    assert shared(budget, clock, "d", 1, takes=0) == 0


def test_nothing_is_kept_for_a_step_that_will_not_measure() -> None:
    clock = Clock()
    budget = TotalBudget(60, ["a", "b"], clock)
    budget.passed("b")
    assert shared(budget, clock, "a", 1, takes=0) == 60


def test_what_a_failing_step_took_is_taken_off() -> None:
    clock = Clock()
    budget = TotalBudget(60, ["a", "b"], clock)

    def measure_and_fail() -> None:
        with budget.share("a", 1):
            clock.now += 10
            raise RuntimeError

    with pytest.raises(RuntimeError):
        measure_and_fail()
    assert shared(budget, clock, "b", 1, takes=0) == 50


def test_without_a_limit_there_is_no_end() -> None:
    assert shared(TotalBudget(), Clock(), "a", 1, takes=1e9) == math.inf


@pytest.fixture
def noisy(project: Project) -> Project:
    project.write("noisy", NOISY, executable=True)
    return project


def bench(result: Result) -> Benchmark:
    return row(result, "bench", "time")


def test_it_ends_what_is_undecided_and_says_so(noisy: Project) -> None:
    result = noisy.run(workflow("1 1.0", "1 1.0"), budget=0.3)
    found = bench(result)
    assert (found.decision, found.stopped) == ("unproven", "total budget")
    assert 1 <= found.pairs < LOOKS[-1]
    assert result.verdict == "unproven"
    assert "the run's total budget ran out" in result.reasons[0]
    assert result.run.budget == 0.3


@pytest.mark.parametrize(
    ("baseline", "candidate", "keys", "stopped", "pairs"),
    [
        ("1 0.003", "1.3 0.003", "", "settled", LOOKS[0]),
        ("1 1.0", "1 1.0", "", "last look", LOOKS[1]),
        ("1 1.0", "1 1.0", "budget: 1ms", "budget", FEW),
        ("1 1.0", "1 1.0", "runs: 7", "", 7),
    ],
)
def test_why_measuring_ended(
    noisy: Project,
    monkeypatch: pytest.MonkeyPatch,
    baseline: str,
    candidate: str,
    keys: str,
    stopped: str,
    pairs: int,
) -> None:
    end_after(2, monkeypatch)
    result = noisy.run(workflow(baseline, candidate, keys), budget=1000)
    assert (bench(result).stopped, bench(result).pairs) == (stopped, pairs)
    assert any("its budget ran out" in text for text in result.reasons) == (stopped == "budget")


def test_the_larger_of_two_budgets_is_not_the_one_that_ended_it(noisy: Project) -> None:
    found = bench(noisy.run(workflow("1 1.0", "1 1.0", "budget: 1ms"), budget=1000))
    assert found.stopped == "budget"


TWO = f"""
stages:
  baseline:
    - id: one
      run: ./noisy 1 1.0
      candidate: {{command: ./noisy 1 1.0}}
      parse: {PARSE}
    - id: two
      run: ./noisy 1 1.0
      candidate: {{command: ./noisy 1 1.0}}
      parse: {PARSE}
    - id: fixed
      run: ./noisy 1 1.0
      candidate: {{command: ./noisy 1 1.0}}
      parse: {PARSE}
      runs: 50
    - id: alone
      run: ./noisy 1 1.0
      parse: {PARSE}
"""


def test_what_has_not_had_its_turn_is_run_once_so_that_nothing_is_missing(noisy: Project) -> None:
    result = noisy.run(TWO, budget=NEXT_TO_NOTHING)
    rows = {name: row(result, name, "time") for name in ("one", "two", "fixed", "alone")}
    assert {name: found.stopped for name, found in rows.items()} == dict.fromkeys(rows, "total budget")
    assert {name: found.pairs for name, found in rows.items()} == {"one": 1, "two": 1, "fixed": 1, "alone": 0}
    assert {name: found.decision for name, found in rows.items() if name != "alone"} == {
        "one": "unproven",
        "two": "unproven",
        "fixed": "unproven",
    }
    assert result.verdict == "unproven"


def test_few_runs_that_do_not_fit_are_not_begun(noisy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfflow.sampling.sampling.EXPENSIVE", 0.0)
    result = noisy.run(workflow("1 0.003", "1.3 0.003"), budget=NEXT_TO_NOTHING)
    found = bench(result)
    assert (found.decision, found.stopped, found.design) == ("unproven", "total budget", "few")
    assert found.baseline is not None
    assert found.candidate is not None
    assert (found.baseline.n, found.candidate.n) == (1, 1)
    assert any("but the budget is too short" in text for text in step(result, "bench").warnings)


def test_few_runs_that_took_longer_than_the_step_asked_for_say_so(
    noisy: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfflow.sampling.sampling.EXPENSIVE", 0.0)
    result = noisy.run(workflow("1 0.003", "1.3 0.003", "budget: 1ms"))
    assert bench(result).decision == "regressed"
    assert any("exceeded the budget of 1.00 ms" in text for text in step(result, "bench").warnings)


def test_a_screening_without_time_alarms_nobody(project: Project, suite: Path) -> None:
    """One benchmark is twice as slow, but one pair of each proves nothing."""
    result = project.run(
        f"""
stages:
  baseline:
    - id: suite
      uses: google-benchmark
      with: {{command: {suite}}}
      candidate: {{env: {{SLOWED: "1"}}}}
""",
        budget=NEXT_TO_NOTHING,
    )
    rows = [item for item in result.benchmarks if item.gating]
    assert len(rows) == 13
    assert {(item.decision, item.pairs, item.stopped) for item in rows} == {("unproven", 1, "total budget")}


def test_why_it_ended_is_in_the_stored_result(noisy: Project) -> None:
    finished = noisy.finish(TWO, budget=NEXT_TO_NOTHING)
    (finished.folder / "events.jsonl").unlink()
    assert to_text(rejudge(finished.folder, (), None).result) == to_text(finished.result)
