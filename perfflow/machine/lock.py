"""One lock for all users of a host: whoever measures has the machine to itself, and others are served in order.

Each run that wants the machine takes a ticket: a file beside the lock's path with a number in its name, on which its
process holds ``flock``. The kernel drops that however the process ends, so the ticket of a dead one holds nothing. The
live ticket with the lowest number has the machine. Everybody else blocks on the ticket just before the own one, which
costs no CPU time beside the measurement.

Two never hold the machine at once. A ticket is locked before its owner looks at the others, and given up where a live
one has a higher number. So of two tickets that stay, the higher one was locked after the lower one had looked, and its
owner sees the lower one alive in every look.

Others' tickets are texts of strangers. They are opened read-only, without following links, only where they are regular
files, and their text is cut and cleaned before anybody sees it. A perfflow inside a step of another inherits the lock
through its environment instead of waiting for its own parent.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from perfflow.model.later import dataclass, late_pattern

HELD = "PERFFLOW_LOCK_HELD"
"""Environment variable of children started under the lock."""
PLACE = "PERFFLOW_LOCK_FILE"
"""Environment variable with the path of another lock. The file itself is not used: tickets lie beside it."""
LOOK_AGAIN = 10.0
"""Seconds after which a waiting run looks again who has the machine, beside when the one before it ends."""
MOST = 1000
"""Tickets in a folder, dead ones included: to look at more would take long beside a measurement."""
_NAME = "perfflow-measuring.lock"
# Not the user's own TMPDIR: all users of the host must come to the same place.
_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108
_TICKET = late_pattern(r"\.(\d{1,12})\.[0-9a-f]{16}")
_HIGHEST = 10**12 - 1
"""The last number that a ticket can have: a longer one would be seen by nobody."""
_LONGEST, _LONGEST_NAME = 4096, 200
"""Bytes of a ticket that are read, and letters of what its owner measures."""
_TRIES = 100
_UNUSABLE = (errno.ENOENT, errno.ELOOP, errno.EACCES, errno.ENXIO, errno.ENODEV, errno.EISDIR)
"""Why a ticket that was listed may not be opened: it is gone, a link, just being made, or not a file."""


class LockError(Exception):
    """The machine's lock cannot be used; the text says why."""


class LockTimeoutError(LockError):
    """The machine stayed busy for longer than the caller wanted to wait; the text names the holder."""


@dataclass(frozen=True)
class Queue:
    """Where a waiting run stands: who has the machine, as printable text, and its place in line, 1 being the next."""

    holder: str
    place: int


def path() -> Path:
    """The lock's path: one for all users of the host. Raises LockError where no folder is fit for it."""
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
    raise LockError(f"{'; '.join(reasons)}; name a path in another folder with {PLACE}")


@contextmanager
def machine_alone(who: str, timeout: float, waiting: Callable[[Queue], None]) -> Iterator[None]:
    """Hold the machine; ``who`` tells others what is measured.

    While it is busy, ``waiting`` is told where this run stands: at once, when that changes, and every 10 s. Raises
    LockTimeoutError after ``timeout`` seconds, and LockError where the lock cannot be used.
    """
    if os.environ.get(HELD):
        yield
        return
    place = path()
    try:
        tickets = _Tickets(place)
        try:
            ticket = tickets.served(who, timeout, waiting)
        finally:
            tickets.close()
    except OSError as error:
        raise LockError(_unusable(place, error)) from error
    try:
        yield
    finally:
        ticket.close()


def stand_aside() -> None:
    """Give up the places in line of runs of this process that wait, since it is about to be stopped (^Z).

    A stopped run keeps nobody waiting; it takes a new ticket when it goes on. A signal's handler may call this.
    """
    for ticket in tuple(_WAITING):
        ticket.give_up()


class _Ticket:
    """A place in line of this process, until it is closed."""

    def __init__(self, folder: int, name: str, key: tuple[int, str]) -> None:
        self._folder, self.name, self.key = os.dup(folder), name, key
        try:
            # Nobody else can open it before it is locked.
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(name, flags, 0o600, dir_fd=self._folder)
        except BaseException:
            os.close(self._folder)
            raise

    def lock(self, who: str) -> bool:
        """Show it to others; whether that worked. Whoever looks at it in this moment may have it locked."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.say(who)
        os.fchmod(self._file, 0o644)
        return self.is_there()

    def say(self, who: str) -> None:
        """Tell others what is measured, from now on."""
        said = {"who": who[:_LONGEST_NAME], "pid": os.getpid(), "since": time.time()}
        # Always as long as before, so that nobody reads a part of it followed by a part of something else.
        os.pwrite(self._file, json.dumps(said).encode().ljust(_LONGEST), 0)

    def is_there(self) -> bool:
        """Whether others can see it: whoever cleans temporary folders may have removed it."""
        try:
            found = os.stat(self.name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._file))

    def is_file(self, number: int) -> bool:
        """Whether an open file is this ticket."""
        return os.path.samestat(os.fstat(number), os.fstat(self._file))

    def give_up(self) -> None:
        """Let those behind it pass."""
        if self.is_there():
            with suppress(OSError):
                os.unlink(self.name, dir_fd=self._folder)
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave the line, or let the next one have the machine."""
        self.give_up()
        os.close(self._file)
        os.close(self._folder)


_WAITING: list[_Ticket] = []
"""Tickets of this process that do not have the machine yet."""


