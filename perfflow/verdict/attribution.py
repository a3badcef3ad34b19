"""Find the functions that cost more on the candidate, for the benchmarks that regressed.

The time of a function is its share of a profile times the measured time of an operation. Shares alone would blame
unchanged functions when something else got faster. A function is named if the interval of its difference, three times
its noise (of its shares and of the measured change) to each side, excludes 0, and if it is a considerable part of the
regression. Counts have no noise.

``localized_in`` localizes the regressions: a function, a file or a crate that accounts for most of the loss.

``function_changes`` finds the functions that cost more or less than before, by profiles of both sides. Only the own
cost of a function is compared, without the functions that it calls, so a change belongs to that function alone. A
difference is significant if it is larger than ``z`` standard deviations of its noise. ``z`` is at least 3, and larger
if many functions are compared, so that a pair of equal programs shows a change of any function in at most one of twenty
cases.

The samples in a function vary like a Poisson count, but costs vary more between processes of one program: the memory
layout differs, other processes use the machine, and a process that waits has many samples in one place. In 16 profiles
of one Python program on an overloaded machine the variance of a function was 13 to 130 times that of a Poisson count,
and each of the 120 pairs showed changes where twice the Poisson variance was assumed. So the noise has the shape
``SAMPLING * Poisson variance + (run to run * cost)^2``, and its level is taken from the profiles:

- With at least `ENOUGH` profiles of each side, it is measured: the variance of all functions within their sides. A
  function that varies more gets its own variance. Three profiles of each side showed a false change in 5 of 100 draws.
- With fewer profiles, it is estimated from the differences of the two sides, assuming that most functions did not
  change: the level at which noise explains the median and the upper quartile of all differences. This left one false
  change in 14 of the 120 pairs. If more than a quarter of the functions change at once, fewer of them are found.
- With fewer functions than `FEW_CHANGES`, it cannot be estimated. The level is then that of the overloaded machine.

Counted costs (instructions, bytes, allocations) have no sampling noise, and vary much less between processes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist

from perfflow.model.metrics import METRICS, TIMES
from perfflow.model.readings import HOTSPOT, Side
from perfflow.model.result import Attribution, Benchmark, HotspotResult
from perfflow.store.record import Record
from perfflow.store.run_facts import BenchmarkCosts, Blame, FunctionCost
from perfflow.verdict.findings import Findings, waits_longer

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
    for cost in entry.functions:
        before, after = cost.baseline, cost.candidate
        if before.variance is None or after.variance is None:
            continue
        difference = after_whole * after.share - known * before.share
        noise = math.sqrt(
            after_whole**2 * after.variance + known**2 * before.variance + (known * after.share * unsure) ** 2
        )
        if difference > BEYOND_NOISE * noise:
            whole = known * change
            ends = ((difference - BEYOND_NOISE * noise) / whole, (difference + BEYOND_NOISE * noise) / whole)
            yield Slower(cost, known * before.share, after_whole * after.share, difference / whole, ends)


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
    slower: Slower,
    regions: Mapping[str, float],
) -> Attribution:
    cost = slower.found
    blamed = record.blamed.get((row.name, cost.function, cost.file)) or Blame(row.name, cost.function, cost.file)
    sampled = [round(entry.totals[side]) for side in Side] if entry.kind == "sampled" else []
    metric = METRICS.get(entry.metric)
    counted = entry.kind == "counted" and metric is not None
    return Attribution(
        benchmark=row.name,
        metric=row.metric,
        step=step_id,
        tool=entry.tool,
        # Without a source file, a profiler names the library as well: `fold (work)`.
        function=cost.function.partition(" (")[0] if blamed.defined_in else cost.function,
        file=blamed.defined_in or cost.file,
        line=blamed.defined_at or cost.line,
        crate=cost.crate,
        region=cost.region,
        unit=metric.dimension.base_unit if counted and metric else "s" if _is_rate(row) else row.unit,
        baseline=slower.baseline,
        candidate=slower.candidate,
        change=slower.candidate / slower.baseline - 1 if slower.baseline else None,
        share=slower.share,
        share_low=slower.interval[0] if slower.interval else None,
        share_high=slower.interval[1] if slower.interval else None,
        commits=list(blamed.commits),
        note="; ".join(_notes(row, entry, slower, sampled, blamed.note)),
        samples=sampled,
        region_share=regions[cost.region] if cost.region else None,
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


MOST = 0.5
"""Share of a benchmark's loss from which a place accounts for most of it."""

