"""Processes that a child leaves running, and paused children, with real daemons and real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfflow.execute.child import ChildExit, Ended, Left, Spawner
from tests.execute.test_child import (
    CLIENT,
    DEADLINE,
    client,
    env,
    marked,
    python,
    run,
    wait_for,
    wait_until,
    wait_until_gone,
)

PYTHON = sys.executable


@pytest.fixture(scope="module")
def keeper() -> Iterator[Spawner]:
    with Spawner() as found:
        yield found


@pytest.fixture
def fresh() -> Iterator[Spawner]:
    """Yield a spawner that a test may stop or close."""
    with Spawner() as found:
        yield found


DAEMON = """
import os, sys, time
# A full daemon: two forks, its own session, no open files, an empty environment.
# Until it leaves the process group of this program, it is killed with the group.
leader = os.fork()
if leader:
    os.waitpid(leader, 0)
else:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        os.closerange(0, 100)
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(300)", sys.argv[1]], {})
    os._exit(0)
"""


def with_word(word: str) -> list[int]:
    """Return the processes whose last argument is ``word``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if arguments[-2:-1] == [word.encode()] and b"time.sleep" in arguments[2]:
                found.append(int(entry.name))
    return found


def wait_for_daemon(word: str) -> None:
    wait_until(lambda: bool(with_word(word)), "the daemon did not start")


def test_a_time_limit_ends_a_daemon_that_hides_from_everything(keeper: Spawner, tmp_path: Path) -> None:
    word = f"daemon-{tmp_path.name}"
    script = f"{PYTHON} -c '{DAEMON}' {word}; sleep 300"
    seen = threading.Thread(target=wait_for_daemon, args=(word,))
    seen.start()
    done = run(keeper, "bash", "-c", script, timeout=1.5)
    seen.join()
    assert done.ended is Ended.TIMEOUT
    wait_until(lambda: not with_word(word), "the daemon is still there")


def test_a_daemon_lives_as_long_as_the_spawner_and_no_longer(fresh: Spawner, tmp_path: Path) -> None:
    """A step may start a service for later steps; the run ends it."""
    word = f"service-{tmp_path.name}"
    done = run(fresh, *python(DAEMON), word)
    assert (done.status, done.ended) == (0, Ended.EXITED)
    wait_for_daemon(word)
    run(fresh, "true")
    assert with_word(word)
    fresh.close()
    wait_until(lambda: not with_word(word), "the daemon is still there")


def test_a_daemon_ends_when_perfflow_is_killed(tmp_path: Path) -> None:
    word = f"orphan-{tmp_path.name}"
    process = client(f"{PYTHON} -c '{DAEMON}' {word}; sleep 300", "orphan")
    wait_for_daemon(word)
    process.kill()
    process.wait()
    wait_until(lambda: not with_word(word) and not marked("orphan"), "something is still there")


