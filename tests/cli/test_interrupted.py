"""A run that is interrupted or killed keeps what it has measured, and nothing of it runs on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import DEADLINE, is_left, result_of, samples_of, wait_for_samples, wait_until
from tests.cli.shell import perfflow, start, write
from tests.long import rest_long

LONG = """
name: long
stages:
  baseline:
    - {id: bench, uses: command, with: {command: sleep NAP}, candidate: sleep NAP, runs: 2000}
"""


def started(folder: Path, nap: str = "0.01", hang_up: signal.Handlers = signal.SIG_DFL) -> subprocess.Popen[str]:
    """A run with its first samples. ``hang_up``: what its processes inherit."""
    write(folder, LONG.replace("NAP", nap))
    earlier = signal.signal(signal.SIGHUP, hang_up)
    try:
        process = start("run", "flow.yaml", "--out", "out", cwd=folder)
    finally:
        signal.signal(signal.SIGHUP, earlier)
    wait_for_samples(folder / "out", 5)
    return process


@pytest.mark.parametrize(
    "number", rest_long([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]), ids=lambda number: number.name
)
def test_an_interruption_keeps_the_samples_and_says_how_to_resume(tmp_path: Path, number: signal.Signals) -> None:
    process = started(tmp_path)
    process.send_signal(number)
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, err
    assert "--resume=" in err
    assert "Traceback" not in out + err
    result = result_of(tmp_path / "out")
    assert result["run"]["interrupted"] is True
    assert len(result["benchmarks"][0]["baseline"]["samples"]) == result["benchmarks"][0]["baseline"]["n"] >= 5


def test_after_kill_9_the_samples_can_be_reported_and_nothing_runs(tmp_path: Path) -> None:
    process = started(tmp_path, nap="0.0217")
    process.kill()
    process.communicate(timeout=DEADLINE)
    wait_until(lambda: not is_left("sleep 0.0217"), "a program runs on")
    done = perfflow("report", "out", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "the run did not finish" in done.stdout
    assert "still running" not in done.stderr
    assert len(result_of(tmp_path / "out")["benchmarks"][0]["baseline"]["samples"]) >= 5


def test_a_terminal_that_is_closed_is_an_interruption(tmp_path: Path) -> None:
    write(tmp_path, LONG.replace("NAP", "0.01"))
    main, other = os.openpty()
    process = subprocess.Popen(
        ["setsid", "-c", "-w", sys.executable, "-m", "perfflow", "run", "flow.yaml", "--out", "out"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
        stdin=other,
        stdout=other,
        stderr=other,
    )
    os.close(other)
    wait_for_samples(tmp_path / "out")
    os.close(main)
    assert process.wait(DEADLINE) == 130
    assert result_of(tmp_path / "out")["run"]["interrupted"] is True


def test_after_nohup_a_hang_up_changes_nothing(tmp_path: Path) -> None:
    process = started(tmp_path, hang_up=signal.SIG_IGN)
    process.send_signal(signal.SIGHUP)
    wait_for_samples(tmp_path / "out", len(samples_of(tmp_path / "out")) + 5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 130


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_goes_away_stops_nothing_and_changes_no_status(tmp_path: Path, stream: str) -> None:
    write(tmp_path, "stages: {baseline: [{id: b, run: ls, runs: 2}], verify: [{id: tests, run: exit 3}]}\n")
    process = start("run", "flow.yaml", cwd=tmp_path)
    assert process.stdout is not None
    assert process.stderr is not None
    is_stdout = stream == "stdout"
    closed, left = (process.stdout, process.stderr) if is_stdout else (process.stderr, process.stdout)
    closed.close()
    said = left.read()
    left.close()
    assert process.wait(DEADLINE) == 1
    assert "Traceback" not in said
    assert is_stdout or "FAIL" in said
