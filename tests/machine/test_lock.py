"""One measurement at a time on a host, in order of arrival, also across processes and users."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfflow.machine import lock
from perfflow.machine.lock import LockError, LockQueue, LockTimeoutError, machine_alone

DEADLINE = 30.0
RUN = """
import os, sys
from perfflow.machine import lock
from perfflow.machine.lock import machine_alone
lock.RECHECK_SECONDS = float(sys.argv[2])
if sys.argv[3]:  # only now: the interpreter may lie where the other user cannot read
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[3]))
def waiting(queue):
    print("waiting", queue.place, queue.holder, flush=True)
with machine_alone(sys.argv[1], 60, waiting):
    print("held", flush=True)
    sys.stdin.readline()
print("over", flush=True)
"""
"""Holds the machine from the line `held` until it reads a line or the end of its input."""
TAMPERING = """
import os, sys
os.setuid(int(sys.argv[2]))
for act in (os.unlink, lambda path: os.truncate(path, 0)):
    try:
        act(sys.argv[1])
    except PermissionError:
        print("refused")
"""
OTHER_USER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(lock.HELD, raising=False)
    monkeypatch.setenv(lock.PLACE, str(tmp_path / "lock"))
    return tmp_path / "lock"


@pytest.fixture
def everybody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A lock for all users, in a sticky folder of root such as /tmp; other users cannot enter pytest's own folders."""
    with tempfile.TemporaryDirectory(prefix="perfflow-lock-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        monkeypatch.setenv(lock.PLACE, str(folder / "lock"))
        yield folder / "lock"


class Other:
    """Another process that waits for the machine."""

    def __init__(self, who: str, user: int | None = None, look_again: float = 0.2) -> None:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
        pipe = subprocess.PIPE
        argv = [sys.executable, "-c", RUN, who, str(look_again), str(user or "")]
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=env)
        self.said: list[str] = []
        # A test that waits for a line that never comes sees the end.
        self.watch = threading.Timer(2 * DEADLINE, self.process.kill)
        self.watch.daemon = True
        self.watch.start()

    def says(self, word: str) -> str:
        """Return the next line with this prefix."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if line.startswith(word):
                return self.said[-1]
        raise AssertionError(f"{word!r} was never said, but {self.said}")

    def leave(self) -> None:
        """Release the machine, and wait until it is released."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.says("over")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE)


@pytest.fixture
def others() -> Iterator[Callable[..., Other]]:
    """A function that starts another process, and waits until it says ``held`` or what is asked for."""
    started: list[Other] = []

    def start(who: str, says: str = "held", **options: Any) -> Other:
        started.append(Other(who, **options))
        started[-1].says(says)
        return started[-1]

    yield start
    for other in started:
        other.watch.cancel()
        other.process.kill()
        other.process.communicate()


def attempt(who: str = "me", timeout: float = 0.3) -> list[LockQueue]:
    """The place in the queue of a run that gave up."""
    told: list[LockQueue] = []
    with pytest.raises(LockTimeoutError):
        machine_alone(who, timeout, told.append).__enter__()
    return told


def take(timeout: float = 0.1) -> None:
    """Take the machine and release it."""
    with machine_alone("me", timeout, print):
        pass


def require_refused(match: str) -> None:
    with pytest.raises(LockError, match=match):
        take()


def ticket_of(place: Path, who: str) -> Path:
    """Return the only ticket of this run."""
    (found,) = [path for path in place.parent.iterdir() if json.loads(path.read_text())["who"] == who]
    return found


def test_a_second_process_waits_and_a_killed_holder_holds_nothing(others: Callable[..., Other]) -> None:
    first = others("nightly, step decode")
    require_refused(rf"held by nightly, step decode \(\w+, pid {first.process.pid}, since")
    assert [queue.place for queue in attempt()] == [1]
    first.kill()
    take()


def test_the_lock_is_free_after_an_exception_and_leaves_no_file(place: Path) -> None:
    with pytest.raises(RuntimeError), machine_alone("me", 1, print):
        raise RuntimeError
    with machine_alone("again", 1, print):
        (ticket,) = place.parent.iterdir()
        assert ticket == ticket_of(place, "again")
        assert oct(ticket.stat().st_mode & 0o777) == "0o644", "everybody reads it, its owner alone writes it"
    assert list(place.parent.iterdir()) == []


def test_eight_runs_are_served_in_order_of_arrival_while_two_are_killed(others: Callable[..., Other]) -> None:
    # Each is in the queue before the next one arrives.
    runs = [others("run 0"), *(others(f"run {number}", f"waiting {number} run 0 (") for number in range(1, 8))]
    runs[3].kill()
    runs[6].kill()
    left = [run for number, run in enumerate(runs) if number not in (3, 6)]
    for number, run in enumerate(left):
        if number:
            run.says("held")
        for later in left[number + 1 :]:
            assert "held" not in later.said
        run.leave()
    take()


