"""Processes that a child leaves running, and paused children, with real daemons and real signals."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from perfflow.execute.child import ChildExit, Ended, Left, Spawner, Watchdog, is_stopped
from tests.execute.test_child import (
    CLIENT,
    DEADLINE,
    client,
    env,
    in_thread,
    marked,
    python,
    run,
    wait_for,
    wait_until,
    wait_until_gone,
)

PYTHON = sys.executable


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
    for entry in processes():
        with suppress(OSError):
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            if arguments[-2:-1] == [word.encode()] and b"time.sleep" in arguments[2]:
                found.append(int(entry.name))
    return found


def wait_for_daemon(word: str) -> None:
    wait_until(lambda: bool(with_word(word)), "the daemon did not start")


def wait_until_ended(word: str) -> None:
    wait_until(lambda: not with_word(word), "the daemon is still there")


def processes() -> list[Path]:
    """Return the folders of all processes in /proc."""
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def test_a_time_limit_ends_a_daemon_that_hides_from_everything(keeper: Spawner, tmp_path: Path) -> None:
    word = f"daemon-{tmp_path.name}"
    seen = in_thread(lambda: wait_for_daemon(word))
    done = run(keeper, "bash", "-c", f"{PYTHON} -c '{DAEMON}' {word}; sleep 300", timeout=1.5)
    seen.join()
    assert done.ended is Ended.TIMEOUT
    wait_until_ended(word)


def test_a_daemon_lives_as_long_as_the_spawner_and_no_longer(fresh: Spawner, tmp_path: Path) -> None:
    """A step may start a service for later steps; the run ends it."""
    word = f"service-{tmp_path.name}"
    done = run(fresh, *python(DAEMON), word)
    assert (done.status, done.ended) == (0, Ended.EXITED)
    wait_for_daemon(word)
    run(fresh, "true")
    assert with_word(word)
    fresh.close()
    wait_until_ended(word)


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
    thread = in_thread(lambda: ended.append(run(fresh, "bash", "-c", script, timeout=1.2)))
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
    process = client(f"echo up > {ready}; sleep 300", "frozen", text)
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
    for entry in processes():
        with suppress(OSError):
            if (entry / "stat").read_text().rpartition(")")[2].split()[1] == str(pid):
                found.append(int(entry.name))
    return found


def left_by(keeper: Spawner, script: str, left: Left, mark: str = "left") -> tuple[str, ...]:
    return run(keeper, "bash", "-c", script, mark=mark, left=left).left


def test_what_is_left_running_is_named_and_ended(fresh: Spawner) -> None:
    script = "sleep 300 & setsid sleep 301 & env -i sleep 302 & sleep 303 & true"
    assert left_by(fresh, "true", Left.NAME) == ()
    assert left_by(fresh, script, Left.NAME)[3:] == ("...",)
    wait_until_gone("left")
    assert left_by(fresh, "true", Left.NAME) == ()


def test_what_hides_from_everything_is_named(fresh: Spawner, tmp_path: Path) -> None:
    word = f"hidden-{tmp_path.name}"
    (said,) = left_by(fresh, f"{PYTHON} -c '{DAEMON}' {word}", Left.NAME)
    assert said.startswith(PYTHON)
    wait_until_ended(word)


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

    stopper = in_thread(stop)
    done = run(fresh, "bash", "-c", f"kill -STOP $PPID; echo go > {ready}; sleep 300", mark="asked")
    stopper.join()
    assert done.ended is Ended.STOPPED


def test_closing_a_stopped_spawner_ends_it_and_its_children(tmp_path: Path) -> None:
    keeper = Spawner()
    leave = "(setsid sleep 300 &) ; echo $PPID"
    keeper.run(["bash", "-c", leave], env=env("left"), cwd=tmp_path, stdout=tmp_path / "pid")
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_stopped(pid), "it was not stopped")
    keeper.close()
    assert not is_stopped(pid)
    wait_until_gone("left")


@pytest.mark.parametrize("ignoring", ["", "trap '' INT TERM; "])
def test_a_child_that_floods_its_output_is_ended(fresh: Spawner, tmp_path: Path, ignoring: str) -> None:
    out = tmp_path / "out"
    script = f"ulimit -f 4000000; {ignoring}yes xxxxxxxxxxxxxxxxxxxxxxxxx; :"
    assert run(fresh, "bash", "-c", script, mark="flood", stdout=out, limits={out: 10**6}).ended is Ended.FLOODED
    wait_until_gone("flood")
    assert run(fresh, "true").ended is Ended.EXITED


def test_output_within_its_limit_is_nobodys_business(fresh: Spawner, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = "import time\nprint('x' * 900_000, flush=True)\ntime.sleep(0.5)"
    done = run(fresh, *python(text), stdout=out, limits={out: 10**6})
    assert (done.ended, done.stalled, out.stat().st_size) == (Ended.EXITED, False, 900_001)


def test_a_file_that_is_not_there_has_no_length(tmp_path: Path) -> None:
    watchdog = Watchdog(os.getpid(), {tmp_path / "none": 1})
    assert watchdog.check() is False
    assert watchdog.was_stopped() is False
