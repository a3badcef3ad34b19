"""One measurement at a time on the machine: nested runs, waiting, timeouts, and profiles."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.machine.lock import machine_alone
from perfflow.model.errors import UserError
from perfflow.session.progress import Waits
from perfflow.store.history.durations import RunKind, step_durations
from tests.session.project import Project, row, step

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


def after(seconds: float, release: threading.Event) -> Callable[[], None]:
    """Release the machine this long after a waiting run is reported."""
    return lambda: threading.Timer(seconds, release.set).start()


def test_a_busy_machine_is_waited_for_and_its_holder_named(project: Project) -> None:
    with held_elsewhere("nightly, step decode") as release:
        project.told.when_waiting = release.set
        result = project.run(BENCH)
    assert result.verdict == "pass"
    (queue,) = project.told.waited_for
    assert queue.place == 1
    assert queue.holder.startswith("nightly, step decode (")
    assert f"pid {os.getpid()}, since " in queue.holder


def test_waiting_is_apart_from_what_a_step_takes(project: Project) -> None:
    with held_elsewhere("nightly, step decode") as release:
        project.told.when_waiting = after(1.5, release)
        began = time.monotonic()
        result = project.run(f"{BENCH[:-1]}, verify: [{{id: check, run: 'true'}}]}}")
        whole = time.monotonic() - began
    bench = step(result, "bench")
    assert bench.waited >= 1.5
    assert bench.waited + bench.seconds <= whole, "what it took is not the waiting"
    assert step(result, "check").waited == 0
    waits = [event for event in project.events() if event["event"] == "waiting"]
    assert [(event["step"], event["place"]) for event in waits] == [("bench", 1)]
    assert waits[0]["holder"].startswith("nightly, step decode (")
    (ended,) = [event for event in project.events() if event["event"] == "step" and event["id"] == "bench"]
    assert (ended["waited"], ended["seconds"]) == (bench.waited, bench.seconds)
    took = step_durations(project.folder, RunKind("flow", {}, str(result.machine["identity"])))
    assert took["bench"].seconds == bench.seconds


def test_a_stopwatch_stands_still_while_a_step_waits() -> None:
    waits = Waits(clock := Ticking())
    worked = waits.stopwatch()
    clock.now += 5
    waits.begin()
    clock.now += 100
    waits.begin()
    clock.now += 100
    waits.end()
    clock.now += 2
    waits.end()
    assert (worked(), waits.seconds) == (7, 200)


class Ticking:
    now = 0.0

    def __call__(self) -> float:
        return self.now


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
    with held_elsewhere("nightly, step decode"):
        result = project.run(BENCH, lock_timeout=0.3)
    assert result.verdict == "error"
    bench = step(result, "bench")
    assert bench.reason.startswith("the machine is held by nightly, step decode")
    assert bench.reason.endswith("wait longer with --lock-timeout")
    assert bench.waited >= 0.2


def test_a_step_that_does_not_measure_needs_no_machine(project: Project) -> None:
    with held_elsewhere("nightly"):
        result = project.run("stages: {build: [{id: make, run: 'true'}]}", lock_timeout=0.1)
    assert step(result, "make").status == "done"


def test_a_lock_file_that_cannot_be_opened_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(project.folder / "none" / "lock"))
    result = project.run(BENCH)
    assert "cannot open the measuring lock" in step(result, "bench").reason
    assert result.verdict == "error"


def test_a_perfflow_inside_a_measured_step_does_not_wait_for_its_own_parent(project: Project) -> None:
    project.write("inner.yaml", f"perfflow: 1\n{BENCH}\n")
    python = json.dumps(
        [sys.executable, "-m", "perfflow", "run", "inner.yaml", "--out", "inner", "--lock-timeout", "1s"]
    )
    result = project.run(f"""
env: {{PYTHONPATH: "{os.pathsep.join(sys.path)}"}}
stages:
  baseline:
    - {{id: outer, uses: command, runs: 1, warmup: 0, with: {{command: {python}}}}}
""")
    assert step(result, "outer").status == "done", step(result, "outer").reason
    inner = json.loads((project.folder / "inner" / "result.json").read_text())
    assert inner["verdict"] == "pass"


def test_out_must_be_new_or_empty(project: Project) -> None:
    out = project.folder / "kept"
    finished = project.finish(BENCH, out=out)
    assert finished.folder == out
    assert {"result.json", "report.md", "receipt.json", "events.jsonl"} <= {path.name for path in out.iterdir()}
    with pytest.raises(UserError, match="not empty"):
        project.finish(BENCH, out=out)
    with pytest.raises(UserError, match="cannot write"):
        project.finish(BENCH, out=project.write("file", "x"))


def test_latest_points_to_the_newest_run_and_the_folder_ignores_itself(project: Project) -> None:
    first, second = (project.finish(BENCH).folder for _ in range(2))
    runs = project.folder / ".perfflow" / "runs"
    assert first != second
    assert (runs / "latest").resolve() == second
    assert (runs / "latest").readlink() == Path(second.name)
    assert (project.folder / ".perfflow" / ".gitignore").read_text() == "*\n"


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
    result = project.run("""
targets: {grow: {heap_peak: <200KB}}
stages:
  build: [{id: cc, run: cc -g -o grow grow.c}]
  baseline:
    - id: bench
      uses: command
      benchmark: grow
      runs: 1
      warmup: 0
      with: {command: ./grow 300000}
      candidate: ./grow 100000
  profile:
    - {id: heap, uses: massif, benchmark: grow}
  verify:
    - {id: same, uses: same-output, benchmark: grow}
""")
    heap = row(result, "grow", "heap_peak")
    assert heap.baseline
    assert heap.candidate
    assert heap.baseline.value == pytest.approx(300_000, rel=0.1)
    assert heap.candidate.value == pytest.approx(100_000, rel=0.1)
    assert (heap.decision, heap.gating, result.targets[0].status) == ("improved", True, "met")
    assert {spot.tree for spot in result.hotspots if spot.location == "main"} == {"baseline", "candidate"}
    assert result.verification[0].detail == "3 outputs the same as the baseline's"
    assert row(result, "grow", "time").pairs == 1


def test_what_two_steps_measure_is_an_error_that_names_both(project: Project) -> None:
    # The names that they report are only known after the run.
    parse = "parse: {regex: '(?P<benchmark>b) ms=(?P<time>.*)', units: {time: ms}}"
    steps = [
        f"{{id: {name}, run: echo b ms={ms}, runs: 1, warmup: 0, benchmark: '*', {parse}}}"
        for name, ms in (("one", 1), ("two", 1.5))
    ]
    finished = project.finish(f"stages: {{baseline: [{', '.join(steps)}]}}")
    result = finished.result
    assert result.verdict == "error"
    said = "measured twice: `time` of `b` was already measured by step `one`"
    assert result.reason_texts == [f"step two: {said}; remove one of them, or give it another `benchmark`"]
    assert rejudge(finished.folder / "result.json", (), None).result == result
