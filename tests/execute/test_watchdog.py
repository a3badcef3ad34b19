"""The checks of a spawner's client: a stopped spawner, and a child that prints too much."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfflow.execute.child import MARK, Ended, Spawner, Watchdog, is_stopped
from tests.execute.test_child import env, python, run, wait_for, wait_until, wait_until_gone


@pytest.fixture
def fresh() -> Iterator[Spawner]:
    with Spawner() as found:
        yield found


def test_a_stopped_spawner_goes_on_and_the_time_is_known_to_be_wrong(fresh: Spawner, tmp_path: Path) -> None:
    done = run(fresh, "bash", "-c", "kill -STOP $PPID; echo done", stdout=tmp_path / "out", timeout=60)
    assert (done.status, done.ended, done.stalled) == (0, Ended.EXITED, True)
    assert (tmp_path / "out").read_text() == "done\n"
    assert run(fresh, "true").stalled is False


def test_a_stop_that_is_over_before_anybody_looks_is_known_too(fresh: Spawner) -> None:
    assert run(fresh, "bash", "-c", "kill -STOP $PPID; sleep 0.05; kill -CONT $PPID").stalled is True
    assert run(fresh, "true").stalled is False


def test_the_time_limit_holds_for_what_stops_its_spawner(fresh: Spawner) -> None:
    done = run(fresh, "bash", "-c", "kill -STOP $PPID; sleep 300", mark="limited", timeout=0.5)
    assert (done.ended, done.stalled) == (Ended.TIMEOUT, True)
    wait_until_gone("limited")


def test_what_stops_it_again_and_again_is_ended_and_the_spawner_lives(fresh: Spawner) -> None:
    script = "trap '' INT TERM; exec 2>&-; while :; do kill -STOP $PPID; done"
    done = run(fresh, "bash", "-c", script, mark="again")
    assert (done.status, done.stalled) == (-signal.SIGKILL, True)
    wait_until_gone("again")
    assert run(fresh, "true").status == 0


def test_one_that_was_stopped_before_a_child_starts_starts_it(fresh: Spawner, tmp_path: Path) -> None:
    run(fresh, "bash", "-c", f"echo $PPID > {tmp_path}/pid")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGSTOP)
    assert run(fresh, "true").status == 0


def test_a_stopped_spawner_can_be_asked_to_stop_its_child(fresh: Spawner, tmp_path: Path) -> None:
    ready = tmp_path / "ready"

    def stop() -> None:
        wait_for(ready)
        fresh.stop()

    stopper = threading.Thread(target=stop)
    stopper.start()
    done = run(fresh, "bash", "-c", f"kill -STOP $PPID; echo go > {ready}; sleep 300", mark="asked")
    stopper.join()
    assert done.ended is Ended.STOPPED


def test_closing_a_stopped_spawner_ends_it_and_its_children(tmp_path: Path) -> None:
    keeper = Spawner()
    leave = "(setsid sleep 300 &) ; echo $PPID"
    env_ = {**env("left"), MARK: "left"}
    keeper.run(["bash", "-c", leave], env=env_, cwd=tmp_path, stdout=tmp_path / "pid")
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_stopped(pid), "it was not stopped")
    keeper.close()
    assert not is_stopped(pid)
    wait_until_gone("left")


def test_a_child_that_floods_its_output_is_ended(fresh: Spawner, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for ignoring in ("", "trap '' INT TERM; "):
        script = f"{ignoring}yes xxxxxxxxxxxxxxxxxxxxxxxxx; :"
        done = fresh.run(
            ["bash", "-c", f"ulimit -f 4000000; {script}"],
            env=env("flood"),
            cwd=tmp_path,
            stdout=out,
            limits={out: 10**6},
        )
        assert done.ended is Ended.FLOODED
        wait_until_gone("flood")
    assert run(fresh, "true").ended is Ended.EXITED


def test_output_within_its_limit_is_nobodys_business(fresh: Spawner, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = "import time\nprint('x' * 900_000, flush=True)\ntime.sleep(0.5)"
    done = fresh.run(python(text), env=env(), cwd=tmp_path, stdout=out, limits={out: 10**6})
    assert (done.ended, done.stalled, out.stat().st_size) == (Ended.EXITED, False, 900_001)


def test_a_file_that_is_not_there_has_no_length(tmp_path: Path) -> None:
    watchdog = Watchdog(os.getpid(), {tmp_path / "none": 1})
    assert watchdog.check() is False
    assert watchdog.was_stopped() is False
