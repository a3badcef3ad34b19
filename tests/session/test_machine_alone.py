"""One measurement at a time on the machine: nested runs, waiting, timeouts, and profiles."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perfflow.execute.deadline import Waits
from perfflow.jobs.compare.compare_stored import Question, as_run
from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.jobs.run.run import RunRequest, run
from perfflow.machine import noise
from perfflow.machine.facts import facts
from perfflow.machine.lock import machine_alone
from perfflow.machine.noise import MachineNoise, NoiseClass, NoiseSelfTest
from perfflow.machine.noise_findings import FindingState, NoiseFinding
from perfflow.model.result import Result
from perfflow.report.markdown import render
from perfflow.sampling.stop_rule import BUDGET, StopRule
from perfflow.session import bench
from perfflow.session.perform import result_of_events
from perfflow.store.history.durations import RunKind, step_durations
from perfflow.store.result_file import to_text
from tests.session.project import Project, both, flow, row, step

BENCH = "stages: {baseline: [{id: bench, uses: command, runs: 1, warmup: 0, with: {command: 'true'}}]}"


@contextmanager
def held_elsewhere(who: str) -> Iterator[threading.Event]:
    """Another holder of the machine, until the event is set."""
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with machine_alone(who, 10, lambda _: None):
            holding.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(20)
    try:
        yield release
    finally:
        release.set()
        thread.join()


def test_a_busy_machine_is_waited_for_apart_from_what_a_step_takes(project: Project) -> None:
    with held_elsewhere("nightly, step decode") as release:
        project.told.when_waiting = lambda: threading.Timer(1.5, release.set).start()
        began = time.monotonic()
        result = project.run(f"{BENCH[:-1]}, verify: [{{id: check, run: 'true'}}]}}")
        whole = time.monotonic() - began
    assert result.verdict == "pass"
    (queue,) = project.told.waited_for
    assert queue.place == 1
    assert queue.holder.startswith("nightly, step decode (")
    assert f"pid {os.getpid()}, since " in queue.holder
    bench = step(result, "bench")
    assert bench.waited >= 1.5
    assert bench.waited + bench.seconds <= whole, "what it took is not the waiting"
    assert step(result, "check").waited == 0
    waits = [event for event in project.events() if event["event"] == "waiting"]
    assert [(event["step"], event["place"], event["holder"]) for event in waits] == [("bench", 1, queue.holder)]
    (ended,) = [event for event in project.events() if event["event"] == "step" and event["id"] == "bench"]
    assert (ended["waited"], ended["seconds"]) == (bench.waited, bench.seconds)
    took = step_durations(project.folder, RunKind("flow", {}, str(result.machine["identity"])))
    assert took["bench"].seconds == bench.seconds


def test_a_stopwatch_stands_still_while_a_step_waits() -> None:
    now = [0.0]
    waits = Waits(lambda: now[0])
    worked = waits.stopwatch()
    for seconds, act in ((5, waits.begin), (100, waits.begin), (100, waits.end), (2, waits.end)):
        now[0] += seconds
        act()
    assert (worked(), waits.seconds) == (7, 200)


@pytest.mark.parametrize(
    "bench",
    [
        "{id: bench, uses: command, with: {command: ./none}}",
        "{id: bench, uses: command, with: {command: 'true'}, candidate: ./none}",
        "{id: bench, uses: command, with: {command: 'true ${{ steps.make.outputs.none }}'}}",
    ],
)
def test_what_cannot_be_started_is_found_out_before_the_machine_is_waited_for(project: Project, bench: str) -> None:
    with held_elsewhere("nightly, step decode"):
        result = project.run(f"stages: {{build: [{{id: make, run: 'true'}}], baseline: [{bench}]}}", lock_timeout=60)
    assert project.told.waited_for == []
    assert result.verdict == "error"
    reason = step(result, "bench").reason
    assert reason == "./none: not found or not executable" or "none" in reason


def test_a_machine_that_stays_busy_is_an_error_that_names_the_holder(project: Project) -> None:
    text = BENCH.replace("{baseline:", "{build: [{id: make, run: 'true'}], baseline:")
    with held_elsewhere("nightly, step decode"):
        result = project.run(text, lock_timeout=0.3)
    assert result.verdict == "error"
    bench = step(result, "bench")
    assert bench.reason.startswith("the machine is held by nightly, step decode")
    assert bench.reason.endswith("wait longer with --lock-timeout")
    assert bench.waited >= 0.2
    assert step(result, "make").status == "done", "what does not measure needs no machine"


def test_a_lock_file_that_cannot_be_opened_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(project.folder / "none" / "lock"))
    result = project.run(BENCH)
    assert "cannot open the measuring lock" in step(result, "bench").reason
    assert result.verdict == "error"


def test_a_perfflow_inside_a_measured_step_does_not_wait_for_its_own_parent(project: Project) -> None:
    project.write("inner.yaml", f"perfflow: 1\n{BENCH}\n")
    words = [sys.executable, "-m", "perfflow", "run", "inner.yaml", "--out", "inner", "--lock-timeout", "1s"]
    outer = f"{{id: outer, uses: command, runs: 1, warmup: 0, with: {{command: {json.dumps(words)}}}}}"
    result = project.run(flow(f'env: {{PYTHONPATH: "{os.pathsep.join(sys.path)}"}}', baseline=outer))
    assert step(result, "outer").status == "done", step(result, "outer").reason
    assert json.loads((project.folder / "inner" / "result.json").read_text())["verdict"] == "pass"


def test_latest_is_a_link_within_its_folder(project: Project) -> None:
    folder = project.finish(BENCH).folder
    assert (folder.parent / "latest").readlink() == Path(folder.name)


C_PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int n, char **words) {
  long size = atol(words[1]);
  char *block = malloc(size);
  memset(block, 1, size);
  printf("%d\n", block[size / 2]);
  return 0;
}
"""


