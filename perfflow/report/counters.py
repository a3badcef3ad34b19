"""Counters that explain a time, shown beside the profiles, before → after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfflow.model.criteria import Criteria
from perfflow.model.result import Benchmark
from perfflow.report.rows import value_of, values_of
from perfflow.report.truncate import Truncated, truncated

EXPLAIN = frozenset(
    {"simd_share", "vector_width", "occupancy", "warp_efficiency", "branch_misses", "branch_miss_rate"}
    | {"cache_misses", "cache_misses_i1", "cache_misses_d1", "cache_miss_rate", "cache_miss_rate_d1"}
)


@dataclass(frozen=True)
class Counted:
    """One line: one value, or both values with an arrow between."""

    benchmark: str
    metric: str
    values: str


def counted(rows: Sequence[Benchmark], criteria: Criteria) -> Truncated[Counted] | None:
    """Return the lines of the rows with such metrics, or None if there are none."""
    found = [row for row in rows if row.metric in EXPLAIN and (row.baseline or row.candidate)]
    return truncated(found).each(lambda row: _line(row, criteria)) if found else None


def _line(row: Benchmark, criteria: Criteria) -> Counted:
    if row.baseline and row.candidate:
        return Counted(row.name, row.metric, values_of(row, criteria))
    return Counted(row.name, row.metric, value_of(row.baseline or row.candidate, criteria.metric(row.metric).dimension))
