"""One lock per host: whoever measures has the machine to itself, also against another perfflow.

``flock`` on one file; the kernel drops it when the holder dies. The file's text says who holds it. A perfflow inside a
step of another inherits the lock through its environment instead of waiting for its own parent.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HELD = "PERFFLOW_LOCK_HELD"
"""Environment variable of children started under the lock."""
_RETRY = 0.2


class LockError(Exception):
    """The machine's lock cannot be used; the text says why."""


class LockTimeoutError(LockError):
    """The machine stayed busy for longer than the caller wanted to wait; the text names the holder."""


def path() -> Path:
    """The lock file: one for all users of the host."""
    return Path(os.environ.get("PERFFLOW_LOCK_FILE") or Path(tempfile.gettempdir()) / "perfflow-measuring.lock")


@contextmanager
def machine_alone(who: str, timeout: float, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold the machine. ``waiting`` is told once who holds it. Raises LockTimeoutError after ``timeout`` seconds."""
    if os.environ.get(HELD):
        yield
        return
    number = _held(path(), timeout, waiting)
    try:
        os.ftruncate(number, 0)
        os.pwrite(number, f"{who} (pid {os.getpid()}, since {time.strftime('%H:%M:%S')})".encode(), 0)
        yield
    finally:
        os.close(number)


def _held(file: Path, timeout: float, waiting: Callable[[str], None]) -> int:
    """Open the lock file and take the lock."""
    deadline = time.monotonic() + timeout
    while True:
        number = _open(file)
        try:
            _acquire(number, deadline, waiting)
            # Who cleans temporary folders may have removed the file that was waited for; others lock a new one.
            if _is_at(file, number):
                return number
        except BaseException:
            os.close(number)
            raise
        os.close(number)


def _is_at(file: Path, number: int) -> bool:
    try:
        return os.path.samestat(file.stat(), os.fstat(number))
    except OSError:
        return False


def _open(file: Path) -> int:
    try:
        return _open_or_make(file)
    except OSError as error:
        raise LockError(f"cannot open the measuring lock {file}: {error.strerror}") from error


def _open_or_make(file: Path) -> int:
    try:
        # Without O_CREAT first: in a sticky directory the kernel refuses to "create" a file that another user owns.
        return os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        os.fchmod(number, 0o666)
        return number


def _acquire(number: int, deadline: float, waiting: Callable[[str], None]) -> None:
    told = False
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        else:
            return
        holder = os.pread(number, 500, 0).decode(errors="replace") or "another perfflow"
        if time.monotonic() >= deadline:
            raise LockTimeoutError(f"the machine is held by {holder}")
        if not told:
            waiting(holder)
            told = True
        time.sleep(_RETRY)
