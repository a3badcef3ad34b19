"""Find and kill processes that a child left running, even outside its process group, session or environment.

There are two methods, because neither finds all processes. A spawner adopts orphaned descendants, so they stay below
it in the process tree however often they fork and whatever they close or clear. If the spawner was killed, or may not
adopt, the mark in the environment finds all processes that did not clear it.

Imported by the spawner, so it uses only built-in modules.
"""

from __future__ import annotations

import os
import time

SIGKILL = 9
SWEEPS = 20
_PAUSE = 0.001
# A process that a child leaves running may run on for this share of the child's time, within these limits in seconds: a
# shell does not wait for `>(...)`. Anything longer is unmeasured work.
_ENDING = 0.1
_LEAST, _MOST = 0.005, 0.5
# Longest wait in seconds, also if the processes get no core.
_LONGEST = 2.0
# multiprocessing's trackers exit after the program, but may have to start first: a third of a small program's time.
_TRACKERS = b"from multiprocessing."
_NAMED = 3
_LONGEST_NAME = 80
_RTLD_NOW = 2
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(what: int, value: int) -> bool:
    """Call ``prctl`` and return whether it succeeded.

    ctypes would make this process 2 MB larger; the module under it adds only 0.2 MB.
    """
    try:
        import _ctypes

        # typeshed does not know that None is this program itself.
        prctl = _ctypes.dlsym(_ctypes.dlopen(None, _RTLD_NOW), "prctl")  # type: ignore[arg-type]
        return bool(_ctypes.call_function(prctl, (what, value, 0, 0, 0)) == 0)
    except (ImportError, AttributeError, OSError):
        return False


def adopt() -> bool:
    """Make this process the parent of orphaned descendants (Linux ``prctl``), and return whether that worked."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: int) -> None:
    """Let the kernel signal this process when the thread that started it ends (Linux ``prctl``)."""
    _prctl(_PR_SET_PDEATHSIG, number)


_reaped = [0.0, 0.0]


def reap() -> bool:
    """Reap children that have ended, and return whether any child is left."""
    try:
        while True:
            pid, _, usage = os.wait3(os.WNOHANG)
            if not pid:
                return True
            _reaped[0] += usage.ru_utime
            _reaped[1] += usage.ru_stime
    except ChildProcessError:
        return False


def used_by_reaped() -> tuple[float, float]:
    """Return the user and system time (s) of all that ``reap`` has reaped since the last call.

    Of an orphan whose parent never waited for it, no other process's figures contain them.
    """
    user, system = _reaped
    _reaped[:] = 0.0, 0.0
    return user, system


def end_descendants() -> None:
    """Kill all descendants of this process. The next round finds processes forked meanwhile."""
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
    """Kill all descendants of another process, which reaps them. The next round finds those forked meanwhile."""
    for _ in range(SWEEPS):
        found = _descendants(pid)
        if not found:
            return
        for below in found:
            _kill(below)
        time.sleep(_PAUSE)


def children() -> list[int]:
    """Return the process ids of this process's children. Without children this is one system call."""
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
    """Return the command lines of processes that a reaped child left running, at most three and ``...``.

    known: process ids of children that existed before the child.
    wall: the child's wall time (s).
    wait: whether processes may run on for a share of ``wall``, because they may be ending; time they wait for a core
    does not count. Otherwise they get only the time to exec, after which a process forked by a shell has its own name.
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
                # On a busy machine checks come late, so count one pause per check for a sleeping process.
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
    """Return whether a process will end by itself: it has released its memory, or is a multiprocessing tracker."""
    words = _command_line(pid)
    return not words or _TRACKERS in words


def end_left(known: list[int], mark: str) -> None:
    """Kill the processes that a child left running, even if they cleared their environment."""
    for pid in children():
        if pid not in known and not _is_of_others(pid, mark):
            _kill(pid)
    sweep(mark)


def _is_of_others(pid: int, mark: str) -> bool:
    """Return whether a process carries another mark: processes left by an earlier step may leave orphans too."""
    variable = mark.partition("=")[0].encode() + b"="
    try:
        words = read(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return False
    own = mark.encode()
    return any(word.startswith(variable) and word != own and not word.startswith(own + b"/") for word in words)


def _cpu_time(pid: int) -> float:
    """Return the seconds for which a process's main thread was on a core; 0 if the kernel does not report them."""
    try:
        return int(read(f"/proc/{pid}/schedstat").split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _is_runnable(pid: int) -> bool:
    """Return whether a process is on a core or waits for one."""
    try:
        return _state(read(f"/proc/{pid}/stat"))[0] == b"R"
    except (OSError, ValueError):
        return False


def _name(pid: int) -> str:
    return _command_line(pid).decode("utf-8", "replace").strip()[:_LONGEST_NAME] or f"process {pid}"


def _command_line(pid: int) -> bytes:
    """Return a process's command line, joined by spaces; b'' if it has ended or is ending."""
    try:
        return read(f"/proc/{pid}/cmdline").replace(b"\0", b" ")
    except OSError:
        return b""


def _descendants(root: int) -> list[int]:
    """Return the process ids of a process's descendants that have not ended."""
    below = _parents()
    found, waiting = [], below.get(root, [])
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += below.get(pid, [])
    return found


def _parents() -> dict[int, list[int]]:
    """Return the children by parent process id, without processes that have ended."""
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
    """Return the state letter and the parent's process id from a process's ``stat``. Raises ValueError."""
    # The process name may hold any character, including `)`.
    state, parent, *_ = stat.rpartition(b")")[2].split(None, 2)
    return state, parent


def sweep(mark: str) -> None:
    """Kill every process whose environment carries ``mark``, including those that left the group by setsid(2).

    The marks of a perfflow inside a step begin with the step's mark and a slash. The next round finds processes forked
    while /proc is read.
    """
    text = mark.encode()
    for _ in range(SWEEPS):
        marked = [int(entry) for entry in os.listdir("/proc") if entry.isdecimal() and _carries(entry, text)]
        marked = [pid for pid in marked if pid != os.getpid()]
        if not marked:
            return
        for pid in marked:
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
    """Return the content of a file under /proc. Raises OSError."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(number, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(number)
