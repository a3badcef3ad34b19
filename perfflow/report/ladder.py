"""The effects of candidates one after the other: times better than the baseline after each kept candidate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import Better
from perfflow.model.result import Benchmark, Optimization, Result
from perfflow.stats.paired_test import Interval


@dataclass(frozen=True)
class Rung:
    """One try, from ``start`` (the changes kept before it) to ``reached``; both are times better than the baseline.

    An unknown end of ``reached`` is 0 or infinite.
    """

    name: str
    decision: str
    start: float
    reached: Interval


@dataclass(frozen=True)
class Ladder:
    """The tries that one metric of one benchmark judged.

    ``together`` is the speedup of all kept tries measured together, None if that was not measured.
    """

    benchmark: str
    metric: str
    rungs: tuple[Rung, ...]
    together: Interval | None


def ladders_of(result: Result, criteria: Criteria) -> Iterator[Ladder]:
    """Yield a ladder for each metric that judged candidates, in order of appearance."""
    rows = {(row.name, row.metric): row for row in result.benchmarks}
    judged = [item for item in result.optimizations if item.effect and item.effect.value is not None]
    for benchmark, metric in dict.fromkeys((item.benchmark, item.metric) for item in judged):
        own = [item for item in judged if (item.benchmark, item.metric) == (benchmark, metric)]
        rungs = tuple(_rungs(own, higher=criteria.metric(metric).better is Better.HIGHER))
        if rungs:
            kept = any(rung.decision == "accepted" for rung in rungs)
            yield Ladder(benchmark, metric, rungs, _together(rows.get((benchmark, metric))) if kept else None)


def _rungs(tries: Sequence[Optimization], *, higher: bool) -> Iterator[Rung]:
    """Yield each try on top of the changes kept before it; alternatives of one candidate share their start."""
    level, group, after = 1.0, "", 1.0
    for item in tries:
        if item.id.partition("[")[0] != group:
            group, level = item.id.partition("[")[0], after
        effect = item.effect
        if effect is None or effect.value is None:
            continue
        estimate, low, high = (
            level * unknown if share is None else level * _times(share, higher=higher)
            for share, unknown in ((effect.value, 0.0), (effect.low, 0.0), (effect.high, math.inf))
        )
        if not math.isfinite(estimate):
            continue
        yield Rung(item.id, item.decision, level, Interval(estimate, low, high))
        if item.decision == "accepted":
            after = estimate


def _times(share: float, *, higher: bool) -> float:
    """Return an effect as a ratio; the effect on a time is the share of time saved."""
    if higher:
        return max(0.0, 1 + share)
    return 1 / (1 - share) if share < 1 else math.inf


def _together(row: Benchmark | None) -> Interval | None:
    speedup = row.speedup if row else None
    if speedup is None or speedup.value is None or speedup.low is None or speedup.high is None:
        return None
    return Interval(speedup.value, speedup.low, speedup.high)
