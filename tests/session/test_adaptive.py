"""Length of measurements: interim analyses, budgets, few expensive runs, one run of exact tools, and screening."""

from __future__ import annotations

import subprocess
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import pytest

from perfflow.jobs.merge.merge import merge
from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.jobs.run.run import RunPart
from perfflow.model.errors import UserError
from perfflow.model.readings import SCHEDULES, Design
from perfflow.model.result import Benchmark
from perfflow.plan.groups import Benchmarks, Shard
from perfflow.stats.paired_test import FEW, Looks, blocks_of, look_confidence
from perfflow.store.result_file import to_text
from tests.session.project import Project, row

OF_CHOSEN = 0.8
"""Share of a benchmark's false alarms if wall time may gate in addition to CPU time."""
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


def workflow(baseline: str, candidate: str, keys: str = "") -> str:
    return f"""
stages:
  baseline:
    - id: bench
      run: ./noisy {baseline}
      candidate: {{command: ./noisy {candidate}}}
      parse: {PARSE}
      {keys}
"""


def measured(project: Project, text: str) -> Benchmark:
    return row(project.run(text), "bench", "time")


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
    assert (found.decision, found.level, found.pairs) == ("regressed", "action", LOOKS[0])


def test_a_change_near_the_threshold_takes_more_pairs_than_one_far_from_it(noisy: Project) -> None:
    found = measured(noisy, workflow("1 0.02 1", "1.12 0.02 2").replace("./noisy", "./alternating"))
    assert found.decision == "regressed"
    assert found.pairs > LOOKS[0]


