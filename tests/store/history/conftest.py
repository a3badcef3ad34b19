from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perfflow.store.history.connections import Connection, PostgresConnection, SqliteConnection
from tests.store.history.databases import has_server, server


@pytest.fixture(scope="package")
def address() -> Iterator[str]:
    if not has_server():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with server() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Connection]]:
    """Return a function that opens the same empty store repeatedly."""
    if request.param == "sqlite":
        yield lambda: SqliteConnection(tmp_path / "history.sqlite")
        return
    url = request.getfixturevalue("address")
    yield lambda: PostgresConnection(url)
    connection = PostgresConnection(url)
    with connection.writing():
        connection.rows("DROP TABLE IF EXISTS step, suspicion, point, state, run, series, machine, about CASCADE")
    connection.close()
