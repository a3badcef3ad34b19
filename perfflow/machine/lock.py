"""One lock for all users of a host: one run measures at a time, and waiting runs are served in order of arrival.

Each run that waits for the machine takes a ticket: a file beside the lock's path with a number in its name, on which
the process holds ``flock``. The kernel releases the lock however the process ends, so the ticket of a dead process has
no effect. The live ticket with the lowest number holds the machine. All others block on the ticket just before their
own, which uses no CPU time during the measurement.

Two runs never hold the machine at the same time. A run locks its ticket before it checks the others, and gives it up if
a live ticket has a higher number. So of two tickets that remain, the higher one was locked after the owner of the lower
one had checked, and the owner of the higher one finds the lower one alive in every check.

Tickets of other users are untrusted. They are opened read-only, without following links, only if they are regular
files, and their text is shortened and sanitized before it is shown. A perfflow inside a step of another one inherits
the lock through its environment instead of waiting for its own parent.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pwd
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from perfflow.model.errors import StepError

HELD = "PERFFLOW_LOCK_HELD"
"""Environment variable of a step that has the machine to itself: the id of the process that holds the lock."""
PLACE = "PERFFLOW_LOCK_FILE"
"""Environment variable with the path of another lock. The file itself is not used: tickets are stored beside it."""
RECHECK_SECONDS = 10.0
"""Seconds after which a waiting run checks again which run holds the machine, if the run before it has not ended."""
MOST = 1000
"""Most tickets in a folder, dead ones included: checking more would disturb a running measurement."""
_NAME = "perfflow-measuring.lock"
# Not the user's TMPDIR: all users of the host must use the same folder.
_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108
_TICKET = re.compile(r"\.(\d{1,12})\.[0-9a-f]{16}")
_HIGHEST = 10**12 - 1
"""Highest number of a ticket: other runs would not recognize a longer one."""
_LONGEST, _LONGEST_NAME = 4096, 200
"""Bytes that are read of a ticket, and characters that are kept of its owner's description."""
_TRIES = 100
_UNUSABLE = (errno.ENOENT, errno.ELOOP, errno.EACCES, errno.ENXIO, errno.ENODEV, errno.EISDIR)
"""Errors when opening a listed ticket: it was removed, is a link, is just being made, or is not a file."""


class LockError(StepError):
    """The machine's lock cannot be used, for the reason in the text."""


class LockTimeoutError(LockError):
    """The machine stayed busy for longer than the timeout. The text names the holder."""


@dataclass(frozen=True)
class LockQueue:
    """State of a waiting run: the holder of the machine as printable text, and the place in the queue (1: next)."""

    holder: str
    place: int


def path() -> Path:
    """Return the path of the lock, which all users of the host share. Raises LockError if no folder is suitable."""
    named = os.environ.get(PLACE)
    if named:
        return Path(named)
    reasons = []
    for folder in _FOLDERS:
        place = Path(os.path.realpath(folder)) / _NAME
        try:
            _Tickets(place).close()
        except LockError as error:
            reasons.append(str(error))
        else:
            return place
    raise LockError(f"{'; '.join(reasons)}; set {PLACE} to a path in another folder")


@contextmanager
def machine_alone(who: str, timeout: float, waiting: Callable[[LockQueue], None]) -> Iterator[None]:
    """Hold the machine; ``who`` describes the measurement to other runs.

    While the machine is busy, ``waiting`` is called at once, when the place in the queue changes, and every 10 s.
    Raises LockTimeoutError after ``timeout`` seconds, and LockError if the lock cannot be used.
    """
    place = path()
    try:
        tickets = _Tickets(place)
        try:
            inside = tickets.is_held_above(os.environ.get(HELD, ""))
            ticket = None if inside else tickets.served(who, timeout, waiting)
        finally:
            tickets.close()
    except OSError as error:
        raise LockError(_unusable(place, error)) from error
    try:
        yield
    finally:
        if ticket:
            ticket.close()


def stand_aside() -> None:
    """Give up the places in the queue of this process, which is about to be stopped (^Z).

    A stopped run must not block others. It takes a new ticket when it continues. Signal handlers may call this.
    """
    for ticket in tuple(_WAITING):
        ticket.give_up()


