"""How long a large history takes: ``python -m benchmarks.history [RUNS [BENCHMARKS]]``, by default 10,000 and 100.

A ``data.js`` of that size is written, imported, asked for its index, searched for changes and built as pages. Times are
CPU of this process and what it starts: on a machine that does nothing else, the time that passes is about the same, and
half of it where two processes share the pages. Peers are timed in the same run: Python's own JSON parser on the same
file, without which nothing can be imported, and bare ``sqlite3`` that inserts and reads the same rows.
"""

from __future__ import annotations

import json
import math
import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from perfflow.jobs.history import importing, site
from perfflow.jobs.history.changing import changes_of
from perfflow.jobs.history.collect import opened
from perfflow.jobs.history.reading import index
from perfflow.jobs.history.trends import Asked, trends
from perfflow.store.history import schema
from perfflow.store.history.database import Measured

INDEX_POINTS = 48
TIMES = 10
"""How often is done what takes milliseconds."""
_POINTS = "SELECT series, measured, state, value, low, high, n, decision FROM point"
_Found = TypeVar("_Found")


def main(runs: int = 10_000, benchmarks: int = 100) -> None:
    """Print what each part took."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        page = root / "data.js"
        _write(page, runs, benchmarks)
        print(f"{runs:,} runs x {benchmarks} benchmarks, {page.stat().st_size >> 20} MiB")
        number = _import(root, page) * benchmarks
        _read(root)
        _search(root)
        size = (root / ".perfflow" / "history.sqlite").stat().st_size
        print(f"file: {size >> 20} MiB, {size / number:.0f} B for each point")


def _import(root: Path, page: Path) -> int:
    """Import the page, and say how long that takes beside its parsing and its inserts alone. Returns the runs."""
    _, parsing = _timed(lambda: json.loads(page.read_text().partition("=")[2].rstrip(";\n")))

    def load() -> int:
        with opened(root, print) as history:
            return history.add(importing.summaries(root, [str(page)], print))

    number, took = _timed(load)
    with sqlite3.connect(root / ".perfflow" / "history.sqlite") as stored:
        rows = stored.execute(f"{_POINTS} ORDER BY state").fetchall()
    inserting = _bare_insert(root / "bare.sqlite", rows)
    print(f"import: {took:.1f} s, {len(rows) / took:,.0f} points/s")
    print(f"        {took / parsing:.1f}x json.loads, {took / inserting:.1f}x bare inserts of these rows")
    return number


def _bare_insert(path: Path, rows: list[tuple[object, ...]]) -> float:
    """Seconds that ``sqlite3`` takes for the points alone, in the order of their runs and in one transaction."""
    bare = sqlite3.connect(path)
    for statement in schema.statements(schema.SQLITE):
        bare.execute(statement)

    def insert() -> None:
        bare.executemany("INSERT INTO point VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        bare.commit()

    _, took = _timed(insert)
    bare.close()
    return took


def _read(root: Path) -> None:
    with sqlite3.connect(root / ".perfflow" / "history.sqlite") as bare:
        newest = f"{_POINTS} WHERE series = ? ORDER BY measured DESC, state DESC LIMIT {INDEX_POINTS}"
        ids = [each for (each,) in bare.execute("SELECT id FROM series")]
        _, peer = _timed(lambda: [bare.execute(newest, (each,)).fetchall() for _ in range(TIMES) for each in ids])
    _, took = _timed(lambda: [_index_points(root) for _ in range(TIMES)])
    print(
        f"index: {took / TIMES * 1000:.0f} ms for the newest {INDEX_POINTS} points of {len(ids)} series, "
        f"{took / peer:.1f}x the bare query"
    )
    _, took = _timed(lambda: index(root, Asked(), print))
    print(f"rows of `perfflow history`, with the changes of the newest 200 points: {took:.1f} s")


def _index_points(root: Path) -> list[list[Measured]]:
    with opened(root, print) as history:
        return [history.points(each.id, INDEX_POINTS) for each in history.series()]


def _search(root: Path) -> None:
    with opened(root, print) as history:
        series, took = _timed(lambda: list(trends(history, Asked(), {}, None)))
    print(f"all points: {took:.1f} s")
    one = max(_timed(lambda trend=trend: changes_of(trend))[1] for trend in series[:3])  # type: ignore[misc]
    _, took = _timed(lambda: [changes_of(trend) for trend in series])
    print(f"changes: {one:.3f} s for one series of {len(series[0].points):,} points, {took:.1f} s for all")
    number, took = _timed(lambda: site.build(root, root / "site", Asked(), print))
    size = (root / "site" / "index.html").stat().st_size
    print(f"build: {took:.1f} s for {number} pages, index {size / 1000:,.0f} kB")


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


def _timed(work: Callable[[], _Found]) -> tuple[_Found, float]:
    """What the work returns, and the CPU it took, in s."""
    began = _cpu()
    found = work()
    return found, _cpu() - began


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
