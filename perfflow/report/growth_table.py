"""Growth with a size as text: class and exponent of each side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfflow.model.result import Grown, Growth, Result
from perfflow.model.units import UNBOUNDED, significant
from perfflow.report.table import NOTHING
from perfflow.verdict.growth import CLASS_NAMES

_DECISIONS = {"worse": "grows faster", "better": "grows slower", "same": "same", "unproven": "unproven"}


@dataclass(frozen=True)
class GrowthLine:
    """One metric of one benchmark: the growth of each side with ``key``, and the decision."""

    benchmark: str
    metric: str
    key: str
    baseline: str
    candidate: str
    decision: str
    detail: str
    source: Growth
    """The entry of the result, for drawings."""


def growth_lines(result: Result) -> Iterator[GrowthLine]:
    """Yield a line for each growth that was fitted on at least one side."""
    for growth in result.growth:
        if growth.baseline or growth.candidate:
            yield GrowthLine(
                growth.benchmark,
                growth.metric,
                growth.key,
                grown_text(growth.baseline),
                grown_text(growth.candidate),
                _DECISIONS.get(growth.decision or "", NOTHING),
                growth.detail,
                growth,
            )


def grown_text(side: Grown | None) -> str:
    """Return text such as ``linear, n^1.02 [0.99, 1.05]``; a constant has no exponent.

    Over threads, ``4: 61.2% [58.1%, 64.4%]``: the efficiency of each number.
    """
    if side is None:
        return NOTHING
    if side.efficiency:
        return ", ".join(
            f"{point.size:g}: {point.value or 0:.1%} [{point.low or 0:.1%}, {point.high or 0:.1%}]"
            for point in side.efficiency
        )
    name, exponent = CLASS_NAMES[side.best], side.exponent
    if side.best == "constant" or exponent is None or exponent.value is None:
        return name
    ends = (UNBOUNDED if end is None else significant(end) for end in (exponent.low, exponent.high))
    interval = "" if exponent.low == exponent.high else f" [{', '.join(ends)}]"
    return f"{name}, n^{exponent.value:.2f}{interval}"
