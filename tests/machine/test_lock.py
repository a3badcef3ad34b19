"""One measurement at a time on a host, also across processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.machine import lock
from perfflow.machine.lock import LockError, LockTimeoutError, machine_alone

HOLDER = """
import sys, time
from perfflow.machine.lock import machine_alone
with machine_alone("the other one", 5, print):
    print("held", flush=True)
    time.sleep(300)
"""


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(lock.HELD, raising=False)
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    return tmp_path / "lock"


def other() -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_waits_and_a_killed_holder_holds_nothing() -> None:
    told: list[str] = []
    with other() as process:
        with pytest.raises(LockTimeoutError, match=rf"held by the other one \(pid {process.pid}, since"):
            machine_alone("me", 0.3, told.append).__enter__()
        assert len(told) == 1
        process.send_signal(signal.SIGKILL)
    with machine_alone("me", 20, told.append):
        pass


def test_the_lock_is_free_after_an_exception_and_names_its_last_holder(own_lock: Path) -> None:
    with pytest.raises(RuntimeError), machine_alone("me", 1, print):
        raise RuntimeError
    with machine_alone("again", 1, print):
        assert own_lock.read_text().startswith(f"again (pid {os.getpid()}")


def test_children_do_not_inherit_the_lock(own_lock: Path) -> None:
    with machine_alone("me", 1, print):
        sleeper = subprocess.Popen(["sleep", "300"], close_fds=False)
    try:
        with machine_alone("me again", 1, print):
            pass
    finally:
        sleeper.kill()
        sleeper.wait()


def test_under_the_parents_lock_there_is_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with other() as process:
        monkeypatch.setenv(lock.HELD, "run-1")
        with machine_alone("inner", 0.1, print):
            pass
        process.kill()


def test_a_lock_file_of_another_user_that_is_writable_is_used(own_lock: Path) -> None:
    own_lock.write_text("left by another, " * 50)
    own_lock.chmod(0o666)
    with machine_alone("me", 1, print):
        assert own_lock.read_text().startswith("me (pid")
    assert oct(own_lock.stat().st_mode & 0o777) == "0o666"


def test_a_path_that_cannot_be_opened_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path))
    with pytest.raises(LockError, match="Is a directory"):
        machine_alone("me", 1, print).__enter__()


def test_the_default_is_one_file_for_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFFLOW_LOCK_FILE")
    assert lock.path().name == "perfflow-measuring.lock"


def test_a_lock_file_that_is_removed_while_it_is_waited_for_is_not_held_twice(own_lock: Path) -> None:
    """Who cleans temporary folders does that."""
    held: list[str] = []

    def remove(_: str) -> None:
        own_lock.unlink()
        first.send_signal(signal.SIGKILL)

    with other() as first, machine_alone("me", 20, remove):
        held.append(own_lock.read_text())
        with pytest.raises(LockTimeoutError, match="held by me"):
            machine_alone("another", 0.3, lambda _: None).__enter__()
    assert held[0].startswith("me (pid")
