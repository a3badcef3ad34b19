"""Find the functions that cost more on the candidate, for the benchmarks that regressed.

The time of a function is its share of a profile times the measured time of an operation. Shares alone would blame
unchanged functions when something else got faster. A function is named if the interval of its difference, three times
its noise (of its shares and of the measured change) to each side, excludes 0, and if it is a considerable part of the
regression. Counts have no noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from perfflow.model.metrics import METRICS, TIMES
from perfflow.model.readings import HOTSPOT, Side
from perfflow.model.result import Attribution, Benchmark, CommitInfo
from perfflow.store.record import Record
from perfflow.store.run_facts import BenchmarkCosts, Blame, FunctionCost
from perfflow.verdict.findings import waits_longer

BEYOND_NOISE = 3.0
"""Number of standard errors above which a difference is significant."""
_ALL = 1.005
"""Share above which ``>100%`` is shown."""
FEW = 1000
"""Number of samples of a side below which an attribution gets a note."""
FEWEST_CALLS = 3
"""Number of profiles of a side from which the differences between them are known."""
_EXPLAINS = {"heap_peak": frozenset({"heap_peak", "rss"}), "time": TIMES}
"""Metrics whose regression is explained by the costs of another metric."""
RATES = frozenset({"B/s", "1/s", "FLOP/s"})
"""Units of throughput: a loss of throughput is a gain of time per unit of work."""


@dataclass(frozen=True)
class Slower:
    """A function with its cost per operation on both sides, and its share of the benchmark's regression."""

    found: FunctionCost
    baseline: float
    candidate: float
    share: float
    interval: tuple[float, float] | None = None


def attributions(record: Record, rows: Sequence[Benchmark]) -> Iterator[Attribution]:
    """Yield the functions that got slower, the largest loss of each benchmark first."""
    for row in rows:
        if row.decision != "regressed" or row.level not in ("concern", "action"):
            continue
        if record.attributed is not None:
            mine = (item for item in record.attributed if (item.benchmark, item.metric) == (row.name, row.metric))
            yield from mine
        elif (row.gating or row.metric not in TIMES) and not waits_longer(row, rows):
            yield from _of_row(record, row)


def _of_row(record: Record, row: Benchmark) -> Iterator[Attribution]:
    entries = [
        (step_id, entry)
        for step_id, step in record.ended_steps()
        for entry in step.costs
        if entry.benchmark == row.name and _explains(entry, row)
    ]
    if not entries:
        return
    step_id, entry = max(entries, key=lambda item: _worth(item[1], row.metric))
    slower = sorted(_slower(entry, row), key=lambda item: (-item.share, item.found.function))
    regions: dict[str, float] = {}
    for item in slower:
        region = item.found.region
        regions[region] = regions.get(region, 0.0) + item.share
    for item in slower:
        yield _attribution(record, row, step_id, entry, item, regions)


def loss_share_text(share: float) -> str:
    """Return a share of a loss as text: ``61%``, or ``>100%`` if other functions made up for a part."""
    return f"{share:.0%}" if share <= _ALL else ">100%"


def _is_rate(row: Benchmark) -> bool:
    return row.better == "higher" and row.unit in RATES


def _explains(entry: BenchmarkCosts, row: Benchmark) -> bool:
    counted = entry.metric
    of_time = counted == "time" and _is_rate(row)
    # Costs from a substitute for a missing tool have a note.
    return row.metric == counted or row.metric in _EXPLAINS.get(counted, ()) or of_time or bool(entry.note)


def _worth(entry: BenchmarkCosts, metric: str) -> tuple[bool, bool, float]:
    """Return a rank of the evidence: the metric itself, then counts without noise, then more samples."""
    own = metric == entry.metric or metric in _EXPLAINS.get(entry.metric, ())
    return own, entry.kind == "counted", min(entry.totals.values())


def _slower(entry: BenchmarkCosts, row: Benchmark) -> Iterator[Slower]:
    found = _counted(entry) if entry.kind == "counted" else _shared(entry, row)
    # A small share does not explain the regression, even if it is significant.
    yield from (item for item in found if item.candidate > item.baseline and item.share >= HOTSPOT)


def _counted(entry: BenchmarkCosts) -> Iterator[Slower]:
    each = {side.value: entry.calls[side] * (entry.ops or 1) for side in Side}
    whole = sum(entry.totals[side] / each[side.value] * side_sign(side) for side in Side)
    if whole <= 0:
        return
    for item in entry.functions:
        before, after = (item.on(side).count / each[side.value] for side in Side)
        yield Slower(item, before, after, (after - before) / whole)


