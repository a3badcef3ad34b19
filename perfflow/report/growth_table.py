"""Growth with a size as text: the class and the exponent of each side, in words."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.later import dataclass
from perfflow.model.result import Grown, Growth, Result
from perfflow.model.units import UNBOUNDED, significant
from perfflow.report.table import NOTHING
from perfflow.verdict.growth import CLASS_NAMES

_DECISIONS = {"worse": "grows faster", "better": "grows slower", "same": "same", "unproven": "unproven"}


@dataclass(frozen=True)
class GrowthLine:
    """One metric of one benchmark: how each side grows with ``key``, and what is said of the two."""

    benchmark: str
    metric: str
    key: str
    baseline: str
    candidate: str
    decision: str
    detail: str
    source: Growth
    """The entry of the result, for what is drawn."""


def growth_lines(result: Result) -> Iterator[GrowthLine]:
    """Yield a line for each growth that was fitted on a side."""
    for item in result.growth:
        if item.baseline or item.candidate:
            yield GrowthLine(
                item.benchmark,
                item.metric,
                item.key,
                grown_text(item.baseline),
                grown_text(item.candidate),
                _DECISIONS.get(item.decision or "", NOTHING),
                item.detail,
                item,
            )


def grown_text(side: Grown | None) -> str:
    """``linear, n^1.02 [0.99, 1.05]``; a constant without an exponent."""
    if side is None:
        return NOTHING
    name, exponent = CLASS_NAMES[side.best], side.exponent
    if side.best == "constant" or exponent.value is None:
        return name
    ends = (UNBOUNDED if end is None else significant(end) for end in (exponent.low, exponent.high))
    interval = "" if exponent.low == exponent.high else f" [{', '.join(ends)}]"
    return f"{name}, n^{exponent.value:.2f}{interval}"
