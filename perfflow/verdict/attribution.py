"""Which functions cost more on the candidate, of the benchmarks that regressed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.result import Attribution, Benchmark
from perfflow.rundir.record import Record


def attributions(_record: Record, _rows: Sequence[Benchmark]) -> Iterator[Attribution]:
    """The functions that got slower, those that lost most first."""
    yield from ()
