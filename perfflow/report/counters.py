"""Figures that explain a time: they stand beside the profiles, before → after."""

from __future__ import annotations

from dataclasses import dataclass

from perfflow.report.rows import value_of, values_of
from perfflow.result import Benchmark
from perfflow.samples.criteria import Criteria

EXPLAIN = frozenset(
    {"simd_share", "vector_width", "occupancy", "warp_efficiency", "branch_misses", "branch_miss_rate"}
    | {"cache_misses", "cache_misses_i1", "cache_misses_d1", "cache_miss_rate", "cache_miss_rate_d1"}
)


@dataclass(frozen=True, slots=True)
class Counted:
    """One line: a value, or one of each side with an arrow between."""

    benchmark: str
    metric: str
    values: str


def counted_of(row: Benchmark, criteria: Criteria) -> Counted:
    """The line of a row of such a metric."""
    if row.baseline and row.candidate:
        return Counted(row.name, row.metric, values_of(row, criteria))
    return Counted(row.name, row.metric, value_of(row.baseline or row.candidate, criteria.metric(row.metric).dimension))