def test_a_profiler_runs_what_measures_its_benchmark_on_both_sides(project: Project) -> None:
    project.write("grow.c", C_PROGRAM)
    sides = "with: {command: ./grow 300000}, candidate: ./grow 100000"
    text = flow(
        "targets: {grow: {heap_peak: <200KB}}",
        build="{id: cc, run: cc -g -o grow grow.c}",
        baseline=f"{{id: bench, uses: command, benchmark: grow, runs: 1, warmup: 0, {sides}}}",
        profile="{id: heap, uses: massif, benchmark: grow}",
        verify="{id: same, uses: same-output, benchmark: grow}",
    )
    result = project.run(text)
    heap = row(result, "grow", "heap_peak")
    assert [side.value for side in both(heap)] == [pytest.approx(size, rel=0.1) for size in (300_000, 100_000)]
    assert (heap.decision, heap.gating, result.targets[0].status) == ("improved", True, "met")
    assert {spot.tree for spot in result.hotspots if spot.location == "main"} == {"baseline", "candidate"}
    assert result.verification[0].detail == "3 outputs the same as the baseline's"
    assert row(result, "grow", "time").pairs == 1


def test_what_two_steps_measure_is_an_error_that_names_both(project: Project) -> None:
    # The names that they report are only known after the run.
    parse = "parse: {regex: '(?P<benchmark>b) ms=(?P<time>.*)', units: {time: ms}}"
    one, two = (
        f"{{id: {name}, run: echo b ms={ms}, runs: 1, warmup: 0, benchmark: '*', {parse}}}"
        for name, ms in (("one", 1), ("two", 1.5))
    )
    finished = project.finish(flow(baseline=[one, two]))
    result = finished.result
    assert result.verdict == "error"
    said = "measured twice: `time` of `b` was already measured by step `one`"
    assert result.reason_texts == [f"step two: {said}; remove one of them, or give it another `benchmark`"]
    assert rejudge(finished.folder / "result.json", (), None).result == result


TWO_STEPS = flow(
    baseline=[f'{{id: {name}, uses: command, runs: 2, with: {{command: "true"}}}}' for name in ("one", "two")]
)


