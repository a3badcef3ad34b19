"""How long a large history takes: ``python -m benchmarks.history [RUNS [BENCHMARKS]]``, by default 10,000 and 100.

A ``data.js`` of that size is written, imported, asked for its index and searched for changes. Times are of this process
and machine; the peer is Python's own JSON parser on the same file, without which nothing can be imported.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from perfflow.jobs.history import importing
from perfflow.jobs.history.changing import changes_of
from perfflow.jobs.history.collect import opened
from perfflow.jobs.history.trends import Asked, trends

_Found = TypeVar("_Found")


def main(runs: int = 10_000, benchmarks: int = 100) -> None:
    """Print what each part took."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        page = root / "data.js"
        _write(page, runs, benchmarks)
        print(f"{runs:,} runs x {benchmarks} benchmarks, {page.stat().st_size >> 20} MiB")
        _, parsing = _timed(lambda: json.loads(page.read_text().partition("=")[2].rstrip(";\n")))

        def load() -> int:
            with opened(root, print) as history:
                return history.add(importing.summaries(root, [str(page)], print))

        number, took = _timed(load)
        print(f"import: {took:.1f} s, {number * benchmarks / took:,.0f} points/s, {took / parsing:.1f}x json.loads")
        with opened(root, print) as history:
            found, took = _timed(lambda: [history.points(each.id, 48) for each in history.series()])
            print(f"index: {took * 1000:.0f} ms for the newest 48 points of {len(found)} series")
            series, took = _timed(lambda: list(trends(history, Asked(), {}, None)))
            print(f"all points: {took:.1f} s")
            one = max(_timed(lambda trend=trend: changes_of(trend))[1] for trend in series[:3])  # type: ignore[misc]
            _, took = _timed(lambda: [changes_of(trend) for trend in series])
            print(f"changes: {one:.3f} s for one series of {len(series[0].points):,} points, {took:.1f} s for all")
        size = (root / ".perfflow" / "history.sqlite").stat().st_size
        print(f"file: {size >> 20} MiB, {size / (number * benchmarks):.0f} B for each point")


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
    began = time.perf_counter()
    return work(), time.perf_counter() - began


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
