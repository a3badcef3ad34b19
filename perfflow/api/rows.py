"""Tidy tables of a run: one row for each sample, and one row for each decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from perfflow.api.columns import DecisionRow, SampleRow
from perfflow.api.model import Benchmark, Bounds, Sample
from perfflow.store.sample_order import Orders, TakingOrder, Wanted, order_in

Table = Literal["samples", "decisions"]
Side = Literal["baseline", "candidate"]


def sample_rows(run: str, benchmarks: Iterable[Benchmark], folder: Path | None) -> Iterator[SampleRow]:
    """Return the samples of each benchmark, pair by pair, with the order in which they were taken.

    ``run``: the run's id. ``folder``: the run folder, whose events hold the order. Raises UserError if they are
    damaged, immediately and not at the first row.
    """
    return _all_samples(run, benchmarks, order_in(folder))


def _all_samples(run: str, benchmarks: Iterable[Benchmark], order: TakingOrder) -> Iterator[SampleRow]:
    for row in benchmarks:
        found: dict[Side, Sample | None] = {"baseline": row.baseline, "candidate": row.candidate}
        sides = {side: sample for side, sample in found.items() if sample is not None}
        values = {str(side): sample.samples for side, sample in sides.items()}
        orders = order.of(Wanted(row.step, row.name, row.metric, values))
        yield from _samples(run, row, sides, orders)


def _samples(run: str, row: Benchmark, sides: Mapping[Side, Sample], orders: Orders) -> Iterator[SampleRow]:
    longest = max((len(sample.samples) for sample in sides.values()), default=0)
    for number in range(longest):
        for side, sample in sides.items():
            if number < len(sample.samples):
                yield SampleRow(
                    run=run,
                    benchmark=row.name,
                    step=row.step,
                    metric=row.metric,
                    unit=row.unit,
                    side=side,
                    pair=number if row.in_pairs else None,
                    order=orders[side][number] if side in orders else None,
                    value=sample.samples[number],
                    at_most=bool(sample.at_most) and sample.at_most[number],
                )


def decision_rows(run: str, benchmarks: Iterable[Benchmark]) -> Iterator[DecisionRow]:
    """Yield the decision of each row. ``run``: the run's id."""
    for row in benchmarks:
        baseline, candidate = row.baseline or _NONE, row.candidate or _NONE
        change, speedup = row.change or _NONE, row.speedup or _NONE
        yield DecisionRow(
            run=run,
            benchmark=row.name,
            step=row.step,
            tool=row.tool,
            metric=row.metric,
            statistic=row.statistic,
            unit=row.unit,
            better=row.better,
            baseline=baseline.value,
            baseline_low=baseline.low,
            baseline_high=baseline.high,
            candidate=candidate.value,
            candidate_low=candidate.low,
            candidate_high=candidate.high,
            change=change.value,
            change_low=change.low,
            change_high=change.high,
            speedup=speedup.value,
            speedup_low=speedup.low,
            speedup_high=speedup.high,
            confidence=row.confidence,
            decision=row.decision,
            level=row.level,
            gating=row.gating,
            pairs=row.pairs,
        )


_NONE = Bounds(None, None, None)
