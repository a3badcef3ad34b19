"""The folder of a run. Events are appended as they happen; all other files are written atomically.

- ``RunFolder`` has the files of one run. ``create``, ``reopen`` and ``find`` return folders of new and stored runs.
- ``Subrun`` is a part of a run's folder for one candidate, separate from the steps of the run itself.
- ``lock`` and ``only_writer`` are locks between perfflow processes. The kernel releases them however the holder ends.
- ``json_lines`` is the format of the JSON files of a run: one key per line, and one line per item of a list or map. An
  item on one line reads like a row of a table and is one line of a diff. json also writes it ten times faster than
  indented text, which it produces in Python code.
- ``runs``, ``comparisons`` and ``patches`` find old folders with their sizes, and ``remove`` removes them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from perfflow.model.errors import Exit, UserError
from perfflow.model.secrets import Secrets, masked
from perfflow.store.event_chain import KEY, Chain, chain_of
from perfflow.store.record import Record, with_groups
from perfflow.store.write_failure import (
    _BLOCK,
    FolderError,
    exit_of_write_failure,
    is_failure_at,
    rescued_text,
    write_remedy,
)
from perfflow.tools.regular_files import opened
from perfflow.trees.git import remove_tree

HOME = ".perfflow"
HISTORY = "history.sqlite"
"""File name of the project's own history, in HOME."""
NEWEST = 5
"""Number of runs that the message about an unknown run names."""
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
RESULT, EVENTS, REPORT, RECEIPT = "result.json", "events.jsonl", "report.md", "receipt.json"
PAGE = "report.html"
WORKFLOW, BASE = "workflow.yaml", "base.diff"
"""The workflow of a run with candidates, in one file, and what the tree that they start from changes in its commit."""
TEMPLATE = "report.md.j2"
"""The copy of the template that the workflow names."""
PATCHES = "patches"
"""Folder beside the runs with submitted patches, each with the workflow that has the patch as its candidate."""
PROFILES = "profiles"
"""Folder with profiles for external viewers."""


