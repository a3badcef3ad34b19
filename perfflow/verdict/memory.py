"""Memory metrics without a target or guard: detect proven growth that is large enough to matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.metrics import MEMORY, is_exact
from perfflow.model.result import Benchmark
from perfflow.model.units import Dimension
from perfflow.verdict.comparison import Comparison
from perfflow.verdict.decide import rule

LEAST_BYTES = 2**20
"""Bytes of growth that matter for inexact memory metrics: allocators and libraries alone cause less than this."""


def has_grown(item: Comparison, thresholds: Thresholds) -> bool:
    """Return whether memory is proven to have grown, exactly or by more than ``LEAST_BYTES``."""
    if rule(item, thresholds, identical=False).decision != "regressed" or not item.baseline or not item.candidate:
        return False
    in_bytes = item.metric.dimension is Dimension.BYTES
    return item.metric.exact or not in_bytes or item.candidate.value - item.baseline.value > LEAST_BYTES


def concerns(rows: Iterable[Benchmark], criteria: Criteria) -> Iterator[Benchmark]:
    """Yield the memory rows that do not gate and are proven to have grown beyond their concern threshold."""
    for row in rows:
        judged = (
            row.metric in MEMORY and not row.gating and not row.ignored and criteria.memory_of(row.name) is not None
        )
        if judged and row.decision == "regressed" and row.level in ("concern", "action") and _matters(row):
            yield row


def _matters(row: Benchmark) -> bool:
    values = [side.value for side in (row.baseline, row.candidate) if side]
    before, after = values if len(values) == 2 else (None, None)
    in_bytes = row.unit == Dimension.BYTES.base_unit
    return is_exact(row.statistic) or not in_bytes or (after or 0.0) - (before or 0.0) > LEAST_BYTES