def test_orphans_that_end_leave_no_zombies(keeper: Spawner, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(5):
        run(keeper, "bash", "-c", "(setsid sleep 0.05 &) ; exit 0")
    time.sleep(0.5)
    run(keeper, "true")
    run(keeper, "bash", "-c", "ps -o stat= --ppid $PPID", stdout=out)
    assert "Z" not in out.read_text()


def test_a_paused_child_stands_still_and_its_time_limit_with_it(fresh: Spawner, tmp_path: Path) -> None:
    ticks = tmp_path / "ticks"
    ended: list[ChildExit] = []
    script = f"for n in {{1..5}}; do echo >> {ticks}; sleep 0.05; done"
    thread = threading.Thread(target=lambda: ended.append(run(fresh, "bash", "-c", script, timeout=1.2)))
    thread.start()
    wait_until(ticks.exists, "it did not start")
    fresh.pause()
    time.sleep(0.1)
    before = ticks.read_text()
    time.sleep(1.3)
    assert ticks.read_text() == before
    fresh.resume()
    thread.join(DEADLINE)
    assert (ended[0].status, ended[0].ended) == (0, Ended.EXITED)
    assert ended[0].paused > 1.2
    assert len(ticks.read_text()) == 5
    assert run(fresh, "true").paused == 0


def test_pausing_when_nothing_runs_changes_nothing(fresh: Spawner) -> None:
    for _ in range(3):
        fresh.pause()
        fresh.resume()
        assert run(fresh, "true").status == 0


def test_a_paused_child_ends_with_perfflow(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = CLIENT.replace(
        "with Spawner() as keeper:",
        "import signal\nwith Spawner() as keeper:\n    signal.signal(signal.SIGTSTP, lambda *_: keeper.pause())",
    )
    root = str(Path(__file__).parents[2])
    script = f"echo up > {ready}; sleep 300"
    process = subprocess.Popen([PYTHON, "-c", text, script, "frozen"], env={**os.environ, "PYTHONPATH": root})
    wait_for(ready)
    process.send_signal(signal.SIGTSTP)
    wait_until(lambda: all("T" in state(pid) for pid in marked("frozen")), "it was not paused")
    assert marked("frozen")
    process.kill()
    process.wait()
    wait_until_gone("frozen")


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def with_parent(pid: int) -> list[int]:
    """Return the children of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if parent == str(pid):
                found.append(int(entry.name))
    return found


def left_by(keeper: Spawner, script: str, left: Left, mark: str = "left") -> tuple[str, ...]:
    return keeper.run(["bash", "-c", script], env=env(mark), cwd=Path("/"), left=left).left


def test_what_is_left_running_is_named_and_ended(fresh: Spawner) -> None:
    assert left_by(fresh, "true", Left.NAME) == ()
    assert left_by(fresh, "sleep 300 & setsid sleep 301 & env -i sleep 302 & sleep 303 & true", Left.NAME)[3:] == (
        "...",
    )
    wait_until_gone("left")
    assert left_by(fresh, "true", Left.NAME) == ()


def test_what_hides_from_everything_is_named(fresh: Spawner, tmp_path: Path) -> None:
    word = f"hidden-{tmp_path.name}"
    (said,) = left_by(fresh, f"{PYTHON} -c '{DAEMON}' {word}", Left.NAME)
    assert said.startswith(PYTHON)
    wait_until(lambda: not with_word(word), "the daemon is still there")


def test_what_may_stay_is_named_by_the_child_that_left_it_and_not_ended(fresh: Spawner) -> None:
    (said,) = left_by(fresh, "setsid sleep 300 & true", Left.ALLOW)
    assert "sleep 300" in said
    assert left_by(fresh, "true", Left.ALLOW) == ()
    assert len(marked("left")) == 1
    fresh.close()
    wait_until_gone("left")


def test_what_an_earlier_child_left_is_not_the_next_ones(fresh: Spawner) -> None:
    """Processes that it starts meanwhile, and whose parent ends, do not count for the next child either."""
    left_by(fresh, "setsid bash -c 'while :; do (sleep 0.3 &); sleep 0.01; done' & true", Left.ALLOW, "daemon")
    for _ in range(10):
        assert left_by(fresh, "sleep 0.02", Left.NAME) == ()
    assert marked("daemon")


@pytest.mark.parametrize("script", ["true &", "cat /dev/null > >(cat)", "(sleep 0.001 &)"])
def test_what_only_ends_a_little_later_is_not_left_running(fresh: Spawner, script: str) -> None:
    assert left_by(fresh, f"sleep 0.1; {script}", Left.NAME) == ()


def test_work_of_a_few_milliseconds_is_left_running(fresh: Spawner) -> None:
    text = "import time\nwhile time.process_time() < 0.1: pass"
    (said,) = left_by(fresh, f"{PYTHON} -c '{text}' &", Left.NAME)
    assert said.startswith(f"{PYTHON} -c import time")
