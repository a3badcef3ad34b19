"""Warnings that do not fail a run: concerns, accepted regressions, allowed failures, a run without measurements.

Each begins with one of ``result.WARNED``, so that a report can separate it from the reasons of the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.criteria import Criteria
from perfflow.model.result import ACCEPTED, ALLOWED, CONCERN, Benchmark
from perfflow.model.units import format_change, format_threshold
from perfflow.store.record import Record
from perfflow.verdict import memory
from perfflow.verdict.row_text import judged
from perfflow.verdict.tradeoffs import trade_off, worst


def warned(record: Record, rows: list[Benchmark], criteria: Criteria) -> Iterator[str]:
    """Yield every warning of a run, in the order of its benchmarks and steps."""
    for row in rows:
        if row.gating:
            yield from _regression(record, row, criteria)
    yield from (f"{CONCERN}{row.title} {judged(row, criteria)}" for row in memory.concerns(rows, criteria))
    for step_id, step in record.ended_steps():
        planned = record.planned[step_id]
        if planned.allowed and step.status in ("failed", "timeout"):
            detail = step.detail if planned.role == "check" else ""
            yield f"{ALLOWED}{step_id}: {detail or step.reason}"


def _regression(record: Record, row: Benchmark, criteria: Criteria) -> Iterator[str]:
    """Yield the warning of a regression that passes: below the action threshold, or accepted above it."""
    found = worst(row)
    if found is None:
        return
    item = trade_off(record, row, criteria)
    if item:
        up_to = "" if row.decision == "regressed" else "unproven, up to "
        change = format_change(-found if row.better == "higher" else found)
        yield f"{ACCEPTED}{item.until}: {row.title} {up_to}{change}: {item.why}"
    elif row.decision == "regressed" and row.level == "concern":
        action = format_threshold(criteria.thresholds_of(row.name, row.metric).action)
        yield f"{CONCERN}{row.title} {judged(row, criteria)} (action threshold {action})"