def test_a_hopeless_comparison_ends_with_the_last_look(noisy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    end_after(3, monkeypatch)
    found = measured(noisy, workflow("1 1.0 1", "1 1.0 2", "budget: 10m").replace("./noisy", "./alternating"))
    assert (found.decision, found.pairs, found.stopped) == ("unproven", LOOKS[2], "last look")
    assert found.more is not None


def test_the_budget_ends_it_earlier_and_the_interval_is_still_honest(noisy: Project) -> None:
    found = measured(noisy, workflow("1 1.0", "1 1.0", "budget: 300ms"))
    assert found.decision == "unproven"
    assert 1 <= found.pairs < LOOKS[-1]


def test_what_sampling_took_is_measured_and_stored(noisy: Project) -> None:
    finished = noisy.finish(workflow("1 1.0", "1 1.0", "budget: 300ms"))
    found = row(finished.result, "bench", "time")
    assert found.seconds is not None
    assert 0 < found.seconds < 60
    assert "its budget ran out" in finished.result.reason_texts[0]
    (finished.folder / "events.jsonl").unlink()
    assert to_text(rejudge(finished.folder, (), None).result) == to_text(finished.result)


def test_asked_for_a_number_it_takes_that_number(noisy: Project) -> None:
    found = measured(noisy, workflow("1 0.003", "1.3 0.003", "runs: 17"))
    assert (found.pairs, found.confidence) == (17, 0.99)


def test_a_percentile_gets_the_samples_it_needs(noisy: Project) -> None:
    text = "targets: {bench: {time p95: <1s}}\n" + workflow("1 0.1", "1 0.1", "budget: 10m").replace(
        "      candidate: {command: ./noisy 1 0.1}\n", ""
    )
    result = noisy.run(text)
    assert result.targets[0].status == "met"
    side = row(result, "bench", "time").baseline
    assert side is not None
    assert side.n >= 72


def sides_taken(project: Project) -> list[str]:
    return ["baseline" if "baseline" in event else "candidate" for event in samples(project)]


def samples(project: Project) -> list[dict[str, Any]]:
    return [event for event in project.events() if event["event"] == "sample"]


def test_expensive_commands_are_run_a_few_times_in_random_order(
    noisy: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfflow.sampling.sampling.EXPENSIVE", 0.0)
    found = measured(noisy, workflow("1 0.003", "1.3 0.003"))
    assert (found.decision, found.level, found.stopped) == ("regressed", "action", "settled")
    assert found.gating
    assert found.baseline is not None
    assert found.candidate is not None
    assert (found.baseline.n, found.candidate.n) == (FEW, FEW)
    assert found.confidence == look_confidence(FEW, SCHEDULES[Design.FEW])
    sides = sides_taken(noisy)
    assert sorted(sides) == ["baseline"] * FEW + ["candidate"] * FEW
    assert sides != sorted(sides)


def test_what_few_runs_leave_open_gets_further_blocks(noisy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfflow.sampling.sampling.EXPENSIVE", 0.0)
    end_after(4, monkeypatch)
    found = measured(noisy, workflow("1 1.0 1", "1 1.0 2", "budget: 10m").replace("./noisy", "./alternating"))
    runs, alpha = SCHEDULES[Design.FEW][3]
    assert (found.decision, found.pairs, found.stopped) == ("unproven", runs, "last look")
    assert found.confidence == 1 - alpha
    sides = sides_taken(noisy)
    for size, end in zip(blocks_of(runs), accumulate(blocks_of(runs)), strict=True):
        block = sides[2 * (end - size) : 2 * end]
        assert block.count("baseline") == block.count("candidate") == size
    assert [event["pair"] for event in samples(noisy)] == list(range(2 * runs))


def test_no_block_is_begun_that_the_budget_does_not_hold(noisy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfflow.sampling.sampling.EXPENSIVE", 0.0)
    monkeypatch.setattr("perfflow.sampling.sampling.FEW_MORE", 10**6)
    found = measured(noisy, workflow("1 1.0 1", "1 1.0 2", "budget: 10m").replace("./noisy", "./alternating"))
    assert (found.decision, found.pairs, found.stopped) == ("unproven", FEW, "budget")


def test_what_is_exact_is_measured_twice(project: Project) -> None:
    result = project.run("""
stages:
  baseline:
    - id: count
      uses: cachegrind
      with: {command: /bin/sh -c 'echo one'}
      candidate: /bin/sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo $i; done'
""")
    for metric in ("instructions", "cache_misses"):
        found = row(result, "count", metric)
        assert found.baseline is not None
        assert found.baseline.n == 2
        assert (found.statistic, found.confidence, found.stopped) == ("value", None, "settled")
        assert found.decision == "regressed"


VARYING = """#include <stdio.h>
#include <unistd.h>
int main(void) { volatile long x = 0; for (long i = 0; i < 10000 + 977L * (getpid() % 64); i++) x += i; return 0; }
"""


def test_counts_that_do_not_repeat_are_sampled_and_raise_no_alarm(project: Project) -> None:
    source = project.write("varying.c", VARYING)
    subprocess.run(["cc", "-O1", str(source), "-o", "varying"], check=True)
    result = project.run("""
stages:
  baseline:
    - {id: count, uses: callgrind, budget: 3s, with: {command: ./varying}, candidate: ./varying ""}
""")
    found = row(result, "count", "instructions")
    assert found.decision in ("unproven", "same")
    assert found.pairs > 2
    assert found.statistic == "p50"
    assert found.confidence is not None


def test_a_profile_whose_figures_are_compared_is_taken_twice(project: Project) -> None:
    result = project.run("""
stages:
  baseline:
    - {id: bench, uses: command, runs: 2, with: {command: /bin/ls /}, candidate: /bin/ls -lR /etc/apt}
  profile:
    - {id: heap, uses: massif, benchmark: bench}
""")
    found = row(result, "bench", "heap_peak")
    assert found.baseline is not None
    assert found.baseline.n == 2
    assert (found.statistic, found.warnings) == ("value", [])


def test_one_process_measures_all_benchmarks_of_a_suite_and_what_failed_is_confirmed_alone(
    project: Project, suite: Path
) -> None:
    result = project.run(
        """
stages:
  baseline:
    - id: suite
      uses: google-benchmark
      benchmark: "core/*"
      with: {command: SUITE, filter: "/[34]$"}
      candidate: {env: {SLOWED: "1"}}
      budget: 30s
""".replace("SUITE", str(suite))
    )
    rows = {item.name: item for item in result.benchmarks if item.metric == "cpu"}
    assert set(rows) == {f"core/spin/{number}" for number in (3, 4)}
    samples = [event for event in project.events() if event["event"] == "sample"]
    assert {event.get("together") for event in samples if event["design"] == "looks" and event["pair"] < 11} == {2}
    slowed = rows["core/spin/3"]
    assert slowed.decision == "regressed"
    assert slowed.to_confirm
    assert all(item.agrees for item in slowed.confirmations)
    own = [item for item in samples if item["design"] == "confirm" and item["baseline"][0]["benchmark"] == slowed.name]
    assert {item.get("together") for item in own} == {None}
    assert {"benchmark": "core/spin/3", "outcome": "confirmed"}.items() <= result.confirmations[0].items()


def test_a_suite_can_have_one_process_for_each_benchmark(project: Project, suite: Path) -> None:
    project.run(f"""
stages:
  baseline:
    - id: suite
      uses: google-benchmark
      with: {{command: {suite}, filter: "/[0-1]$"}}
      candidate: {{env: {{SLOWED: "1"}}}}
      rounds: benchmark
      budget: 500ms
""")
    samples = [event for event in project.events() if event["event"] == "sample"]
    assert samples
    assert not any("together" in event or "many" in event for event in samples)


def test_the_part_of_a_large_suite_is_confirmed_as_the_whole_would_be(project: Project, suite: Path) -> None:
    text = f"""
stages:
  baseline:
    - id: suite
      uses: google-benchmark
      with: {{command: {suite}}}
      candidate: {{env: {{SLOWED: "1"}}}}
      rounds: benchmark
      budget: 100ms
"""
    project.run(text, part=RunPart({"suite": Benchmarks(("spin/1", "spin/3"))}, 1))
    assert all(event["many"] for event in project.events() if event["event"] == "sample")


def test_of_a_suite_that_is_shared_out_a_part_is_measured(project: Project, suite: Path) -> None:
    text = f"""
stages:
  baseline:
    - {{id: suite, uses: google-benchmark, benchmark: "core/*", budget: 100ms, with: {{command: {suite}}}}}
"""
    two = ("core/spin/1", "core/spin/2")
    parts = {"named": Benchmarks(two), "rest": Benchmarks((), two)}
    found = {
        kind: {row.name for row in project.run(text, part=RunPart({"suite": part}, 13)).benchmarks}
        for kind, part in parts.items()
    }

    assert found["named"] == set(two)
    assert found["rest"] == {f"core/spin/{number}" for number in range(13)} - found["named"]


def test_shards_of_a_suite_are_merged_and_must_list_the_same(project: Project, suite: Path) -> None:
    text = f"""
stages:
  baseline:
    - {{id: suite, uses: google-benchmark, benchmark: "core/*", budget: 100ms, with: {{command: {suite}}}}}
"""
    runs = [project.finish(text, shard=Shard(number, 14), out=project.folder / str(number)) for number in range(1, 15)]
    parts = [{row.name for row in run.result.benchmarks} for run in runs]
    every = {f"core/spin/{number}" for number in range(13)}
    assert sorted(len(names) for names in parts) == [0, *[1] * 13]
    assert {run.result.verdict for run in runs} == {"pass"}
    folders = [str(run.folder) for run in runs]
    merged = merge(project.folder, folders, project.folder / "merged")
    assert (merged.result.verdict, {row.name for row in merged.result.benchmarks}) == ("pass", every)
    events = runs[3].folder / "events.jsonl"
    events.write_text(events.read_text().replace('"core/spin/7",', ""))
    with pytest.raises(UserError, match="list different benchmarks: core/spin/7"):
        merge(project.folder, folders, project.folder / "other")


def test_a_suite_that_lists_nothing_is_named(project: Project, tmp_path: Path) -> None:
    project.write("empty", "#!/bin/sh\nexit 0\n", executable=True)
    result = project.run("""
stages:
  baseline:
    - {id: suite, uses: google-benchmark, with: {command: ./empty}}
""")
    assert result.verdict == "error"
    assert any("lists no benchmark" in reason for reason in result.reason_texts)
