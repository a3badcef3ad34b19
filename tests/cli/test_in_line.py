"""Runs that wait for the machine: served in order of arrival, with their place shown; killing one does no harm."""

from __future__ import annotations

import json
import signal
from functools import partial
from pathlib import Path

import pytest

from perfflow.machine.lock import machine_alone
from tests.cli.shell import start, write
from tests.execute.test_child import DEADLINE, wait_until

RUNS, KILLED, SILENT = 5, (1, 3), 4
STAGES = """
stages:
  baseline:
    - {id: bench, uses: command, runs: 1, warmup: 0, with: {command: sh -c 'echo "$0" >> ../order' NAME}}
"""


def tickets(folder: Path) -> int:
    return sum(1 for _ in folder.glob("lock.*"))


def has_tickets(folder: Path, number: int) -> bool:
    return tickets(folder) >= number


@pytest.mark.long  # tests/machine/test_lock.py has such a line of waiting processes
def test_runs_are_served_in_the_order_in_which_they_asked_while_two_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv("PERFFLOW_LOCK_HELD", raising=False)
    runs = []
    with machine_alone("nightly, step decode", 10, lambda _: None):
        for number in range(RUNS):
            folder = tmp_path / f"run-{number}"
            folder.mkdir()
            write(folder, STAGES.replace("NAME", f"run-{number}"))
            progress = "off" if number == SILENT else "plain"
            runs.append(start("run", "flow.yaml", "--progress", progress, cwd=folder))
            wait_until(partial(has_tickets, tmp_path, number + 2), f"run {number} never asked for the machine")
        silent = runs[SILENT].stderr
        assert silent is not None
        line = silent.readline()
        for number in KILLED:
            runs[number].send_signal(signal.SIGKILL)
            runs[number].communicate(timeout=DEADLINE)
    said = {number: run.communicate(timeout=4 * DEADLINE) for number, run in enumerate(runs) if number not in KILLED}
    assert {run.returncode for number, run in enumerate(runs) if number not in KILLED} == {0}
    left = [f"run-{number}" for number in said]
    assert (tmp_path / "order").read_text().split() == left
    assert f"for the machine, number {RUNS} in line: held by nightly, step decode (" in line, "also with --progress off"
    assert line.startswith("waiting ")
    assert "waiting" not in said[SILENT][1], "once"
    first = said[0][1]
    assert "waiting for the machine, next in line: held by nightly, step decode (" in first
    result = json.loads((tmp_path / "run-0/.perfflow/runs/latest/result.json").read_text())
    (bench,) = result["steps"]
    assert bench["waited"] > 2 * bench["seconds"], "it waited for four others to start"
    assert " waiting for the machine" in (tmp_path / "run-0/.perfflow/runs/latest/report.md").read_text()
