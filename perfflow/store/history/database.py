"""The history of a project: add and read summaries of runs, in SQLite or PostgreSQL.

A run is added in one transaction and under its own name. So adding it again changes nothing, and a killed process has
added all of it or nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from perfflow.model.errors import UserError
from perfflow.store.history import schema
from perfflow.store.history.connections import Connection, DamagedError
from perfflow.store.history.summary import (
    MeasuredState,
    Point,
    RunKind,
    RunSummary,
    StepTime,
    StoredSuspicion,
    keep_step_times,
    of_kind,
    suspicion_of_series,
)
from perfflow.store.history.summary import keep_suspicions as keep

_AT_ONCE = 500
"""Number of states per query."""
_SERIES = ("benchmark", "metric", "statistic", "workflow", "params")
_ABOUT_RUN = ("tool", "version", "workflow", "params", "started", "verdict", "noise", "budget")
_RUN = ("name", "digest", *_ABOUT_RUN, "machine", "in_trees")
_Key = tuple[Any, ...]


@dataclass(frozen=True)
class StoredSeries:
    """One metric of one benchmark on one machine, with comparable values; ``points`` is their number."""

    id: int
    benchmark: str
    metric: str
    statistic: str
    workflow: str
    params: str
    unit: str
    better: str
    machine: str
    points: int


class StoredValue(NamedTuple):
    """One value of a series, with its run and the state of the code; times are RFC 3339.

    ``dirty`` may be 0 or 1, as in databases. This is a tuple because a large history has a million of them.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    decision: str
    run: str
    started: str
    revision: str
    branch: str
    dirty: bool
    committed: str
    noise: str
    rebased: str = ""
    """The machine that measured it, if the value was scaled to another machine; else ''."""

    @property
    def order_date(self) -> str:
        """The date of the commit, or of the run if that is not known."""
        return (self.committed or self.started)[:10]


_POINT = "SELECT state, value, low, high, n, decision FROM point WHERE series = :series"
_STATE = (
    "SELECT state.id, run.name, run.started, state.revision, state.branch, state.dirty, state.committed, "
    "run.noise FROM state JOIN run ON run.id = state.run"
)


