"""A row's change and its decision in words: each sentence follows from the row's decision, level and interval."""

from __future__ import annotations

import math

from perfflow.model.criteria import Accepted, Criteria
from perfflow.model.result import Benchmark
from perfflow.model.result_samples import Sample
from perfflow.model.units import UNBOUNDED, format_change, format_quantity


def percent(share: float) -> str:
    """A threshold as its author would write it: ``10%``, ``2.5%``."""
    return f"{share * 100:.3g}%"


def estimate_of(row: Benchmark, criteria: Criteria) -> str:
    """How a row changed: ``+12.0%``, or both values where a share says nothing, such as of 0 → 1."""
    if row.change is not None and row.change.value is not None:
        return format_change(row.change.value)
    dimension = criteria.metric(row.metric).dimension
    return " → ".join(format_quantity(_value(side), dimension) for side in (row.baseline, row.candidate))


def change_of(row: Benchmark, criteria: Criteria) -> str:
    """``+15.0% [+14.2%, +15.9%]``; both values where no share says how, such as of 0 → 1."""
    change = row.change
    if change is None or change.value is None:
        return estimate_of(row, criteria)
    if change.low in (None, -1.0) and change.high is None:  # values are positive, so -100% bounds nothing
        return f"{format_change(change.value)} (no interval yet)"
    low, high = (UNBOUNDED if end is None else format_change(end) for end in (change.low, change.high))
    return with_interval(format_change(change.value), low, high)


def with_interval(text: str, low: str, high: str) -> str:
    """A figure with its interval, unless both of its ends read as the figure itself."""
    return text if text == low == high else f"{text} [{low}, {high}]"


def judged(row: Benchmark, criteria: Criteria, accepted: Accepted | None = None) -> str:
    """The change of a row against its thresholds, by what it is decided by: interval, or the estimate alone.

    ``accepted`` is the trade-off by which it passes.
    """
    change = change_of(row, criteria)
    if accepted:
        limit = f"action threshold {percent(criteria.thresholds_of(row.name, row.metric).action)}"
        return f"{change}, accepted up to {percent(accepted.change)} until {accepted.until} ({limit})"
    if row.decision == "regressed":
        return f"{change}, {_against(row, criteria)}"
    if row.decision == "unproven":
        return f"{change}: {open_question(row, criteria)}"
    return f"{change}, {row.decision}" if row.decision else change


def failure(row: Benchmark, criteria: Criteria) -> str:
    """The reason for which a row fails a run."""
    return f"regressed: {row.name} {row.metric} {judged(row, criteria)}"


def open_question(row: Benchmark, criteria: Criteria) -> str:
    """What an unproven row leaves open: whether there is a regression over the action threshold."""
    action = f"a regression over the action threshold of {percent(criteria.thresholds_of(row.name, row.metric).action)}"
    return f"{action} is excluded" if row.level == "ok" else f"{action} is not excluded"


def _against(row: Benchmark, criteria: Criteria) -> str:
    """``over the action threshold of 10% by its estimate``; without the last words where the whole interval is."""
    thresholds = criteria.thresholds_of(row.name, row.metric)
    if row.level not in ("action", "concern"):
        by = "" if most_worse(row) <= thresholds.concern else " by its estimate"
        return f"under the concern threshold of {percent(thresholds.concern)}{by}"
    limit = thresholds.action if row.level == "action" else thresholds.concern
    by = "" if least_worse(row) > limit else " by its estimate"
    return f"over the {row.level} threshold of {percent(limit)}{by}"


def least_worse(row: Benchmark) -> float:
    """The least that a row got worse by the interval of its change, as a share; inf where no share says how much."""
    if row.change is None or row.change.value is None:
        return math.inf
    return _worse(row, row.change.high if row.better == "higher" else row.change.low, -math.inf)


def most_worse(row: Benchmark) -> float:
    """The most that a row got worse by the interval of its change, as a share; inf where nothing bounds it."""
    if row.change is None or row.change.value is None:
        return math.inf
    return _worse(row, row.change.low if row.better == "higher" else row.change.high, math.inf)


def _worse(row: Benchmark, end: float | None, unknown: float) -> float:
    if end is None:
        return unknown
    return -end if row.better == "higher" else end


def _value(side: Sample | None) -> float:
    return math.nan if side is None or side.value is None else side.value
