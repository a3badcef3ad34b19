"""^Z and fg: child processes stop together with perfflow, and no sample includes the stop."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfflow.machine.lock import machine_alone
from tests.cli.shell import start, write
from tests.execute.test_child import DEADLINE, wait_until
from tests.execute.test_leftovers import state, with_parent
from tests.long import rest_long

STOP = 1.8
"""Together with the 0.4 s of the first step, longer than the time limit."""
FLOW = """
name: stopped
stages:
  setup:
    - {id: slow, run: "for n in {1..4}; do echo >> ticks; sleep 0.1; done", timeout: 2s}
  baseline:
    - {id: bench, uses: command, with: {command: ./program}, candidate: ./program, runs: 6}
"""
PROGRAM = "#!/bin/sh\necho >> counter\nsleep 0.5\n"


def lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def wait_for_lines(path: Path, number: int) -> None:
    wait_until(lambda: lines(path) >= number, f"{path.name} was not written")


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTSTP)
    wait_until(lambda: state(process.pid) == "T", "perfflow did not stop")


def stand_still(process: subprocess.Popen[str], path: Path, seconds: float) -> None:
    """Stop perfflow for some time, in which its children write nothing, and let it go on."""
    stop(process)
    wait_until(lambda: all_still(process.pid), "its children did not stop")
    before = lines(path)
    time.sleep(seconds)
    assert lines(path) == before
    process.send_signal(signal.SIGCONT)


@pytest.mark.long  # stops for many seconds; the test of the live view stops as well
@pytest.mark.parametrize(
    "command", rest_long([["run", "flow.yaml"], ["calibrate", "flow.yaml", "--trials", "2", "--budget", "60s"]])
)
def test_what_runs_stands_still_and_the_sample_is_taken_again(tmp_path: Path, command: list[str]) -> None:
    write(tmp_path, FLOW)
    (tmp_path / "program").write_text(PROGRAM)
    (tmp_path / "program").chmod(0o755)
    process = start(*command, "--json", cwd=tmp_path)
    try:
        for name, reached in (("ticks", 2), ("counter", 6)):
            wait_for_lines(tmp_path / name, reached)
            stand_still(process, tmp_path / name, STOP)
        out, err = process.communicate(timeout=3 * DEADLINE)
    finally:
        # A stopped process would hold the machine, and later tests would wait for it.
        process.kill()
        process.wait()
    assert process.returncode in (0, 1, 4), err
    found = json.loads(out)
    if command[0] == "run":
        (row,) = [item for item in found["benchmarks"] if item["metric"] == "time"]
        samples = [*row["baseline"]["samples"], *row["candidate"]["samples"]]
        assert len(samples) == 12
        assert max(samples) < STOP
        said = [text for step in found["steps"] for text in step["warnings"]]
        assert "perfflow was stopped (^Z) during a sample, so the sample was repeated" in said
    else:
        (judged,) = [entry["finding"] for entry in found["entries"] if entry["finding"]["metric"] == "time"]
        assert judged["noise"] < 1


def test_the_live_view_stops_what_runs_too(tmp_path: Path) -> None:
    """The live view handles ^Z first, to clear the terminal. Twice, since each stop restores the handlers."""
    write(tmp_path, "stages: {build: [{id: slow, run: 'while [ ! -e enough ]; do echo >> ticks; sleep 0.1; done'}]}")
    ours, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "perfflow", "run", "flow.yaml", "--progress", "live"],
        cwd=tmp_path,
        env=env | {"TERM": "xterm-256color"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        text=True,
        process_group=0,
    )
    os.close(theirs)
    ticks = tmp_path / "ticks"
    try:
        for _ in range(2):
            wait_for_lines(ticks, lines(ticks) + 2)
            stand_still(process, ticks, 0.5)
        (tmp_path / "enough").touch()
        assert process.wait(DEADLINE) == 3  # it measures nothing
        shown = os.read(ours, 65536).decode()
        assert "▶ build" in shown, "it was live"
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_stopped_run_in_line_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv("PERFFLOW_LOCK_HELD", raising=False)
    write(tmp_path, "stages: {baseline: [{id: b, uses: command, runs: 2, with: {command: 'true'}}]}")
    with machine_alone("the first", 10, lambda _: None):
        process = start("run", "flow.yaml", "--progress", "plain", "--unproven=pass", cwd=tmp_path)
        assert process.stderr is not None
        while "in line" not in (said := process.stderr.readline()):
            assert said, "it never waited"
        stop(process)
    with machine_alone("the next", 1, lambda _: None):
        pass
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=3 * DEADLINE)[0]
    assert process.returncode == 0


def all_still(pid: int) -> bool:
    """Return whether the children of perfflow's spawners are stopped or have ended."""
    spawners = with_parent(pid)
    children = [child for spawner in spawners for child in with_parent(spawner)]
    return bool(spawners) and all(state(child) in ("T", "Z", "") for child in children)