class History:
    """A history over one connection. Raises UserError if another version of perfflow wrote it."""

    def __init__(self, connection: Connection) -> None:
        self._own = connection
        self._machines: dict[str, int] = {}
        self._series: dict[_Key, int] = {}
        self._states: dict[int, tuple[Any, ...]] = {}
        self._points: list[dict[str, object]] = []
        try:
            self._prepare()
        except BaseException:
            connection.close()
            raise

    def _prepare(self) -> None:
        if not self._own.has_tables():
            with self._own.writing():
                # Another process may have created them in the meantime.
                if not self._own.has_tables():
                    for statement in schema.statements(self._own.words):
                        self._own.rows(statement)
        version = self._version()
        if version != schema.VERSION:
            text = f"another version of perfflow wrote the history (tables {version}, known: {schema.VERSION})"
            raise UserError.of(text, "use the version of perfflow that wrote it, or move the history away")

    def _version(self) -> int:
        found = self._own.rows("SELECT value FROM about WHERE name = 'schema'")
        if not found or not str(found[0][0]).isdecimal():
            raise DamagedError("its tables have no version")
        return int(found[0][0])

    @property
    def read_only(self) -> bool:
        """Whether nothing can be stored."""
        return self._own.read_only

    def close(self) -> None:
        """Close the connection."""
        self._own.close()

    def add(self, summaries: Iterable[RunSummary]) -> int:
        """Add runs, replacing stored ones with the same name. Return how many are new or changed."""
        added = 0
        for batch in _batches(summaries):
            try:
                with self._own.writing():
                    added += sum(self._add(summary) for summary in batch)
                    self._insert_points()
            except BaseException:
                # The cached ids may be of rows that the rollback removed.
                self._machines.clear()
                self._series.clear()
                self._points.clear()
                raise
        return added

    def _add(self, summary: RunSummary) -> bool:
        digest = _digest(summary)
        known = self._own.rows("SELECT id, digest FROM run WHERE name = :name", {"name": summary.id})
        if known and known[0][1] == digest:
            return False
        if known:
            # Its points may still be waiting in the same transaction.
            self._insert_points()
            self._remove(known[0][0])
        machine = self._machine(summary)
        about = {name: getattr(summary, name) for name in _ABOUT_RUN}
        ((run,),) = self._own.rows(
            f"INSERT INTO run ({', '.join(_RUN)}) VALUES ({', '.join(f':{name}' for name in _RUN)}) RETURNING id",  # noqa: S608
            {**about, "name": summary.id, "digest": digest, "machine": machine, "in_trees": int(summary.in_trees)},
        )
        keep_step_times(self._own, run, summary.steps)
        states = {state.side: self._state(run, state) for state in summary.states}
        times = {state.side: _seconds(state.committed or summary.started) for state in summary.states}
        rows: dict[tuple[int, str], dict[str, object]] = {}
        for point in summary.points:
            if point.side in states:
                key = self._series_of(summary, point, machine)
                rows[key, point.side] = {
                    **{name: getattr(point, name) for name in ("value", "low", "high", "n", "decision")},
                    "series": key,
                    "state": states[point.side],
                    "measured": times[point.side],
                }
        self._points += rows.values()
        return True

    def _insert_points(self) -> None:
        """Insert the collected points, sorted by series, because the points of a series are stored together."""
        self._points.sort(key=_SERIES_OF)
        self._own.many(
            "INSERT INTO point (series, measured, state, value, low, high, n, decision) VALUES "
            "(:series, :measured, :state, :value, :low, :high, :n, :decision)",
            self._points,
        )
        counts = [{"id": key, "n": n} for key, n in Counter(map(_SERIES_OF, self._points)).items()]
        self._own.many("UPDATE series SET points = points + :n WHERE id = :id", counts)
        self._points.clear()

    def _remove(self, run: int) -> None:
        # The id of a removed state may be reused.
        self._states.clear()
        of_run, wanted = "state IN (SELECT id FROM state WHERE run = :run)", {"run": run}
        found = self._own.rows(f"SELECT series, COUNT(*) FROM point WHERE {of_run} GROUP BY series", wanted)  # noqa: S608
        counts = [{"id": key, "n": n} for key, n in found]
        self._own.many("UPDATE series SET points = points - :n WHERE id = :id", counts)
        self._own.rows(f"DELETE FROM point WHERE {of_run}", wanted)  # noqa: S608
        self._own.rows("DELETE FROM state WHERE run = :run", wanted)
        self._own.rows("DELETE FROM step WHERE run = :run", wanted)
        self._own.rows("DELETE FROM run WHERE id = :run", wanted)

    def _machine(self, summary: RunSummary) -> int:
        if summary.machine not in self._machines:
            values = {
                "identity": summary.machine,
                "facts": json.dumps(dict(summary.facts), sort_keys=True, default=str),
            }
            insert = (
                "INSERT INTO machine (identity, facts) VALUES (:identity, :facts) ON CONFLICT (identity) DO NOTHING"
            )
            self._own.rows(insert, values)
            ((self._machines[summary.machine],),) = self._own.rows(
                "SELECT id FROM machine WHERE identity = :identity", values
            )
        return self._machines[summary.machine]

    def _state(self, run: int, state: MeasuredState) -> int:
        values = {name: getattr(state, name) for name in ("side", "revision", "branch", "committed")}
        ((number,),) = self._own.rows(
            "INSERT INTO state (run, side, revision, branch, dirty, committed) VALUES "
            "(:run, :side, :revision, :branch, :dirty, :committed) RETURNING id",
            {**values, "run": run, "dirty": int(state.dirty)},
        )
        return int(number)

    def _series_of(self, summary: RunSummary, point: Point, machine: int) -> int:
        key = (point.benchmark, point.metric, point.statistic, summary.workflow, summary.params, machine)
        if key not in self._series:
            values = dict(zip((*_SERIES, "machine"), key, strict=True))
            condition = " AND ".join(f"{name} = :{name}" for name in values)
            query = f"SELECT id FROM series WHERE {condition}"  # noqa: S608 (names of columns)
            rows = self._own.rows(query, values)
            if not rows:
                names = (*values, "unit", "better")
                insert = f"INSERT INTO series ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"  # noqa: S608
                rows = self._own.rows(f"{insert} RETURNING id", {**values, "unit": point.unit, "better": point.better})
            self._series[key] = int(rows[0][0])
        return self._series[key]

    def series(self) -> list[StoredSeries]:
        """Return all series, sorted by benchmark and metric."""
        columns = ", ".join(f"series.{name}" for name in ("id", *_SERIES, "unit", "better"))
        query = (
            f"SELECT {columns}, machine.identity, series.points FROM series "  # noqa: S608 (names of columns)
            "JOIN machine ON machine.id = series.machine "
            "WHERE series.points > 0 ORDER BY series.benchmark, series.metric, series.id"
        )
        return [StoredSeries(*row) for row in self._own.rows(query)]

    def points(self, series: int, newest: int | None = None) -> list[StoredValue]:
        """Return the values of a series in the order of time: all, or only the newest."""
        query = f"{_POINT} ORDER BY measured DESC, state DESC"
        wanted = {"series": series} if newest is None else {"series": series, "newest": newest}
        found = self._own.rows(query if newest is None else f"{query} LIMIT :newest", wanted)
        states = self._states_of({row[0] for row in found})
        return [StoredValue._make(row[1:] + states[row[0]]) for row in reversed(found)]

    def _states_of(self, wanted: set[int]) -> Mapping[int, tuple[Any, ...]]:
        """Return the last fields of ``StoredValue`` by state. They are cached, because many points share one state."""
        missing = sorted(wanted - self._states.keys())
        for first in range(0, len(missing), _AT_ONCE):
            ids = ", ".join(map(str, missing[first : first + _AT_ONCE]))
            rows = self._own.rows(f"{_STATE} WHERE state.id IN ({ids})")
            self._states.update((row[0], (*row[1:], "")) for row in rows)
        return self._states

    def revisions(self) -> list[str]:
        """Return the distinct revisions of all runs."""
        return [str(name) for (name,) in self._own.rows("SELECT DISTINCT revision FROM state WHERE revision <> ''")]

    def suspicions(self, series: int) -> list[StoredSuspicion]:
        """Return the suspicions about the newest points of a series, in the order in which they were reported."""
        return suspicion_of_series(self._own, series)

    def keep_suspicions(self, found: Sequence[StoredSuspicion]) -> None:
        """Store new suspicions, and update the state of known ones."""
        keep(self._own, found)

    def step_times(self, kind: RunKind, newest: int) -> dict[str, list[StepTime]]:
        """Return the durations of the steps in the newest runs of a kind, by run, the newest first."""
        return of_kind(self._own, kind, newest)

    def machines(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the facts of each machine by its identity."""
        return {str(name): json.loads(facts) for name, facts in self._own.rows("SELECT identity, facts FROM machine")}

    def runs(self) -> Sequence[str]:
        """Return the names of all runs, in the order in which they were added."""
        return [str(name) for (name,) in self._own.rows("SELECT name FROM run ORDER BY id")]


_SERIES_OF = itemgetter("series")
_OF_POINT = attrgetter(*(about.name for about in fields(Point)))
_OF_STEP = attrgetter(*(about.name for about in fields(StepTime)))
_NOT_PLAIN = ("states", "points", "facts", "steps", "in_trees", "budget")
_OF_STATE = attrgetter(*(about.name for about in fields(MeasuredState)))


def _digest(summary: RunSummary) -> str:
    """Return a hash of the stored data of a run. Attribute tuples make it twice as fast as plain data would."""
    own = [value for name, value in vars(summary).items() if name not in _NOT_PLAIN]
    content = [own, list(map(_OF_STATE, summary.states)), list(map(_OF_POINT, summary.points))]
    if summary.steps:
        content.append([summary.in_trees, summary.budget, *map(_OF_STEP, summary.steps)])
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def _batches(summaries: Iterable[RunSummary]) -> Iterable[list[RunSummary]]:
    """Yield batches of 100 runs, one transaction each: one per run is slow, and one for all blocks other writers."""
    batch: list[RunSummary] = []
    for summary in summaries:
        batch.append(summary)
        if len(batch) == 100:
            yield batch
            batch = []
    if batch:
        yield batch


def _seconds(when: str) -> float:
    """Return the seconds since 1970 of an RFC 3339 time; 0 if it cannot be parsed."""
    try:
        found = datetime.fromisoformat(when)
    except ValueError:
        return 0.0
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
