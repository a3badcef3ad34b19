"""Targets as text: measured and required values, in units that suit each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import COMPARED_STATISTICS
from perfflow.model.result import Benchmark, TargetResult
from perfflow.model.units import UNBOUNDED, UNITS, Dimension, common_unit, format_change, parse_quantity, shown_quantity
from perfflow.report.table import NOTHING, Bar, Tone
from perfflow.report.text_table import TARGET_TONES
from perfflow.verdict.row_text import unit_beside_targets, unit_of_row

LONG_REASON = 60
"""Characters of a reason above which a reason that several targets share is printed once."""
STATUS_SYMBOLS = {
    "met": "✅",
    "not met": "❌",
    "unproven": "❔",
    "not measured": "❔",
    "not held by base": "–",
    "not looked at": "–",
}


@dataclass(frozen=True)
class RequirementLine:
    """One target as texts: the measured value, its interval and the requirement."""

    symbol: str
    status: str
    name: str
    measured: str
    interval: str
    required: str
    detail: str
    bar: Bar | None
    """The interval against the bound, for formats that draw it."""
    tone: Tone
    benchmark: str
    key: Mapping[str, Any]
    """Metric, statistic and requirement, as the reason about this target names them."""


def requirement_of(target: TargetResult, criteria: Criteria, row: Benchmark | None) -> RequirementLine:
    """Return the line of one target; ``row`` is the measured row of its benchmark and metric."""
    side = (row.candidate or row.baseline) if row else None
    bound = target.statistic not in COMPARED_STATISTICS and side is not None and bool(side.at_most)
    texts = _target_texts(target, criteria, row)
    one_value = texts[0] == texts[1] == texts[2] or target.low == target.high or target.measured is None or bound
    return RequirementLine(
        symbol=STATUS_SYMBOLS[target.status],
        status=target.status,
        name=target_name(target),
        measured=NOTHING if target.measured is None else f"≤ {texts[0]}" if bound else texts[0],
        interval="" if one_value else f"[{texts[1]}, {texts[2]}]",
        required=target.requirement
        + (f" ({shown_quantity(target.peak, criteria.metric(target.metric).dimension)})" if target.peak else ""),
        detail="; ".join(filter(None, (target.detail, target.peak_source and f"peak {target.peak_source}"))),
        bar=None,
        tone=TARGET_TONES.get(target.status, Tone.UNSURE),
        benchmark=target.benchmark,
        key={"metric": target.metric, "statistic": target.statistic, "requirement": target.requirement},
    )


def without_repeated_reasons(rows: Iterable[RequirementLine]) -> Iterator[RequirementLine]:
    """Yield the rows; a long reason that several rows share, such as a missing GPU, stays only in the first."""
    seen = set()
    for row in rows:
        step, _, reason = row.detail.partition(": ")
        long = len(reason) > LONG_REASON
        yield replace(row, detail=f"{step}: for the same reason") if long and reason in seen else row
        seen.add(reason)


def target_name(target: TargetResult) -> str:
    """Return a name such as ``decode time p50``; exact metrics have no statistic in their name."""
    return f"{target.benchmark} {target.metric}" + ("" if target.statistic == "value" else f" {target.statistic}")


def _target_texts(target: TargetResult, criteria: Criteria, row: Benchmark | None) -> list[str]:
    """Return measured, low and high in the unit of the row in other tables, unless that makes the numbers long."""
    values = (target.measured, target.low, target.high)
    if target.statistic == "change":
        return [UNBOUNDED if value is None else format_change(value) for value in values]
    if target.statistic == "growth":
        return [UNBOUNDED if value is None else f"n^{value:.2f}" for value in values]
    if target.statistic == "efficiency":
        return [UNBOUNDED if value is None else f"{value:.1%}" for value in values]
    unit, per_op = _written_unit(target.requirement)
    dimension = criteria.metric(target.metric).dimension
    if target.statistic in COMPARED_STATISTICS:
        unit, dimension = "x", Dimension.RATIO
    elif target.measured is not None:
        unit = unit_of_row(row, criteria) if row else unit
        if not _reads_well(target.measured, unit):
            unit = common_unit([target.measured], dimension)
            unit = unit_beside_targets(row, unit, criteria) if row else unit
    return [
        UNBOUNDED if value is None else shown_quantity(value, dimension, unit=unit, per_op=per_op) for value in values
    ]


def _reads_well(value: float, unit: str) -> bool:
    """Return whether a value is between 0.1 and 1000 in a unit."""
    return unit in UNITS and 0.1 <= abs(value) / float(UNITS[unit][1]) < 1000


def _written_unit(requirement: str) -> tuple[str, bool]:
    """Return the unit of the requirement, and whether it is per operation."""
    try:
        quantity = parse_quantity(requirement.lstrip("<>=≤≥ "))
    except ValueError:
        return "", False
    return (quantity.unit if quantity.unit in UNITS and quantity.unit != "%" else ""), quantity.per_op
