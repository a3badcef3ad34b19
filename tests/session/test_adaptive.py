"""Length of measurements: interim analyses, budgets, few expensive runs, one run of exact tools, and screening."""

from __future__ import annotations

import math
import subprocess
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import pytest

from perfflow.execute.deadline import Deadline, TotalBudget
from perfflow.jobs.merge.merge import merge
from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.jobs.run.run import RunPart
from perfflow.model.errors import UserError
from perfflow.model.readings import SCHEDULES, Design
from perfflow.model.result import Benchmark, Result
from perfflow.plan.groups import Benchmarks, Shard
from perfflow.stats.paired_test import FEW, Looks, blocks_of, look_confidence
from perfflow.store.result_file import to_text
from tests.session.project import Project, both, flow, row, step

LOOKS = [pairs for pairs, _ in SCHEDULES[Design.LOOKS]]

# The program prints times of its own with known noise, whatever load the machine has.
# In awk, which starts ten times as fast as Python, because many hundreds of processes run.
NOISY = r"""#!/bin/sh
exec awk -v factor="$1" -v spread="$2" -v seed="$(od -An -N3 -tu4 /dev/urandom)" 'BEGIN {
  srand(seed + 0); rand()
  noise = sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand())
  printf "time %.12g us\n", 1000 * factor * exp(spread * noise)
}'
"""
# Runs of values below and above the mean, so that chance proves nothing.
ALTERNATING = r"""#!/bin/sh
count=count-$3
number=0
[ ! -e "$count" ] || read -r number <"$count"
echo $((number + 1)) >"$count"
exec awk -v factor="$1" -v spread="$2" -v turn=$((number / $3 % 2)) 'BEGIN {
  printf "time %.12g us\n", 1000 * factor * exp(turn ? spread : -spread)
}'
"""
PARSE = '{regex: "time (?P<time>[0-9.]+)", units: {time: us}}'


@pytest.fixture
def noisy(project: Project) -> Project:
    project.write("noisy", NOISY, executable=True)
    project.write("alternating", ALTERNATING, executable=True)
    return project


