"""Trade-offs: regressions beyond the action threshold that the workflow accepts, with a reason, until a date."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.criteria import Accepted, Criteria
from perfflow.model.result import Benchmark
from perfflow.store.record import Record
from perfflow.verdict.gating import is_accepted


def worst(row: Benchmark) -> float | None:
    """Return how much worse a row is, as a share: the estimate if that is proven, else the bad end of the interval.

    None if the row is neither regressed nor unproven, or if it fails the run.
    """
    if row.decision not in ("regressed", "unproven") or row.level in ("action", None) or row.change is None:
        return None
    end = row.change.low if row.better == "higher" else row.change.high
    found = row.change.value if row.decision == "regressed" else end
    if found is None:
        return None
    return -found if row.better == "higher" else found


def trade_off(record: Record, row: Benchmark, criteria: Criteria) -> Accepted | None:
    """Return the trade-off that lets a row pass beyond its own action threshold; None if none does or none is needed.

    If there are several, the one that allows most. The date of the run's start counts as today.
    """
    found = worst(row)
    if not row.gating or found is None or found <= criteria.thresholds_of(row.name, row.metric).action:
        return None
    today = _today(record)
    valid = [item for item in criteria.accepted if _is_about(item, criteria, row) and item.in_force(today)]
    return max(valid, key=lambda item: item.change, default=None)


def marked(record: Record, row: Benchmark, criteria: Criteria) -> Benchmark:
    """Return the row, marked with the trade-off that lets it pass, if any."""
    item = trade_off(record, row, criteria)
    return row.model_copy(update={"accepted": _mark(item)}) if item else row


def lapsed(record: Record, row: Benchmark, criteria: Criteria) -> Iterator[str]:
    """Yield the trade-offs that no longer let a failing row pass."""
    found = row.change.value if row.change else None
    worse = None if found is None else -found if row.better == "higher" else found
    for item in criteria.accepted:
        if not _is_about(item, criteria, row) or worse is None or worse > item.change:
            continue
        if item.spent:
            what = f"the regression accepted until {item.until}"
            yield f"{row.title}: the base already contains {what}: {item.why}"
        elif _today(record) > item.until:
            yield f"{row.title} was accepted until {item.until}, which has passed: {item.why}"


def _is_about(item: Accepted, criteria: Criteria, row: Benchmark) -> bool:
    return is_accepted(item, criteria, (row.name, row.metric), row.why)


def _today(record: Record) -> str:
    """Return the date of the run's start."""
    return record.run.started[:10]


def taken(row: Benchmark, criteria: Criteria) -> Accepted | None:
    """Return the trade-off that a row is marked with, None without one."""
    found = [item for item in criteria.accepted if row.accepted == _mark(item) and _is_about(item, criteria, row)]
    return max(found, key=lambda item: item.change, default=None)


def _mark(item: Accepted) -> str:
    return f"until {item.until}: {item.why}"