class _Ticket:
    """A place of this process in the queue, until it is closed."""

    def __init__(self, folder: int, name: str, key: tuple[int, str]) -> None:
        self._folder, self.name, self.key = os.dup(folder), name, key
        try:
            # Mode 0600 until it is locked, so that no other user can open it before.
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(name, flags, 0o600, dir_fd=self._folder)
        except BaseException:
            os.close(self._folder)
            raise

    def lock(self, who: str) -> bool:
        """Lock it and show it to others; return whether that worked. A run that is checking it may hold its lock."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.say(who)
        os.fchmod(self._file, 0o644)
        return self.is_there()

    def say(self, who: str) -> None:
        """Write the description that others read."""
        said = {"who": who[:_LONGEST_NAME], "pid": os.getpid(), "since": time.time()}
        # Always the same length, so that no reader gets a mix of the old and the new text.
        os.pwrite(self._file, json.dumps(said).encode().ljust(_LONGEST), 0)

    def is_there(self) -> bool:
        """Return whether the file still exists: a cleaner of temporary folders may have removed it."""
        try:
            found = os.stat(self.name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._file))

    def is_file(self, number: int) -> bool:
        """Return whether an open file is this ticket."""
        return os.path.samestat(os.fstat(number), os.fstat(self._file))

    def give_up(self) -> None:
        """Let the tickets behind it pass."""
        if self.is_there():
            with suppress(OSError):
                os.unlink(self.name, dir_fd=self._folder)
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave the queue, or release the machine for the next run."""
        self.give_up()
        os.close(self._file)
        os.close(self._folder)


_WAITING: list[_Ticket] = []
"""Tickets of this process that do not hold the machine yet."""


class _Tickets:
    """The tickets of all runs: files in one folder whose names begin with the name of the lock."""

    def __init__(self, place: Path) -> None:
        """Raises LockError for a folder that is not writable, or in which other users could remove tickets."""
        self._place = place
        try:
            self._folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise LockError(_unusable(place, error)) from error
        reason = _not_trusted(os.fstat(self._folder))
        if not reason and not os.access(place.parent, os.W_OK | os.X_OK):
            reason = "is not writable"
        if reason:
            self.close()
            raise LockError(f"cannot use the measuring lock {place}: the folder {place.parent} {reason}")

    def close(self) -> None:
        """Close the folder; tickets stay."""
        os.close(self._folder)

    def served(self, who: str, timeout: float, waiting: Callable[[LockQueue], None]) -> _Ticket:
        """Wait until it is this run's turn; return its ticket. Raises LockTimeoutError, LockError and OSError."""
        deadline = time.monotonic() + timeout
        ticket = self._take(who)
        try:
            while (ahead := self._ahead(ticket)) or not self._claim(ticket):
                if not ticket.is_there():  # removed by a cleaner of temporary folders, or given up before a stop
                    self._leave(ticket)
                    ticket = self._take(who)
                elif ahead:
                    self._wait(ahead, deadline, waiting)
            ticket.say(who)
        except BaseException:
            self._leave(ticket)
            raise
        return ticket

    def is_held_above(self, holder: str) -> bool:
        """Return whether the process ``holder`` holds the machine and started this one, directly or indirectly.

        Other values of the variable count as nothing: it outlives its step in a daemon that the step started.
        """
        if not holder.isdecimal() or not (live := self._live()):
            return False
        file = self._opened(live[0][1])
        if file is None:
            return False
        try:
            content = json.loads(os.pread(file, _LONGEST, 0))
        except (ValueError, RecursionError):
            return False
        finally:
            os.close(file)
        if not isinstance(content, dict) or content.get("pid") != int(holder):
            return False

        return int(holder) in [parent.pid for parent in psutil.Process().parents()]

    def _ahead(self, ticket: _Ticket) -> list[str]:
        """Return the names of the live tickets before this one, the holder's first."""
        return [name for number, name in self._live(ticket) if (number, name) < ticket.key]

    @staticmethod
    def _claim(ticket: _Ticket) -> bool:
        """Take the machine with the first ticket, unless its file was removed. From here on ^Z does not give it up."""
        _WAITING.remove(ticket)
        if ticket.is_there():
            return True
        _WAITING.append(ticket)
        return False

    def _wait(self, ahead: Sequence[str], deadline: float, waiting: Callable[[LockQueue], None]) -> None:
        """Wait until the run just before this one ends, or for ``RECHECK_SECONDS`` seconds. Raises LockTimeoutError."""
        left = deadline - time.monotonic()
        holder = self._described(ahead[0])
        if left <= 0:
            raise LockTimeoutError(f"the machine is held by {holder}; wait longer with --lock-timeout")
        waiting(LockQueue(holder, len(ahead)))
        self._end_of(ahead[-1]).wait(min(left, RECHECK_SECONDS))

    def _take(self, who: str) -> _Ticket:
        """Take a ticket behind all existing ones."""
        for _ in range(_TRIES):
            last = max(self._live(), default=(0, ""))
            number = last[0] + 1
            if number > _HIGHEST:
                why = f"the numbers of tickets are used up by {self._described(last[1])}"
                raise LockError(f"cannot use the measuring lock {self._place}: {why}")
            name = f"{self._place.name}.{number}.{secrets.token_hex(8)}"
            ticket = _Ticket(self._folder, name, (number, name))
            _WAITING.append(ticket)
            try:
                if ticket.lock(who) and all(key < ticket.key for key in self._live(ticket)):
                    return ticket
            except BaseException:
                self._leave(ticket)
                raise
            self._leave(ticket)
        raise LockError(f"cannot use the measuring lock {self._place}: could not get a ticket in {_TRIES} tries")

    @staticmethod
    def _leave(ticket: _Ticket) -> None:
        if ticket in _WAITING:
            _WAITING.remove(ticket)
        ticket.close()

    def _live(self, own_ticket: _Ticket | None = None) -> list[tuple[int, str]]:
        """Return the number and name of other live tickets in order. Raises LockError if the folder has too many.

        Dead ones are removed, if this user is allowed to.
        """
        tickets = []
        for name in os.listdir(self._folder):  # noqa: PTH208 (the folder that was checked, wherever its path leads now)
            match = _TICKET.fullmatch(name, len(self._place.name)) if name.startswith(self._place.name) else None
            if match and (own_ticket is None or name != own_ticket.name):
                tickets.append((int(match[1]), name))
        if len(tickets) > MOST:
            raise LockError(f"cannot use the measuring lock: over {MOST} tickets; remove the files {self._place}.*")
        return sorted(key for key in tickets if self._is_alive(key[1], own_ticket))

    def _is_alive(self, name: str, own_ticket: _Ticket | None) -> bool:
        file = self._opened(name)
        if file is None:
            return False
        try:
            if own_ticket and own_ticket.is_file(file):
                return False  # a hard link to the own ticket: do not wait for it
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            # Names are never reused, and a run that has just made this ticket checks whether it still exists.
            if os.geteuid() in (0, os.fstat(file).st_uid):
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._folder)
            return False
        finally:
            os.close(file)

    def _opened(self, name: str) -> int | None:
        """Open a ticket of another run; None if it is not a readable regular file. Raises OSError."""
        # Without O_NONBLOCK, opening a FIFO waits for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            file = os.open(name, flags, dir_fd=self._folder)
        except OSError as error:
            if error.errno in _UNUSABLE:
                return None
            raise
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        return None

    def _described(self, name: str) -> str:
        """Return what the owner of a ticket measures, the user, and the start time, as printable text."""
        file = self._opened(name)
        if file is None:
            return "another perfflow"
        try:
            text, about = os.pread(file, _LONGEST, 0), os.fstat(file)
        finally:
            os.close(file)
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        return _holder(content if isinstance(content, dict) else {}, about)

    def _end_of(self, name: str) -> threading.Event:
        """Return an event that is set as soon as the process of a ticket releases it."""
        over = threading.Event()
        file = self._opened(name)
        if file is None:
            over.set()
            return over
        about = os.fstat(file)
        key = (about.st_dev, about.st_ino)
        with _GUARD:
            known = _ENDS.get(key)
            if known:
                os.close(file)
                return known
            _ENDS[key] = over
        threading.Thread(target=_wait_for, args=(file, key, over), name="measuring lock", daemon=True).start()
        return over


