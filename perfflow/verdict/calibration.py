"""Calibrate benchmarks from comparisons of a step with itself: noise, false alarms, smallest detectable change.

``smallest_change`` finds the smallest change that a run would detect, by replaying recorded pairs through the rules
that decide it.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.metrics import METRICS, Better, Metric
from perfflow.model.readings import SCHEDULES, Design, Reading, Side
from perfflow.stats.paired_test import FEW, Interval, blocks_of, clopper_pearson_upper, pair_spread, quantile
from perfflow.store.calibrations import CalibrationFinding
from perfflow.store.record import MetricSeries, Record
from perfflow.verdict.comparison import ComparedMetric, compare
from perfflow.verdict.decide import excludes_zero, rule, settled
from perfflow.verdict.gating import Key, gating_rows

BOUND_CONFIDENCE = 0.95
FEWEST_PAIRS = 3
"""Number of pairs needed to report their spread."""


@dataclass(frozen=True)
class Trial:
    """One comparison of a step with itself; ``complete`` if it was not cut short.

    ``seconds`` is the time that the processes of each subject took. One subject may report many benchmarks.
    """

    record: Record
    seconds: Mapping[str, float]
    complete: bool

    def seconds_of(self, benchmark: str) -> float:
        """Return the seconds spent on a benchmark, or on all subjects if a suite reports it together with others."""
        return self.seconds.get(benchmark, sum(self.seconds.values()))


def findings(
    step: str, trials: Sequence[Trial], criteria: Criteria, budget: float, seed: int
) -> Iterator[CalibrationFinding]:
    """Yield one finding for each comparable metric. ``budget`` is the seconds that a run spends on one benchmark."""
    rows = [_rows(trial.record, criteria) for trial in trials]
    reasons = [
        gating_rows(trial.record, rows_of_trial, criteria) for trial, rows_of_trial in zip(trials, rows, strict=True)
    ]
    for key in _in_order(trials, dict.fromkeys(key for rows_of_trial in rows for key in rows_of_trial)):
        judged = [by_key[key] for by_key in reasons if key in by_key]
        seen = [
            _TrialMetric(trial, trial.record.series[key], rows_of_trial[key])
            for trial, rows_of_trial in zip(trials, rows, strict=True)
            if key in rows_of_trial
        ]
        base = CalibrationFinding(step, *key, judged=2 * len(judged) > len(seen))
        base = replace(base, why=Counter(judged).most_common(1)[0][0].text if base.judged else "")
        if any(item.row.metric.exact for item in seen):
            yield replace(base, exact=True)
        else:
            yield _noisy(base, seen, criteria, budget, seed)


def _in_order(trials: Sequence[Trial], keys: Iterable[Key]) -> list[Key]:
    """Return the keys in the order in which the benchmarks were first started, because rounds are in random order."""
    subjects = list(trials[0].seconds) if trials else []
    places = {name: number for number, name in enumerate(subjects)}
    names = {name: number for number, name in enumerate(dict.fromkeys(name for name, _ in keys))}
    metrics = {name: number for number, name in enumerate(METRICS)}
    return sorted(
        keys,
        key=lambda key: (places.get(key[0], len(places)), names[key[0]], metrics.get(key[1], len(metrics))),
    )


@dataclass(frozen=True)
class _TrialMetric:
    """One metric of one benchmark in one trial."""

    trial: Trial
    series: MetricSeries
    row: ComparedMetric

    def pairs(self) -> list[tuple[float, float]]:
        """Return all pairs of positive values in the order taken.

        A few runs in random order have no pairs. Because all are of the same command, any two of them form one.
        """
        if self.series.design == Design.FEW:
            runs = [item.value for side in Side for item in self.series.sides[side] if item.value > 0]
            return list(zip(runs[::2], runs[1::2], strict=False))
        both = zip(*([item.value for item in self.series.sides[side]] for side in Side), strict=False)
        return [(a, b) for a, b in both if a > 0 and b > 0]


def _rows(record: Record, criteria: Criteria) -> dict[Key, ComparedMetric]:
    found = {
        key: compare(series, criteria)
        for key, series in record.series.items()
        if any(series.readings(side) for side in Side)
    }
    # A metric that only one side has, or that is known only as a bound, has no spread.
    return {
        key: row for key, row in found.items() if row.metric.better is not Better.NONE and row.change and not row.only
    }


def _noisy(
    base: CalibrationFinding, seen: Sequence[_TrialMetric], criteria: Criteria, budget: float, seed: int
) -> CalibrationFinding:
    complete = [item for item in seen if item.trial.complete]
    thresholds = criteria.thresholds_of(base.benchmark)
    alarms = sum(excludes_zero(item.row) for item in complete)
    decisions = [rule(item.row, thresholds, identical=False).decision for item in complete]
    if complete:
        base = replace(
            base,
            trials=len(complete),
            alarms=alarms,
            alarm_bound=clopper_pearson_upper(alarms, len(complete), BOUND_CONFIDENCE),
            same=decisions.count("same"),
            pairs=quantile([len(item.pairs()) for item in complete], 0.5),
            seconds=quantile([item.trial.seconds_of(base.benchmark) for item in complete], 0.5),
        )
    pairs = [pair for item in seen for pair in item.pairs()]
    if len(pairs) < FEWEST_PAIRS:
        return base
    recorded = RecordedValues(seen[0].row.metric, seen[0].series.design, *zip(*pairs, strict=True))
    each = sum(item.trial.seconds_of(base.benchmark) for item in seen) / len(pairs)
    most = _most(seen, each, len(pairs), budget)
    change = smallest_change(recorded, thresholds, most, f"{seed}\0{base.benchmark}\0{base.metric}")
    noise = pair_spread(recorded.baseline, recorded.candidate)
    return replace(base, noise=noise, smallest_change=change, replayed=most, within=most * each)


def _most(seen: Sequence[_TrialMetric], each: float, recorded: int, budget: float) -> int:
    """Return the most pairs of a run: limited by its design, the budget and the recorded pairs."""
    design = seen[0].series.design
    if design == Design.FIXED:
        return min(recorded, max(len(item.pairs()) for item in seen))
    affordable = int(budget / each) if each > 0 else recorded
    if design == Design.FEW:
        # A run takes at least FEW runs of each side, even if they exceed the budget.
        return pairs_needed(design, min(recorded, affordable)) if recorded >= FEW else recorded
    return min(recorded, pairs_needed(design, affordable))


REPLAYS = 40
FOUND = 0.9
"""Share of the replays that must detect a change."""
CHANGES = (
    *(0.0025, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.06, 0.07, 0.08),
    *(0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0),
)
"""Changes to try, as shares."""


@dataclass(frozen=True)
class RecordedValues:
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


def smallest_change(recorded: RecordedValues, thresholds: Thresholds, pairs: int, seed: str) -> float | None:
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


def _window(recorded: RecordedValues, pairs: int, chance: random.Random) -> Window:
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
    known: dict[tuple[str, int, int], ComparedMetric] = field(default_factory=dict)

    def finds(self, thresholds: Thresholds, change: float = 0.0) -> bool:
        """Return whether the run would detect a change if the candidate is multiplied by 1 + ``change``."""
        count = len(self.baseline)
        for look, _ in SCHEDULES.get(self.design, ()):
            if look < count:
                seen = self._compared(self.design, 0, look, change)
                if settled(seen, rule(seen, thresholds, identical=False), thresholds, identical=False):
                    return _changed(seen, thresholds)
        return _changed(self._compared(self.design, 0, count, change), thresholds)

    def _compared(self, design: str, start: int, end: int, change: float) -> ComparedMetric:
        """Compare a range of pairs. A factor on one side scales the interval, so the test is inverted only once."""
        key = (design, start, end)
        if key not in self.known:
            series = MetricSeries(
                "", self.metric.name, "", "", paired=design != Design.FEW, two_sided=True, design=design
            )
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


def _changed(comparison: ComparedMetric, thresholds: Thresholds) -> bool:
    return rule(comparison, thresholds, identical=False).decision in ("improved", "regressed")
