"""How long a large history takes: ``python -m benchmarks.history [RUNS [BENCHMARKS]] [--postgresql]``.

By default of 10,000 runs and 100 benchmarks. A ``data.js`` of that size is written, imported, asked for its index,
searched for changes and built as pages. With ``--postgresql`` the history lies in a server of its own, which is started
for that as the tests start it, without fsync. Two times are told: CPU of this process, of what it starts and of the
server, and in brackets the time that passed, which is longer on a machine that does something else as well. Peers are
timed in the same run: Python's own JSON parser on the same file, without which nothing can be imported, and the same
rows inserted and read over a connection of the store without anything else.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from perfflow.jobs.history import collect, site
from perfflow.jobs.history.collect import opened
from perfflow.jobs.history.overview import index
from perfflow.jobs.history.suspicion_report import changes_of
from perfflow.jobs.history.trends import HistoryFilter, trends
from perfflow.store.history.connections import Connection, PostgresConnection, SqliteConnection
from perfflow.store.history.database import StoredValue
from tests.store.history.databases import server

INDEX_POINTS = 48
TIMES = 10
"""How often is done what takes milliseconds."""
_COLUMNS = ("series", "measured", "state", "value", "low", "high", "n", "decision")
_POINTS = f"SELECT {', '.join(_COLUMNS)} FROM point"  # noqa: S608 (names of columns)
_BARE = """CREATE TABLE bare (
    series BIGINT NOT NULL, measured DOUBLE PRECISION NOT NULL, state BIGINT NOT NULL, value DOUBLE PRECISION NOT NULL,
    low DOUBLE PRECISION, high DOUBLE PRECISION, n BIGINT NOT NULL, decision TEXT NOT NULL,
    PRIMARY KEY (series, measured, state)){packed}"""
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Took:
    """What something took, in s: CPU of all that works at it, and the time that passed."""

    cpu: float
    wall: float

    def __str__(self) -> str:
        if max(self.cpu, self.wall) < 0.5:
            return f"{1000 * self.cpu:.0f} ms ({1000 * self.wall:.0f} ms)"
        return f"{self.cpu:.1f} s ({self.wall:.1f} s)"


@dataclass(frozen=True)
class Store:
    """Where the history lies. ``address`` is that of a server, '' of none; ``workers`` are the server's processes."""

    root: Path
    address: str = ""
    host: psutil.Process | None = None

    @classmethod
    def at(cls, root: Path, address: str) -> Store:
        """The store of a project. A server is found by the process that answers."""
        if not address:
            return cls(root)
        collect.use(root, address)
        asked = PostgresConnection(address)
        ((pid,),) = asked.rows("SELECT pg_backend_pid()")
        host = psutil.Process(pid).parent()
        asked.close()
        return cls(root, address, host)

    def connected(self, name: str = "history.sqlite") -> Connection:
        """A connection that knows nothing of the tables; ``name`` is that of a file."""
        return PostgresConnection(self.address) if self.address else SqliteConnection(self.root / ".perfflow" / name)

    def size(self) -> int:
        """Bytes of the tables and what belongs to them."""
        if not self.address:
            return (self.root / ".perfflow" / "history.sqlite").stat().st_size
        with closing(self.connected()) as connection:
            ((size,),) = connection.rows("SELECT pg_database_size(current_database())")
        return int(size)

    def timed(self, work: Callable[[], _Found]) -> tuple[_Found, Took]:
        """What the work returns, and what it took."""
        cpu, wall = self._cpu(), time.perf_counter()
        found = work()
        return found, Took(self._cpu() - cpu, time.perf_counter() - wall)

    def _cpu(self) -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime + self._of_server()

    def _of_server(self) -> float:
        """CPU of the server's processes, with those that ended. It is counted in hundredths of a second."""
        if self.host is None:
            return 0.0
        while True:
            # One that ends meanwhile is counted with those that ended, and again or not at all with the living.
            with suppress(psutil.NoSuchProcess):
                own = self.host.cpu_times()
                living = [each.cpu_times() for each in self.host.children()]
                if self.host.cpu_times() == own:
                    return sum(each.user + each.system for each in living) + sum(own[:4])


