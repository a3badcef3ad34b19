"""Rates that are the inverse of a time. Both are one measurement, which is judged and reported once."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.model.metrics import TIMES
from perfflow.model.readings import Side
from perfflow.model.result import Benchmark
from perfflow.store.record import Record

RATES = ("throughput", "rate", "flops", "bandwidth")
_CONSTANT = 1e-3
"""Allowed relative spread of time times rate: quantiles inside a process are interpolated."""


def source_of(record: Record, benchmark: str, metric: str) -> str:
    """Return the time metric of which a rate is the inverse (times a constant) in all samples; '' if there is none."""
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


def without_inverse_rates(rows: Sequence[Benchmark]) -> list[Benchmark]:
    """Return the rows without rates whose time metric gates and has the same decision."""
    decisions = {(row.name, row.metric): row for row in rows if row.gating}
    return [row for row in rows if not _is_repeated(row, decisions.get((row.name, row.same_as)))]


def _is_repeated(row: Benchmark, source: Benchmark | None) -> bool:
    if not row.same_as or source is None or source.decision != row.decision:
        return False
    return row.level is not None or source.level is None
