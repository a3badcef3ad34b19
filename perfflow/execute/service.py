"""A background process: start it, check whether it is ready and still runs, and stop it with its descendants.

``Service`` starts, watches and stops it, and ``cpu_time`` tells how much it has computed. A probe checks that it is
ready: its port accepts connections (``Port``), its address answers (``Address``), or a line of its output matches a
pattern (``MatchedLine``).
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import psutil

from perfflow.execute.child import ChildExit, Ended, Spawner, StartError, ending
from perfflow.tools.parsed_output import PatternMatch, search

MOST_PRINTED = 2**30
"""A process that prints more than this number of bytes to a file is ended."""


class Service:
    """One background process with its own spawner, which ends it if perfflow itself is killed.

    The constructor starts it. ``pid`` is 0 until it runs, and stays 0 if it could not be started.
    """

    def __init__(
        self,
        spawner: Spawner,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdout: Path,
        stderr: Path,
    ) -> None:
        self.pid = 0
        self._spawner = spawner
        self._asked_to_stop = False
        self._finished: ChildExit | None = None
        self._trouble = ""
        self._over = threading.Event()

        def attend() -> None:
            try:
                self._finished = spawner.run(
                    argv,
                    env=env,
                    cwd=cwd,
                    stdout=stdout,
                    stderr=stderr,
                    account=False,
                    started=self._started,
                    limits={stdout: MOST_PRINTED, stderr: MOST_PRINTED},
                )
            except StartError as error:
                self._trouble = str(error)
            except KeyboardInterrupt:
                self._asked_to_stop = True
            finally:
                self._over.set()

        # A daemon thread: if perfflow crashes, it must not wait for a process that never ends.
        self._thread = threading.Thread(target=attend, daemon=True)
        self._thread.start()

    def _started(self, pid: int) -> None:
        self.pid = pid

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for its end and return whether it ended."""
        return self._over.wait(seconds)

    @property
    def is_over(self) -> bool:
        """Whether it no longer runs, for any reason."""
        return self._over.is_set()

    @property
    def was_stopped(self) -> bool:
        """Whether it ended because it was asked to stop."""
        ended = self._finished.ended if self._finished else None
        # One that printed too much may be asked to stop after its end, which its thread does not know yet.
        return self.is_over and ended is not Ended.FLOODED and (self._asked_to_stop or ended is Ended.STOPPED)

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that killed it; None while it runs and if it never started."""
        return self._finished.status if self._finished else None

    @property
    def unexpected_end(self) -> str:
        """How it ended without a request, such as "exited with 1"; '' if it did not."""
        if not self.is_over or self.was_stopped:
            return ""
        if self._finished is None:
            return f"failed ({self._trouble})"
        if self._finished.ended is Ended.FLOODED:
            return f"printed more than {MOST_PRINTED >> 20} MiB and was ended"
        return ending(self._finished.status)

    def stop(self) -> None:
        """End it and its descendants, and wait for the end: INT, TERM and KILL to its group, then KILL to the rest.

        ^C during the wait ends it at once. Raises KeyboardInterrupt then.
        """
        self._asked_to_stop = self._asked_to_stop or not self.is_over
        try:
            self._spawner.stop()
            self._over.wait()
        finally:
            # This also ends processes that it left running when it ended by itself: a spawner kills its descendants.
            self._spawner.close()
            self._thread.join()


_CPU_CLOCK = 2
"""CPUCLOCK_SCHED in the kernel's include/linux/posix-timers.h."""


def cpu_time(pids: Iterable[int]) -> float:
    """Return the CPU time (s) of processes and of all below them, also of those that they have waited for.

    The kernel's clock of a running process counts in ns. psutil's times count in ticks of 10 ms, which would be the
    work of a hundred requests; they are used for processes that have ended.
    """
    total = 0.0
    for pid in pids:
        try:
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                ended = process.cpu_times()
                total += ended.children_user + ended.children_system
                # How clock_getcpuclockid(3) makes the number of this clock.
                total += time.clock_gettime(~process.pid << 3 | _CPU_CLOCK)
        except (psutil.Error, OSError):
            continue  # it has ended
    return total


LOOPBACK = ("127.0.0.1", "::1")
_ANSWER = 2.0
"""Seconds allowed for one connection attempt or one answer."""
_SERVER_ERROR = 500
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)\b")
_LONGEST_LINE = 8192
_HTTP_PORT = 80
_READ_AT_ONCE = 2**20


