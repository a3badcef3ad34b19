"""What passes and is said all the same: concerns, accepted regressions, allowed failures, a run without figures.

Each begins with one of ``result.WARNED``, so that a report can tell it from what the verdict rests on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from perfflow.result import ACCEPTED, ALLOWED, CONCERN, UNMEASURED, Benchmark
from perfflow.rundir.record import Record
from perfflow.samples.criteria import Accepted, Criteria
from perfflow.samples.targets import matches
from perfflow.units import format_change, format_quantity, significant

_MEASURING = ("measure", "candidate", "compare")
NOTHING = UNMEASURED.removesuffix(": ")
"""The reason of a run that should have measured something."""


def warned(record: Record, rows: list[Benchmark], criteria: Criteria) -> Iterator[str]:
    """Every warning of a run, in the order of its benchmarks and steps."""
    for row in rows:
        if row.gating:
            yield from _regression(record, row, criteria)
    for step_id, step in record.ended_steps():
        planned = record.planned[step_id]
        if planned["allowed"] and step["status"] in ("failed", "timeout"):
            detail = step.get("detail") if planned["role"] == "check" else ""
            yield f"{ALLOWED}{step_id}: {detail or step['reason']}"
    meant = any(planned["selected"] and planned["role"] in _MEASURING for planned in record.planned.values())
    if record.ended and not (rows or meant or _ran(record, ("profile",)) or found_nothing_out(record)):
        of_what = "the workflow has no step that measures" if _whole(record) else "no selected step measures"
        yield f"{UNMEASURED}{of_what}"


def found_nothing_out(record: Record) -> bool:
    """Whether a whole run that was to find something out, not just to build, did not: each such step was skipped."""
    meant = any(planned["role"] != "work" for planned in record.planned.values())
    return record.ended and _whole(record) and meant and not _ran(record, ("profile", "check", *_MEASURING))


def _whole(record: Record) -> bool:
    return all(planned["selected"] for planned in record.planned.values())


def _ran(record: Record, roles: tuple[str, ...]) -> bool:
    """Whether a step of one of these roles ran, whatever came out."""
    return any(
        step["status"] != "skipped" and record.planned[step_id]["role"] in roles
        for step_id, step in record.ended_steps()
    )


def sides(row: Benchmark, criteria: Criteria) -> str:
    """How a row changed: ``+12.0%``, or both values where a share says nothing, such as of 0 → 1."""
    if row.change is not None and row.change.value is not None:
        return format_change(row.change.value)
    dimension = criteria.metric(row.metric).dimension
    return " → ".join(format_quantity(_value(side), dimension) for side in (row.baseline, row.candidate))


def _value(side: object) -> float:
    value = getattr(side, "value", None)
    return math.nan if value is None else float(value)


def _regression(record: Record, row: Benchmark, criteria: Criteria) -> Iterator[str]:
    """A regression that passes: under the action threshold, or accepted beyond it."""
    if row.decision not in ("regressed", "unproven") or row.level in ("action", None) or row.change is None:
        return
    action = criteria.thresholds_of(row.name).action
    high = row.change.low if row.better == "higher" else row.change.high
    worst = row.change.value if row.decision == "regressed" else high
    if worst is None:
        return
    if (-worst if row.better == "higher" else worst) > action:
        what = f"{row.name} {row.metric}"
        for item in _accepted(record, row.name, criteria)[:1]:
            up_to = "" if row.decision == "regressed" else "unproven, up to "
            yield f"{ACCEPTED}{item.until}: {what} {up_to}{format_change(worst)}: {item.why}"
    elif row.decision == "regressed" and row.level == "concern":
        percent = significant(action * 100)
        percent = percent.rstrip("0").rstrip(".") if "." in percent else percent
        yield f"{CONCERN}{row.name} {row.metric} {sides(row, criteria)} (action from {percent}%)"


def _accepted(record: Record, benchmark: str, criteria: Criteria) -> list[Accepted]:
    """What is still accepted of a benchmark, the largest change first."""
    today = str(record.run.get("started", ""))[:10]
    found = [item for item in criteria.accepted if matches(item.benchmark, benchmark) and today <= item.until]
    return sorted(found, key=lambda item: -item.change)