class RunFolder:
    """The files of one run. ``append`` may be called from several threads.

    ``secrets`` are masked in all events.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.id = run_id
        self.secrets = Secrets()
        self._guard = threading.Lock()
        self._files = path / "steps"
        self._steps: dict[str, Path] = {}
        self._unlisted: Path | None = None
        self._before: tuple[Path, str] | None = None
        """The folder of the project's runs, and the run that ``latest`` named before this one; '' for none."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._place = path / EVENTS
        self._events = os.open(self._place, flags, 0o666)
        self._written = os.fstat(self._events).st_mtime
        """When the last event before those of this process was written, by the system's clock."""
        self._chain, self._disturbed = Chain(), False
        """The events that perfflow wrote, and whether the file ever had another size than they have.

        No other program can change these.
        """
        try:
            lock(self._events)
        except BlockingIOError as error:
            os.close(self._events)
            hint = "wait until it ends, or start a new run without --resume"
            raise UserError.of(f"{path}: another perfflow is writing this run", hint) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._events)

    def append(self, event: Mapping[str, Any]) -> None:
        """Add one event. Once this returns, killing perfflow does not lose it.

        Raises FolderError if it cannot be written, or if the folder was removed or moved in the meantime. Earlier
        events are kept, and the error names their folder.
        """
        # Readers of the event would reject a lone surrogate (from a file name that is not UTF-8), so replace it.
        text = _encoded(event)
        if self.secrets.spans(text):
            text = _encoded(masked(event, self.secrets))
        data = text.encode("utf-8", "replace")
        with self._guard:
            state = os.fstat(self._events)
            self._disturbed = self._disturbed or state.st_size != self._chain.size
            chain, data = self._chain.linked(data)
            try:
                while data:
                    data = data[os.write(self._events, data) :]
            except OSError as error:
                # A partial line followed by another thread's line would damage the file.
                os.ftruncate(self._events, state.st_size)
                raise FolderError.of(self.path, error) from error
            self._chain = chain
            if not is_failure_at(self._place, state):
                raise rescued_text(self._events, self.path, EVENTS)
            if self._unlisted:
                # Only now: a run that could not start must not be shown instead of the one before it.
                self.become_latest()

    @property
    def chain(self) -> str:
        """The last hash of the chain of the events that perfflow wrote."""
        return self._chain.head

    def altered_line(self) -> int:
        """Return the number of the first line that another program wrote, changed or removed; 0 if there is none.

        Which of the last lines it is remains unknown if their chain was made anew.
        """
        with self._guard:
            found = self._stored_chain()
            if found.broken or (found.head == self._chain.head and not self._disturbed):
                return found.broken
            return max(1, found.lines)

    def _stored_chain(self) -> Chain:
        with os.fdopen(os.dup(self._events), "rb") as stream:
            stream.seek(0)
            return chain_of(stream)

    def become_latest(self) -> None:
        """Let ``latest`` name this run, if it is one of the project's own."""
        if self._unlisted:
            latest = self._unlisted / "latest"
            self._before = self._unlisted, latest.readlink().name if latest.is_symlink() else ""
            point_latest(self._unlisted, self.id)
            self._unlisted = None

    def discard(self) -> None:
        """Remove all files of the run, and let ``latest`` name the run before it again."""
        shutil.rmtree(self._files, ignore_errors=True)
        self._place.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()
        if self._before is not None:
            runs, name = self._before
            with suppress(OSError):
                if name:
                    point_latest(runs, name)
                else:
                    (runs / "latest").unlink()

    def list_as_latest(self, runs: Path) -> None:
        """Let ``latest`` in a folder of runs name this run as soon as its first event is stored."""
        self._unlisted = runs

    def resume(self, steps: Iterable[str], at: str) -> None:
        """Add the event of a resumption at the time ``at`` (RFC 3339), with the steps that should run."""
        paused = max(0.0, time.time() - self._written)
        self.append({"event": "resumed", "time": at, "paused": round(paused, 3), "selected": sorted(steps)})

    def continue_events(self) -> None:
        """Remove an incomplete last line, and continue the chain of the others. Raises UserError if it is broken."""
        size = end = os.fstat(self._events).st_size
        while end:
            start = max(0, end - _BLOCK)
            newline = os.pread(self._events, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._events, end)
        self._chain = self._stored_chain()
        if self._chain.broken:
            os.close(self._events)
            text = f"{self._place}:{self._chain.broken}: not what perfflow wrote"
            raise UserError.of(text, "start a new run without --resume")

    def step(self, step_id: str) -> Path:
        """Return the folder of one step's files, and create it on first use."""
        folder = self._steps.get(step_id)
        if folder is None:
            folder = self._steps[step_id] = self._files / file_name(step_id)
            folder.mkdir(parents=True, exist_ok=True)
        return folder


@contextmanager
def explaining_damage(
    source: Path, hint: str = "was the file changed by hand or written by another version?"
) -> Iterator[None]:
    """Turn errors inside into a UserError about a damaged file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # perfflow's own files do not cause this: the file was changed, or another version wrote it.
        text = f"{source}: not what this version of perfflow writes ({type(error).__name__}: {error})"
        raise UserError.of(text, hint) from error


def require_ended(path: Path) -> None:
    """Raise UserError if another perfflow is still writing the run in a folder."""
    if is_held(path / EVENTS):
        hint = "wait until it ends; what it has measured so far is in its events.jsonl"
        raise UserError.of(f"{path}: the run is still running", hint, Exit.UNMEASURED)


def file_name(text: str) -> str:
    """Return a file name for an id: characters that shells and file systems treat specially become ``_``.

    A changed or shortened name gets a hash of the id, so that no two ids share a name.
    """
    plain = re.sub(r"[^A-Za-z0-9_.=,\[\]-]", "_", text)[:100].lstrip(".")
    if plain == text and plain:
        return plain
    return f"{plain}~{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def reopen(path: Path) -> RunFolder:
    """Open the folder of a run to resume it. Raises UserError if it has no events or if another process uses it.

    An incomplete last line, from a perfflow that was killed, is removed.
    """
    opening = next(events(path), {})
    run_id = opening.get("run", {}).get("id") if isinstance(opening.get("run"), dict) else None
    if not isinstance(run_id, str):
        raise UserError.of(f"{path / EVENTS}: holds no run", "was it killed before it started?")
    try:
        folder = RunFolder(path, run_id)
        folder.continue_events()
    except OSError as error:
        text = f"cannot write {error.filename or path}: {error.strerror}"
        raise UserError.of(text, write_remedy(error), exit_of_write_failure(error)) from error
    return folder


def create(root: Path, out: Path | None) -> RunFolder:
    """Create the folder of a new run: ``out``, or a new one under ``.perfflow/runs`` of the tree.

    Raises UserError if ``out`` is not empty or cannot be created.
    """
    try:
        if out is not None:
            require_empty(out)
            return _claimed(out.resolve(), new_id())
        runs = home(root) / "runs"
        runs.mkdir(exist_ok=True)
        run_id = _make_one(runs)
        folder = _claimed(runs / run_id, run_id)
        folder.list_as_latest(runs)
    except OSError as error:
        raise _unwritable(error, out or root) from error
    return folder


def new_id() -> str:
    """Return the id of a new run: the time and a random part."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def _make_one(runs: Path) -> str:
    """Create a folder with an id that no other perfflow has taken."""
    while True:
        run_id = new_id()
        try:
            (runs / run_id).mkdir()
        except FileExistsError:
            continue
        return run_id


