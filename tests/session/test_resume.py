"""A resumed run repeats nothing that was finished, and gets the verdict of an uninterrupted run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.model.errors import UserError
from perfflow.store.run_folder import find, reopen
from tests.session.project import Project, cut, samples, step

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


def _edit_opening(folder: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """Edit the first event of a run, and write all without their chain, as earlier versions did."""
    events = folder / "events.jsonl"
    told = [json.loads(line) for line in events.read_text().splitlines()]
    edit(told[0])
    for event in told:
        del event["chain"]
    events.write_text("".join(json.dumps(event) + "\n" for event in told))
    return events


def test_the_pause_before_a_resumption_is_no_part_of_the_duration(project: Project) -> None:
    first = project.finish(FLOW)
    cut(first.folder, 5)
    began = time.time() - 7200
    started = datetime.fromtimestamp(began, UTC).isoformat()
    events = _edit_opening(first.folder, lambda opening: opening["run"].update(started=started))
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


def test_a_finished_run_has_nothing_left_to_do_and_is_written_by_one_perfflow(project: Project) -> None:
    first = project.finish(FLOW)
    counted = (project.folder / "count").read_text()
    with reopen(first.folder), pytest.raises(UserError, match="another perfflow"):
        project.finish(FLOW, resume=first.folder)
    again = project.finish(FLOW, resume=find(project.folder, "latest"))
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


def test_a_changed_workflow_and_another_machine_are_refused(project: Project) -> None:
    first = project.finish(FLOW)
    with pytest.raises(UserError, match=r"changed since this run of \S+\.yaml\n.*--resume=RUN"):
        project.finish(FLOW.replace("runs: 12", "runs: 13"), resume=first.folder)
    _edit_opening(first.folder, lambda opening: opening["machine"].update(cores=1000))
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