def main(runs: int, benchmarks: int, *, in_server: bool) -> None:
    """Print what each part took."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        page = root / "data.js"
        _write(page, runs, benchmarks)
        kind = "PostgreSQL" if in_server else "SQLite"
        print(f"{runs:,} runs x {benchmarks} benchmarks, {page.stat().st_size >> 20} MiB, {kind}")
        if in_server:
            with server() as address:
                _all(Store.at(root, address), page)
        else:
            _all(Store.at(root, ""), page)


def _all(store: Store, page: Path) -> None:
    number = _import(store, page)
    size = store.size()
    _insert_bare(store)
    _read(store)
    _search(store)
    print(f"size: {size >> 20} MiB, {size / number:.0f} B for each point")


def _import(store: Store, page: Path) -> int:
    """Import the page, and say how long that takes beside its parsing. Returns the number of points."""
    _, parsing = store.timed(lambda: json.loads(page.read_text().partition("=")[2].rstrip(";\n")))

    def load() -> int:
        with opened(store.root, print) as history:
            return history.add(collect.imported_summaries(store.root, [str(page)], print))

    _, took = store.timed(load)
    with closing(store.connected()) as connection:
        ((number,),) = connection.rows("SELECT COUNT(*) FROM point")
    rate = number / took.cpu
    print(f"import: {took}, {rate:,.0f} points/s, {took.cpu / parsing.cpu:.1f}x json.loads")
    return int(number)


def _insert_bare(store: Store) -> None:
    """Insert the points alone, in the order of their runs and in one transaction."""
    with closing(store.connected()) as connection:
        found = connection.rows(f"{_POINTS} ORDER BY state")
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in found]
    with closing(store.connected("bare.sqlite")) as connection:

        def insert() -> None:
            with connection.writing():
                connection.rows(_BARE.format_map(connection.words))
                names = ", ".join(f":{name}" for name in _COLUMNS)
                connection.many(f"INSERT INTO bare VALUES ({names})", rows)  # noqa: S608 (names of columns)

        _, took = store.timed(insert)
    print(f"bare inserts of these points: {took}")


def _read(store: Store) -> None:
    newest = f"{_POINTS} WHERE series = :series ORDER BY measured DESC, state DESC LIMIT {INDEX_POINTS}"
    with closing(store.connected()) as connection:
        ids = [each for (each,) in connection.rows("SELECT id FROM series")]

        def ask() -> None:
            for _ in range(TIMES):
                for each in ids:
                    connection.rows(newest, {"series": each})

        _, peer = store.timed(ask)
    _, took = store.timed(lambda: [_index_points(store.root) for _ in range(TIMES)])
    each = Took(took.cpu / TIMES, took.wall / TIMES)
    share = f"{took.cpu / peer.cpu:.1f}x bare queries"
    print(f"index: {each} for the newest {INDEX_POINTS} points of {len(ids)} series, {share}")
    _, took = store.timed(lambda: index(store.root, HistoryFilter(), print))
    print(f"rows of `perfflow history`, with the changes of the newest 200 points: {took}")


def _index_points(root: Path) -> list[list[StoredValue]]:
    with opened(root, print) as history:
        return [history.points(each.id, INDEX_POINTS) for each in history.series()]


def _search(store: Store) -> None:
    with opened(store.root, print) as history:
        series, took = store.timed(lambda: list(trends(history, HistoryFilter(), {}, None)))
    print(f"all points: {took}")
    _, one = store.timed(lambda: changes_of(series[0]))
    _, took = store.timed(lambda: [changes_of(trend) for trend in series])
    print(f"changes: {one} for one series of {len(series[0].points):,} points, {took} for all")
    number, took = store.timed(lambda: site.build(store.root, store.root / "site", HistoryFilter(), print))
    size = (store.root / "site" / "index.html").stat().st_size
    print(f"build: {took} for {number} pages, index {size / 1000:,.0f} kB")


def _write(page: Path, runs: int, benchmarks: int) -> None:
    luck, start = random.Random(1), 1_600_000_000
    entries = []
    for number in range(runs):
        values = [100.0 * (each + 1) * math.exp(luck.gauss(0, 0.02)) for each in range(benchmarks)]
        slower = 1.05 if number > runs // 2 else 1.0
        benches = [
            {"name": f"b{each}", "value": round(value * slower, 3), "unit": "ns/op"}
            for each, value in enumerate(values)
        ]
        moment = start + 3600 * number
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
        commit = {"id": f"{number:040x}", "timestamp": when}
        entries.append({"commit": commit, "date": moment * 1000, "tool": "go", "benches": benches})
    page.write_text(f"window.BENCHMARK_DATA = {json.dumps({'entries': {'Go': entries}})};\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=10_000)
    parser.add_argument("benchmarks", type=int, nargs="?", default=100)
    parser.add_argument("--postgresql", action="store_true", help="in a server that is started for it")
    options = parser.parse_args()
    main(options.runs, options.benchmarks, in_server=options.postgresql)
