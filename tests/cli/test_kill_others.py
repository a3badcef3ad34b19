"""kill -9 of every command that measures or saves: no program or hidden daemon is left, and no file is partial."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import pytest

from perfflow.machine.facts import facts
from perfflow.store import calibrations
from tests.cli.running import DEADLINE, is_left, wait_until
from tests.cli.shell import perfflow, start, write
from tests.long import rest_long

KILLS = pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.long)])
ALLOWED = 2.0
"""Seconds after which nothing may be left."""


@KILLS
@pytest.mark.parametrize("name", rest_long(["run", "compare", "calibrate"]))
def test_nothing_is_left_and_what_was_stored_can_be_read(tmp_path: Path, name: str, kills: int) -> None:
    chance = random.Random(f"20261120 {name}")
    # Its own session, no environment, no parent: the daemon is only identified by its odd number of seconds.
    nap = f"sleep 30{chance.randrange(10**8, 10**9)}"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntest -e quiet || env -i setsid -f {nap}\nsleep 0.0$(($$ % 10))\n")
    program.chmod(0o755)
    write(
        tmp_path,
        "name: others\nstages: {baseline: [{id: bench, uses: command, runs: 40, with: {command: ./program},"
        " candidate: ./program, allow: {left-running: the daemon is what is looked for}}]}",
    )
    ran = False
    for number in range(kills):
        out = tmp_path / f"out{number}"
        arguments = {
            "run": ["run", "flow.yaml", "--out", str(out), "--progress", "off"],
            "compare": ["compare", "--out", str(out), "--allow-left-running", "why", "--", "./program", "./program #"],
            "calibrate": ["calibrate", "flow.yaml", "--trials", "3", "--budget", "20s"],
        }[name]
        process = start(*arguments, cwd=tmp_path)
        time.sleep(chance.uniform(0.2, 1.5))
        if number == kills - 1 and not ran:
            # On a busy machine, none of them may have started a program yet.
            wait_until(lambda: is_left(nap), "no program was started")
        ran = ran or is_left(nap)
        process.kill()
        killed = time.monotonic()
        process.communicate()
        while is_left(nap) and time.monotonic() < killed + ALLOWED:
            time.sleep(0.05)
        assert not is_left(nap), f"after kill {number}"
        if (out / "events.jsonl").is_file() and (out / "events.jsonl").stat().st_size:
            assert perfflow("report", str(out), cwd=tmp_path).returncode in (0, 1, 3, 4)
        assert calibrations.load(tmp_path, facts()["identity"]) == []
    assert ran, "no kill came while a program ran"


@KILLS
def test_a_save_that_is_killed_leaves_the_old_baseline_or_the_new_one(tmp_path: Path, kills: int) -> None:
    chance = random.Random(20261120)
    write(tmp_path, 'name: save\nstages: {baseline: [{id: bench, uses: command, runs: 2, with: {command: "true"}}]}')
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 0
    assert perfflow("baseline", "save", "kept", cwd=tmp_path).returncode == 0
    for _ in range(kills):
        process = start("baseline", "save", "kept", "--force", cwd=tmp_path)
        time.sleep(chance.uniform(0.1, 0.8))
        process.kill()
        process.communicate(timeout=DEADLINE)
        stored = json.loads((tmp_path / ".perfflow/baselines/kept/baseline.json").read_text())
        assert stored["name"] == "kept"
    assert perfflow("baseline", "list", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("number", rest_long([signal.SIGINT, signal.SIGTERM]))
def test_an_interrupt_ends_hidden_daemons_too(tmp_path: Path, number: signal.Signals) -> None:
    nap = f"sleep 30{random.Random(str(tmp_path)).randrange(10**8, 10**9)}"
    text = f"env -i setsid -f {nap}; sleep 0.2"
    write(
        tmp_path,
        f'name: daemons\nstages: {{baseline: [{{id: bench, run: "{text}; echo ms=1", runs: 200,'
        ' candidate: {env: {A: b}}, parse: {regex: "ms=(?P<time>.*)", units: {time: ms}},'
        " allow: {left-running: the daemon is what is looked for}}]}\n",
    )
    process = start("run", "flow.yaml", "--progress", "off", cwd=tmp_path)
    wait_until(lambda: is_left(nap), "no daemon was started")
    process.send_signal(number)
    _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, err
    assert not is_left(nap)
    assert "--resume=" in err
