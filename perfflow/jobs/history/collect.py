"""Opens a project's history and puts runs into it. What cannot be sent now waits in a file until the next time."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.model.tree_facts import STORED, tree_of
from perfflow.store.folder import HOME, RESULT, home, write_text
from perfflow.store.history.connections import (
    AwayError,
    Connection,
    DamagedError,
    PostgresConnection,
    SqliteConnection,
)
from perfflow.store.history.database import History
from perfflow.store.history.places import ADDRESS, Place, checked, place_of
from perfflow.store.history.summary import RunSummary, from_line, summaries_of, to_line
from perfflow.store.run_lock import only_writer

if TYPE_CHECKING:
    from perfflow.model.result import Result

UNSENT = "history-unsent.jsonl"
ELSEWHERE = "history-elsewhere.jsonl"
"""Where runs lie that are not in the project's own folder of runs, each folder as a line of JSON."""
_BESIDE = ("", "-wal", "-shm")
Tell = Callable[[str], None]


def use(root: Path, address: str) -> Place:
    """Keep the history in that database from now on, or in the project's own file again for ''. Tries it first.

    Raises UserError where it cannot be reached.
    """
    folder = home(root)
    if not address:
        (folder / ADDRESS).unlink(missing_ok=True)
        return place_of(root)
    place = Place(root, checked(address))
    History(_connected(place)).close()
    write_text(folder / ADDRESS, f"{address}\n")
    (folder / ADDRESS).chmod(0o600)
    return place


def _connected(place: Place) -> Connection:
    if place.address:
        return PostgresConnection(place.address)
    home(place.root)
    return SqliteConnection(place.file)


@contextmanager
def opened(root: Path, tell: Tell) -> Iterator[History]:
    """The history of a project, with what waited to be sent and, in a new file, all runs that are still there.

    ``tell`` hears of a damaged file, which is kept aside. Raises UserError where the store cannot be reached.
    """
    place = place_of(root)
    is_new = not place.address and not place.file.exists()
    try:
        history = History(_connected(place))
    except DamagedError as error:
        history, is_new = _rebuilt(place, error, tell), True
    try:
        if is_new:
            history.add(_stored_runs(root, tell))
        _send_waiting(root, history, tell)
        yield history
    except DamagedError as error:
        history.close()
        raise UserError.of(_put_aside(place, error), "do it again: the history is made again from the runs") from error
    finally:
        history.close()


def _rebuilt(place: Place, error: DamagedError, tell: Tell) -> History:
    """A history in a new file. Raises UserError where the damaged one is a server's."""
    tell(f"{_put_aside(place, error)}; it is made again from the runs. Files of other tools are to be imported again")
    return History(_connected(place))


def _put_aside(place: Place, error: DamagedError) -> str:
    """Keep a damaged file under another name, and say so. Raises UserError where it is a server's."""
    if place.address:
        raise UserError.of(f"{place.shown} holds tables that are not perfflow's: {error}", "name another database")
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
    """The summaries of the project's runs, as far as they can be read."""
    from perfflow.store import result_file

    own = (path for path in sorted((root / HOME / "runs").glob(f"*/{RESULT}")) if not path.parent.is_symlink())
    elsewhere = [folder / RESULT for folder in _elsewhere(root)]
    there = [path for path in elsewhere if path.is_file()]
    if len(there) < len(elsewhere):
        tell(f"{len(elsewhere) - len(there)} runs that `--out` put elsewhere are no longer there")
    for path in (*own, *there):
        try:
            result = result_file.read(path)
        except UserError as error:
            tell(f"{path.parent.name} is left out of the history: {error.problems[0].message}")
            continue
        if is_kept(result):
            yield from summaries_of(result)


def _elsewhere(root: Path) -> list[Path]:
    """The folders that ``--out`` named, in the order in which they came; a line that is cut short is none."""
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
    """Note where a run lies that is not in the project's own folder of runs: the history may be made again from it."""
    place = folder.resolve()
    if place.parent == (root / HOME / "runs").resolve() or place in _elsewhere(root):
        return
    with only_writer(home(root)), (root / HOME / ELSEWHERE).open("a", encoding="utf-8") as stream:
        stream.write(f"{json.dumps(str(place))}\n")


def is_kept(result: Result) -> bool:
    """Whether a run has its place in the history: it came to its end, and measured something itself."""
    was_stored = any(tree_of(result.trees, side).kind == STORED for side in Side)
    return not (result.run.interrupted or result.unmeasured or was_stored) and bool(result.benchmarks)


def add(root: Path, summaries: Iterable[RunSummary], tell: Tell) -> int:
    """Add runs. Returns how many are new or changed; where the store is away they wait, and ``tell`` hears of it."""
    waiting = list(summaries)
    try:
        with opened(root, tell) as history:
            return history.add(waiting)
    except AwayError as error:
        with only_writer(home(root)), (root / HOME / UNSENT).open("a", encoding="utf-8") as stream:
            stream.writelines(map(to_line, waiting))
            stream.flush()
            os.fsync(stream.fileno())
        number = f"{len(waiting)} {'run waits' if len(waiting) == 1 else 'runs wait'}"
        tell(f"{error.problems[0].message}; {number} to be sent")
        return 0


def _send_waiting(root: Path, history: History, tell: Tell) -> None:
    """Add what could not be sent before. A line that is cut short was never promised to anybody."""
    path = root / HOME / UNSENT
    if not path.is_file():
        return
    with only_writer(home(root)):
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
    """Add a run that just ended in ``folder``. It must not fail for it: whatever is wrong with the history is told."""
    if not is_kept(result):
        return
    try:
        _remember(root, folder)
        add(root, [*summaries_of(result)], tell)
    except (UserError, OSError, DamagedError) as error:
        system = error.strerror if isinstance(error, OSError) else ""
        said = error.problems[0].message if isinstance(error, UserError) else system or str(error)
        tell(f"the run is not in the history ({said}); `perfflow history add {shlex.quote(str(folder))}` adds it")
