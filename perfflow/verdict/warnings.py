"""What passes and is said all the same: concerns, accepted regressions, allowed failures, a run without figures.

Each begins with one of ``result.WARNED``, so that a report can tell it from what the verdict rests on.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.criteria import Criteria
from perfflow.model.result import ACCEPTED, ALLOWED, CONCERN, UNMEASURED, Benchmark
from perfflow.model.units import format_change
from perfflow.store.record import Record
from perfflow.tools.adapter import LOOKING_ON
from perfflow.verdict import memory
from perfflow.verdict.told import judged, percent
from perfflow.verdict.tradeoffs import trade_off, worst

_MEASURING = ("measure", "candidate", "compare")
NOTHING = UNMEASURED.removesuffix(": ")
"""The reason of a run that should have measured something."""


def warned(record: Record, rows: list[Benchmark], criteria: Criteria) -> Iterator[str]:
    """Every warning of a run, in the order of its benchmarks and steps."""
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
    if record.ended and not (rows or meant or _ran(record, LOOKING_ON) or found_nothing_out(record)):
        of_what = "the workflow has no step that measures" if _whole(record) else "no selected step measures anything"
        yield f"{UNMEASURED}{of_what}"


def found_nothing_out(record: Record) -> bool:
    """Whether a whole run that was to find something out, not just to build, did not: each such step was skipped."""
    meant = any(planned.role != "work" for planned in record.planned.values())
    return record.ended and _whole(record) and meant and not _ran(record, ("check", *LOOKING_ON, *_MEASURING))


def _whole(record: Record) -> bool:
    return all(planned.selected for planned in record.planned.values())


def _ran(record: Record, roles: tuple[str, ...]) -> bool:
    """Whether a step of one of these roles ran, whatever came out."""
    return any(
        step.status != "skipped" and record.planned[step_id].role in roles for step_id, step in record.ended_steps()
    )


def _regression(record: Record, row: Benchmark, criteria: Criteria) -> Iterator[str]:
    """A regression that passes: under the action threshold, or accepted beyond it."""
    found = worst(row)
    if found is None:
        return
    item = trade_off(record, row, criteria)
    if item:
        up_to = "" if row.decision == "regressed" else "unproven, up to "
        change = format_change(-found if row.better == "higher" else found)
        yield f"{ACCEPTED}{item.until}: {row.name} {row.metric} {up_to}{change}: {item.why}"
    elif row.decision == "regressed" and row.level == "concern":
        action = percent(criteria.thresholds_of(row.name, row.metric).action)
        yield f"{CONCERN}{row.name} {row.metric} {judged(row, criteria)} (action threshold {action})"