@pytest.fixture
def expensive(noisy: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Every program counts as an expensive one."""
    monkeypatch.setattr("perfflow.sampling.sampling.EXPENSIVE", 0.0)
    return noisy


def workflow(baseline: str, candidate: str, keys: str = "", program: str = "noisy") -> str:
    step = f"run: ./{program} {baseline}, candidate: {{command: ./{program} {candidate}}}, parse: {PARSE}"
    return flow(baseline=f"{{id: bench, {step}{keys and ', '}{keys}}}")


def hopeless(keys: str = "budget: 10m") -> str:
    return workflow("1 1.0 1", "1 1.0 2", keys, "alternating")


def measured(project: Project, text: str) -> Benchmark:
    return row(project.run(text), "bench", "time")


def outcome(found: Benchmark) -> tuple[object, ...]:
    return found.decision, found.pairs, found.stopped


def end_after(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this interim analysis the last one, because all of them would take minutes."""
    for design in (Design.LOOKS, Design.FEW):
        monkeypatch.setitem(cast("dict[str, Looks]", SCHEDULES), design, SCHEDULES[design][:looks])


def test_identical_programs_are_the_same_at_a_look(noisy: Project) -> None:
    found = measured(noisy, workflow("1 0.003", "1 0.003"))
    assert found.decision == "same"
    assert found.pairs in LOOKS
    assert found.confidence == look_confidence(found.pairs, SCHEDULES[Design.LOOKS])


def test_a_large_regression_is_proven_at_the_first_look(noisy: Project) -> None:
    found = measured(noisy, workflow("1 0.003", "1.3 0.003"))
    assert (outcome(found), found.level) == (("regressed", LOOKS[0], "settled"), "action")


def test_a_change_near_the_threshold_takes_more_pairs_than_one_far_from_it(noisy: Project) -> None:
    found = measured(noisy, workflow("1 0.02 1", "1.12 0.02 2", program="alternating"))
    assert found.decision == "regressed"
    assert found.pairs > LOOKS[0]


def test_a_hopeless_comparison_ends_with_the_last_look(noisy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    end_after(3, monkeypatch)
    found = measured(noisy, hopeless())
    assert outcome(found) == ("unproven", LOOKS[2], "last look")
    assert found.more is not None


def test_the_budget_ends_it_earlier_and_what_it_took_is_stored(noisy: Project) -> None:
    finished = noisy.finish(workflow("1 1.0", "1 1.0", "budget: 300ms"))
    found = row(finished.result, "bench", "time")
    assert found.decision == "unproven"
    assert 1 <= found.pairs < LOOKS[-1]
    assert found.seconds is not None
    assert 0 < found.seconds < 60
    assert "its budget ran out" in finished.result.reason_texts[0]
    (finished.folder / "events.jsonl").unlink()
    assert to_text(rejudge(finished.folder, (), None).result) == to_text(finished.result)


def test_asked_for_a_number_it_takes_that_number(noisy: Project) -> None:
    found = measured(noisy, workflow("1 0.003", "1.3 0.003", "runs: 17"))
    assert (found.pairs, found.confidence) == (17, 0.99)


def test_a_percentile_gets_the_samples_it_needs(noisy: Project) -> None:
    step = f"{{id: bench, run: ./noisy 1 0.1, parse: {PARSE}, budget: 10m}}"
    result = noisy.run(flow("targets: {bench: {time p95: <1s}}", baseline=step))
    assert result.targets[0].status == "met"
    side = row(result, "bench", "time").baseline
    assert side
    assert side.n >= 72


def sides_taken(project: Project) -> list[str]:
    return ["baseline" if "baseline" in event else "candidate" for event in samples(project)]


def samples(project: Project) -> list[dict[str, Any]]:
    return [event for event in project.events() if event["event"] == "sample"]


def test_expensive_commands_are_run_a_few_times_in_random_order(expensive: Project) -> None:
    found = measured(expensive, workflow("1 0.003", "1.3 0.003"))
    assert (outcome(found), found.level) == (("regressed", FEW, "settled"), "action")
    assert found.gating
    assert [side.n for side in both(found)] == [FEW, FEW]
    assert found.confidence == look_confidence(FEW, SCHEDULES[Design.FEW])
    sides = sides_taken(expensive)
    assert sorted(sides) == ["baseline"] * FEW + ["candidate"] * FEW
    assert sides != sorted(sides)


def test_what_few_runs_leave_open_gets_further_blocks(expensive: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    end_after(4, monkeypatch)
    found = measured(expensive, hopeless())
    runs, alpha = SCHEDULES[Design.FEW][3]
    assert outcome(found) == ("unproven", runs, "last look")
    assert found.confidence == 1 - alpha
    sides = sides_taken(expensive)
    for size, end in zip(blocks_of(runs), accumulate(blocks_of(runs)), strict=True):
        block = sides[2 * (end - size) : 2 * end]
        assert block.count("baseline") == block.count("candidate") == size
    assert [event["pair"] for event in samples(expensive)] == list(range(2 * runs))


def test_no_block_is_begun_that_the_budget_does_not_hold(expensive: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfflow.sampling.sampling.FEW_MORE", 10**6)
    assert outcome(measured(expensive, hopeless())) == ("unproven", FEW, "budget")


def test_what_is_exact_is_measured_twice(project: Project) -> None:
    candidate = "/bin/sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo $i; done'"
    command = f"with: {{command: /bin/sh -c 'echo one'}}, candidate: \"{candidate}\""
    result = project.run(flow(baseline=f"{{id: count, uses: cachegrind, {command}}}"))
    for metric in ("instructions", "cache_misses"):
        found = row(result, "count", metric)
        assert both(found)[0].n == 2
        assert (found.statistic, found.confidence, found.stopped) == ("value", None, "settled")
        assert found.decision == "regressed"


VARYING = """#include <stdio.h>
#include <unistd.h>
int main(void) { volatile long x = 0; for (long i = 0; i < 10000 + 977L * (getpid() % 64); i++) x += i; return 0; }
"""


@pytest.mark.long  # samples a suite several times
def test_counts_that_do_not_repeat_are_sampled_and_raise_no_alarm(project: Project) -> None:
    source = project.write("varying.c", VARYING)
    subprocess.run(["cc", "-O1", str(source), "-o", "varying"], check=True)
    step = '{id: count, uses: callgrind, budget: 3s, with: {command: ./varying}, candidate: ./varying ""}'
    found = row(project.run(flow(baseline=step)), "count", "instructions")
    assert found.decision in ("unproven", "same")
    assert found.pairs > 2
    assert found.statistic == "p50"
    assert found.confidence is not None


@pytest.mark.long  # counts twice, as exact figures in this file
def test_a_profile_whose_figures_are_compared_is_taken_twice(project: Project) -> None:
    step = "{id: bench, uses: command, runs: 2, with: {command: /bin/ls /}, candidate: /bin/ls -lR /etc/apt}"
    result = project.run(flow(baseline=step, profile="{id: heap, uses: massif, benchmark: bench}"))
    found = row(result, "bench", "heap_peak")
    assert both(found)[0].n == 2
    assert (found.statistic, found.warnings) == ("value", [])


def google(suite: Path, keys: str, filter: str = "") -> str:
    """Return a workflow that measures the Google Benchmark suite."""
    return flow(baseline=f"{{id: suite, uses: google-benchmark, with: {{command: {suite}{filter}}}, {keys}}}")


SLOWED = 'candidate: {env: {SLOWED: "1"}}'
SHARED_OUT = 'benchmark: "core/*", budget: 100ms'


@pytest.mark.long  # samples a suite several times
def test_one_process_measures_all_benchmarks_of_a_suite_and_what_failed_is_confirmed_alone(
    project: Project, suite: Path
) -> None:
    result = project.run(google(suite, f'benchmark: "core/*", {SLOWED}, budget: 30s', ', filter: "/[34]$"'))
    rows = {item.name: item for item in result.benchmarks if item.metric == "cpu"}
    assert set(rows) == {f"core/spin/{number}" for number in (3, 4)}
    taken = samples(project)
    assert {event.get("together") for event in taken if event["design"] == "looks" and event["pair"] < 11} == {2}
    slowed = rows["core/spin/3"]
    assert slowed.decision == "regressed"
    assert slowed.to_confirm
    assert all(item.agrees for item in slowed.confirmations)
    own = [item for item in taken if item["design"] == "confirm" and item["baseline"][0]["benchmark"] == slowed.name]
    assert {item.get("together") for item in own} == {None}
    assert {"benchmark": "core/spin/3", "outcome": "confirmed"}.items() <= result.confirmations[0].items()


def test_a_suite_can_have_one_process_for_each_benchmark(project: Project, suite: Path) -> None:
    project.run(google(suite, f"{SLOWED}, rounds: benchmark, budget: 500ms", ', filter: "/[0-1]$"'))
    assert samples(project)
    assert not any("together" in event or "many" in event for event in samples(project))


@pytest.mark.long  # as the part of a smaller suite
def test_the_part_of_a_large_suite_is_confirmed_as_the_whole_would_be(project: Project, suite: Path) -> None:
    text = google(suite, f"{SLOWED}, rounds: benchmark, budget: 100ms")
    project.run(text, part=RunPart({"suite": Benchmarks(("spin/1", "spin/3"))}, 1))
    assert all(event["many"] for event in samples(project))


def test_of_a_suite_that_is_shared_out_a_part_is_measured(project: Project, suite: Path) -> None:
    two = ("core/spin/1", "core/spin/2")
    every = {f"core/spin/{number}" for number in range(13)}
    for part, expected in ((Benchmarks(two), set(two)), (Benchmarks((), two), every - set(two))):
        result = project.run(google(suite, SHARED_OUT), part=RunPart({"suite": part}, 13))
        assert {item.name for item in result.benchmarks} == expected


@pytest.mark.long  # samples a suite several times
def test_shards_of_a_suite_are_merged_and_must_list_the_same(project: Project, suite: Path) -> None:
    runs = [
        project.finish(google(suite, SHARED_OUT), shard=Shard(number, 14), out=project.folder / str(number))
        for number in range(1, 15)
    ]
    parts = [{row.name for row in run.result.benchmarks} for run in runs]
    assert sorted(len(names) for names in parts) == [0, *[1] * 13]
    assert {run.result.verdict for run in runs} == {"pass"}
    folders = [str(run.folder) for run in runs]
    merged = merge(project.folder, folders, project.folder / "merged")
    assert merged.result.verdict == "pass"
    assert {row.name for row in merged.result.benchmarks} == {f"core/spin/{number}" for number in range(13)}
    events = runs[3].folder / "events.jsonl"
    events.write_text(events.read_text().replace('"core/spin/7",', ""))
    with pytest.raises(UserError, match="list different benchmarks: core/spin/7"):
        merge(project.folder, folders, project.folder / "other")


def test_a_suite_that_lists_nothing_is_named(project: Project) -> None:
    result = project.run(google(project.write("empty", "#!/bin/sh\nexit 0\n", executable=True), "runs: 1"))
    assert result.verdict == "error"
    assert any("lists no benchmark" in reason for reason in result.reason_texts)


class Clock:
    now = 100.0

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


def bench(result: Result, name: str = "bench") -> Benchmark:
    return row(result, name, "time")


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


def sleeping(build: float, measured: float, check: float) -> str:
    """Return a workflow whose steps sleep for so many seconds."""
    return flow(
        build=f"{{id: compile, run: sleep {build}}}",
        baseline=f"{{id: one, run: sleep {measured}, candidate: sleep 0.01}}",
        verify=f"{{id: tests, run: sleep {check}}}",
    )


@pytest.mark.long  # as a build that a time limit ends
def test_a_build_that_takes_all_of_it_is_ended_and_nothing_passes(project: Project) -> None:
    text = sleeping(60, 0.01, 0) + '    - {id: clean, run: touch cleaned, if: "always()"}\n'
    result = project.run(text, budget=2)
    assert result.verdict == "error"
    assert (step(result, "compile").status, step(result, "compile").out_of_time) == ("timeout", True)
    assert seconds_of(result) < 30
    told = next(reason for reason in result.reason_texts if reason.startswith("the budget of 2s ran out: builds "))
    assert told.endswith("keep the build folders between runs, or give --budget 1m")
    assert (project.folder / "cleaned").exists(), "a step that cleans up still runs"


@pytest.mark.long  # ends as what is undecided, in this file
def test_a_process_that_outlasts_it_is_ended_and_its_benchmark_is_not_measured(project: Project) -> None:
    result = project.run(sleeping(0, 60, 0), budget=3)
    (found,) = result.benchmarks
    assert (found.decision, found.level, found.gating, found.stopped) == ("not measured", None, True, "total budget")
    assert result.verdict == "error"
    assert "not measured: 1 benchmark before the time was over: one" in result.reason_texts
    assert any(reason.startswith("the budget of 3s ran out: measuring ") for reason in result.reason_texts)
    assert seconds_of(result) < 30


@pytest.mark.long  # waits for what the budget leaves
def test_a_check_without_time_is_no_pass(project: Project) -> None:
    result = project.run(sleeping(0, 0.01, 60), budget=10)
    assert result.benchmarks[0].baseline is not None
    assert result.verdict == "error"
    assert step(result, "tests").out_of_time


@pytest.mark.parametrize(
    ("candidate", "keys", "stopped", "pairs"),
    [
        ("1.3 0.003", "", "settled", LOOKS[0]),
        ("1 1.0", "", "last look", LOOKS[1]),
        # The larger of two budgets is not the one that ended it.
        ("1 1.0", "budget: 1ms", "budget", FEW),
        ("1 1.0", "runs: 7", "", 7),
    ],
)
def test_why_measuring_ended(
    noisy: Project, monkeypatch: pytest.MonkeyPatch, candidate: str, keys: str, stopped: str, pairs: int
) -> None:
    end_after(2, monkeypatch)
    result = noisy.run(workflow(candidate.replace("1.3", "1"), candidate, keys), budget=1000)
    assert (bench(result).stopped, bench(result).pairs) == (stopped, pairs)
    assert any("its budget ran out" in text for text in result.reason_texts) == (stopped == "budget")


COMPARED = f"run: ./noisy 1 1.0, candidate: {{command: ./noisy 1 1.0}}, parse: {PARSE}"
SEVERAL = flow(
    baseline=[
        f"{{id: one, {COMPARED}}}",
        f"{{id: two, {COMPARED}}}",
        f"{{id: fixed, {COMPARED}, runs: 50}}",
        f"{{id: alone, run: ./noisy 1 1.0, parse: {PARSE}}}",
    ]
)


def test_what_has_not_had_its_turn_is_not_measured(noisy: Project) -> None:
    # Too short for any program.
    result = noisy.run(SEVERAL, budget=0.001)
    assert result.verdict == "error"
    assert not any(item.decision == "unproven" for item in result.benchmarks)


def test_few_runs_that_took_longer_than_the_step_asked_for_say_so(expensive: Project) -> None:
    result = expensive.run(workflow("1 0.003", "1.3 0.003", "budget: 1ms"))
    assert bench(result).decision == "regressed"
    assert any("exceeded the budget of 1.00 ms" in text for text in step(result, "bench").warnings)


@pytest.mark.long  # ends as what is undecided, and reads the file
def test_why_it_ended_is_in_the_stored_result(noisy: Project) -> None:
    finished = noisy.finish(SEVERAL, budget=6)
    (finished.folder / "events.jsonl").unlink()
    assert to_text(rejudge(finished.folder, (), None).result) == to_text(finished.result)