SLOW = "slow runs of the same work take 2.00x as long as usual; it has a core 60% of the time"
STAMP = f"measured on a hostile machine: {SLOW}"
HOSTILE = MachineNoise(
    NoiseSelfTest(2.0, 0.6),
    (NoiseFinding("steal", "30.0%", FindingState.BAD), NoiseFinding("swap", "unknown", FindingState.UNKNOWN)),
)
BUSY = MachineNoise(NoiseSelfTest(1.2, 0.9), ())


def environment(result: Result) -> str:
    return next(line for line in render(result).splitlines() if line.startswith("- noise:"))


def test_the_machine_is_looked_at_once_before_the_first_measuring(project: Project) -> None:
    result = project.run(TWO_STEPS)
    names = [event["event"] for event in project.events()]
    assert names.count("noise") == 1
    assert names.index("noise") < names.index("sample")
    seen = result.machine["noise"]
    assert seen["class"] in list(NoiseClass)
    assert seen["self_test"]["spread"] >= 1
    assert {item["name"] for item in seen["findings"]} >= {"other load", "steal"}
    assert seen["class"] in environment(result)


@pytest.mark.parametrize(
    "steps",
    [
        "build: [{id: make, run: 'true'}]",
        "baseline: [{id: count, uses: cachegrind, with: {command: /bin/true}}]",
        "profile: [{id: calls, uses: callgrind, with: {command: /bin/true}}]",
    ],
)
def test_it_is_not_looked_at_where_nothing_has_noise(project: Project, steps: str) -> None:
    result = project.run(f"stages: {{{steps}}}")
    assert not [event for event in project.events() if event["event"] == "noise"]
    assert "noise" not in result.machine
    assert "- noise:" not in render(result)


def test_a_quick_comparison_does_not_wait_for_it(project: Project) -> None:
    question = Question("true", "true", runs=2)
    found = run(*as_run(question, RunRequest(seed=1, out=Path("out"))), project.told)
    assert "noise" not in found.result.machine


def test_a_hostile_machine_is_stamped_once_and_judged_again_with_the_same_bytes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise, "quick_check", lambda: HOSTILE)
    finished = project.finish(TWO_STEPS)
    assert finished.result.machine["identity"] == facts()["identity"], "the class is no part of it"
    warnings = step(finished.result, "one").warnings
    assert [text for text in warnings if text.startswith(f"{STAMP}; steal 30.0%")] == warnings
    assert step(finished.result, "two").warnings == []
    text = render(finished.result).replace("\\", "")
    assert f"- noise: {STAMP}; steal 30.0%; unknown: swap" in text
    assert f"step one: {STAMP}" in text
    monkeypatch.setattr(noise, "quick_check", lambda: BUSY)
    before = [(finished.folder / name).read_bytes() for name in ("result.json", "report.md")]
    assert to_text(result_of_events(finished.folder)) == to_text(finished.result)
    assert [(finished.folder / name).read_bytes() for name in ("result.json", "report.md")] == before


def test_a_busy_machine_is_said_to_be_busy_without_a_warning(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "quick_check", lambda: BUSY)
    result = project.run(TWO_STEPS)
    assert environment(result).startswith("- noise: busy: slow runs of the same work take 1.20x as long")
    assert step(result, "one").warnings == []


@pytest.mark.parametrize(
    ("seen", "written", "budget"),
    [(HOSTILE, "", 2 * BUDGET), (HOSTILE, ", budget: 3s", 3.0), (BUSY, "", BUDGET)],
)
def test_a_hostile_machine_gets_twice_the_budget_unless_the_author_wrote_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, seen: MachineNoise, written: str, budget: float
) -> None:
    given = []

    class Watched(StopRule):
        def __init__(self, criteria: Any, planned: Any, budget: float, *others: Any, **more: Any) -> None:
            given.append(budget)
            super().__init__(criteria, planned, budget, *others, **more)

    monkeypatch.setattr(bench, "StopRule", Watched)
    monkeypatch.setattr(noise, "quick_check", lambda: seen)
    project.run(f"stages: {{baseline: [{{id: one, uses: command, with: {{command: 'true'}}{written}}}]}}")
    assert given == [budget]
