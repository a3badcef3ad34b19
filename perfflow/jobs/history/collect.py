"""Open a project's history, and take in runs of perfflow and result files of other tools to it.

Runs that cannot be sent to a server wait in a file until next time. Imported result files keep the dates, machines and
revisions that they contain.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import NormalDist

from perfflow.model.errors import Problem, ToolOutputError, UserError
from perfflow.model.metrics import METRICS, Metric, default_statistic
from perfflow.model.readings import Reading, Side
from perfflow.model.result import Result
from perfflow.model.tree_facts import STORED, tree_of
from perfflow.store import result_file
from perfflow.store.history.connections import AwayError, Connection, DamagedError, PostgresConnection, SqliteConnection
from perfflow.store.history.database import History
from perfflow.store.history.find_stored import open_source
from perfflow.store.history.stored import NOT_READ, VARIABLE, HistoryLocation, checked, place_of, store
from perfflow.store.history.summary import (
    MeasuredState,
    Point,
    RunSummary,
    from_line,
    identity_facts,
    summaries_of,
    to_line,
)
from perfflow.store.run_folder import HOME, RESULT, home, only_writer
from perfflow.store.write_failure import is_read_only
from perfflow.tools import regular_files
from perfflow.tools.result_set import ResultSet
from perfflow.tools.shell import data_js
from perfflow.tools.tool_files import clean_name
from perfflow.verdict.comparison import summarise

UNSENT = "history-unsent.jsonl"
ELSEWHERE = "history-elsewhere.jsonl"
"""The folders of runs outside the project's own folder of runs, one JSON string per line."""
_BESIDE = ("", "-wal", "-shm")
Tell = Callable[[str], None]


def use(root: Path, address: str) -> HistoryLocation:
    """Store the history in that database from now on, or in the project's own file for ''.

    Connects first, and raises UserError if that fails.
    """
    place = HistoryLocation(root, checked(address) if address else "")
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


def _connected(place: HistoryLocation, tell: Tell) -> Connection:
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
            database = SqliteConnection(
                place.file if place.file.exists() else Path(":memory:"), read_only=place.file.exists()
            )
            history = stack.enter_context(closing(History(database)))
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


def _rebuilt(place: HistoryLocation, error: DamagedError, tell: Tell) -> History:
    """Return a history in a new file. Raises UserError if the damaged one is on a server."""
    tell(f"{_put_aside(place, error)}; it is rebuilt from the runs. Import files of other tools again")
    return History(_connected(place, tell))


def _put_aside(place: HistoryLocation, error: DamagedError) -> str:
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
    here = (path for path in sorted((root / HOME / "runs").glob(f"*/{RESULT}")) if not path.parent.is_symlink())
    elsewhere = [folder / RESULT for folder in _elsewhere(root)]
    there = [path for path in elsewhere if path.is_file()]
    if len(there) < len(elsewhere):
        tell(f"{len(elsewhere) - len(there)} runs outside the project (`--out`) no longer exist")
    for path in (*here, *there):
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
        summaries, damaged = [], 0
        for line in lines:
            try:
                summaries.append(from_line(line))
            except (ValueError, TypeError, LookupError, AttributeError):
                damaged += 1
        history.add(summaries)
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


_NORMAL = NormalDist()
_UNKNOWN = "unknown machine"
"""The machine of sets that do not name one. A suite's pages come from one kind of machine, if not from one machine."""
MOST_FILES = 100_000


def imported_summaries(root: Path, words: list[str], tell: Tell) -> Iterator[RunSummary]:
    """Yield the runs in all named files and folders, each once.

    Unreadable files in a folder are left out; ``tell`` gets their number and the most frequent error. Raises UserError
    for a named file that cannot be read.
    """
    for word in words:
        path = Path(word)
        if path.is_dir() and not _is_one_set(path):
            yield from _in_folder(root, path, tell)
        else:
            yield from _of_file(root, word, tell)


def _is_one_set(folder: Path) -> bool:
    """Return whether a folder is criterion's, which is read as a whole."""
    return any(folder.glob("**/new/estimates.json")) or any(folder.glob("**/new/sample.json"))


def _in_folder(root: Path, folder: Path, tell: Tell) -> Iterator[RunSummary]:
    added, others = 0, list[Problem]()
    for path in _files(folder):
        try:
            for summary in _of_file(root, str(path), tell):
                added += 1
                yield summary
        except UserError as error:
            others.append(error.problems[0])
    shown = clean_name(str(folder))
    if not others and not added:
        hint = "name result files, or a folder of them: .benchmarks, an asv results folder, target/criterion"
        raise UserError.of(f"{shown}: the folder has no result files", hint)
    if others:
        (hint, count), *_ = Counter(problem.hint for problem in others).most_common(1)
        first = next(problem for problem in others if problem.hint == hint)
        many = "1 file cannot be read:" if len(others) == 1 else f"{len(others):,} files cannot be read; {count:,} like"
        message = f"{shown}: {many} {first.message}"
        if not added:
            raise UserError.of(message, hint)
        tell(message)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files that may be results, in order, without hidden files and without following links."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".git"))
        for name in sorted(names):
            if name.endswith((".json", ".txt", ".js", ".out")) and not name.startswith("."):
                yield Path(place, name)