class Probe(Protocol):
    """One way to check that a service is ready."""

    @property
    def waits_for(self) -> str:
        """The condition that does not hold yet, such as "port 8080 accepts no connection"."""

    def holds(self) -> bool:
        """Return whether the service is ready now."""

    def outputs(self) -> Mapping[str, str]:
        """Return the outputs of a service that is ready."""


@dataclass(frozen=True)
class Port:
    """A TCP port on this machine that accepts connections."""

    number: int

    @property
    def waits_for(self) -> str:
        """The condition that does not hold yet."""
        return f"port {self.number} accepts no connection"

    def holds(self) -> bool:
        """Return whether it accepts one, on either loopback address."""
        return any(accepts(host, self.number) for host in LOOPBACK)

    def outputs(self) -> Mapping[str, str]:
        """Return the port."""
        return {"port": str(self.number)}


@dataclass(frozen=True)
class Address:
    """An http address that answers with a status below 500. Redirections count as answers and are not followed."""

    url: str

    @property
    def waits_for(self) -> str:
        """The condition that does not hold yet."""
        return f"{self.url} does not answer with a status below {_SERVER_ERROR}"

    @property
    def host(self) -> str:
        """Its host name."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """Its port; 80 if the address has none."""
        return urlsplit(self.url).port or _HTTP_PORT

    def holds(self) -> bool:
        """Return whether it answers. Proxy settings of the environment are ignored."""
        parts = urlsplit(self.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        request = f"GET {path} HTTP/1.1\r\nHost: {host}:{self.port}\r\nConnection: close\r\n\r\n"
        try:
            line = _first_line(self.host, self.port, request.encode("ascii"))
        except (OSError, ValueError):
            return False
        status = _STATUS.match(line)
        return status is not None and int(status[1]) < _SERVER_ERROR

    def outputs(self) -> Mapping[str, str]:
        """Return the port and the address."""
        return {"port": str(self.port), "url": self.url}


@dataclass
class MatchedLine:
    """A line of the output that matches a pattern. Its named groups become outputs.

    ``seconds`` limits one search; ``holds`` raises PatternTimeoutError if the pattern takes longer.
    """

    pattern: str
    files: Sequence[Path]
    seconds: float | None = None
    _read: dict[Path, int] = field(default_factory=dict)
    _match: PatternMatch | None = None

    @property
    def waits_for(self) -> str:
        """The condition that does not hold yet."""
        return f"no line of its output matches {self.pattern!r} (is the output buffered?)"

    def holds(self) -> bool:
        """Return whether a line matched, including an unfinished one: a service may print no newline."""
        lines = [line for path in self.files for line in self._new_lines(path)]
        if lines and self._match is None:
            self._match = next(iter(search(self.pattern, lines, self.seconds, flags=0)), None)
        return self._match is not None

    def _new_lines(self, path: Path) -> Iterator[str]:
        """Yield lines not read before. An unfinished last line is read again until it is complete."""
        try:
            with path.open("rb") as stream:
                stream.seek(self._read.get(path, 0))
                raw = stream.read(_READ_AT_ONCE)
        except FileNotFoundError:
            return
        whole = raw.rfind(b"\n") + 1 or (len(raw) if len(raw) == _READ_AT_ONCE else 0)
        self._read[path] = self._read.get(path, 0) + whole
        yield from raw.decode("utf-8", "replace").splitlines()

    def outputs(self) -> Mapping[str, str]:
        """Return the values of the named groups."""
        found = self._match.groups if self._match else {}
        return {name: value for name, value in found.items() if value is not None}


def _first_line(host: str, port: int, request: bytes) -> bytes:
    """Return the first bytes of an answer, which may arrive byte by byte and never end. Raises OSError."""
    ends = time.monotonic() + _ANSWER
    answer = b""
    with socket.create_connection((host, port), timeout=_ANSWER) as connection:
        connection.sendall(request)
        while b"\n" not in answer and len(answer) < _LONGEST_LINE:
            connection.settimeout(max(ends - time.monotonic(), 0.001))
            part = connection.recv(_LONGEST_LINE)
            if not part:
                break
            answer += part
    return answer


def accepts(host: str, port: int) -> bool:
    """Return whether a process accepts connections at this address."""
    try:
        with socket.create_connection((host, port), timeout=_ANSWER):
            return True
    except OSError:
        return False


def free_port() -> int:
    """Return a free TCP port, chosen by the kernel."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind((LOOPBACK[0], 0))
        return int(listener.getsockname()[1])
