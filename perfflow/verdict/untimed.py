"""Rows of benchmarks that were not timed, because both sides execute and read the same."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.criteria import Criteria
from perfflow.model.result import Benchmark
from perfflow.store.record import Record
from perfflow.workflow.roles import AUTO

_TIMED = "time"


def rows(record: Record, criteria: Criteria) -> Iterator[Benchmark]:
    """Yield a row without figures for each benchmark that cannot have changed and was not measured."""
    measured = {name for name, _ in record.series}
    for item in record.unchanged.values():
        if item.benchmark in measured:
            continue
        planned = record.plan_of(item.step)
        metric = criteria.metric(_TIMED if planned.metric in (None, AUTO) else str(planned.metric))
        ignored = criteria.ignores(item.benchmark)
        yield Benchmark(
            name=item.benchmark,
            step=item.step,
            tool=planned.tool,
            metric=metric.name,
            statistic="p50",
            unit=metric.dimension.base_unit,
            better=metric.better.value,
            confidence=None,
            baseline=None,
            candidate=None,
            change=None,
            speedup=None,
            decision="same",
            level="ok",
            gating=not ignored,
            ignored=ignored,
            pairs=0,
            more=None,
            warnings=[],
            unchanged=item.by,
        )


def are_untimed(record: Record, benchmark: str) -> bool:
    """Return whether a benchmark was not measured because it cannot have changed."""
    return any(name == benchmark for _, name in record.unchanged) and not any(
        name == benchmark for name, _ in record.series
    )
