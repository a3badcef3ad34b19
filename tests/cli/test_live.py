"""A run on a real terminal: the final screen, and no output about a timed step except between its rounds."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.store.history.durations import RunKind, step_durations
from perfflow.store.result_file import read
from tests.cli.screen import Terminal
from tests.cli.shell import perfflow, write
from tests.long import rest_long

FLOW = """
stages:
  build:
    - {id: make, run: sleep 1.3}
  baseline:
    - {id: nap, uses: command, runs: 25, with: {command: sleep 0.06}}
"""


class OnTerminal:
    """perfflow with all streams on a pseudo-terminal, whose output is recorded."""

    def __init__(self, *arguments: str, cwd: Path, width: int = 80) -> None:
        self.output, self.width = b"", width
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        env = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "perfflow", *arguments],
            cwd=cwd,
            env=env | {"TERM": "xterm-256color", "GITHUB_ACTIONS": "", "GITLAB_CI": "", "PYTHONIOENCODING": "utf-8"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._terminal = ours

    def read_until(self, enough: Callable[[str], bool], seconds: float = 60) -> str:
        """Read until the text fulfils the condition, or the terminal is closed."""
        os.set_blocking(self._terminal, False)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not enough(self.text):
            try:
                part = os.read(self._terminal, 65536)
            except BlockingIOError:
                time.sleep(0.01)
                continue
            except OSError:  # EIO: the other end is closed
                break
            self.output += part
        return self.text

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")

    @property
    def shown(self) -> Terminal:
        terminal = Terminal(self.width)
        terminal.write(self.text)
        return terminal

    def finish(self) -> int:
        """Read to the end, close, and return the exit status."""
        self.read_until(lambda _: False)
        os.close(self._terminal)
        return self.process.wait(timeout=900)


@pytest.mark.parametrize("width", rest_long([60, 80, 160]))
def test_a_terminal_shows_steps_and_the_verdict_and_no_leftovers(tmp_path: Path, width: int) -> None:
    write(tmp_path, FLOW)
    run = OnTerminal("run", "flow.yaml", cwd=tmp_path, width=width)
    assert run.finish() == 0, run.text
    assert "not updated while it is measured; as of" in run.text
    terminal = run.shown
    assert [line.split()[:3] for line in terminal.lines[:2]] == [["✓", "build", "make"], ["✓", "baseline", "nap"]]
    assert terminal.lines[2].startswith("✓ PASS  flow")
    assert terminal.lines[-1].startswith("report: ")
    assert terminal.widest <= width
    assert "\x1b[?" not in run.text, "no mode is changed, so none can be left changed"


@pytest.mark.parametrize("number", rest_long([signal.SIGINT, signal.SIGTERM]))
def test_an_interruption_leaves_a_clean_terminal(tmp_path: Path, number: signal.Signals) -> None:
    write(tmp_path, FLOW.replace("runs: 25", "runs: 2000"))
    run = OnTerminal("run", "flow.yaml", cwd=tmp_path)
    run.read_until(lambda text: " runs" in text)
    run.process.send_signal(number)
    assert run.finish() == 130
    lines = run.shown.lines
    assert lines[0].startswith("✓ build     make")
    assert lines[1].startswith("✗ ERROR  flow")
    assert lines[-1].startswith("interrupted; to resume: ")


@pytest.mark.long  # as the steps of one line
def test_lines_of_several_steps_at_once_stay_whole(tmp_path: Path) -> None:
    steps = "".join(f"    - {{id: s{number}, run: sleep 0.3, needs: []}}\n" for number in range(12))
    write(tmp_path, f"stages:\n  build:\n{steps}")
    run = OnTerminal("run", "flow.yaml", "--jobs", "4", cwd=tmp_path)
    assert run.finish() == 3, run.text  # it measures nothing
    names = [line.split()[2] for line in run.shown.lines if line.startswith("✓ build")]
    assert sorted(names) == sorted(f"s{number}" for number in range(12))


def test_what_steps_took_is_known_from_runs_of_the_same_workflow_and_parameters(tmp_path: Path) -> None:
    text = "params: {n: 1}\nstages:\n  build:\n    - {id: a, run: 'true'}\n    - {id: b, run: 'false'}\n"
    write(tmp_path, f"name: one\n{text}")
    write(tmp_path, f"name: two\n{text}", "other.yaml")
    for arguments in (["flow.yaml"], ["other.yaml"], ["flow.yaml", "--set", "n=2"]):
        assert perfflow("run", *arguments, "--progress", "off", cwd=tmp_path).returncode == 3
    results = [read(path) for path in (tmp_path / ".perfflow" / "runs").glob("2*/result.json")]
    first = next(item for item in results if item.run.workflow == "one" and item.run.params == {"n": 1})
    machine = str(first.machine["identity"])
    took = {step.id: step.seconds for step in first.steps if step.status == "done"}
    assert set(took) == {"a"}, "a failure tells nothing about how long it takes"
    kind = RunKind("one", {"n": 1}, machine)

    def known(**changed: Any) -> dict[str, float | None]:
        return {name: item.seconds for name, item in step_durations(tmp_path, replace(kind, **changed)).items()}

    assert known() == took
    assert known(params={"n": 3}) == {}
    assert known(workflow="three") == {}
    assert known(machine="another machine") == {}
    assert known(in_trees=True) == {}
    assert known(budget=60.0) == took, "builds take as long with any budget"
    (tmp_path / ".perfflow" / "runs" / "29990101-000000-000000").mkdir()
    for run in (tmp_path / ".perfflow" / "runs").glob("2*"):
        (run / "result.json").write_text("{")
    assert known() == {}