def side_sign(side: Side) -> int:
    """Return the sign of a side in the difference candidate - baseline."""
    return 1 if side is Side.CANDIDATE else -1


def _shared(entry: BenchmarkCosts, row: Benchmark) -> Iterator[Slower]:
    lost = _lost(row)
    if lost is None:
        return
    known, change, unsure = lost
    after_whole = known * (1 + change)
    for item in entry.functions:
        before, after = item.baseline, item.candidate
        if before.variance is None or after.variance is None:
            continue
        difference = after_whole * after.share - known * before.share
        noise = math.sqrt(
            after_whole**2 * after.variance + known**2 * before.variance + (known * after.share * unsure) ** 2
        )
        if difference > BEYOND_NOISE * noise:
            whole = known * change
            ends = ((difference - BEYOND_NOISE * noise) / whole, (difference + BEYOND_NOISE * noise) / whole)
            yield Slower(item, known * before.share, after_whole * after.share, difference / whole, ends)


def _lost(row: Benchmark) -> tuple[float, float, float] | None:
    """Return the baseline's seconds, the relative increase on the candidate, and the standard error of that increase.

    For a rate, the seconds are per unit of work. None if the regression is not one of time.
    """
    known = row.baseline.value if row.baseline else None
    change = row.change.value if row.change else None
    if known is None or change is None:
        return None
    unsure = _standard_error(row)
    if _is_rate(row):
        if known <= 0 or change <= -1:
            return None
        # Propagate the error by the derivative of 1 / (1 + change).
        known, change, unsure = 1 / known, 1 / (1 + change) - 1, unsure / (1 + change) ** 2
    elif row.metric not in TIMES:
        return None
    return (known, change, unsure) if change > 0 else None


def _standard_error(row: Benchmark) -> float:
    """Return the standard error of the change, from its interval; 0 without an interval."""
    if row.change is None or row.change.low is None or row.change.high is None or not row.confidence:
        return 0.0
    return (row.change.high - row.change.low) / (2 * NormalDist().inv_cdf((1 + row.confidence) / 2))


def _attribution(
    record: Record,
    row: Benchmark,
    step_id: str,
    entry: BenchmarkCosts,
    item: Slower,
    regions: Mapping[str, float],
) -> Attribution:
    found = item.found
    blamed = record.blamed.get((row.name, found.function, found.file)) or Blame(row.name, found.function, found.file)
    sampled = [round(entry.totals[side]) for side in Side] if entry.kind == "sampled" else []
    metric = METRICS.get(entry.metric)
    counted = entry.kind == "counted" and metric is not None
    return Attribution(
        benchmark=row.name,
        metric=row.metric,
        step=step_id,
        tool=entry.tool,
        # Without a source file, a profiler names the library as well: `fold (work)`.
        function=found.function.partition(" (")[0] if blamed.defined_in else found.function,
        file=blamed.defined_in or found.file,
        line=blamed.defined_at or found.line,
        crate=found.crate,
        region=found.region,
        unit=metric.dimension.base_unit if counted and metric else "s" if _is_rate(row) else row.unit,
        baseline=item.baseline,
        candidate=item.candidate,
        change=item.candidate / item.baseline - 1 if item.baseline else None,
        share=item.share,
        share_low=item.interval[0] if item.interval else None,
        share_high=item.interval[1] if item.interval else None,
        commits=[CommitInfo(**vars(commit)) for commit in blamed.commits],
        note="; ".join(_notes(row, entry, item, sampled, blamed.note)),
        samples=sampled,
        region_share=regions[found.region] if found.region else None,
    )


def _notes(row: Benchmark, entry: BenchmarkCosts, item: Slower, sampled: Sequence[int], blamed: str) -> Iterator[str]:
    if _is_rate(row) and entry.kind != "counted":
        yield f"time per unit of `{row.metric}`"
    if not item.baseline:
        yield "not seen before: the function is new, was renamed, or was inlined there"
    if entry.kind != "counted" and min(entry.calls.values()) < FEWEST_CALLS:
        yield "profiled less than three times, so differences between runs are not part of its interval"
    if sampled and min(sampled) < FEW:
        yield f"only {sampled[0]} and {sampled[1]} samples"
    yield from filter(None, (entry.note, blamed))
