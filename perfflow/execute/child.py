"""Client of the spawner process: run a child in its own process group, limit and stop it, report its usage.

While a child runs, ``Watchdog`` checks how much it has printed and whether its spawner was stopped: the spawner is idle
then, and cannot notice its own stop. A check takes some microseconds in the process that waits for the answer. A child
that ends within ``_FIRST`` seconds is never checked.
"""

from __future__ import annotations

import contextlib
import marshal
import math
import os
import secrets
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from signal import SIGCONT
from types import TracebackType
from typing import Any, Final, Literal, Self

from perfflow.execute import spawner
from perfflow.execute.deadline import Deadline
from perfflow.machine import orphans
from perfflow.machine.orphans import end_below
from perfflow.model.errors import StepError, UserError
from perfflow.model.readings import Usage

MARK = "PERFFLOW_MARK"
"""Environment variable that all descendants inherit. It identifies descendants that left the session."""
GRACE = 5.0
"""Seconds between INT, TERM and KILL, in which profilers can write their file."""
_PEEK_SIZE = 4096
"""Most answers are shorter than this number of bytes."""
_CLOSE_TIMEOUT = 0.5
"""Seconds to wait for a closed spawner before checking whether it is stopped."""


_SPAWNER_GONE = "the process that starts and watches children ended unexpectedly (was it killed?)"
_BASH_START = str(Path(spawner.__file__).with_name("bash_start.sh"))
_BOOT = "import sys; sys.path.append(sys.argv[1]); from perfflow.execute import spawner; spawner.main()"


