"""The impact of regressions: the absolute change of each value, and the remaining distance to its targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import in_words
from perfflow.model.result import Benchmark, Result, TargetResult
from perfflow.model.units import Dimension, Relation, Requirement, column_unit, format_quantity, with_interval
from perfflow.report.blame import shown_unit, signed
from perfflow.report.bounds import bound_of
from perfflow.report.regressions import worst_first
from perfflow.report.table import NOTHING
from perfflow.report.truncate import Truncated, truncated
from perfflow.verdict.row_text import unit_beside_targets


@dataclass(frozen=True)
class Impact:
    """One regression: its absolute change, and the distance to each target before and after."""

    benchmark: str
    metric: str
    added: str
    headroom: tuple[tuple[str, str], ...]


def impact_of(result: Result, criteria: Criteria) -> Truncated[Impact]:
    """Return a line for each regression."""
    regressed = worst_first(result.benchmarks)
    units = {
        unit: shown_unit([_difference(row) for row in regressed if row.unit == unit], unit)
        for unit in dict.fromkeys(row.unit for row in regressed)
    }
    return truncated(regressed).each(
        lambda row: Impact(
            row.name,
            in_words(row.metric),
            _added(row, units[row.unit], criteria),
            tuple(_headroom(row, result.targets, criteria)),
        )
    )


def _difference(row: Benchmark) -> float | None:
    """Return the absolute change: the relative change times the baseline's value."""
    before = row.baseline.value if row.baseline else None
    after = row.candidate.value if row.candidate else None
    if before is None or after is None:
        return None
    change = row.change.value if row.change else None
    return before * change if change is not None and before else after - before


def _added(row: Benchmark, column: str, criteria: Criteria) -> str:
    """Return the absolute change with its interval, in the unit of the column if that is not ''."""
    added, change = _difference(row), row.change
    if added is None:
        return NOTHING
    before = row.baseline.value if row.baseline else None
    ends = [change.low, change.high] if change and change.value is not None and before else [None, None]
    values = [added, *(None if end is None or not before else before * end for end in ends)]
    unit = unit_beside_targets(row, column or shown_unit(values, row.unit), criteria)
    text, low, high = (None if value is None else signed(value, row.unit, unit) for value in values)
    return with_interval(str(text), low, high) if low is not None and high is not None else str(text)


def _headroom(row: Benchmark, targets: Sequence[TargetResult], criteria: Criteria) -> Iterator[tuple[str, str]]:
    """Yield each target on the row's own statistic with the distance of both values to it."""
    for target in targets:
        if (target.benchmark, target.metric, target.statistic) != (row.name, row.metric, row.statistic):
            continue
        bound = bound_of(target, criteria)
        sides = [side.value if side else None for side in (row.baseline, row.candidate)]
        left = [None if bound is None or value is None else _left(bound, value) for value in sides]
        if any(value is not None for value in left):
            dimension = criteria.metric(row.metric).dimension
            unit = unit_beside_targets(row, column_unit(left, dimension), criteria)
            texts = [NOTHING if value is None else _distance(value, dimension, unit) for value in left]
            yield target.requirement, f"{texts[0]} → {texts[1]}"


def _left(requirement: Requirement, value: float) -> float | None:
    """Return the distance to a bound, negative if the bound is missed; None if only equality is allowed."""
    match requirement.relation:
        case Relation.LESS | Relation.AT_MOST:
            return requirement.bound - value
        case Relation.GREATER | Relation.AT_LEAST:
            return value - requirement.bound
        case Relation.BETWEEN:
            far = value - requirement.bound
            return far if requirement.high is None else min(far, requirement.high - value)
        case Relation.EQUAL:
            return None


def _distance(left: float, dimension: Dimension, unit: str) -> str:
    text = format_quantity(abs(left), dimension, unit=unit)
    return f"{text} left" if left >= 0 else f"missed by {text}"