def _of_file(root: Path, word: str, tell: Tell) -> Iterator[RunSummary]:
    path = Path(word)
    if path.is_file() and path.suffix == ".js":
        try:
            text = regular_files.read(path).decode("utf-8-sig", "replace")
        except OSError as error:
            raise UserError.of(f"{clean_name(word)}: {error.strerror}", "name a data.js") from error
        if not data_js.recognises(text):
            hint = "of .js files, only those of github-action-benchmark can be read"
            raise UserError.of(f"{clean_name(word)}: it has no window.BENCHMARK_DATA", hint)
        left_out = list[str]()
        try:
            for results in data_js.parse(text, left_out):
                yield summary_of_set(results)
        except ToolOutputError as error:
            raise UserError.of(f"{clean_name(word)}: {error}", "download it again") from error
        if left_out:
            many = "1 value is" if len(left_out) == 1 else f"{len(left_out):,} values are"
            tell(f"{clean_name(word)}: {many} 0 or negative and left out, the first of {clean_name(left_out[0])}")
        return
    source, _ = open_source(root, word)
    if isinstance(source, Result):
        yield from summaries_of(source)
    else:
        yield summary_of_set(source, _changed(path))


def _changed(path: Path) -> str:
    """Return when a file was last written, the date of results that contain no date."""
    try:
        seconds = path.stat().st_mtime
    except OSError:
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def summary_of_set(results: ResultSet, changed: str = "") -> RunSummary:
    """Return the summary of another tool's set. ``changed`` is its date if it contains none."""
    facts = identity_facts(results.machine)
    known = json.dumps(facts, sort_keys=True, default=str)
    machine = f"{results.tool} {hashlib.sha256(known.encode()).hexdigest()[:12]}" if facts else _UNKNOWN
    revision = results.facts.get("commit", "")
    committed = results.facts.get("committed", "")
    started = results.started or committed or changed
    state = MeasuredState(Side.BASELINE.value, revision, results.facts.get("branch", ""), committed=committed)
    points = tuple(_points(results))
    content = (
        results.tool,
        results.version,
        results.started,
        revision,
        known,
        [(p.benchmark, p.metric, p.value) for p in points],
    )
    digest = hashlib.sha256(repr(content).encode()).hexdigest()[:24]
    return RunSummary(
        f"{results.tool}-{digest}",
        results.tool,
        results.version,
        started,
        machine,
        facts,
        states=(state,),
        points=points,
    )


def _points(found: ResultSet) -> Iterator[Point]:
    for (benchmark, name), values in found.benchmarks.items():
        metric = METRICS.get(name) or found.metrics[name]
        statistic, value, low, high, n = _figure(found, benchmark, metric, values)
        unit, better = metric.dimension.base_unit, metric.better.value
        yield Point(Side.BASELINE.value, benchmark, name, statistic, unit, better, value, low, high, n)


def _figure(
    results: ResultSet, benchmark: str, metric: Metric, values: tuple[float, ...]
) -> tuple[str, float, float | None, float | None, int]:
    """Return the statistic, the value, both ends of its interval, and the number of samples."""
    stored_summary = results.summaries.get((benchmark, metric.name))
    if stored_summary:
        reach = _NORMAL.inv_cdf(0.975) * stored_summary.error
        return stored_summary.statistic or "mean", values[0], values[0] - reach, values[0] + reach, stored_summary.count
    statistic = default_statistic(metric)
    if len(values) == 1:
        return statistic, values[0], None, None, 1
    readings = [Reading(metric.name, value, benchmark) for value in values]
    summary = summarise(readings, metric, statistic)
    if summary is None:
        raise ToolOutputError(f"{benchmark} has no value")
    return statistic, summary.value, summary.low, summary.high, summary.n


def own_files(root: Path, words: tuple[str, ...]) -> list[RunSummary]:
    """Return the runs that folders, ids or result files name. Raises UserError for results of other tools."""
    found: list[RunSummary] = []
    for word in words:
        source, _ = open_source(root, word)
        if not isinstance(source, Result):
            hint = f"`perfflow history import {clean_name(word)}` adds files of other tools"
            raise UserError.of(f"{clean_name(word)} is not a result of perfflow", hint)
        found += summaries_of(source)
    return found
