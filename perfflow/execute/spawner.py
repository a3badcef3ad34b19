"""A small process that starts, times, stops and reaps the children of one perfflow worker.

Run by a bare interpreter (``python -I -S``), for these reasons:

- exec passes the high-water mark of the spawner on to the child's max RSS (Linux ``setmax_mm_hiwater_rss``), so a
  measured program must be started from a small process. ``marshal`` instead of json makes it about 1 MB smaller; both
  ends are the same interpreter.
- It is idle while a child runs, so no thread, drawing or garbage collection of perfflow disturbs a timing.
- It sees the end of its control socket if perfflow is killed, and ends the processes that perfflow started.
- It leads its own session, so ^C at a terminal reaches neither it nor its children, and it can stop them in order.
  Each child leads a process group in this session.
- Orphans of its children become its own children, so it can end all of them.

Protocol: length-prefixed marshal messages on stdin (a socket). A request is a dict with program, argv, env, cwd, stdin,
stdout, stderr (paths or ''), piped (whether stdout is a pipe whose content this process discards), timeout, grace (s),
mark, account (whether to read memory and queueing), left (for processes that the child leaves running: ``end`` them,
``name`` and end them, or ``allow`` and name them), in_bash (whether the child is a bash that reads ``bash_start.sh``,
whose own start is then not counted), core (the only one that the child may use, or None) and announce (whether to send
a dict with the ``pid`` as soon as the child runs). The answer is a dict with either ``error`` or ``status``, ``ended``,
``left`` (command lines) and ``usage`` (the fields of ``Usage``). While a child runs, the message ``b"stop"`` ends it,
and ``b"pause"`` stops its process group until ``b"continue"``. ``paused`` in the answer gives the seconds of the pause,
which do not count towards the time limit.
"""

from __future__ import annotations

import errno
import marshal
import os
import select
import sys
import time
from typing import Any

from perfflow.machine.orphans import (
    adopt,
    children,
    end_descendants,
    end_left,
    left_running,
    read,
    reap,
    sweep,
    used_by_reaped,
)

# typing and signal would add a quarter to the size of this process, which is the lowest max RSS that it can measure.
TYPE_CHECKING = False

SIGINT, SIGKILL, SIGTERM, SIGCONT, SIGSTOP = 2, 9, 15, 18, 19
STANDARD_SIGNALS = range(1, 32)
CONTROL = 0
HEADER = 4
NO_PIPE = -1
END, NAME, ALLOW = "end", "name", "allow"
_PAGE = 4096
# If perfflow is gone, the output of tools is not needed, so the grace period is short.
ORPHANED_GRACE = 0.4
# poll(2) takes milliseconds as an int, so a limit of more than 24 days is ignored.
LONGEST_POLL = 2**31 - 1
_AT_ONCE = 2**20
# File descriptors of bash_start.sh: bash writes to the first when it is ready, then reads from the second.
_READY, _GO = 60, 61
# Seconds after which a bash that is not ready is timed from its start.
_LONGEST_START = 10.0


def receive() -> Any:
    """Return the next message, or None if the other end is closed."""
    header = _exactly(HEADER)
    if header is None:
        return None
    body = _exactly(int.from_bytes(header, "big"))
    return None if body is None else marshal.loads(body)  # noqa: S302 (a private socket to our own parent)


def _exactly(size: int) -> bytes | None:
    parts = b""
    while len(parts) < size:
        try:
            part = os.read(CONTROL, size - len(parts))
        except ConnectionResetError:
            return None
        if not part:
            return None
        parts += part
    return parts


def send(message: dict[str, Any]) -> None:
    """Send an answer to perfflow. If perfflow is gone, the next ``receive`` notices."""
    body = marshal.dumps(message)
    data = len(body).to_bytes(HEADER, "big") + body
    while data:
        try:
            data = data[os.write(CONTROL, data) :]
        except (BrokenPipeError, ConnectionResetError):
            return


def attend(request: dict[str, Any]) -> dict[str, Any]:
    """Run the requested child until its end, its time limit or a stop, and return the answer."""
    output = os.pipe() if request["piped"] else ()
    gate = (*os.pipe(), *os.pipe()) if request["in_bash"] else ()
    try:
        return _attend(request, output, gate)
    finally:
        for number in (*output[:1], *gate[::3]):
            os.close(number)