_ENDS: dict[tuple[int, int], threading.Event] = {}
"""Events by device and inode of the files that threads of this process wait for."""
_GUARD = threading.Lock()


def _wait_for(file: int, key: tuple[int, int], over: threading.Event) -> None:
    """Block until a file is unlocked. Runs in a thread, because flock has no timeout."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:
        time.sleep(1)  # a file system without locks: do not retry at once
    finally:
        with _GUARD:
            _ENDS.pop(key, None)
        os.close(file)
        over.set()


def _unusable(place: Path, error: OSError) -> str:
    return f"cannot open the measuring lock {place}: {error.strerror}"


def _not_trusted(folder: os.stat_result) -> str:
    """Return why tickets are not safe in a folder, '' if they are."""
    if folder.st_uid not in (0, os.geteuid()):
        return f"belongs to {_user(folder.st_uid)}; set {PLACE} to a path in a folder that you or root own"
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        return "is writable for all users but not sticky, so any user could remove tickets; chmod +t fixes it"
    return ""


def _holder(content: dict[str, object], about: os.stat_result) -> str:
    """Describe the owner of a ticket: the user from the file system, the rest from its text if that is plausible."""
    who, pid, since = content.get("who"), content.get("pid"), content.get("since")
    name = _printable(who[:_LONGEST_NAME]) if isinstance(who, str) and who.strip() else "another perfflow"
    parts = [_user(about.st_uid)]
    if isinstance(pid, int) and 0 < pid < 2**31:
        parts.append(f"pid {pid}")
    now = time.time()
    moment = since if isinstance(since, float) and 0 < since <= now else about.st_mtime
    today = now - moment < 12 * 3600
    parts.append(f"since {time.strftime('%H:%M:%S' if today else '%Y-%m-%d %H:%M', time.localtime(moment))}")
    return f"{name} ({', '.join(parts)})"


def _user(uid: int) -> str:
    try:
        return _printable(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return f"user {uid}"


def _printable(text: str) -> str:
    """Replace each unprintable character by a question mark."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
