"""Open a project's history and add runs to it. Runs that cannot be sent to a server wait in a file until next time."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.model.result import Result
from perfflow.model.tree_facts import STORED, tree_of
from perfflow.store import result_file
from perfflow.store.history.connections import (
    AwayError,
    Connection,
    DamagedError,
    PostgresConnection,
    SqliteConnection,
)
from perfflow.store.history.database import History
from perfflow.store.history.places import NOT_READ, VARIABLE, Place, checked, place_of, store
from perfflow.store.history.summary import RunSummary, from_line, summaries_of, to_line
from perfflow.store.run_folder import HOME, RESULT, home
from perfflow.store.run_lock import only_writer
from perfflow.store.write_failure import is_read_only

UNSENT = "history-unsent.jsonl"
ELSEWHERE = "history-elsewhere.jsonl"
"""The folders of runs outside the project's own folder of runs, one JSON string per line."""
_BESIDE = ("", "-wal", "-shm")
Tell = Callable[[str], None]


def use(root: Path, address: str) -> Place:
    """Store the history in that database from now on, or in the project's own file for ''.

    Connects first, and raises UserError if that fails.
    """
    place = Place(root, checked(address) if address else "")
    if address:
        History(PostgresConnection(address)).close()
    try:
        store(root, address)
    except OSError as error:
        hint = f"set XDG_CONFIG_HOME to a folder, or {VARIABLE} to the address"
        raise UserError.of(f"{error.filename}: {error.strerror}", hint) from error
    return place if address else place_of(root)


@dataclass(frozen=True)
class Added:
    """How many runs are new or changed in the history, and how many wait to be sent."""

    new: int
    waiting: int = 0


def _connected(place: Place, tell: Tell) -> Connection:
    if place.address:
        return PostgresConnection(place.address)
    home(place.root)
    return SqliteConnection(place.file, waiting=lambda: tell(f"waiting for the process that writes {place.file.name}"))


@contextmanager
def shown(root: Path, tell: Tell) -> Iterator[History]:
    """Open the history of a project as ``opened``; without permission to write, open it for reading only."""
    with ExitStack() as stack:
        try:
            history = stack.enter_context(opened(root, tell))
        except (AwayError, OSError):
            place = place_of(root)
            if place.address or not is_read_only(place.file.parent):
                raise
            # In memory, if no run was added yet by someone who may write.
            own = SqliteConnection(
                place.file if place.file.exists() else Path(":memory:"), read_only=place.file.exists()
            )
            history = stack.enter_context(closing(History(own)))
            if not place.file.exists():
                history.add(_stored_runs(root, tell))
        yield history


@contextmanager
def opened(root: Path, tell: Tell) -> Iterator[History]:
    """Open the history of a project, and add waiting runs; fill a new file from all runs that still exist.

    A damaged file is renamed and reported to ``tell``. Raises UserError if the store cannot be reached.
    """
    place = place_of(root)
    if (root / HOME / NOT_READ).exists():
        # Whoever wrote the project could otherwise have the runs, and the password, sent to a server.
        tell(f"{HOME}/{NOT_READ} is not used; `perfflow history use URL` sets the address. Delete the file")
    is_new = not place.address and not place.file.exists()
    try:
        history = History(_connected(place, tell))
    except DamagedError as error:
        history, is_new = _rebuilt(place, error, tell), True
    try:
        if is_new:
            history.add(_stored_runs(root, tell))
        _send_waiting(root, history, tell)
        yield history
    except DamagedError as error:
        history.close()
        hint = "run the command again: it rebuilds the history from the runs"
        raise UserError.of(_put_aside(place, error), hint) from error
    finally:
        history.close()


def _rebuilt(place: Place, error: DamagedError, tell: Tell) -> History:
    """Return a history in a new file. Raises UserError if the damaged one is on a server."""
    tell(f"{_put_aside(place, error)}; it is rebuilt from the runs. Import files of other tools again")
    return History(_connected(place, tell))


def _put_aside(place: Place, error: DamagedError) -> str:
    """Rename a damaged file, and return a message about it. Raises UserError if the database is on a server."""
    if place.address:
        raise UserError.of(f"{place.shown} has tables that are not perfflow's: {error}", "name another database")
    aside = _free_name(place.file)
    for ending in _BESIDE:
        part = place.file.with_name(f"{place.file.name}{ending}")
        if part.exists():
            part.replace(aside.with_name(f"{aside.name}{ending}"))
    return f"{place.file.name} is damaged ({error}) and kept as {aside.name}"


