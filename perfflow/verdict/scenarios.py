"""Check changes of synthetic benchmarks against the realistic benchmarks that ``confirm`` them.

A synthetic benchmark measures one thing in isolation, and may show a change that no user notices. If it changed by more
than the concern threshold, the realistic benchmarks that confirm it are checked. A realistic benchmark that provably
did not change, or changed the other way, adds a warning to the synthetic row. The verdict stays the same, because each
row is judged by its own measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from perfflow.model.metrics import TIMES
from perfflow.model.result import Benchmark
from perfflow.model.targets import matches
from perfflow.model.units import format_change
from perfflow.store.record import Record

_OPPOSITE = {"improved": "regressed", "regressed": "improved"}


def confirmed(record: Record, rows: Sequence[Benchmark]) -> tuple[list[Benchmark], list[dict[str, Any]]]:
    """Return the rows, with notes on changed synthetic benchmarks, and an entry for each confirming benchmark.

    An entry has ``benchmark``, ``metric`` and ``decision`` of the synthetic row, ``by`` and ``by_decision`` of the
    realistic one, and ``agrees``: true, false, or null if that is not known.
    """
    confirming = {name: step.confirms for name, step in record.planned.items() if step.confirms}
    if not confirming:
        return list(rows), []
    found: list[Benchmark] = []
    entries: list[dict[str, Any]] = []
    for row in rows:
        own = list(_entries(row, rows, confirming)) if _changed(row, record) else []
        notes = [note for _, note in own if note]
        found.append(row.model_copy(update={"warnings": [*row.warnings, *notes]}) if notes else row)
        entries += [entry for entry, _ in own]
    return found, entries


def _changed(row: Benchmark, record: Record) -> bool:
    """Return whether a row of a benchmark that is not realistic changed by more than the concern threshold."""
    if not row.gating or row.decision not in _OPPOSITE or record.plan_of(row.step).scenario == "realistic":
        return False
    value = row.change.value if row.change else None
    return value is None or abs(value) > record.criteria.thresholds_of(row.name, row.metric).concern


def _entries(
    row: Benchmark, rows: Iterable[Benchmark], confirming: dict[str, tuple[str, ...]]
) -> Iterator[tuple[dict[str, Any], str]]:
    for other in rows:
        globs = confirming.get(other.step, ())
        if not other.gating or other.step == row.step or not any(matches(glob, row.name) for glob in globs):
            continue
        if other.metric != row.metric and not {row.metric, other.metric} <= set(TIMES):
            continue
        agrees = _agrees(row, other)
        entry: dict[str, Any] = {"benchmark": row.name, "metric": row.metric, "decision": row.decision}
        entry |= {"by": other.name, "by_decision": other.decision, "agrees": agrees}
        yield entry, _note(other, agrees)


def _agrees(row: Benchmark, other: Benchmark) -> bool | None:
    if other.decision == row.decision:
        return True
    return False if other.decision in ("same", _OPPOSITE[str(row.decision)]) else None


def _note(other: Benchmark, agrees: bool | None) -> str:
    if agrees is None:
        return f"{other.name} neither confirms nor refutes this: {other.decision or 'not compared'}"
    return f"{'confirmed' if agrees else 'not confirmed'} by {other.name}: {other.decision}{_by(other)}"


def _by(row: Benchmark) -> str:
    """Return `` +12.0%``, or `` ±1.2%`` if the decision is ``same``."""
    change = row.change
    if change is None or change.value is None:
        return ""
    if row.decision != "same" or change.low is None or change.high is None:
        return f" {format_change(change.value)}"
    return f" ±{max(abs(change.low), abs(change.high)):.1%}"
