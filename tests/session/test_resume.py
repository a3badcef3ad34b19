"""A resumed run repeats nothing that was finished, and gets the verdict of an uninterrupted run."""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfflow.jobs.compare.compare_stored import Question, workflow_of
from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.model.errors import UserError
from perfflow.model.readings import Reading, Side
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import BenchmarkToSample, PairScheduler, Request, Take
from perfflow.sampling.sampling import StepSampling
from perfflow.sampling.stop_rule import BUDGET, StopRule
from perfflow.session.open_workflow import open_workflow
from perfflow.stats.paired_test import MANY
from perfflow.store.run_folder import find, reopen
from tests.session.project import Project, samples, step

COUNTING = "n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) > count; echo ms=$((n + 1))"
FLOW = f"""
stages:
  setup:
    - {{id: once, run: "echo set >> setups; echo word=value >> $PERFFLOW_OUTPUT"}}
  baseline:
    - id: bench
      run: |
        test "${{{{ steps.once.outputs.word }}}}" = value
        {COUNTING}
      candidate: {{env: {{SIDE: candidate}}}}
      runs: 12
      parse: {{regex: "ms=(?P<time>.*)", units: {{time: ms}}}}
  verify:
    - {{id: check, run: "echo check >> checks"}}
"""


def cut(folder: Path, keep: int, torn: str = "") -> None:
    """Leave the events as kill -9 would: a number of samples, and perhaps a part of the next line."""
    lines = (folder / "events.jsonl").read_text().splitlines()
    places = [number for number, line in enumerate(lines) if '"event":"sample"' in line]
    end = places[keep - 1] + 1 if keep else places[0]
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines[:end]) + torn)


def test_the_pause_before_a_resumption_is_no_part_of_the_duration(project: Project) -> None:
    first = project.finish(FLOW)
    cut(first.folder, 5)
    events = first.folder / "events.jsonl"
    opening, *others = events.read_text().splitlines(keepends=True)
    began = time.time() - 7200
    told = json.loads(opening)
    told["run"]["started"] = datetime.fromtimestamp(began, UTC).isoformat()
    events.write_text("".join([json.dumps(told) + "\n", *others]))
    # It ran for 100 s before it was killed.
    os.utime(events, (began + 100, began + 100))
    again = project.finish(FLOW, resume=first.folder).result
    assert again.run.paused == pytest.approx(7100, abs=60)
    assert again.run.seconds is not None
    assert 100 <= again.run.seconds < 1000
    assert rejudge(first.folder, (), None).result.run.seconds == again.run.seconds


@pytest.mark.parametrize(("keep", "torn"), [(0, ""), (5, '{"event":"sam'), (12, "")])
def test_what_is_done_is_not_done_again(project: Project, keep: int, torn: str) -> None:
    first = project.finish(FLOW)
    before = samples(first.result, "bench", "time")
    cut(first.folder, keep, torn)
    counted = int((project.folder / "count").read_text())
    again = project.finish(FLOW, resume=first.folder)
    assert again.folder == first.folder
    assert samples(again.result, "bench", "time")[:keep] == before[:keep]
    # Only the missing pairs and their warm-ups ran.
    warm_ups = 0 if keep == 12 else 2
    assert (
        counted + 2 * (12 - keep) <= int((project.folder / "count").read_text()) <= counted + 24 - 2 * keep + warm_ups
    )
    pairs = [event["pair"] for event in project.events() if event["event"] == "sample"]
    assert pairs == list(range(12))
    assert (project.folder / "setups").read_text() == "set\n"
    assert (step(again.result, "once").status, step(again.result, "bench").status) == ("cached", "done")
    assert again.result.verdict in ("pass", "fail", "unproven")
    assert again.result.run.seed == first.result.run.seed
    assert len(again.result.run.resumed) == 1


def test_a_finished_run_has_nothing_left_to_do(project: Project) -> None:
    first = project.finish(FLOW)
    counted = (project.folder / "count").read_text()
    again = project.finish(FLOW, resume=first.folder)
    assert (project.folder / "count").read_text() == counted
    assert (project.folder / "checks").read_text() == "check\n"
    assert {item.status for item in again.result.steps} == {"cached"}
    assert again.result.benchmarks == first.result.benchmarks
    assert again.result.verdict == first.result.verdict


def test_what_failed_has_another_try_and_keeps_its_samples(project: Project) -> None:
    flow = FLOW.replace("runs: 12", "runs: 6").replace("echo ms=", "test $n -lt 7 -o -e fixed; echo ms=")
    failed = project.finish(flow)
    assert step(failed.result, "bench").status == "failed"
    taken = samples(failed.result, "bench", "time")
    assert 0 < len(taken) < 6
    project.write("fixed", "")
    again = project.finish(flow, resume=failed.folder)
    assert step(again.result, "bench").status == "done"
    assert samples(again.result, "bench", "time")[: len(taken)] == taken
    assert len(samples(again.result, "bench", "time")) == 6


