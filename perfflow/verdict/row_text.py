"""The change and the decision of a row in words, derived from its decision, level and interval."""

from __future__ import annotations

import math

from perfflow.model.criteria import Accepted, Criteria
from perfflow.model.result import Benchmark, Reason, ReasonKind, Sample, reason
from perfflow.model.targets import matches
from perfflow.model.units import common_unit, format_change, format_interval, format_threshold, format_together


def estimate_of(row: Benchmark, criteria: Criteria) -> str:
    """Return the change of a row: ``+12.0%``, or both values if there is no relative change, as in 0 → 1."""
    if row.change is not None and row.change.value is not None:
        return format_change(row.change.value)
    dimension = criteria.metric(row.metric).dimension
    return " → ".join(format_together([_value(side) for side in (row.baseline, row.candidate)], dimension))


def change_of(row: Benchmark, criteria: Criteria) -> str:
    """Return ``+15.0% [+14.2%, +15.9%]``, or both values if there is no relative change, as in 0 → 1."""
    change = row.change
    if change is None or change.value is None:
        return estimate_of(row, criteria)
    return format_interval(change.value, change.low, change.high)


def judged(row: Benchmark, criteria: Criteria, accepted: Accepted | None = None) -> str:
    """Return the change of a row and how it compares with its thresholds.

    ``accepted`` is the trade-off that lets the row pass.
    """
    change = change_of(row, criteria)
    if accepted:
        limit = f"action threshold {format_threshold(criteria.thresholds_of(row.name, row.metric).action)}"
        return f"{change}, accepted up to {format_threshold(accepted.change)} until {accepted.until} ({limit})"
    if row.decision == "regressed":
        return f"{change}, {_against(row, criteria)}"
    if row.decision == "unproven":
        return f"{change}: {open_question(row, criteria)}"
    return f"{change}, {row.decision}" if row.decision else change


def unit_of_row(row: Benchmark, criteria: Criteria) -> str:
    """Return the unit in which every page shows both sides of a row; '' if each value has the same unit anyway."""
    sides = [side for side in (row.baseline, row.candidate) if side]
    values = [side.value for side in sides]
    if not any(values):  # 0 has no unit of its own
        values = [side.high for side in sides]
    return unit_beside_targets(row, common_unit(values, criteria.metric(row.metric).dimension), criteria)


def unit_beside_targets(row: Benchmark, unit: str, criteria: Criteria) -> str:
    """Return the unit for values of a row: MB in place of MiB if a target of the row is in such units.

    Otherwise the limit and the measured value could not be compared at a glance.
    """
    if "iB" not in unit:
        return unit
    units = [
        wanted.requirement.unit
        for wanted in criteria.targets
        if wanted.metric.name == row.metric and (wanted.benchmark == row.name or matches(wanted.benchmark, row.name))
    ]
    return unit.replace("iB", "B") if any("B" in each and "iB" not in each for each in units) else unit


def failure(row: Benchmark, criteria: Criteria) -> Reason:
    """Return the reason for which a row fails a run."""
    text = f"regressed: {row.title} {judged(row, criteria)}"
    change = row.change.value if row.change else None
    return reason(ReasonKind.REGRESSED, text, row.name, metric=row.metric, change=change)


def open_question(row: Benchmark, criteria: Criteria) -> str:
    """Return whether an unproven row excludes a regression over the action threshold, as text."""
    limit = format_threshold(criteria.thresholds_of(row.name, row.metric).action)
    action = f"a regression over the action threshold of {limit}"
    return f"{action} is excluded" if row.level == "ok" else f"{action} is not excluded"


def _against(row: Benchmark, criteria: Criteria) -> str:
    """Return ``over the action threshold of 10%``, with `` by its estimate`` unless the whole interval is over it."""
    thresholds = criteria.thresholds_of(row.name, row.metric)
    if row.level not in ("action", "concern"):
        by = "" if most_worse(row) <= thresholds.concern else " by its estimate"
        return f"under the concern threshold of {format_threshold(thresholds.concern)}{by}"
    limit = thresholds.action if row.level == "action" else thresholds.concern
    by = "" if least_worse(row) > limit else " by its estimate"
    return f"over the {row.level} threshold of {format_threshold(limit)}{by}"


def least_worse(row: Benchmark) -> float:
    """Return the smallest worsening in the interval of a row, as a share; inf if there is no relative change."""
    if row.change is None or row.change.value is None:
        return math.inf
    return _worse(row, row.change.high if row.better == "higher" else row.change.low, -math.inf)


def most_worse(row: Benchmark) -> float:
    """Return the largest worsening in the interval of a row, as a share; inf if it is unbounded."""
    if row.change is None or row.change.value is None:
        return math.inf
    return _worse(row, row.change.low if row.better == "higher" else row.change.high, math.inf)


def _worse(row: Benchmark, end: float | None, unknown: float) -> float:
    if end is None:
        return unknown
    return -end if row.better == "higher" else end


def _value(side: Sample | None) -> float:
    return math.nan if side is None or side.value is None else side.value