_PLACES: Mapping[str, Callable[[Attribution], str]] = {
    "function": lambda item: f"{item.function} {item.file}",
    "file": lambda item: item.file,
    "crate": lambda item: item.crate,
}
"""Kinds of places, the narrowest first."""


def localized_in(findings: Findings) -> str:
    """Return ``function``, ``file`` or ``crate``: the widest kind needed to localize all regressed benchmarks; else ''.

    The benchmarks are those of level action, or all regressed ones if there are none. Benchmarks without attributions
    are ignored. Without any attribution nothing is localized. A file or crate only counts if the benchmark's profiles
    name more than one, because in a program of one file the file means nothing.
    """
    of_level = findings.regressed("action") or findings.regressed()
    names = {row.name for row in of_level}
    blamed: dict[str, list[Attribution]] = defaultdict(list)
    for attribution in findings.blamed:
        if attribution.benchmark in names:
            blamed[attribution.benchmark].append(attribution)
    widest = ""
    for name, items in blamed.items():
        places = [kind for kind in _PLACES if _holds_most(kind, items, findings, name)]
        if not places:
            return ""
        widest = max(widest, places[0], key=["", *_PLACES].index)
    return widest


def _holds_most(kind: str, items: list[Attribution], found: Findings, benchmark: str) -> bool:
    """Return whether one place of a kind accounts for most of the loss in one of the metrics."""
    if kind != "function" and len(_known(kind, items, found, benchmark)) < 2:
        return False
    lost: dict[tuple[str, str], float] = defaultdict(float)
    for item in items:
        place = _PLACES[kind](item)
        if place and item.share is not None and item.share > 0:
            lost[item.metric, place] += item.share
    return max(lost.values(), default=0) >= MOST


def _known(kind: str, items: list[Attribution], found: Findings, benchmark: str) -> set[str]:
    """Return the places of a kind that the benchmark's profiles name, slower or not."""
    named = {_PLACES[kind](item) for item in items}
    if kind == "file":
        named |= {spot.file for spot in found.hotspots if spot.benchmark == benchmark}
    return named - {""}


def leading(found: Findings) -> Attribution | HotspotResult | None:
    """Return the function with the largest loss, else the costliest current hotspot; None without a profile."""
    lost = [item for item in found.blamed if item.share is not None]
    if lost:
        return max(lost, key=lambda item: (item.share or 0, item.function))
    return max(current(found.hotspots), key=lambda spot: (spot.share, spot.location), default=None)


def current(hotspots: Sequence[HotspotResult]) -> list[HotspotResult]:
    """Return the hotspots of the candidate, or of the baseline for steps that profiled only that."""
    both = {spot.step for spot in hotspots if spot.tree == "candidate"}
    return [spot for spot in hotspots if spot.tree == "candidate" or spot.step not in both]


SAMPLING = 2.0
"""Variance of samples relative to a Poisson count, at the lowest level."""
SAMPLED, COUNTED = 0.05, 0.01
"""Relative standard deviation of the cost of a function between processes, at the lowest level."""
ENOUGH = 3
"""Number of profiles of each side needed to measure the noise from their spread."""
FEW_CHANGES = 12
"""Number of functions needed to estimate the noise from their differences."""
OVERLOADED = 10.0
"""Level of noise if it can neither be measured nor estimated."""
LEAST_Z = 3.0
FALSE_ALARMS = 0.05
"""Share of comparisons of equal programs that may show any changed function."""


class CostTrend(Enum):
    """The change of the own cost of a function."""

    SAME = "same"
    """No significant difference."""
    MORE = "more"
    LESS = "less"
    NEW = "new"
    """The function had no cost before."""
    GONE = "gone"
    """The function has no cost now."""


class NoiseSource(Enum):
    """The source of the noise level."""

    MEASURED = "measured"
    """The spread of several profiles of each side."""
    SEEN = "seen"
    """The differences of most functions."""
    COUNTED = "counted"
    """Costs were counted: the lowest level."""
    OVERLOADED = "overloaded"
    """Too few functions to estimate it: the level of an overloaded machine."""


@dataclass(frozen=True)
class Changes:
    """The trend of each function, the source of the noise, and the required number of standard deviations."""

    trends: Mapping[str, CostTrend]
    noise: NoiseSource
    needed: float


