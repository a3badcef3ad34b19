"""The events of jobs on other machines, as part of their run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perfflow.store.record import GroupJob, merged
from perfflow.store.run_facts import StepRecord
from perfflow.store.run_folder import events


def write(folder: Path, *lines: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.jsonl").write_text("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines))


def job(attempt: int, group: str = "g1") -> dict[str, Any]:
    return GroupJob(group, attempt, f"groups/{group}/{attempt}/run", "done", "n1").event()


def test_a_job_counts_once_by_its_last_attempt(tmp_path: Path) -> None:
    for attempt in (1, 2):
        place = tmp_path / "groups" / "g1" / str(attempt) / "run"
        write(place, {"event": "run"}, {"event": "sample", "n": attempt}, {"event": "end"})
    # The second job was collected twice: the collecting process may be stopped between two events.
    write(tmp_path, {"event": "run"}, job(1), {"event": "resumed"}, job(2), job(2), {"event": "end"})

    found = list(events(tmp_path))

    assert [event["event"] for event in found] == ["run", "resumed", "group", "sample", "end"]
    assert [(event["n"], event["group"]) for event in found if event["event"] == "sample"] == [(2, "g1")]


def test_files_of_a_job_are_found_from_the_run(tmp_path: Path) -> None:
    step = {
        "event": "step",
        "id": "a",
        "status": "done",
        "log": "steps/a/stderr",
        "profiles": [{"path": "steps/a/out"}],
    }
    tried = {"event": "step", "id": "b", "status": "done", "optimizations": [{"log": "x", "diff_file": ""}]}
    write(tmp_path / "groups" / "g1" / "1" / "run", step, tried)
    write(tmp_path, job(1))

    _, one, other = events(tmp_path)

    assert one["log"] == "groups/g1/1/run/steps/a/stderr"
    assert one["profiles"] == [{"path": "groups/g1/1/run/steps/a/out"}]
    assert other["optimizations"] == [{"log": "groups/g1/1/run/x", "diff_file": ""}]


def test_a_step_that_two_groups_performed_is_as_good_as_its_worse_part() -> None:
    done = StepRecord("s", "done", seconds=1, warnings=("w",), identical=True)
    failed = StepRecord("s", "failed", "broke", seconds=2, warnings=("w", "v"))
    cached = StepRecord("s", "cached", "built by another job")

    both = merged(done, failed)
    assert (both.status, both.reason, both.seconds, both.warnings) == ("failed", "broke", 3, ("w", "v"))
    assert not both.identical
    assert merged(failed, done).status == "failed"
    assert (merged(cached, done).status, merged(cached, done).reason) == ("done", "")