def _attend(request: dict[str, Any], output: tuple[int, ...], gate: tuple[int, ...]) -> dict[str, Any]:
    """Run a child.

    output: the ends of a pipe for its output, or (). gate: the ends of two pipes for ``bash_start.sh``, or (). The
    child's ends are closed once it has them.
    """
    known = [] if request["left"] == END else children()
    files = [*output[1:], *gate[1:3]]
    try:
        os.chdir(request["cwd"])
        actions = _redirections(request, output[1:], files)
        actions += [(os.POSIX_SPAWN_DUP2, number, own) for number, own in zip(gate[1:3], (_READY, _GO), strict=False)]
        floor = _high_water_mark() if request["account"] else 0
        usable = _use_only(request["core"])
        started = time.monotonic_ns()
        try:
            pid = os.posix_spawn(
                request["program"],
                request["argv"],
                request["env"],
                file_actions=actions,
                # A group, not a session: the kernel creates a scheduling group (autogroup) for a session, which would
                # count towards the child's time and delay it on a busy machine. This process has no terminal to share.
                setpgroup=0,
                setsigmask=(),
                setsigdef=STANDARD_SIGNALS,
            )
        finally:
            if usable:
                os.sched_setaffinity(0, usable)
    except OSError as error:
        return {"error": error.errno or 0, "text": error.strerror or str(error), "path": str(error.filename or "")}
    except ValueError as error:  # a NUL in a word, or `=` in a variable's name
        return {"error": errno.EINVAL, "text": str(error), "path": ""}
    finally:
        for number in files:
            os.close(number)
    if request["announce"]:
        send({"pid": pid})
    return _watch(pid, request, started, floor, output[0] if output else NO_PIPE, known, gate[::3])


def _use_only(core: int | None) -> set[int]:
    """Use only one core, as children do. Returns the cores that were usable before, empty if nothing changed."""
    if core is None:
        return set()
    usable = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {core})
    except OSError:  # the core was taken away meanwhile
        return set()
    return usable


def _redirections(request: dict[str, Any], piped: tuple[int, ...], files: list[int]) -> list[tuple[Any, ...]]:
    """Open the child's standard streams, so that an error names the path, and return the actions to dup them.

    piped: the file for its output, or (). files: where the opened files are added.
    """
    create = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", create), ("stderr", create)):
        files.append(
            os.open(request[name] or os.devnull, (flags if request[name] else os.O_RDWR) | os.O_CLOEXEC, 0o666)
        )
    stdin, stdout, stderr = files[-3:]
    streams = (stdin, piped[0] if piped else stdout, stderr)
    return [(os.POSIX_SPAWN_DUP2, number, target) for target, number in enumerate(streams)]