@dataclass(frozen=True)
class OwnCosts:
    """The own cost of each function in one profile: ``counts`` times ``scale``, in the same unit for all profiles.

    ``sample`` is the count of one sample, 0 if costs were counted instead of sampled.
    """

    counts: Mapping[str, int]
    scale: float
    sample: float


def function_changes(before: Sequence[OwnCosts], after: Sequence[OwnCosts]) -> Changes:
    """Return the change of each function in any of the profiles. Each side needs at least one profile."""
    names = sorted({name for profile in (*before, *after) for name in profile.counts})
    noise = _noise(len(names), before, after)
    if noise is NoiseSource.MEASURED:
        level = _measured_level(names, before, after)
        pairs = {name: (_measured(name, before, level), _measured(name, after, level)) for name in names}
        level = 1.0
    else:
        pairs = {name: (_assumed(name, before)[:2], _assumed(name, after)[:2]) for name in names}
        level = {NoiseSource.SEEN: _seen_level(pairs), NoiseSource.OVERLOADED: OVERLOADED}.get(noise, 1.0)
    needed = needed_z(len(names))
    limit = needed * math.sqrt(level)
    trends = {
        name: _trend(old[0], new[0]) if _z(old, new) > limit else CostTrend.SAME for name, (old, new) in pairs.items()
    }
    return Changes(trends, noise, needed)


def _noise(functions: int, before: Sequence[OwnCosts], after: Sequence[OwnCosts]) -> NoiseSource:
    if min(len(before), len(after)) >= ENOUGH:
        return NoiseSource.MEASURED
    if not any(profile.sample for profile in (*before, *after)):
        return NoiseSource.COUNTED
    return NoiseSource.SEEN if functions >= FEW_CHANGES else NoiseSource.OVERLOADED


def needed_z(functions: int) -> float:
    """Return the number of standard deviations that a change must have if so many ``functions`` are compared."""
    return max(LEAST_Z, NormalDist().inv_cdf(1 - FALSE_ALARMS / 2 / max(1, functions)))


_Estimate = tuple[float, float]
"""The mean cost of a function, and the variance of this mean."""


def _z(old: _Estimate, new: _Estimate) -> float:
    """Return the difference in standard deviations."""
    variance = old[1] + new[1]
    return abs(new[0] - old[0]) / math.sqrt(variance) if variance else 0.0


def _trend(old: float, new: float) -> CostTrend:
    if old == 0 or new == 0:
        return CostTrend.NEW if old == 0 else CostTrend.GONE
    return CostTrend.MORE if new > old else CostTrend.LESS


def _assumed(name: str, side: Sequence[OwnCosts]) -> tuple[float, float, float]:
    """Return the mean cost of a function, the variance of the mean at the lowest level, and its sampling variance."""
    mean = assumed = sampled = 0.0
    for profile in side:
        cost = profile.counts.get(name, 0) * profile.scale
        noise = cost * profile.sample * profile.scale
        mean += cost
        sampled += noise
        assumed += SAMPLING * noise + ((SAMPLED if profile.sample else COUNTED) * cost) ** 2
    number = len(side)
    return mean / number, assumed / number**2, sampled / number**2


def _measured(name: str, side: Sequence[OwnCosts], level: float) -> _Estimate:
    mean, assumed, sampled = _assumed(name, side)
    return mean, max(_variance(name, side, mean) / len(side), level * assumed, sampled)


def _variance(name: str, side: Sequence[OwnCosts], mean: float) -> float:
    """Return the variance between profiles."""
    return sum((profile.counts.get(name, 0) * profile.scale - mean) ** 2 for profile in side) / (len(side) - 1)


def _measured_level(names: Sequence[str], before: Sequence[OwnCosts], after: Sequence[OwnCosts]) -> float:
    """Return the ratio of the variance between profiles to the assumed one, over all functions of both sides."""
    found = expected = 0.0
    for side in (before, after):
        for name in names:
            mean, assumed, _ = _assumed(name, side)
            found += (len(side) - 1) * _variance(name, side, mean)
            expected += (len(side) - 1) * assumed * len(side)
    return found / expected if expected else 0.0


def _seen_level(pairs: Mapping[str, tuple[_Estimate, _Estimate]]) -> float:
    """Return the noise level that explains the differences of most functions."""
    differences = sorted(_z(old, new) for old, new in pairs.values())
    spreads = (differences[int(len(differences) * part)] / NormalDist().inv_cdf((1 + part) / 2) for part in (0.5, 0.75))
    return max(1.0, *(spread**2 for spread in spreads))
