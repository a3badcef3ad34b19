"""Find the smallest change that a run would detect, by replaying recorded pairs through the rules that decide it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.design import SCHEDULES, Design
from perfflow.model.metrics import Metric
from perfflow.model.readings import Reading, Side
from perfflow.stats.designs import FEW, blocks_of
from perfflow.stats.paired_test import Interval
from perfflow.store.record import Series
from perfflow.verdict.comparison import Comparison, compare
from perfflow.verdict.decide import rule, settled

REPLAYS = 40
FOUND = 0.9
"""Share of the replays that must detect a change."""
CHANGES = (
    *(0.0025, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.06, 0.07, 0.08),
    *(0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0),
)
"""Changes to try, as shares."""


@dataclass(frozen=True)
class Recorded:
    """Values of two identical sides in the order taken, pair by pair, and their sampling design."""

    metric: Metric
    design: str
    baseline: Sequence[float]
    candidate: Sequence[float]


def pairs_needed(design: str, affordable: int) -> int:
    """Return the most pairs of one replay: limited by the design and the budget."""
    schedule = SCHEDULES.get(design, ())
    if design == Design.FEW:
        return sum(blocks_of(max(FEW, min(affordable, schedule[-1][0]))))
    return min(affordable, schedule[-1][0]) if schedule else affordable


def fewest_pairs(design: str) -> int:
    """Return the least number of pairs that can prove a change."""
    schedule = SCHEDULES.get(design, SCHEDULES[Design.LOOKS])
    return pairs_needed(design, schedule[0][0])


def smallest_change(recorded: Recorded, thresholds: Thresholds, pairs: int, seed: str) -> float | None:
    """Return the smallest of ``CHANGES`` detected in 9 of 10 replays with up to ``pairs`` pairs; None if none is."""
    if pairs < fewest_pairs(recorded.design) or len(recorded.baseline) < pairs:
        return None
    tried = [change for change in CHANGES if change > thresholds.floor]
    chance = random.Random(seed)  # noqa: S311 (replayable windows)
    windows = [_window(recorded, pairs, chance) for _ in range(REPLAYS)]
    # All changes use the same windows and coin flips, so a larger change is detected whenever a smaller one is.
    low, high = 0, len(tried)
    while low < high:
        middle = (low + high) // 2
        if _is_detected(windows, tried[middle], thresholds):
            high = middle
        else:
            low = middle + 1
    return tried[low] if low < len(tried) else None


def _is_detected(windows: Sequence[Window], change: float, thresholds: Thresholds) -> bool:
    wanted = math.ceil(FOUND * REPLAYS)
    found = 0
    for number, window in enumerate(windows):
        found += window.finds(thresholds, change)
        missed = number + 1 - found
        if found >= wanted or missed > REPLAYS - wanted:
            break
    return found >= wanted


def _window(recorded: Recorded, pairs: int, chance: random.Random) -> Window:
    """Return consecutive pairs from a random place, each swapped by a coin flip, or few runs in random order."""
    start = chance.randrange(len(recorded.baseline) - pairs + 1)
    window = list(zip(recorded.baseline, recorded.candidate, strict=True))[start : start + pairs]
    if recorded.design == Design.FEW:
        return Window(recorded.metric, recorded.design, *_shuffled(window, chance))
    flipped = [(b, a) if chance.random() < 0.5 else (a, b) for a, b in window]
    return Window(recorded.metric, recorded.design, [a for a, _ in flipped], [b for _, b in flipped])


def _shuffled(window: Sequence[tuple[float, float]], chance: random.Random) -> tuple[list[float], list[float]]:
    """Return the runs of each block in random order; the first half becomes the baseline."""
    sides: tuple[list[float], list[float]] = ([], [])
    start = 0
    for size in blocks_of(len(window)):
        runs = [value for pair in window[start : start + size] for value in pair]
        chance.shuffle(runs)
        sides[0].extend(runs[:size])
        sides[1].extend(runs[size:])
        start += size
    return sides


@dataclass(frozen=True)
class Window:
    """The samples of one replayed run. ``known`` caches its comparisons by design and range of pairs."""

    metric: Metric
    design: str
    baseline: Sequence[float]
    candidate: Sequence[float]
    known: dict[tuple[str, int, int], Comparison] = field(default_factory=dict)

    def finds(self, thresholds: Thresholds, change: float = 0.0) -> bool:
        """Return whether the run would detect a change if the candidate is multiplied by 1 + ``change``."""
        count = len(self.baseline)
        for look, _ in SCHEDULES.get(self.design, ()):
            if look < count:
                seen = self._compared(self.design, 0, look, change)
                if settled(seen, rule(seen, thresholds, identical=False), thresholds, identical=False):
                    return _changed(seen, thresholds)
        return _changed(self._compared(self.design, 0, count, change), thresholds)

    def _compared(self, design: str, start: int, end: int, change: float) -> Comparison:
        """Compare a range of pairs. A factor on one side scales the interval, so the test is inverted only once."""
        key = (design, start, end)
        if key not in self.known:
            series = Series("", self.metric.name, "", "", paired=design != Design.FEW, two_sided=True, design=design)
            for side, values in zip(Side, (self.baseline, self.candidate), strict=True):
                series.sides[side] = [Reading(self.metric.name, value) for value in values[start:end]]
            self.known[key] = compare(series, Criteria(metrics={self.metric.name: self.metric}))
        row = self.known[key]
        if row.change is None:
            return row
        low, estimate, high = (
            (1 + bound) * (1 + change) - 1 for bound in (row.change.low, row.change.estimate, row.change.high)
        )
        return replace(row, change=Interval(estimate, low, high))


def _changed(comparison: Comparison, thresholds: Thresholds) -> bool:
    return rule(comparison, thresholds, identical=False).decision in ("improved", "regressed")