class Ended(StrEnum):
    """Why a child is no longer running."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    FLOODED = "flooded"
    """It printed more than its limit."""
    OUT_OF_TIME = "out of time"
    """The time of the whole command was over."""


@dataclass(frozen=True)
class ChildExit:
    """The exit of a child. ``status`` is its exit code, or minus the number of the signal that killed it."""

    status: int
    ended: Ended
    usage: Usage
    paused: float = 0.0
    """Seconds for which ``pause`` stopped it. They are part of its wall time."""
    left: tuple[str, ...] = ()
    """Command lines of processes it left running, at most three and ``...``; empty with ``Left.END``."""
    stalled: bool = False
    """Whether the spawner was stopped while the child ran, so that all times are wrong."""


def ending(status: int) -> str:
    """Return how a child ended, such as "exited with 1"."""
    return f"was killed by signal {-status}" if status < 0 else f"exited with {status}"


class Left(StrEnum):
    """How to treat processes that a child leaves running: end them, report and end them, or only report them."""

    END = spawner.END
    NAME = spawner.NAME
    ALLOW = spawner.ALLOW


PIPE: Final = "pipe"
"""Value of ``stdout`` for a pipe that the spawner empties."""


class StartError(StepError):
    """The program could not be started: not found, not executable, or a file for its output could not be opened."""


class OutOfTimeError(StartError):
    """The time of the whole command was over before the program could be started."""


def find_program(name: str, path: str, cwd: Path) -> str | None:
    """Return the absolute path of an executable, None if there is none.

    A name with a slash is relative to ``cwd``; others are looked up on ``path``. Relative and empty entries of ``path``
    start at ``cwd``, as they do for the process itself.
    """
    for file in [str(cwd / name)] if os.sep in name else [folder + name for folder in _folders(path, str(cwd))]:
        if os.access(file, os.X_OK) and not os.path.isdir(file):  # noqa: PTH112
            return file
    return None


@lru_cache(maxsize=8)
def _folders(path: str, cwd: str) -> tuple[str, ...]:
    """Return the absolute folders of PATH, each with a separator at its end.

    Stored because joining the entries for each process would take longer than starting the program.
    """
    return tuple(str(Path(cwd, entry)).rstrip(os.sep) + os.sep for entry in path.split(os.pathsep))


class Spawner:
    """A client of one spawner process, for one thread at a time. ``stop`` may be called from any thread.

    Its children carry a mark of this spawner, so that a sweep does not kill children of other spawners.
    """

    def __init__(self, deadline: Deadline | None = None, command: Sequence[str] = ()) -> None:
        """``deadline``: when its children must have ended. ``command`` starts the process, such as in a sandbox."""
        self.deadline = deadline or Deadline()
        if not hasattr(os, "pidfd_open"):
            raise UserError.of("running workflows needs Linux 5.4 or later", "validate, compare and report work here")
        # Reentrant: a signal handler may call `pause` while its thread holds the lock.
        self._lock = threading.RLock()
        self._sender: int | None = None
        self._stopped = False
        self._flooded = False
        """Whether the child is ended because it printed too much, not because of a request to stop before."""
        self._expecting = False
        self._watchdog: Watchdog | None = None
        self._within: Spawner | None = None
        self._token = secrets.token_hex(4)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                list(command) or [sys.executable, "-I", "-S", "-c", _BOOT, str(Path(spawner.__file__).parents[2])],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket = ours
        self._poller = select.poll()
        self._poller.register(ours, select.POLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the spawner, which is the parent of its children, or of all that is in its sandbox."""
        return self._within.pid if self._within else self._process.pid

    @contextlib.contextmanager
    def within(self, command: Sequence[str]) -> Iterator[Spawner]:
        """Yield a spawner that ``command`` starts, in a sandbox, and that is stopped and paused together with this one.

        Its children end with the context. Raises KeyboardInterrupt after ``stop``.
        """
        inner = Spawner(self.deadline, command)
        try:
            with self._lock:
                self._within = inner
                if self._stopped:
                    raise KeyboardInterrupt
            yield inner
        finally:
            with self._lock:
                self._within = None
            inner.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdout: Path | Literal["pipe"] | None = None,
        stderr: Path | None = None,
        timeout: float | None = None,
        grace: float = GRACE,
        account: bool = True,
        left: Left = Left.END,
        started: Callable[[int], None] | None = None,
        limits: Mapping[Path, int] | None = None,
        in_bash: bool = False,
        core: int | None = None,
    ) -> ChildExit:
        """Run ``argv`` to its end and return its status and resource usage. ``env`` must hold MARK.

        stdout: a file, PIPE (emptied until the child ends), or None for /dev/null.
        timeout, grace: seconds until the child is stopped, and between INT, TERM and KILL.
        account: whether to read the memory floor and the time it queued for a core.
        started: called with the process id as soon as the child runs.
        limits: size limit in bytes of files that the child prints to; a larger file ends it within about a second.
        in_bash: whether it is bash, whose own start is not part of the times.
        core: the only core that it may use, if that is possible; None for all cores of perfflow.

        Raises StartError if it cannot be started, OutOfTimeError after the deadline, and KeyboardInterrupt after
        ``stop``. On KeyboardInterrupt the child and its descendants are stopped before the exception propagates.
        """
        program, rest = find_program(argv[0], env.get("PATH", os.defpath), cwd), self.deadline.left
        if rest <= 0:
            raise OutOfTimeError(self.deadline.reason)
        is_shorter = rest < (timeout or math.inf)
        if program is None:
            raise StartError(f"{argv[0]}: not found or not executable")
        mark = f"{env[MARK]}/{self._token}"
        request: dict[str, Any] = {
            "program": program,
            "argv": list(argv),
            "env": {**env, MARK: mark, **(_starting_bash(env) if in_bash else {})},
            "cwd": str(cwd),
            "stdin": "",
            "stdout": "" if stdout == PIPE else str(stdout or ""),
            "piped": stdout == PIPE,
            "stderr": str(stderr or ""),
            "timeout": rest if is_shorter else timeout,
            "grace": min(grace, self.deadline.grace) if is_shorter else grace,
            "mark": f"{MARK}={mark}",
            "account": account,
            "left": left.value,
            "in_bash": in_bash,
            "core": core,
            "announce": started is not None,
        }
        self._watchdog, self._flooded = Watchdog(self._process.pid, limits or {}), False
        try:
            self._send(request)
            answer = self._answer()
            if started and "pid" in answer:
                started(answer["pid"])
                self._expecting = True
                answer = self._answer()
        except OSError as error:
            # The spawner is gone, so it cannot end its children.
            orphans.sweep(request["mark"])
            raise StartError(_SPAWNER_GONE) from error
        done = self._with_client_facts(_finished(argv, answer))
        return replace(done, ended=Ended.OUT_OF_TIME) if is_shorter and done.ended is Ended.TIMEOUT else done

    def _with_client_facts(self, finished: ChildExit) -> ChildExit:
        """Return the exit with the facts that only the client observes: flooded or stalled."""
        watchdog = self._watchdog
        if watchdog is None:
            return finished
        if self._flooded and finished.ended is Ended.STOPPED:
            finished = replace(finished, ended=Ended.FLOODED)
        return replace(finished, stalled=True) if watchdog.was_stopped() else finished

    def _answer(self) -> dict[str, Any]:
        try:
            return self._receive()
        except KeyboardInterrupt:
            # The interrupt may come at any byte. After the last one there is no answer left to wait for.
            if self._expecting:
                self.stop()
                self._receive()
            raise

    def stop(self) -> None:
        """Ask the spawner to stop the running child, and start no more children."""
        with self._lock, contextlib.suppress(OSError):
            self._stopped = True
            if self._within:
                self._within.stop()
            self._socket.sendall(_framed(b"stop"))

    def pause(self) -> None:
        """Stop the running child's process group until ``resume``. May be called by a signal handler."""
        if self._within:
            self._within.pause()
        else:
            self._send_word(b"pause")

    def resume(self) -> None:
        """Continue a paused child."""
        if self._within:
            self._within.resume()
        else:
            self._send_word(b"continue")

    def _send_word(self, word: bytes) -> None:
        # While this thread sends a request, no child runs yet, and the message would land inside the request.
        if self._sender != threading.get_ident():
            with self._lock, contextlib.suppress(OSError):
                self._socket.sendall(_framed(word))

    def close(self) -> None:
        """End the spawner and all remaining processes that it started."""
        with contextlib.suppress(OSError):
            # `close` alone does not reach the other end while another thread waits for an answer.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSE_TIMEOUT)
                return
            if is_stopped(self._process.pid):
                orphans.end_below(self._process.pid)
                let_go_on(self._process.pid)

    def _send(self, request: dict[str, Any]) -> None:
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            self._expecting = True
            self._sender = threading.get_ident()
            try:
                self._socket.sendall(_framed(request))
            finally:
                self._sender = None

    def _receive(self) -> dict[str, Any]:
        """Return the next answer. It leaves the socket only when complete, so ^C may come between any two bytes."""
        self._wait()
        seen = self._peek(spawner.HEADER, _PEEK_SIZE)
        size = spawner.HEADER + int.from_bytes(seen[: spawner.HEADER], "big")
        if len(seen) < size:
            seen = self._peek(size, size)
        answer = marshal.loads(seen[spawner.HEADER : size])  # noqa: S302 (our own child's socket)
        self._expecting = False
        self._socket.recv(size, socket.MSG_WAITALL)
        if not isinstance(answer, dict):
            raise TypeError("the spawner's answer is not a dict")
        return answer

    def _wait(self) -> None:
        """Wait for the beginning of an answer, and check the child and the spawner periodically."""
        while self._watchdog and not self._poller.poll(self._watchdog.pause * 1000):
            if self._watchdog.check():
                with self._lock:
                    self._flooded = not self._stopped
                    # The second stop skips the grace period.
                    self._socket.sendall(_framed(b"stop") * 2)

    def _peek(self, least: int, most: int) -> bytes:
        """Return up to ``most`` bytes without taking them off the socket; waits for ``least`` bytes."""
        found = self._socket.recv(most, socket.MSG_PEEK)
        if len(found) < least:
            found = self._socket.recv(least, socket.MSG_PEEK | socket.MSG_WAITALL)
        if len(found) < least:
            raise ConnectionResetError
        return found


