"""Advice from rules that are kept as data, each with what this run found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.result import Attribution, Benchmark, Recommendation
from perfflow.rundir.record import Record


def recommendations(
    _record: Record, _rows: Sequence[Benchmark], _blamed: Sequence[Attribution]
) -> Iterator[Recommendation]:
    """What the rules advise on what was found; nothing without evidence from this run."""
    yield from ()