def test_a_killed_holder_and_a_killed_waiter_stop_nobody(others: Callable[..., Other]) -> None:
    first, second, third = others("first"), others("second", "waiting 1"), others("third", "waiting 2 first")
    first.kill()
    second.says("held")
    third.says("waiting 1 second")
    second.kill()
    third.says("held")
    third.leave()


def test_a_waiting_run_costs_next_to_no_cpu_time(others: Callable[..., Other]) -> None:
    others("first")
    second = others("second", "waiting", look_again=lock.RECHECK_SECONDS)

    def ticks() -> int:
        fields = Path(f"/proc/{second.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    time.sleep(0.2)
    before = ticks()
    time.sleep(2)
    assert ticks() - before <= 1, "polling five times a second took ten times as much"


def test_what_a_waiting_run_is_told_is_kept_up_to_date(
    others: Callable[..., Other], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run further ahead leaves, which only wakes the run just behind it."""
    monkeypatch.setattr(lock, "RECHECK_SECONDS", 0.1)
    first, second = others("first"), others("second", "waiting")
    told: list[LockQueue] = []

    def waiting(queue: LockQueue) -> None:
        told.append(queue)
        if queue.place == 2 and len(told) == 2:
            first.leave()
            second.says("held")
        if queue.place == 1 and second.process.poll() is None and "over" not in second.said:
            second.leave()

    with machine_alone("me", DEADLINE, waiting):
        pass
    assert [queue.place for queue in told[:2]] == [2, 2]
    assert told[-1].place == 1
    assert told[-1].holder.startswith("second (")


def test_children_do_not_inherit_the_lock() -> None:
    with machine_alone("me", 1, print):
        sleeper = subprocess.Popen(["sleep", "300"], close_fds=False)
    try:
        take(timeout=1)
    finally:
        sleeper.kill()
        sleeper.wait()


def inner(held: str) -> subprocess.CompletedProcess[str]:
    """Take the lock in a child process, as a perfflow inside a step does."""
    code = "from perfflow.machine.lock import machine_alone\nwith machine_alone('inner', 0.1, print): pass"
    env = os.environ | {lock.HELD: held}
    argv = [sys.executable, "-c", code]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=DEADLINE, check=False)


def test_under_the_parents_lock_there_is_nothing_to_wait_for() -> None:
    with machine_alone("outer", DEADLINE, print):
        done = inner(str(os.getpid()))
    assert done.returncode == 0, done.stderr


def test_what_names_no_holder_above_waits_like_everybody(
    others: Callable[..., Other], monkeypatch: pytest.MonkeyPatch
) -> None:
    others("the other one")
    # The last is above this process but does not hold the machine, as after a step whose daemon kept the variable.
    for held in ("run-1", "yes", "1", "²", str(os.getpid())):
        done = inner(held)
        assert done.returncode == 1
        assert "LockTimeoutError" in done.stderr
        monkeypatch.setenv(lock.HELD, held)
        attempt("inner", 0.1)


def test_a_file_at_the_place_of_the_lock_is_left_alone(place: Path) -> None:
    place.write_text("somebody (pid 1, since 10:00:00)")
    take()
    assert place.read_text() == "somebody (pid 1, since 10:00:00)"


def test_a_place_that_cannot_be_used_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(lock.PLACE, str(tmp_path / "none" / "lock"))
    require_refused(r"cannot open the measuring lock .*/none/lock: No such file")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv(lock.PLACE, str(open_to_all / "lock"))
    require_refused("writable for all users but not sticky")


def test_the_default_is_one_place_for_the_host_whatever_the_users_folder_for_temporary_files_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(lock.PLACE)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = lock.path()
    assert found.name == "perfflow-measuring.lock"
    assert not found.is_relative_to(tmp_path)
    if os.geteuid() == 0:
        own = tmp_path / "theirs"
        own.mkdir()
        os.chown(own, OTHER_USER, OTHER_USER)
        monkeypatch.setattr(lock, "_FOLDERS", (str(own), str(tmp_path)))
        assert lock.path().parent == tmp_path, "the next place"


def test_a_ticket_that_is_removed_while_it_waits_is_not_held_twice(place: Path, others: Callable[..., Other]) -> None:
    """For example by a cleaner of temporary folders."""
    first = others("first")
    told: list[LockQueue] = []

    def remove(queue: LockQueue) -> None:
        told.append(queue)
        if len(told) == 1:
            ticket_of(place, "me").unlink()
            first.kill()

    with machine_alone("me", DEADLINE, remove):
        assert attempt("another")[0].holder.startswith("me (")


def test_a_stopped_run_keeps_nobody_waiting(others: Callable[..., Other]) -> None:
    """^Z: `session.pause` calls this before the process stops."""
    first = others("first")
    behind: list[Other] = []

    def waiting(queue: LockQueue) -> None:
        if not behind:
            behind.append(others("behind", "waiting 2"))
            lock.stand_aside()
            first.leave()
            behind[0].says("held")
        elif queue.holder.startswith("behind") and "over" not in behind[0].said:
            behind[0].leave()

    with machine_alone("me", DEADLINE, waiting):
        assert "over" in behind[0].said


def test_many_threads_never_hold_it_at_once(place: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def hold() -> None:
        for _ in range(8):
            with machine_alone("thread", DEADLINE, lambda _: None):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=hold) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert most == [1] * 48
    assert list(place.parent.iterdir()) == []


# -- tickets of other users


def planted(place: Path, number: int = 1) -> Path:
    """A possible name of a ticket."""
    return place.with_name(f"{place.name}.{number}.{'0' * 16}")


def test_a_ticket_is_never_made_where_somebody_put_a_link(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = place.with_name("target")
    target.write_text("precious")
    planted(place).symlink_to(target)
    monkeypatch.setattr("secrets.token_hex", lambda _: "0" * 16)
    require_refused("File exists")
    assert target.read_text() == "precious"
    assert planted(place).is_symlink()


def test_links_fifos_folders_and_files_of_the_dead_hold_nothing(place: Path) -> None:
    target = place.with_name("target")
    target.write_text("precious")
    link, fifo, folder, dead = (planted(place, number) for number in range(1, 5))
    link.symlink_to(target)
    os.mkfifo(fifo)
    folder.mkdir()
    dead.write_text("dead")
    place.symlink_to(target)
    take()
    assert not dead.exists(), "what a dead run of this user left is removed"
    assert target.read_text() == "precious"
    assert all(path.exists() for path in (link, fifo, folder))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"", "another perfflow ("),
        (b"\xff\xfe{", "another perfflow ("),
        (b"[" * 5000, "another perfflow ("),
        (b"[1, 2]", "another perfflow ("),
        (b'{"who": {"a": 1}, "pid": "x", "since": null}', "another perfflow ("),
        (b'{"who": "   ", "pid": -1, "since": NaN}', "another perfflow ("),
        (b'{"who": "a\\u001b[31m\\u202eb\\ndone", "pid": 12, "since": 1e400}', "a?[31m?b?done ("),
        (b'{"who": "' + b"x" * 3000 + b'", "since": -5}', "x" * 200 + " ("),
    ],
)
def test_what_a_ticket_says_is_cleaned_before_it_is_shown(place: Path, text: bytes, shown: str) -> None:
    with machine_alone("somebody", 1, print):
        (ticket,) = place.parent.iterdir()
        ticket.write_bytes(text)
        (queue,) = attempt()
    assert queue.holder.startswith(shown)
    assert queue.holder.isprintable()
    assert len(queue.holder) < 300


def test_a_ticket_with_the_highest_number_makes_no_ticket_that_nobody_sees(place: Path) -> None:
    last = planted(place, 10**12 - 1)
    with last.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        require_refused("the numbers of tickets are used up by another perfflow")
    take()
    assert not last.exists()


def test_another_name_of_ones_own_ticket_is_not_waited_for(place: Path, others: Callable[..., Other]) -> None:
    first = others("first")

    def link(_: LockQueue) -> None:
        planted(place, 0).hardlink_to(ticket_of(place, "me"))
        first.leave()

    with machine_alone("me", DEADLINE, link):
        assert planted(place, 0).exists()


def test_a_folder_full_of_tickets_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "MOST", 3)
    for number in range(4):
        os.mkfifo(planted(place, number))
    require_refused("over 3 tickets")


@as_root
def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o777)
    os.chown(theirs, OTHER_USER, OTHER_USER)
    monkeypatch.setenv(lock.PLACE, str(theirs / "lock"))
    require_refused(r"the folder .*/theirs belongs to \w+")
    assert list(theirs.iterdir()) == []


@as_root
def test_two_users_wait_for_each_other_in_order(everybody: Path, others: Callable[..., Other]) -> None:
    first = others("theirs", user=OTHER_USER)
    (ticket,) = everybody.parent.iterdir()
    assert ticket.stat().st_uid == OTHER_USER
    mine = others("root's", "waiting 1 theirs (nobody, pid ")
    third = others("theirs again", "waiting 2 theirs (nobody, pid ", user=OTHER_USER)
    first.leave()
    mine.says("held")
    third.says("waiting 1 root's (root, pid ")
    mine.kill()
    third.says("held")
    third.leave()
    assert everybody.parent.stat().st_mode & 0o7777 == 0o1777


@as_root
def test_another_user_can_neither_take_away_a_ticket_nor_be_kept_out_by_a_dead_one(
    everybody: Path, others: Callable[..., Other]
) -> None:
    mine = others("root's")
    (ticket,) = everybody.parent.iterdir()
    argv = [sys.executable, "-c", TAMPERING, str(ticket), str(OTHER_USER)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout == "refused\nrefused\n", done.stderr
    mine.kill()
    theirs = others("theirs", user=OTHER_USER)
    assert ticket.exists(), "the other user cannot remove it"
    theirs.leave()
    take()
    assert not ticket.exists(), "its owner's next run does"