def _watch(
    pid: int, request: dict[str, Any], started: int, floor: int, pipe: int, known: list[int], gate: tuple[int, ...]
) -> dict[str, Any]:
    handle = os.pidfd_open(pid)
    try:
        shell = _let_bash_go(pid, handle, *gate) if gate else None
        spawned, started = started, shell[0] if shell else started
        # Own queueing before this point overlaps with the running child, so it is not counted.
        before = _own_schedstat() if request["account"] else None
        ended, paused = _wait(pid, handle, request["timeout"], pipe)
        if ended != "exited":
            _stop(pid, handle, ended == "orphaned", request["grace"], pipe)
        finished = time.monotonic_ns()
        # WNOWAIT keeps the zombie, so that its schedstat can be read and its process group signalled.
        os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOWAIT)
        # With a pipe, own queueing is not counted: it is unknown how much of it delayed the child.
        own, child = (_own_schedstat() if pipe == NO_PIPE else before, _schedstat(pid)) if before else (None, None)
        if ended != "exited" or request["left"] == END:
            _signal_group(pid, SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        used_by_reaped()
    finally:
        os.close(handle)
    left: list[str] = []
    if ended != "exited":
        sweep(request["mark"])
        end_descendants()
    elif request["left"] != END:
        left = _left(request, known, (finished - started) / 1e9)
    user, system = used_by_reaped()
    figures: dict[str, Any] = {
        "wall": (finished - started) / 1e9,
        "user": usage.ru_utime + user,
        "system": usage.ru_stime + system,
        "max_rss": usage.ru_maxrss * 1024,
        "rss_floor": floor,
        "page_faults": usage.ru_minflt + usage.ru_majflt,
        "context_switches": usage.ru_nvcsw + usage.ru_nivcsw,
    }
    if own and child and before:
        figures["main_cpu"] = child[0] / 1e9
        # The wake-up of this process is part of the wall time, so its own queueing is counted too.
        figures["queued"] = (child[1] + own[1] - before[1]) / 1e9
    if shell:
        _leave_out_start(figures, shell, (started - spawned) / 1e9)
    exit_status = os.waitstatus_to_exitcode(status)
    return {"ended": ended, "paused": paused, "left": left, "status": exit_status, "usage": figures}


def _let_bash_go(pid: int, handle: int, ready: int, go: int) -> tuple[int, int, int] | None:
    """Wait until bash has started, then let it run its text.

    Returns the time of that (ns), and its ns on a core and waiting for one until then; None if bash does not say that
    it is ready, or the kernel does not report them.
    """
    poller = _poller(ready, handle)
    begun = any(number == ready for number, _ in poller.poll(_LONGEST_START * 1000)) and bool(os.read(ready, 1))
    used = _schedstat(pid) if begun else None
    now = time.monotonic_ns()
    try:
        os.write(go, b"\n")
    except BrokenPipeError:
        return None
    return (now, *used) if used else None


def _leave_out_start(figures: dict[str, Any], shell: tuple[int, int, int], seconds: float) -> None:
    """Subtract what bash used until it was ready, which is ``seconds`` after its start."""
    figures["shell_start"] = seconds
    used = shell[1] / 1e9
    total = figures["user"] + figures["system"]
    # How much of the start was user time is not known, so both are reduced by the same share.
    rest = max(0.0, total - used) / total if total else 0.0
    figures["user"], figures["system"] = figures["user"] * rest, figures["system"] * rest
    if "main_cpu" in figures:
        figures["main_cpu"] = max(0.0, figures["main_cpu"] - used)
        figures["queued"] = max(0.0, figures["queued"] - shell[2] / 1e9)


def _left(request: dict[str, Any], known: list[int], wall: float) -> list[str]:
    """Return the command lines of processes that the child left running, and kill them unless they are allowed."""
    allowed = request["left"] == ALLOW
    names = left_running(known, request["mark"], wall, wait=not allowed)
    if names and not allowed:
        end_left(known, request["mark"])
    return names


def _wait(pid: int, handle: int, timeout: float | None, pipe: int) -> tuple[str, float]:
    """Wait without polling and return the reason and the seconds for which the child was paused.

    The reason is 'exited', 'timeout', 'stopped' (on request) or 'orphaned' (perfflow is gone).
    """
    poller = _poller(handle, CONTROL, pipe)
    limit = None if timeout is None or timeout * 1000 > LONGEST_POLL else timeout
    paused, began = 0.0, time.monotonic()
    while True:
        left = None if limit is None else limit + paused - (time.monotonic() - began)
        ready = _ready(poller, left, pipe)
        if handle in ready:
            return "exited", paused
        if CONTROL not in ready:
            return "timeout", paused
        message = receive()
        if message == b"pause":
            since = time.monotonic()
            _signal_group(pid, SIGSTOP)
            message = receive()
            _signal_group(pid, SIGCONT)
            paused += time.monotonic() - since
        if message != b"continue":
            return "orphaned" if message is None else "stopped", paused


def _stop(pid: int, handle: int, orphaned: bool, grace: float, pipe: int) -> None:
    """Send INT, TERM and KILL to the process group, ``grace`` seconds apart. INT lets profilers write their file.

    A second stop, or the end of perfflow, kills at once. If ``orphaned``, the closed socket is always ready, so it is
    not polled.
    """
    poller = _poller(handle, -1 if orphaned else CONTROL, pipe)
    for number in (SIGINT, SIGTERM):
        _signal_group(pid, number)
        ready = _ready(poller, ORPHANED_GRACE if orphaned else grace, pipe)
        if handle in ready:
            return
        if CONTROL in ready:
            receive()
            break
    _signal_group(pid, SIGKILL)
    _poller(handle).poll(None)


def _poller(*numbers: int) -> select.poll:
    """Return a poll object for readable files. Numbers below 0 are skipped."""
    poller = select.poll()
    for number in numbers:
        if number >= 0:
            poller.register(number, select.POLLIN)
    return poller


def _ready(poller: select.poll, seconds: float | None, pipe: int) -> set[int]:
    """Return the ready files, an empty set after ``seconds``. Content of the pipe is discarded meanwhile."""
    ends = time.monotonic() + (seconds or 0)
    while True:
        left = None if seconds is None else max(0.0, ends - time.monotonic()) * 1000
        ready = {number for number, _ in poller.poll(left)}
        if pipe not in ready:
            return ready
        if not _empty(pipe):
            poller.unregister(pipe)
        if len(ready) > 1:
            return ready - {pipe}


def _empty(pipe: int) -> int:
    """Discard the content of a pipe without copying it. Returns the number of bytes, 0 if it has no writer left."""
    if os.devnull not in _opened:
        _opened[os.devnull] = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    return os.splice(pipe, _opened[os.devnull], _AT_ONCE)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError as error:
        if error.errno not in (errno.ESRCH, errno.EPERM):
            raise


def _schedstat(pid: int) -> tuple[int, int] | None:
    """Return (ns on a core, ns runnable but waiting) of a main thread; None if the kernel does not report them."""
    try:
        return _figures(read(f"/proc/{pid}/schedstat"))
    except (OSError, ValueError):
        return None


def _own_schedstat() -> tuple[int, int] | None:
    try:
        return _figures(_again("/proc/self/schedstat"))
    except (OSError, ValueError):
        return None


def _figures(text: bytes) -> tuple[int, int]:
    ran, waited, *_ = text.split()
    return int(ran), int(waited)


def _high_water_mark() -> int:
    """Return VmHWM of this process in bytes, the floor of a child's max RSS."""
    text = _again("/proc/self/status")
    start = text.find(b"VmHWM:")
    return int(text[start:].split(None, 2)[1]) * 1024 if start >= 0 else 0


_opened: dict[str, int] = {}


def _again(path: str) -> bytes:
    """Read a small file of /proc and keep it open, because it is read for each child."""
    if path not in _opened:
        _opened[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return os.pread(_opened[path], _PAGE, 0)


def main() -> None:
    """Serve requests until the control socket closes, then end all remaining descendants."""
    adopt()
    while (request := receive()) is not None:
        if isinstance(request, dict):
            send(attend(request))
            reap()
    end_descendants()
    sys.exit(0)