def _claimed(path: Path, run_id: str) -> RunFolder:
    """Open the folder of a new run. If two processes find it empty at once, the second one gets an error."""
    try:
        os.close(os.open(path / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    except FileExistsError as error:
        raise _not_empty(path) from error
    return RunFolder(path, run_id)


def _unwritable(error: OSError, path: Path) -> UserError:
    text = f"cannot write {error.filename or path}: {error.strerror}"
    if exit_of_write_failure(error) is Exit.UNMEASURED:
        return UserError.of(text, f"{write_remedy(error)}, or name another folder with --out DIR", Exit.UNMEASURED)
    return UserError.of(text, "name a writable folder with --out DIR")


def _not_empty(out: Path) -> UserError:
    return UserError.of(f"--out {out}: the folder is not empty", "name a new folder; a run never overwrites one")


def home(root: Path) -> Path:
    """Create and return the project's perfflow folder, which git ignores. Raises OSError; UserError for links."""
    require_own(root)
    folder = root / HOME
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_text(ignore, "*\n")
    return folder


def require_own(root: Path) -> None:
    """Raise UserError if a link leads from the project's perfflow folder, or from its runs, out of the project.

    A cloned project may contain such links: perfflow would read, change and remove files of other projects.
    """
    top, folder = os.path.realpath(root), root / HOME
    for path in (folder, *_inside(folder), *_inside(folder / "runs"), *_inside(folder / PATCHES)):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(top):
            hint = "delete the link; --out DIR stores a run elsewhere"
            raise UserError.of(f"{path} is a link that leads out of the project", hint)


def _inside(folder: Path) -> list[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return []
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def require_empty(out: Path) -> None:
    """Create the folder ``out``. Raises UserError if it is not empty or cannot be created."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not any(out.iterdir()):
            return
    except OSError as error:
        raise _unwritable(error, out) from error
    raise _not_empty(out)


def point_latest(runs: Path, run_id: str) -> None:
    """Let ``latest`` in a folder of runs name a run. Raises OSError."""
    fresh = runs / f".latest-{run_id}"
    fresh.symlink_to(run_id)
    fresh.replace(runs / "latest")


def find(root: Path, name: str) -> Path:
    """Return the folder of a stored run, given a path, a file in it, or an id under ``.perfflow/runs`` or ``latest``.

    For a result file under another name, such as a CI artifact, return the file itself. Raises UserError.
    """
    if Path(name).is_file() and Path(name).name not in (RESULT, EVENTS):
        return Path(name).resolve()
    require_own(root)
    for path in (Path(name), root / HOME / "runs" / name):
        folder = path.parent if path.name in (RESULT, EVENTS) and path.is_file() else path
        if (folder / RESULT).is_file() or (folder / EVENTS).is_file():
            return folder.resolve()
    raise UserError.of(f"{name}: no run found", _known_runs(root / HOME / "runs"))


def _known_runs(runs: Path) -> str:
    """Return a hint with the newest runs. Ids start with the time."""
    found = [path.parent.name for pattern in (RESULT, EVENTS) for path in runs.glob(f"*/{pattern}")]
    newest = sorted(set(found) - {"latest"}, reverse=True)[:NEWEST]
    if not newest:
        return f"there are no runs in {runs}; name a run made with --out by its folder"
    return f"the newest in {runs}: {', '.join(newest)}; or use `latest`, or the folder of a run made with --out"


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write a file atomically, from a text or its parts: a reader sees the old text or the new one."""
    parts = [text] if isinstance(text, str) else text
    write_bytes(path, (part.encode("utf-8", "backslashreplace") for part in parts))


def write_bytes(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file atomically from parts of bytes."""
    # Random, because processes of several machines share folders, and their ids may be equal.
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with fresh.open("wb") as stream:
            stream.writelines(parts)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def events(path: Path) -> Iterator[dict[str, Any]]:
    """Read the events of a run, including its jobs on other machines. Raises UserError as ``own_events`` does."""
    return with_groups(path, own_events(path), own_events)


def own_events(path: Path) -> Iterator[dict[str, Any]]:
    """Read the events in a run's own folder.

    An incomplete last line, from a perfflow that was killed, is ignored. Raises UserError for other damaged lines.
    """
    try:
        stream = opened(path / EVENTS)
    except OSError as error:
        raise UserError.of(
            f"{path / EVENTS}: {error.strerror}", "perfflow reads a run from its events.jsonl"
        ) from error
    with stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                return
            try:
                event = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError.of(
                    f"{path / EVENTS}:{number}: damaged line", "was the file changed by hand?"
                ) from error
            if isinstance(event, dict):
                event.pop(KEY, None)
                yield event


class EventStore(Protocol):
    """A store for the events and files of steps: a run's folder, or a part of it."""

    @property
    def path(self) -> Path:
        """The run's folder."""

    def append(self, event: Mapping[str, Any]) -> None:
        """Add one event."""

    def step(self, step_id: str) -> Path:
        """Return the folder of one step's files, and create it on first use."""


class Subrun:
    """Files below the folder of the step ``name``, and events with that name as ``trial``.

    Each event is also folded into ``record``.
    """

    def __init__(self, whole: EventStore, name: str, record: Record) -> None:
        self._whole, self.name, self.record = whole, name, record

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._whole.path

    def append(self, event: Mapping[str, Any]) -> None:
        """Add one event, marked with the name of this subrun."""
        self._whole.append({**event, "trial": self.name})
        self.record.fold(event)

    def step(self, step_id: str) -> Path:
        """Return the folder of one step's files in this subrun, and create it on first use."""
        folder = self._whole.step(self.name) / file_name(step_id)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


_TRIES, _PAUSE = 5, 0.01
"""Number of attempts to take a lock, and seconds between them."""


def lock(number: int, *, wait: bool = False) -> None:
    """Lock an open file or folder for writing. Raises BlockingIOError if another process has locked it.

    ``is_held`` takes the lock for a moment, so this function tries several times. ``wait``: wait without a limit.
    """
    try:
        import fcntl
    except ImportError:  # perfflow does not run anything on systems without it
        return
    if not wait:
        for _ in range(_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_PAUSE)
    fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def is_held(path: Path) -> bool:
    """Return whether another perfflow is writing a file now; False if that cannot be determined."""
    try:
        import fcntl

        stream = opened(path)
    except (ImportError, OSError):
        return False
    with stream:
        try:
            fcntl.flock(stream.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return False
    return False


@contextmanager
def only_writer(folder: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Wait for other perfflow processes to finish changing a folder, then lock it. Raises OSError.

    ``waiting`` is called first if another process holds it.
    """
    if os.name == "nt":  # folders cannot be opened there
        yield
        return
    number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            lock(number)
        except BlockingIOError:
            if waiting:
                waiting()
            lock(number, wait=True)
        yield
    finally:
        os.close(number)


def json_lines(parts: Iterable[tuple[str, Any]], plain: Callable[[Any], Any] = lambda value: value) -> Iterator[str]:
    """Yield the text of an object in parts, because several copies of the whole may need too much memory.

    ``plain`` converts an item to JSON data. A number that is not finite is written as null.
    """
    opening = "{\n"
    for name, value in parts:
        yield f"{opening} {_compact(name)}: "
        if value and isinstance(value, list):
            yield from _rows("[", (_compact(plain(item)) for item in value), "]")
        else:
            data = plain(value)
            if data and isinstance(data, dict):
                yield from _rows("{", _items(data), "}")
            else:
                yield _compact(data)
        opening = ",\n"
    yield "\n}\n"


def _rows(opening: str, rows: Iterable[str], closing: str) -> Iterator[str]:
    before = f"{opening}\n  "
    for row in rows:
        yield before + row
        before = ",\n  "
    yield f"\n {closing}"


def _items(data: dict[Any, Any]) -> Iterable[str]:
    if all(type(value) is str for value in data.values()):
        # One call for all texts, such as the hashes of a receipt, takes a fraction of the time of one for each.
        return [_lines(data)[1:-1]]
    return (f"{_compact(key)}: {_compact(item)}" for key, item in data.items())


_encoded_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_lines = json.JSONEncoder(ensure_ascii=False, separators=(",\n  ", ": ")).encode


def _compact(data: Any) -> str:
    try:
        return _encoded_json(data)
    except ValueError:  # a number that is not finite; checking for one first would take longer than writing
        return _encoded_json(_nulled(data))


def _nulled(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _nulled(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_nulled(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


_GOING = ".going-"
"""Prefix of a folder that is being removed. If a clean-up is killed, the next one removes the rest."""


@dataclass(frozen=True)
class OldFolder:
    """A removable folder: when it was last written (seconds since 1970) and its size on disk in bytes."""

    path: Path
    written: float
    size: int
    what: str


def runs(root: Path) -> list[OldFolder]:
    """Return the runs of a project that no process is writing, newest first."""
    return _runs_in(root / HOME / "runs", "run")


def comparisons(cache: Path) -> list[OldFolder]:
    """Return the runs of `perfflow compare` outside any project, newest first."""
    return _runs_in(cache / "compare", "comparison")


def patches(root: Path, gone: Collection[Path]) -> list[OldFolder]:
    """Return the submitted patches that no run uses. Runs in ``gone`` do not count."""
    folder, left = root / HOME / PATCHES, set()
    runs = root / HOME / "runs"
    for run in runs.iterdir() if runs.is_dir() else ():
        if run not in gone and not run.is_symlink():
            left.add((root / _workflow_of(run)).parent)
    unused = [path for path in (folder.iterdir() if folder.is_dir() else ()) if path not in left and path.is_dir()]
    return [OldFolder(path, _newest(path), size_of(path), "patch") for path in sorted(unused)]


def _workflow_of(run: Path) -> str:
    """Return a run's workflow file, relative to the project root; '' if it is not known."""
    with suppress(OSError, ValueError, KeyError, TypeError), (run / EVENTS).open(encoding="utf-8") as stream:
        return str(json.loads(stream.readline())["run"]["file"])
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads((run / RESULT).read_bytes())["run"]["file"])
    return ""


def _newest(folder: Path) -> float:
    """Return when a file in a folder was last written, in seconds since 1970."""
    return max((entry.stat(follow_symlinks=False).st_mtime for entry in _below(folder)), default=0.0)


def _runs_in(folder: Path, what: str) -> list[OldFolder]:
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_symlink() or not path.is_dir() or is_held(path / EVENTS):
            continue
        of_ours = path.name.startswith(_GOING) or any((path / name).is_file() for name in (EVENTS, RESULT))
        if of_ours:
            found.append(OldFolder(path, _written(path), size_of(path), what))
    return sorted(found, key=lambda item: (item.written, item.path.name), reverse=True)


def _written(path: Path) -> float:
    if path.name.startswith(_GOING):
        return 0.0
    times = []
    for name in (EVENTS, RESULT):
        with suppress(OSError):
            times.append((path / name).stat().st_mtime)
    return max(times, default=0.0)


def size_of(folder: Path) -> int:
    """Return the bytes on disk of all files below a folder, without following links."""
    return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in _below(folder))


def _below(folder: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [str(folder)]
    while waiting:
        # Another process may be removing it now.
        with suppress(FileNotFoundError, PermissionError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                yield entry


def remove(folder: Path) -> None:
    """Remove a folder: rename it first, so that its name is free at once. Raises OSError."""
    going = folder
    if not folder.name.startswith(_GOING):
        going = folder.with_name(f"{_GOING}{secrets.token_hex(6)}")
        folder.rename(going)
    remove_tree(going)


def drop_dangling_latest(root: Path) -> None:
    """Remove the link `latest` if its run no longer exists."""
    latest = root / HOME / "runs" / "latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