class _Tickets:
    """The tickets of all runs: files in one folder whose names begin with that of the lock."""

    def __init__(self, place: Path) -> None:
        """Raises LockError for a folder in which strangers could remove tickets, or which cannot be written."""
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
        """Let go of the folder; tickets stay."""
        os.close(self._folder)

    def served(self, who: str, timeout: float, waiting: Callable[[Queue], None]) -> _Ticket:
        """Wait in line until it is this run's turn. Raises LockTimeoutError, LockError and OSError."""
        deadline = time.monotonic() + timeout
        ticket = self._take(who)
        try:
            while (ahead := self._ahead(ticket)) or not self._claim(ticket):
                if not ticket.is_there():  # removed by who cleans temporary folders, or given up before a stop
                    self._leave(ticket)
                    ticket = self._take(who)
                elif ahead:
                    self._wait(ahead, deadline, waiting)
            ticket.say(who)
        except BaseException:
            self._leave(ticket)
            raise
        return ticket

    def _ahead(self, ticket: _Ticket) -> list[str]:
        """The live tickets before one, the holder's first."""
        return [name for number, name in self._live(ticket) if (number, name) < ticket.key]

    @staticmethod
    def _claim(ticket: _Ticket) -> bool:
        """Have the machine with the first ticket, unless it is gone. From here on ^Z does not take it away."""
        _WAITING.remove(ticket)
        if ticket.is_there():
            return True
        _WAITING.append(ticket)
        return False

    def _wait(self, ahead: Sequence[str], deadline: float, waiting: Callable[[Queue], None]) -> None:
        """Wait until the run just before this one ends, or it is time to look again. Raises LockTimeoutError."""
        left = deadline - time.monotonic()
        holder = self._described(ahead[0])
        if left <= 0:
            raise LockTimeoutError(f"the machine is held by {holder}; wait longer with --lock-timeout")
        waiting(Queue(holder, len(ahead)))
        self._end_of(ahead[-1]).wait(min(left, LOOK_AGAIN))

    def _take(self, who: str) -> _Ticket:
        """A ticket behind all that are there."""
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
        raise LockError(f"cannot use the measuring lock {self._place}: no ticket to be had in {_TRIES} tries")

    @staticmethod
    def _leave(ticket: _Ticket) -> None:
        if ticket in _WAITING:
            _WAITING.remove(ticket)
        ticket.close()

    def _live(self, own: _Ticket | None = None) -> list[tuple[int, str]]:
        """Number and name of the tickets of others whose processes live, in order. Raises LockError where it is full.

        Dead ones are removed, as far as this user may.
        """
        found = []
        for name in os.listdir(self._folder):  # noqa: PTH208 (the folder that was checked, whatever its name means now)
            match = _TICKET.fullmatch(name, len(self._place.name)) if name.startswith(self._place.name) else None
            if match and (own is None or name != own.name):
                found.append((int(match[1]), name))
        if len(found) > MOST:
            raise LockError(f"cannot use the measuring lock: over {MOST} tickets; remove those of {self._place}.*")
        return sorted(key for key in found if self._is_alive(key[1], own))

    def _is_alive(self, name: str, own: _Ticket | None) -> bool:
        file = self._opened(name)
        if file is None:
            return False
        try:
            if own and own.is_file(file):
                return False  # another name for it: not one to wait for
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            # Names are never used again, and who has just made this one looks whether it is still there.
            if os.geteuid() in (0, os.fstat(file).st_uid):
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._folder)
            return False
        finally:
            os.close(file)

    def _opened(self, name: str) -> int | None:
        """A ticket of another run, None where there is no regular file that can be read. Raises OSError."""
        # A FIFO would wait for a writer without O_NONBLOCK.
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
        """Who has a ticket: what is measured, by whom, and since when, as printable text."""
        file = self._opened(name)
        if file is None:
            return "another perfflow"
        try:
            text, about = os.pread(file, _LONGEST, 0), os.fstat(file)
        finally:
            os.close(file)
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            said = None
        return _holder(said if isinstance(said, dict) else {}, about)

    def _end_of(self, name: str) -> threading.Event:
        """What is set as soon as a ticket's process lets go of it."""
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
"""Of each file that a thread of this process waits for, by device and inode, what that sets at its end."""
_GUARD = threading.Lock()


def _wait_for(file: int, key: tuple[int, int], over: threading.Event) -> None:
    """Block until a file is unlocked: only a thread can, since nothing ends the wait after a while."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:
        time.sleep(1)  # a file system without locks; not to be asked again at once
    finally:
        with _GUARD:
            _ENDS.pop(key, None)
        os.close(file)
        over.set()


def _unusable(place: Path, error: OSError) -> str:
    return f"cannot open the measuring lock {place}: {error.strerror}"


def _not_trusted(folder: os.stat_result) -> str:
    """Why tickets are not safe in a folder, '' where they are."""
    if folder.st_uid not in (0, os.geteuid()):
        return f"belongs to {_user(folder.st_uid)}; name a path in a folder of yours or of root's with {PLACE}"
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        return "is writable for everybody and not sticky (chmod +t), so anybody could remove tickets"
    return ""


def _holder(said: dict[str, object], about: os.stat_result) -> str:
    """Who has a ticket, as far as its text can be believed; whose file it is comes from the file system."""
    who, pid, since = said.get("who"), said.get("pid"), said.get("since")
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
    import pwd

    try:
        return _printable(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return f"user {uid}"


def _printable(text: str) -> str:
    """The text with a question mark for each character that would act instead of being shown."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
