"""Where a run's findings go: the first rule that matches, with a brief for whoever is next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.result import Attribution, Benchmark, RouteTaken, TargetResult
from perfflow.rundir.record import Record


def routes_taken(
    _record: Record,
    _rows: Sequence[Benchmark],
    _judged: Sequence[TargetResult],
    _blamed: Sequence[Attribution],
    _verdict: str,
) -> Iterator[RouteTaken]:
    """The route of the first rule that matches, if any does."""
    yield from ()
