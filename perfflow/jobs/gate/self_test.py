"""Which of the slowdowns that a self-test planted a gate found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfflow.model.metrics import TIMES
from perfflow.model.result import Benchmark, Result
from perfflow.verdict.attribution import RATES


@dataclass(frozen=True)
class SelfTest:
    """The benchmarks of a self-test: those whose slowdown was found, and the others, each with the reason."""

    found: tuple[str, ...]
    missed: tuple[tuple[str, str], ...]


def outcome(result: Result) -> SelfTest:
    """Return which benchmarks got slower according to the gate."""
    rows: dict[str, list[Benchmark]] = {}
    for row in result.benchmarks:
        if row.gating or row.decision:
            rows.setdefault(row.name, []).append(row)
    found = [name for name, own in rows.items() if any(_is_slower(row) for row in own)]
    missed = [(name, "; ".join(dict.fromkeys(_why(own)))) for name, own in rows.items() if name not in found]
    return SelfTest(tuple(found), tuple(missed))


def _is_timed(row: Benchmark) -> bool:
    return row.metric in TIMES or (row.better == "higher" and row.unit in RATES)


def _is_slower(row: Benchmark) -> bool:
    return row.gating and row.decision == "regressed" and _is_timed(row)


def _why(rows: list[Benchmark]) -> Iterator[str]:
    timed = [row for row in rows if row.gating and _is_timed(row)]
    yield from (f"{row.metric}: {row.decision}" for row in timed)
    if not timed:
        yield "its metrics are no times, so nothing is planted in them"
