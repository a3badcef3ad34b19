"""Rates that are the inverse of a time: one measurement, which is judged and told once."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.model.metrics import TIMES
from perfflow.model.readings import Side
from perfflow.model.result import Benchmark
from perfflow.store.record import Record

RATES = ("throughput", "rate", "flops", "bandwidth")
_CONSTANT = 1e-3
"""How far apart the products of time and rate may be: quantiles inside a process are interpolated."""


def source_of(record: Record, benchmark: str, metric: str) -> str:
    """The time whose inverse a rate is, times the work of one operation, in all samples of both sides; '' for none."""
    return next((time for time in TIMES if metric in RATES and _are_one(record, benchmark, time, metric)), "")


def _are_one(record: Record, benchmark: str, time: str, rate: str) -> bool:
    one, other = (record.series.get((benchmark, metric)) for metric in (time, rate))
    if one is None or other is None or one.step != other.step:
        return False
    pairs = [(one.readings(side), other.readings(side)) for side in Side]
    if any(len(times) != len(rates) for times, rates in pairs):
        return False
    work = [each.value * inverse.value for times, rates in pairs for each, inverse in zip(times, rates, strict=True)]
    return bool(work) and min(work) > 0 and max(work) <= min(work) * (1 + _CONSTANT)


def told_once(rows: Sequence[Benchmark]) -> list[Benchmark]:
    """The rows without rates of which the time that they are one measurement with gates, and says the same."""
    decisions = {(row.name, row.metric): row for row in rows if row.gating}
    return [row for row in rows if not _is_told(row, decisions.get((row.name, row.same_as)))]


def _is_told(row: Benchmark, source: Benchmark | None) -> bool:
    if not row.same_as or source is None or source.decision != row.decision:
        return False
    return row.level is not None or source.level is None
