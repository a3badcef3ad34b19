"""The smallest change that a comparison would tell, by replaying recorded pairs through the rules that decide a run."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from perfflow.compare import Comparison, compare
from perfflow.measure import CONFIRMING, FEW, SCREENING
from perfflow.rundir.record import Series
from perfflow.samples.criteria import Thresholds
from perfflow.samples.metrics import Metric
from perfflow.samples.readings import Reading, Side
from perfflow.statistics import LOOKS
from perfflow.verdict.decide import excludes_zero, rule, settled

REPLAYS = 40
FOUND = 0.9
"""Share of the replays in which a change must be found."""
CHANGES = (
    *(0.0025, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.06, 0.07, 0.08),
    *(0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0),
)
"""Changes that are tried."""
_LEAST = LOOKS[0]
"""Fewer pairs than the first look takes can prove nothing."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Values of two identical sides in the order taken, pair by pair, and the design they were taken by."""

    metric: Metric
    design: str
    baseline: Sequence[float]
    candidate: Sequence[float]


def pairs_needed(design: str, affordable: int) -> int:
    """Pairs that one replay takes at most: what the design takes, or what the budget affords."""
    sizes = {"few": FEW, "screen": SCREENING + CONFIRMING, "confirm": SCREENING + CONFIRMING}
    return sizes.get(design, affordable)


def smallest_change(recorded: Recorded, thresholds: Thresholds, pairs: int, seed: str) -> float | None:
    """The smallest of ``CHANGES`` found in nine of ten replays with up to ``pairs`` pairs, None where none is."""
    least = pairs_needed(recorded.design, _LEAST)
    if pairs < least or len(recorded.baseline) < pairs:
        return None
    tried = [change for change in CHANGES if change > thresholds.floor]
    # What is found at one change is found at every larger one: each is tried on the same windows and coins.
    low, high = 0, len(tried)
    while low < high:
        middle = (low + high) // 2
        if _is_told(recorded, tried[middle], thresholds, pairs, seed):
            high = middle
        else:
            low = middle + 1
    return tried[low] if low < len(tried) else None


def _is_told(recorded: Recorded, change: float, thresholds: Thresholds, pairs: int, seed: str) -> bool:
    wanted = math.ceil(FOUND * REPLAYS)
    found = missed = 0
    chance = random.Random(seed)  # noqa: S311 (replayable windows)
    while found < wanted and missed <= REPLAYS - wanted:
        baseline, candidate = _window(recorded, pairs, chance)
        slowed = [value * (1 + change) for value in candidate]
        if is_found(recorded.metric, recorded.design, baseline, slowed, thresholds):
            found += 1
        else:
            missed += 1
    return found >= wanted


def _window(recorded: Recorded, pairs: int, chance: random.Random) -> tuple[list[float], list[float]]:
    """Consecutive pairs from a random place, the two runs of each swapped by a coin; few runs in random order."""
    start = chance.randrange(len(recorded.baseline) - pairs + 1)
    window = list(zip(recorded.baseline, recorded.candidate, strict=True))[start : start + pairs]
    if recorded.design == "few":
        runs = [value for pair in window for value in pair]
        chance.shuffle(runs)
        return runs[:pairs], runs[pairs:]
    flipped = [(b, a) if chance.random() < 0.5 else (a, b) for a, b in window]
    return [a for a, _ in flipped], [b for _, b in flipped]


def is_found(
    metric: Metric, design: str, baseline: Sequence[float], candidate: Sequence[float], thresholds: Thresholds
) -> bool:
    """Whether a run that saw these pairs would have decided that something changed."""
    if design in ("screen", "confirm"):
        screened = _compared(metric, "screen", baseline[:SCREENING], candidate[:SCREENING])
        if not excludes_zero(screened):
            return False
        fresh = _compared(metric, "confirm", baseline[SCREENING:], candidate[SCREENING:])
        return _changed(fresh, thresholds)
    if design == "looks":
        for look in LOOKS:
            if look < len(baseline):
                seen = _compared(metric, design, baseline[:look], candidate[:look])
                if settled(seen, rule(seen, thresholds, identical=False), thresholds):
                    return _changed(seen, thresholds)
    return _changed(_compared(metric, design, baseline, candidate), thresholds)


def _changed(comparison: Comparison, thresholds: Thresholds) -> bool:
    return rule(comparison, thresholds, identical=False).decision in ("improved", "regressed")


def _compared(metric: Metric, design: str, baseline: Sequence[float], candidate: Sequence[float]) -> Comparison:
    series = Series("", metric.name, "", "", paired=design != "few", two_sided=True, design=design)
    for side, values in zip(Side, (baseline, candidate), strict=True):
        series.sides[side] = [Reading(metric.name, value) for value in values]
    return compare(series, metric)