def _free_name(path: Path) -> Path:
    numbers = iter(range(1, 10_000))
    return next(found for number in numbers if not (found := path.with_name(f"{path.name}.damaged-{number}")).exists())


def _stored_runs(root: Path, tell: Tell) -> Iterator[RunSummary]:
    """Yield the summaries of the project's readable runs."""
    own = (path for path in sorted((root / HOME / "runs").glob(f"*/{RESULT}")) if not path.parent.is_symlink())
    elsewhere = [folder / RESULT for folder in _elsewhere(root)]
    there = [path for path in elsewhere if path.is_file()]
    if len(there) < len(elsewhere):
        tell(f"{len(elsewhere) - len(there)} runs outside the project (`--out`) no longer exist")
    for path in (*own, *there):
        try:
            result = result_file.read(path)
        except UserError as error:
            tell(f"{path.parent.name} is left out of the history: {error.problems[0].message}")
            continue
        if is_kept(result):
            yield from summaries_of(result)


def _elsewhere(root: Path) -> list[Path]:
    """Return the folders that ``--out`` named, in order. Incomplete lines are ignored."""
    try:
        text = (root / HOME / ELSEWHERE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    found = []
    for line in text.splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return [Path(folder) for folder in dict.fromkeys(found) if isinstance(folder, str)]


def _remember(root: Path, folder: Path) -> None:
    """Store the folder of a run outside the project's own runs, so that the history can be rebuilt from it."""
    place = folder.resolve()
    if place.parent == (root / HOME / "runs").resolve() or place in _elsewhere(root):
        return
    with only_writer(home(root)), (root / HOME / ELSEWHERE).open("a", encoding="utf-8") as stream:
        stream.write(f"{json.dumps(str(place))}\n")


def is_kept(result: Result) -> bool:
    """Return whether a run belongs in the history: it was not interrupted, and it measured something itself."""
    was_stored = any(tree_of(result.trees, side).kind == STORED for side in Side)
    return not (result.run.interrupted or result.unmeasured or was_stored) and bool(result.benchmarks)


def add(root: Path, summaries: Iterable[RunSummary], tell: Tell) -> Added:
    """Add runs. Without a connection, the runs wait and ``tell`` is called."""
    waiting = list(summaries)
    try:
        with opened(root, tell) as history:
            return Added(history.add(waiting))
    except AwayError as error:
        with only_writer(home(root)), (root / HOME / UNSENT).open("a", encoding="utf-8") as stream:
            stream.writelines(map(to_line, waiting))
            stream.flush()
            os.fsync(stream.fileno())
        number = f"{len(waiting)} {'run waits' if len(waiting) == 1 else 'runs wait'}"
        tell(f"{error.problems[0].message}; {number} to be sent")
        return Added(0, len(waiting))


def _send_waiting(root: Path, history: History, tell: Tell) -> None:
    """Add the waiting runs. Incomplete lines are ignored: their run was never reported as waiting."""
    path = root / HOME / UNSENT
    if not path.is_file():
        return
    with only_writer(home(root)):
        # Another process may have sent them while this one waited.
        if not path.is_file():
            return
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        found, damaged = [], 0
        for line in lines:
            try:
                found.append(from_line(line))
            except (ValueError, TypeError, LookupError, AttributeError):
                damaged += 1
        history.add(found)
        path.unlink()
    if damaged:
        tell(f"{damaged} of {len(lines)} runs that waited to be sent are damaged and left out")


def record(root: Path, result: Result, folder: Path, tell: Tell) -> None:
    """Add a run that just ended in ``folder``. Problems of the history go to ``tell`` and must not fail the run."""
    if not is_kept(result):
        return
    try:
        _remember(root, folder)
        add(root, [*summaries_of(result)], tell)
    except (UserError, OSError, DamagedError) as error:
        system = error.strerror if isinstance(error, OSError) else ""
        said = error.problems[0].message if isinstance(error, UserError) else system or str(error)
        tell(f"the run is not in the history ({said}); `perfflow history add {shlex.quote(str(folder))}` adds it")
