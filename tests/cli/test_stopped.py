"""^Z and fg: what runs stands still with perfflow, and no sample is taken across the stop."""

from __future__ import annotations

import json
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from tests.cli.shell import start, write
from tests.process.test_child import DEADLINE, wait_until
from tests.process.test_leftovers import state, with_parent

STOP = 2.0
FLOW = """
name: stopped
stages:
  setup:
    - {id: slow, run: "for n in {1..8}; do echo >> ticks; sleep 0.1; done", timeout: 2s}
  baseline:
    - {id: bench, uses: command, with: {command: ./program}, candidate: ./program, runs: 6}
"""
PROGRAM = "#!/bin/sh\necho >> counter\nsleep 0.2\n"


def lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def has_lines(path: Path, number: int) -> bool:
    return lines(path) >= number


@pytest.mark.parametrize(
    "command", [["run", "flow.yaml"], ["calibrate", "flow.yaml", "--trials", "2", "--budget", "6s"]]
)
def test_what_runs_stands_still_and_the_sample_is_taken_again(tmp_path: Path, command: list[str]) -> None:
    write(tmp_path, FLOW)
    (tmp_path / "program").write_text(PROGRAM)
    (tmp_path / "program").chmod(0o755)
    process = start(*command, "--json", cwd=tmp_path)
    for name, reached in (("ticks", 2), ("counter", 6)):
        path = tmp_path / name
        wait_until(partial(has_lines, path, reached), f"{name} was not written")
        process.send_signal(signal.SIGTSTP)
        wait_until(lambda: state(process.pid) == "T", "perfflow did not stop")
        wait_until(lambda: all_still(process.pid), "its children did not stop")
        before = lines(path)
        time.sleep(STOP)
        assert lines(path) == before
        process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=3 * DEADLINE)
    assert process.returncode in (0, 1, 4), err
    found = json.loads(out)
    if command[0] == "run":
        (row,) = [item for item in found["benchmarks"] if item["metric"] == "time"]
        samples = [*row["baseline"]["samples"], *row["candidate"]["samples"]]
        assert len(samples) == 12
        assert max(samples) < STOP
        said = [text for step in found["steps"] for text in step["warnings"]]
        assert "perfflow was stopped (^Z) while a sample was taken, which was taken again" in said
    else:
        (judged,) = [entry["finding"] for entry in found["entries"] if entry["finding"]["metric"] == "time"]
        assert judged["noise"] < 1


def all_still(pid: int) -> bool:
    """Whether the children of perfflow's attendants are stopped, or have ended."""
    attendants = with_parent(pid)
    children = [child for attendant in attendants for child in with_parent(attendant)]
    return bool(attendants) and all(state(child) in ("T", "Z", "") for child in children)
