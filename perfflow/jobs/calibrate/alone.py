"""Measure whether the benchmarks of a suite disturb each other: each alone against each among all in one process."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from perfflow.model.criteria import Criteria
from perfflow.model.readings import Design, Reading, Side
from perfflow.sampling.pairs import BenchmarkToSample, LostError, Request
from perfflow.sampling.sampling import MOST_ALONE, StepSampling
from perfflow.stats.paired_test import ENOUGH
from perfflow.verdict.comparison import compare
from perfflow.verdict.gating import gating_rows


def disturbed(
    sampling: StepSampling, groups: Iterable[Sequence[BenchmarkToSample]], criteria: Criteria
) -> Iterator[tuple[str, float]]:
    """Yield benchmarks that take another time alone than among the others of their suite, and their change alone.

    ``groups``: those that one process measures together. At most MOST_ALONE of each are measured. A change is yielded
    if it is proven beyond the concern threshold.
    """
    measured = [item for group in groups if len(group) > 1 for item in _beside_others(group)]
    sampling.take_rounds(measured, Design.FIXED, ENOUGH, math.inf)
    record = sampling.stop_rule.record
    rows = {key: compare(series, criteria) for key, series in record.series.items()}
    for key in gating_rows(record, rows, criteria):
        change, concern = rows[key].change, criteria.thresholds_of(*key).concern
        if change and (change.low > concern or change.high < -concern):
            yield key[0], change.estimate


def _beside_others(group: Sequence[BenchmarkToSample]) -> Iterator[BenchmarkToSample]:
    """Yield some benchmarks of a suite, with the same code on both sides: among all as baseline, alone as candidate."""
    among: dict[tuple[int, bool], tuple[Reading, ...]] = {}

    def take(request: Request) -> tuple[Reading, ...]:
        (item,) = request.benchmarks
        if request.side is Side.CANDIDATE:
            return group[0].take(Request((own[item.name],), Side.BASELINE, request.number, warming=request.warming))
        # One process measures the whole suite once a round, for all benchmarks of it that are compared.
        key = request.number, request.warming
        if key not in among:
            among[key] = group[0].take(Request(tuple(group), Side.BASELINE, request.number, warming=request.warming))
        readings = tuple(reading for reading in among[key] if reading.benchmark == item.name)
        if not readings:
            raise LostError
        return readings

    own = {item.name: item for item in group}
    step = max(1, len(group) // MOST_ALONE)
    for item in group[::step][:MOST_ALONE]:
        yield BenchmarkToSample(item.name, tuple(Side), take)
