"""Finds and ends what a child left behind: what left its process group, its session, or its environment.

Two ways, since neither sees everything. A spawner adopts the orphans among its descendants, so whatever it started
stays below it in the tree of processes, however often it forks and whatever it closes or clears. Where the spawner
itself was killed, or may not adopt, the mark in the environment is left; it finds all that did not clear it.

Imported by the spawner, so it needs nothing but built-in modules.
"""

from __future__ import annotations

import os
import time

SIGKILL = 9
SWEEPS = 20
_PAUSE = 0.001
# What a child leaves may go on for this share of the child's time, and for at least and at most so many seconds: a
# shell does not wait for `>(...)`. All that is beyond is work that nobody measured.
_ENDING = 0.1
_LEAST, _MOST = 0.005, 0.5
# What cannot get a core is not waited for any longer (s).
_LONGEST = 2.0
# Ends by itself when the program has ended, but may have to start first, which takes a third of a small program's time.
_TRACKERS = b"from multiprocessing."
_NAMED = 3
_LONGEST_NAME = 80
_RTLD_NOW = 2
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(what: int, value: int) -> bool:
    """Call ``prctl``; whether that worked.

    ctypes itself would make the process 2 MB larger, the module under it makes it 0.2 MB larger.
    """
    try:
        import _ctypes

        # typeshed does not know that None is this program itself.
        prctl = _ctypes.dlsym(_ctypes.dlopen(None, _RTLD_NOW), "prctl")  # type: ignore[arg-type]
        return bool(_ctypes.call_function(prctl, (what, value, 0, 0, 0)) == 0)
    except (ImportError, AttributeError, OSError):
        return False


def adopt() -> bool:
    """Make this process the parent of orphans below it (Linux ``prctl``); whether it is one now."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: int) -> None:
    """Have this process sent a signal when the thread that started it ends (Linux ``prctl``)."""
    _prctl(_PR_SET_PDEATHSIG, number)


def reap() -> bool:
    """Reap adopted orphans that have ended; whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def end_descendants() -> None:
    """Kill every process below this one. What forks meanwhile is found in the next round."""
    for _ in range(SWEEPS):
        if not reap():
            return
        found = _descendants(os.getpid())
        if not found:
            return
        for pid in found:
            _kill(pid)
        time.sleep(_PAUSE)


def end_below(pid: int) -> None:
    """Kill every process below another one, which reaps them. What forks meanwhile is found in the next round."""
    for _ in range(SWEEPS):
        found = _descendants(pid)
        if not found:
            return
        for below in found:
            _kill(below)
        time.sleep(_PAUSE)


def children() -> list[int]:
    """Process ids of the children of this process; where there are none, that is one system call."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    own = os.getpid()
    try:
        return [int(word) for word in read(f"/proc/self/task/{own}/children").split()]
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        return _parents().get(own, [])


def left_running(known: list[int], mark: str, wall: float, *, wait: bool) -> list[str]:
    """Return the command lines of what a child that was just reaped left running, at most three and ``...``.

    ``known``: children that were there before the child. With ``wait``, processes may go on for a share of the child's
    ``wall`` time (s), since they may be only ending; what they wait for a core is left out. Without, they have just the
    time to get a name of their own, which what a shell has just forked lacks.
    """
    used: dict[int, float] = {}
    lasted: dict[int, float] = {}
    allowed = min(max(_LEAST, wall * _ENDING), _MOST) if wait else _LEAST
    ends = time.monotonic() + _LONGEST
    while True:
        reap()
        left = [pid for pid in children() if pid not in known and not _is_of_others(pid, mark)]
        for pid in left:
            before, used[pid] = used.get(pid), _cpu_time(pid)
            if before is not None:
                # On a busy machine the next look comes late, as does what is looked at: sleep counts by looks.
                lasted[pid] = lasted.get(pid, 0) + max(
                    used[pid] - before, 0 if used[pid] and _is_runnable(pid) else _PAUSE
                )
        late = time.monotonic() > ends or any(
            lasted.get(pid, 0) > (_MOST if _is_ending(pid) else allowed) for pid in left
        )
        if late or not left:
            return [_name(pid) for pid in left[:_NAMED]] + ["..."] * (len(left) > _NAMED)
        time.sleep(_PAUSE)


def _is_ending(pid: int) -> bool:
    """Whether a process will end by itself: it has given back its memory, or waits for the end of what is over."""
    words = _command_line(pid)
    return not words or _TRACKERS in words


def end_left(known: list[int], mark: str) -> None:
    """Kill what a child left running, also where it cleared its environment."""
    for pid in children():
        if pid not in known and not _is_of_others(pid, mark):
            _kill(pid)
    sweep(mark)


def _is_of_others(pid: int, mark: str) -> bool:
    """Whether a process carries another mark: what an earlier step left running may leave processes, too."""
    variable = mark.partition("=")[0].encode() + b"="
    try:
        words = read(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return False
    own = mark.encode()
    return any(word.startswith(variable) and word != own and not word.startswith(own + b"/") for word in words)


def _cpu_time(pid: int) -> float:
    """Seconds for which a process (its main thread) was on a core; 0 where the kernel has no figures."""
    try:
        return int(read(f"/proc/{pid}/schedstat").split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _is_runnable(pid: int) -> bool:
    """Whether a process is on a core or waits for one."""
    try:
        return _state(read(f"/proc/{pid}/stat"))[0] == b"R"
    except (OSError, ValueError):
        return False


def _name(pid: int) -> str:
    return _command_line(pid).decode("utf-8", "replace").strip()[:_LONGEST_NAME] or f"process {pid}"


def _command_line(pid: int) -> bytes:
    """The words of a process, with spaces between; b'' where it has ended, or is about to."""
    try:
        return read(f"/proc/{pid}/cmdline").replace(b"\0", b" ")
    except OSError:
        return b""


def _descendants(root: int) -> list[int]:
    """Process ids below a process, without those that have ended."""
    below = _parents()
    found, waiting = [], below.get(root, [])
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += below.get(pid, [])
    return found


def _parents() -> dict[int, list[int]]:
    """Process id -> its children, without those that have ended."""
    below: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                state, parent = _state(read(f"/proc/{entry}/stat"))
            except (OSError, ValueError):
                continue
            if state not in (b"Z", b"X"):
                below.setdefault(int(parent), []).append(int(entry))
    return below


def _state(stat: bytes) -> tuple[bytes, bytes]:
    """The letter of a process's state, and its parent's id, from its ``stat``. Raises ValueError."""
    # The name may hold anything, a `)` too.
    state, parent, *_ = stat.rpartition(b")")[2].split(None, 2)
    return state, parent


def sweep(mark: str) -> None:
    """Kill every process whose environment carries ``mark``: those that left the process group by setsid(2).

    The marks of a perfflow inside a step begin with its step's mark and a slash. Processes that fork while /proc is
    read are found in the next round.
    """
    wanted = mark.encode()
    for _ in range(SWEEPS):
        found = [int(entry) for entry in os.listdir("/proc") if entry.isdecimal() and _carries(entry, wanted)]
        found = [pid for pid in found if pid != os.getpid()]
        if not found:
            return
        for pid in found:
            _kill(pid)


def _carries(pid: str, mark: bytes) -> bool:
    try:
        words = read(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return False
    return any(word == mark or word.startswith(mark + b"/") for word in words)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, SIGKILL)
    except OSError:
        return


def read(path: str) -> bytes:
    """The whole of a file under /proc. Raises OSError."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(number, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(number)
