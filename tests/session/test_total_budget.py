"""The budget of a whole run: how steps share it, and the report when it ends the sampling."""

from __future__ import annotations

import math

import pytest

from perfflow.execute.deadline import Deadline
from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.model.readings import SCHEDULES, Design
from perfflow.model.result import Benchmark, Result
from perfflow.session.progress import TotalBudget
from perfflow.stats.paired_test import FEW
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


def total(seconds: float, steps: list[str], clock: Clock, kept: float = 0.0) -> TotalBudget:
    return TotalBudget(Deadline(seconds, clock=clock), steps, clock, kept)


def shared(budget: TotalBudget, clock: Clock, name: str, benchmarks: int, takes: float) -> float:
    """Return the seconds that a step may use; it uses ``takes`` of them."""
    seconds = budget.ends(name, benchmarks) - clock.now
    clock.now += takes
    return seconds


def test_steps_share_by_their_benchmarks_and_what_is_left_flows_on() -> None:
    clock = Clock()
    budget = total(60, ["a", "b", "c"], clock)
    assert shared(budget, clock, "a", 1, takes=5) == pytest.approx(20)
    assert shared(budget, clock, "b", 10, takes=50) == pytest.approx(55 * 10 / 11)
    assert shared(budget, clock, "c", 1, takes=9) == pytest.approx(5)
    assert shared(budget, clock, "d", 1, takes=0) == 0


def test_a_later_suite_with_known_benchmarks_keeps_its_share() -> None:
    clock = Clock()
    budget = total(60, ["a", "b", "c"], clock)
    assert budget.ends("a", 10, {"a": 10, "b": 19}) - clock.now == pytest.approx(60 * 10 / (10 + 19 + 1))


def test_benchmarks_share_the_whole_time_only_if_there_is_a_limit() -> None:
    assert TotalBudget(Deadline(60), whole=True).whole
    assert not TotalBudget(Deadline(60)).whole
    assert not TotalBudget(whole=True).whole


def test_nothing_is_kept_for_a_step_that_will_not_measure() -> None:
    clock = Clock()
    budget = total(60, ["a", "b"], clock)
    budget.passed("b")
    assert shared(budget, clock, "a", 1, takes=0) == 60


def test_the_time_of_builds_and_checks_counts() -> None:
    clock = Clock()
    budget = total(60, ["a"], clock, kept=6)
    clock.now += 20
    assert shared(budget, clock, "a", 1, takes=0) == pytest.approx(34)


def test_waiting_for_the_machine_does_not_count() -> None:
    clock = Clock()
    deadline = Deadline(60, lambda: 15.0, clock)
    clock.now += 20
    assert deadline.left == pytest.approx(55)
    clock.now += 100
    assert deadline.is_over


def test_without_a_limit_there_is_no_end() -> None:
    assert shared(TotalBudget(), Clock(), "a", 1, takes=1e9) == math.inf


@pytest.fixture
def noisy(project: Project) -> Project:
    project.write("noisy", NOISY, executable=True)
    return project


def bench(result: Result) -> Benchmark:
    return row(result, "bench", "time")


def test_it_ends_what_is_undecided_and_says_so(noisy: Project) -> None:
    result = noisy.run(workflow("1 1.0", "1 1.0", "budget: 1h"), budget=6)
    found = bench(result)
    assert (found.decision, found.stopped) == ("unproven", "total budget")
    assert 1 <= found.pairs < LOOKS[-1]
    assert result.verdict == "unproven"
    assert "the run's total budget ran out" in result.reason_texts[0]
    assert result.run.budget == 6


def seconds_of(result: Result) -> float:
    return sum(item.seconds for item in result.steps)


SLEEPS = """
stages:
  build:
    - {id: compile, run: sleep %s}
  baseline:
    - {id: one, run: sleep %s, candidate: sleep 0.01}
  verify:
    - {id: tests, run: sleep %s}
"""


def test_a_build_that_takes_all_of_it_is_ended_and_nothing_passes(project: Project) -> None:
    result = project.run(SLEEPS % (60, 0.01, 0), budget=2)
    assert result.verdict == "error"
    assert (step(result, "compile").status, step(result, "compile").out_of_time) == ("timeout", True)
    assert seconds_of(result) < 30
    told = next(reason for reason in result.reason_texts if reason.startswith("the budget of 2s ran out: builds "))
    assert told.endswith("keep the build folders between runs, or give --budget 1m")


def test_a_process_that_outlasts_it_is_ended_and_its_benchmark_is_not_measured(project: Project) -> None:
    result = project.run(SLEEPS % (0, 60, 0), budget=3)
    found = bench_of(result, "one")
    assert (found.decision, found.level, found.gating, found.stopped) == ("not measured", None, True, "total budget")
    assert result.verdict == "error"
    assert "not measured: 1 benchmark before the time was over: one" in result.reason_texts
    assert any(reason.startswith("the budget of 3s ran out: measuring ") for reason in result.reason_texts)
    assert seconds_of(result) < 30


def test_a_check_without_time_is_no_pass(project: Project) -> None:
    result = project.run(SLEEPS % (0, 0.01, 60), budget=10)
    assert bench_of(result, "one").baseline is not None
    assert result.verdict == "error"
    assert step(result, "tests").out_of_time


def test_a_step_that_cleans_up_still_runs(project: Project) -> None:
    flow = SLEEPS % (60, 0.01, 0) + '    - {id: clean, run: touch cleaned, if: "always()"}\n'
    assert project.run(flow, budget=1).verdict == "error"
    assert (project.folder / "cleaned").exists()


def bench_of(result: Result, name: str) -> Benchmark:
    return next(item for item in result.benchmarks if item.name == name)


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
    assert any("its budget ran out" in text for text in result.reason_texts) == (stopped == "budget")


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


def test_what_has_not_had_its_turn_is_not_measured(noisy: Project) -> None:
    result = noisy.run(TWO, budget=NEXT_TO_NOTHING)
    assert result.verdict == "error"
    assert not any(item.decision == "unproven" for item in result.benchmarks)


def test_few_runs_that_took_longer_than_the_step_asked_for_say_so(
    noisy: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfflow.sampling.sampling.EXPENSIVE", 0.0)
    result = noisy.run(workflow("1 0.003", "1.3 0.003", "budget: 1ms"))
    assert bench(result).decision == "regressed"
    assert any("exceeded the budget of 1.00 ms" in text for text in step(result, "bench").warnings)


def test_why_it_ended_is_in_the_stored_result(noisy: Project) -> None:
    finished = noisy.finish(TWO, budget=6)
    (finished.folder / "events.jsonl").unlink()
    assert to_text(rejudge(finished.folder, (), None).result) == to_text(finished.result)
