"""Add runs to a history one by one and print the number of each stored run. A test kills this process.

``python -m tests.store.history.writer PLACE FIRST`` with a file or a server's address runs until it is killed.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from perfflow.store.history.connections import Connection, PostgresConnection, SqliteConnection
from perfflow.store.history.database import History
from tests.store.history.summaries import summary


def connection(place: str) -> Connection:
    """Connect to a file or a server."""
    return PostgresConnection(place) if place.startswith("postgresql:") else SqliteConnection(Path(place))


def main(place: str, first: str) -> None:
    history = History(connection(place))
    for number in count(int(first)):
        assert history.add([summary(number, benchmarks=20)]) == 1
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
