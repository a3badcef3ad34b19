"""A step whose output was hidden, since it is a secret, runs again when the run goes on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.running import wait_until
from tests.cli.shell import perfflow, start, write

FLOW = """
stages:
  build:
    - {id: makes, run: "echo x >> ran; echo token=$API_TOKEN >> $PERFFLOW_OUTPUT"}
    - {id: plain, run: "echo y >> ran; echo name=fine >> $PERFFLOW_OUTPUT"}
    - {id: waits, run: "touch begun; [ -e go ] || sleep 60"}
    - {id: uses, run: "[ ${{ steps.makes.outputs.token }} = $API_TOKEN ]"}
"""


def test_a_step_whose_output_was_hidden_runs_again_when_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "correct-horse-battery")
    write(tmp_path, FLOW)
    running = start("run", "flow.yaml", cwd=tmp_path)
    wait_until((tmp_path / "begun").exists, "the step never started")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    (tmp_path / "go").touch()
    done = perfflow("run", "flow.yaml", "--resume", cwd=tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr  # it measures nothing
    assert "failed" not in done.stdout
    assert (tmp_path / "ran").read_text() == "x\ny\nx\n"
