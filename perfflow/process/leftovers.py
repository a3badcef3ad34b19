"""Finds and ends what a child left behind: what left its process group, its session, or its environment.

Two ways, since neither sees everything. An attendant adopts the orphans among its descendants, so whatever it started
stays below it in the tree of processes, however often it forks and whatever it closes or clears. Where the attendant
itself was killed, or may not adopt, the mark in the environment is left; it finds all that did not clear it.

Imported by the attendant, so it needs nothing but built-in modules.
"""

from __future__ import annotations

import os
import time

SIGKILL = 9
SWEEPS = 20
_PAUSE = 0.001
_RTLD_NOW = 2
_PR_SET_CHILD_SUBREAPER = 36


def adopt() -> bool:
    """Make this process the parent of orphans below it (Linux ``prctl``); whether it is one now.

    ctypes itself would make the process 2 MB larger, the module under it makes it 0.2 MB larger.
    """
    try:
        import _ctypes

        # typeshed does not know that None is this program itself.
        prctl = _ctypes.dlsym(_ctypes.dlopen(None, _RTLD_NOW), "prctl")  # type: ignore[arg-type]
        return bool(_ctypes.call_function(prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)
    except (ImportError, AttributeError, OSError):
        return False


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
        found = _descendants()
        if not found:
            return
        for pid in found:
            _kill(pid)
        time.sleep(_PAUSE)


def _descendants() -> list[int]:
    """Process ids below this process, without those that have ended."""
    below: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                # The name may hold anything, a `)` too.
                state, parent, *_ = read(f"/proc/{entry}/stat").rpartition(b")")[2].split(None, 2)
            except (OSError, ValueError):
                continue
            if state not in (b"Z", b"X"):
                below.setdefault(int(parent), []).append(int(entry))
    found, waiting = [], below.get(os.getpid(), [])
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += below.get(pid, [])
    return found


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
