"""Warnings that do not fail a run: concerns, accepted regressions, allowed failures, a run without measurements.

Each begins with one of ``result.WARNED``, so that a report can separate it from the reasons of the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.criteria import Criteria
from perfflow.model.result import ACCEPTED, ALLOWED, CONCERN, UNMEASURED, Benchmark
from perfflow.model.units import format_change, format_threshold
from perfflow.store.record import Record
from perfflow.tools.adapter import OPTIONAL_ROLES
from perfflow.verdict import memory
from perfflow.verdict.row_text import judged
from perfflow.verdict.tradeoffs import trade_off, worst

_MEASURING = ("measure", "candidate", "compare")
NOTHING = UNMEASURED.removesuffix(": ")
"""The reason given for a run that should have measured something and did not."""


def warned(record: Record, rows: list[Benchmark], criteria: Criteria) -> Iterator[str]:
    """Yield every warning of a run, in the order of its benchmarks and steps."""
    for row in rows:
        if row.gating:
            yield from _regression(record, row, criteria)
    yield from (f"{CONCERN}{row.name} {row.metric} {judged(row, criteria)}" for row in memory.concerns(rows, criteria))
    for step_id, step in record.ended_steps():
        planned = record.planned[step_id]
        if planned.allowed and step.status in ("failed", "timeout"):
            detail = step.detail if planned.role == "check" else ""
            yield f"{ALLOWED}{step_id}: {detail or step.reason}"
    meant = any(planned.selected and planned.role in _MEASURING for planned in record.planned.values())
    if record.ended and not (rows or meant or _ran(record, OPTIONAL_ROLES) or found_nothing_out(record)):
        of_what = "the workflow has no step that measures" if _whole(record) else "no selected step measures anything"
        yield f"{UNMEASURED}{of_what}"


def found_nothing_out(record: Record) -> bool:
    """Return whether a complete run skipped every step that measures, checks or profiles."""
    meant = any(planned.role != "work" for planned in record.planned.values())
    return record.ended and _whole(record) and meant and not _ran(record, ("check", *OPTIONAL_ROLES, *_MEASURING))


def _whole(record: Record) -> bool:
    return all(planned.selected for planned in record.planned.values())


def _ran(record: Record, roles: tuple[str, ...]) -> bool:
    """Return whether a step with one of these roles ran, whether or not it succeeded."""
    return any(
        step.status != "skipped" and record.planned[step_id].role in roles for step_id, step in record.ended_steps()
    )


def _regression(record: Record, row: Benchmark, criteria: Criteria) -> Iterator[str]:
    """Yield the warning of a regression that passes: below the action threshold, or accepted above it."""
    found = worst(row)
    if found is None:
        return
    item = trade_off(record, row, criteria)
    if item:
        up_to = "" if row.decision == "regressed" else "unproven, up to "
        change = format_change(-found if row.better == "higher" else found)
        yield f"{ACCEPTED}{item.until}: {row.name} {row.metric} {up_to}{change}: {item.why}"
    elif row.decision == "regressed" and row.level == "concern":
        action = format_threshold(criteria.thresholds_of(row.name, row.metric).action)
        yield f"{CONCERN}{row.name} {row.metric} {judged(row, criteria)} (action threshold {action})"
