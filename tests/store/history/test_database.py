"""The data of runs that a history stores, in SQLite and in PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import UserError
from perfflow.store.history import summary as model
from perfflow.store.history.connections import Connection, DamagedError, PostgresConnection, SqliteConnection
from perfflow.store.history.database import History
from perfflow.store.history.summary import MeasuredState, RunKind, RunSummary, StepTime
from tests.store.history.summaries import summary


@pytest.fixture
def history(connect: Callable[[], Connection]) -> Iterator[History]:
    found = History(connect())
    yield found
    found.close()


def runs_of(history: History, series: int, most: int | None = None) -> list[str]:
    return [point.run for point in (history.points(series, most) if most else history.points(series))]


def test_what_is_added_is_found_in_the_order_of_time(history: History, connect: Callable[[], Connection]) -> None:
    state = MeasuredState("baseline", "c", "main", dirty=True, committed="2025-12-31T00:00:00Z")
    assert history.add([summary(2, 3.0), summary(1), summary(3, 5.0, states=(state,))]) == 3
    series = {item.benchmark: item for item in history.series()}
    assert {name: item.points for name, item in series.items()} == {"b0": 3, "b1": 3}
    number = series["b0"].id
    points = history.points(number)
    assert [(point.value, point.run) for point in points] == [(5.0, "run-3"), (1.0, "run-1"), (3.0, "run-2")]
    first = points[0]
    assert (first.dirty, first.committed, first.low, first.high) == (True, "2025-12-31T00:00:00Z", 4.5, None)
    assert runs_of(history, number, 1) == ["run-2"]
    assert history.machines() == {"m1": {"cpu": "x", "cores": 2}}
    again = History(connect())
    assert runs_of(again, number) == ["run-3", "run-1", "run-2"]
    again.close()


def test_a_run_is_added_once_and_replaced_where_it_changed(history: History) -> None:
    assert history.add([summary(1), summary(2)]) == 2
    assert history.add([summary(1), summary(2)]) == 0
    assert history.add([summary(1, 7.0, benchmarks=1)]) == 1
    assert {item.benchmark: item.points for item in history.series()} == {"b0": 2, "b1": 1}
    (first, _) = history.series()
    assert sorted(point.value for point in history.points(first.id)) == [1.0, 7.0]
    assert sorted(history.runs()) == ["run-1", "run-2"]


def test_machines_workflows_and_parameters_are_never_one_series(history: History) -> None:
    others: dict[str, Any] = {"machine": "m2", "workflow": "other", "params": '{"level": 9}'}
    history.add([summary(0, benchmarks=1)])
    history.add(summary(number, benchmarks=1, **{key: text}) for number, (key, text) in enumerate(others.items(), 1))
    assert [item.points for item in history.series()] == [1, 1, 1, 1]


def test_the_newest_runs_of_a_kind_tell_how_long_its_steps_took(history: History) -> None:
    kind = RunKind("flow", {}, "m1")
    suite = StepTime("suite", 2.0, ("b0", "b1"))

    def timed(number: int, seconds: float | None, **changed: Any) -> RunSummary:
        return summary(number, steps=(StepTime("make", seconds), suite), **changed)

    others: list[dict[str, Any]] = [{"machine": "m2"}, {"workflow": "w"}, {"params": "{}"}, {"in_trees": True}]
    history.add(timed(number, 99.0, **changed) for number, changed in enumerate([*others, {"budget": 9.0}], 5))
    history.add([summary(1), timed(2, 1.0), timed(3, None), timed(4, 3.0)])
    found = history.step_times(kind, 2)
    assert found == {"run-4": [StepTime("make", 3.0), suite], "run-3": [StepTime("make", None), suite]}
    for asked, runs in (
        ({"budget": 9.0}, ["run-9"]),
        ({"any_budget": True}, ["run-9", "run-4"]),
        ({"in_trees": True}, ["run-8"]),
    ):
        assert list(history.step_times(replace(kind, **asked), 2)) == runs
    # Adding a run again with another duration replaces it.
    assert history.add([timed(4, 3.0), timed(3, 5.0)]) == 1
    assert history.step_times(kind, 2)["run-3"] == [StepTime("make", 5.0), suite]


def test_a_transaction_that_fails_leaves_nothing(history: History) -> None:
    nothing = replace(summary(2).points[0], value=None)  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)not.null"):
        history.add(iter([summary(1), replace(summary(2), points=(nothing,))]))
    assert history.runs() == []
    assert history.add([summary(1)]) == 1
    assert [item.points for item in history.series()] == [1, 1]


def test_what_became_of_a_suspicion_replaces_it(history: History, connect: Callable[[], Connection]) -> None:
    history.add([summary(1, benchmarks=1)])
    (series,) = history.series()
    one = model.StoredSuspicion(series.id, "run-9", "c" * 40, "run-1", "a" * 40, 0.0, 0.25, 4.5, "2026-01-02T00:00:00Z")
    other = replace(one, first="run-20", told="2026-01-09T00:00:00Z")
    history.keep_suspicions([other, one])
    history.keep_suspicions([])
    assert history.suspicions(series.id) == [one, other]
    assert {item.state for item in history.suspicions(series.id)} == {model.OPEN}
    settled = replace(one, state=model.CONFIRMED, why="measured in pairs: +25.0%", run="run-30")
    history.keep_suspicions([settled])
    again = History(connect())
    assert again.suspicions(series.id) == [settled, other]
    assert again.suspicions(series.id + 1) == []
    again.close()


def _add_many(path: str, url: str, first: int) -> int:
    history = History(PostgresConnection(url) if url else SqliteConnection(Path(path)))
    try:
        return sum(history.add([summary(number)]) for number in range(first, first + 10))
    finally:
        history.close()


def test_processes_that_add_at_once_lose_nothing(
    history: History, connect: Callable[[], Connection], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    first = connect()
    url = request.getfixturevalue("address") if isinstance(first, PostgresConnection) else ""
    first.close()
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(_add_many, str(tmp_path / "history.sqlite"), url, 10 * number) for number in range(4)]
        assert [job.result() for job in jobs] == [10] * 4
    assert len(history.runs()) == 40
    assert [(item.points, len(history.points(item.id))) for item in history.series()] == [(40, 40), (40, 40)]


@pytest.mark.parametrize("version", [0, 999])
def test_tables_of_another_version_are_refused(connect: Callable[[], Connection], version: int) -> None:
    connection = connect()
    History(connection)
    with connection.writing():
        connection.rows(f"UPDATE about SET value = '{version}' WHERE name = 'schema'")  # noqa: S608 (a number)
    connection.close()
    with pytest.raises(UserError, match="another version of perfflow"):
        History(connect())


@pytest.mark.parametrize(
    "content", [b"no database at all, but longer than a header " * 30, b"SQLite format 3\0" + b"\xff" * 4000]
)
def test_a_file_that_is_no_database_is_damaged(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "history.sqlite").write_bytes(content)
    with pytest.raises(DamagedError):
        History(SqliteConnection(tmp_path / "history.sqlite"))


def test_another_program_s_database_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE about (name TEXT, value TEXT)")
    other.close()
    with pytest.raises(DamagedError, match="no version"):
        History(SqliteConnection(path))


def test_a_server_that_is_away_is_said_without_its_password() -> None:
    pytest.importorskip("sqlalchemy")
    with pytest.raises(UserError) as caught:
        PostgresConnection("postgresql://somebody:secret-word@127.0.0.1:1/none")
    assert "secret-word" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_a_summary_survives_waiting() -> None:
    made = summary(4, steps=(StepTime("make", 1.5, ("b0",)),), in_trees=True, budget=60.0)
    assert model.from_line(model.to_line(made)) == made