def _starting_bash(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that let bash say when it has started, before it runs its text."""
    own = {"PERFFLOW_BASH_ENV": env["BASH_ENV"]} if "BASH_ENV" in env else {}
    return {**own, "BASH_ENV": _BASH_START}


def _framed(message: dict[str, Any] | bytes) -> bytes:
    body = marshal.dumps(message)
    return len(body).to_bytes(spawner.HEADER, "big") + body


def _finished(argv: Sequence[str], answer: Mapping[str, Any]) -> ChildExit:
    if "error" in answer:
        about = str(answer["path"] or argv[0])
        raise StartError(f"cannot start {argv[0]}: {answer['text']}" + (f": {about}" if about != argv[0] else ""))
    usage = Usage(**answer["usage"])
    return ChildExit(answer["status"], Ended(answer["ended"]), usage, answer["paused"], tuple(answer["left"]))


_FIRST, _BETWEEN, _SOON = 0.2, 1.0, 0.1
"""Seconds until the first check, between checks, and between checks near a limit or after a stop."""
_NEAR_LIMIT = 16
"""Above 1/16 of a limit, the next check comes after ``_SOON``."""
_MOST_STOPS = 5
"""Number of checks that may find the spawner stopped before its descendants are killed."""


class Watchdog:
    """Checks on one child and its spawner. ``limits``: maximum bytes of each file that the child prints to."""

    def __init__(self, spawner: int, limits: Mapping[Path, int]) -> None:
        self._spawner, self._limits = spawner, limits
        self._stops = 0
        self.pause = _FIRST
        """Seconds until the next check."""
        self._too_long = False
        # One call for the usual case, in which nothing happened.
        if _changed_state(spawner, os.WSTOPPED | os.WCONTINUED | os.WNOWAIT):
            if is_stopped(spawner):
                let_go_on(spawner)
            is_continued(spawner)

    def check(self) -> bool:
        """Continue a stopped spawner, and return whether a file has just exceeded its limit."""
        self.pause = _BETWEEN
        if is_stopped(self._spawner):
            self.pause = _SOON
            self._stops += 1
            if self._stops > _MOST_STOPS:
                end_below(self._spawner)
            let_go_on(self._spawner)
        if self._too_long:
            return False
        for path, limit in self._limits.items():
            size = _size(path)
            if size > limit:
                self._too_long = True
            elif size > limit // _NEAR_LIMIT:
                self.pause = _SOON
        return self._too_long

    def was_stopped(self) -> bool:
        """Return whether the spawner was stopped since the start of the child, however briefly."""
        return is_continued(self._spawner) or self._stops > 0


def is_stopped(pid: int) -> bool:
    """Return whether a child of this process is stopped by a signal."""
    return _changed_state(pid, os.WSTOPPED | os.WNOWAIT)


def is_continued(pid: int) -> bool:
    """Return whether a child of this process was continued after a stop since the last call."""
    return _changed_state(pid, os.WCONTINUED)


def let_go_on(pid: int) -> None:
    """Continue a stopped child of this process."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, SIGCONT)


def _changed_state(pid: int, what: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, what | os.WNOHANG) is not None
    except OSError:  # it is gone, or the kernel does not support this
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