def test_a_changed_workflow_is_refused(project: Project) -> None:
    first = project.finish(FLOW)
    with pytest.raises(UserError, match=r"changed since this run of \S+\.yaml\n.*--resume=RUN"):
        project.finish(FLOW.replace("runs: 12", "runs: 13"), resume=first.folder)


def test_another_machine_is_refused(project: Project) -> None:
    first = project.finish(FLOW)
    events = first.folder / "events.jsonl"
    opening, *rest = events.read_text().splitlines(keepends=True)
    data = json.loads(opening)
    data["machine"]["cores"] = 1000
    events.write_text(json.dumps(data) + "\n" + "".join(rest))
    with pytest.raises(UserError, match="another machine"):
        project.finish(FLOW, resume=first.folder)


def test_a_changed_program_is_not_mixed_with_what_was_measured(project: Project) -> None:
    project.write("program", "#!/bin/sh\nexit 0\n", executable=True)
    flow = "stages: {baseline: [{id: bench, uses: command, runs: 6, with: {command: ./program}}]}"
    first = project.finish(flow)
    cut(first.folder, 3)
    project.write("program", "#!/bin/sh\n# other\nexit 0\n", executable=True)
    again = project.finish(flow, resume=first.folder)
    assert step(again.result, "bench").status == "failed"
    assert "the measured files changed since" in step(again.result, "bench").reason
    assert again.result.verdict == "error"


def test_one_run_is_written_by_one_perfflow(project: Project) -> None:
    first = project.finish(FLOW)
    with reopen(first.folder), pytest.raises(UserError, match="another perfflow"):
        project.finish(FLOW, resume=first.folder)
    assert project.finish(FLOW, resume=find(project.folder, "latest")).result.verdict


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = tmp_path_factory.mktemp("plan") / "compare.yaml"
    path.write_text(json.dumps(workflow_of(Question("old", "new"))))
    return open_workflow(str(path)).plan


def sampled(plan: Plan, names: list[str], noise: float, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All events of a sampling that resumes after ``before``. The reading of a process depends only on its position."""
    planned = plan.steps[0]
    counts: Counter[tuple[str, Side]] = Counter()
    for event in before:
        counts.update((event[side.value][0]["benchmark"], side) for side in Side if side.value in event)

    def taker(name: str) -> Take:
        def take(request: Request) -> tuple[Reading, ...]:
            number = counts[name, request.side]
            counts[name, request.side] += 1
            luck = random.Random(f"{name} {request.side} {number}").gauss(0, noise)
            slower = 1.08 if name.endswith("1") and request.side is Side.CANDIDATE else 1.0
            return (Reading("time", 0.02 * slower * math.exp(luck), name),)

        return take

    events: list[Mapping[str, Any]] = list(before)
    stop_rule = StopRule(plan.criteria, planned, BUDGET, clock=lambda: 0.0)
    sampling = StepSampling(planned.id, PairScheduler(1, warmup=0, clock=lambda: 0.0), stop_rule, events.append, {})
    subjects = [BenchmarkToSample(name, tuple(Side), taker(name)) for name in names]
    sampling.recall(before, subjects)
    sampling.take_until_decided(subjects, math.inf, math.inf)
    return [dict(event) for event in events]


@given(st.sampled_from([1, 2, MANY + 1]), st.sampled_from([0.002, 0.02, 0.04]), st.floats(0, 1))
def test_wherever_it_is_cut_a_sampling_ends_as_if_it_had_not_been(
    plan: Plan, benchmarks: int, noise: float, share: float
) -> None:
    names = [f"b{number}" for number in range(benchmarks)]
    whole = sampled(plan, names, noise, [])
    assert sampled(plan, names, noise, whole[: int(share * len(whole))]) == whole


@given(st.integers(1, 3), st.sampled_from([0.002, 0.02, 0.05]), st.floats(0, 1))
@settings(max_examples=6)
def test_blocks_of_expensive_programs_are_gone_on_with(plan: Plan, benchmarks: int, noise: float, share: float) -> None:
    names = [f"b{number}" for number in range(benchmarks)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("perfflow.sampling.sampling.EXPENSIVE", -1.0)
        whole = sampled(plan, names, noise, [])
        assert {event["design"] for event in whole} == {"few"}
        assert sampled(plan, names, noise, whole[: int(share * len(whole))]) == whole
