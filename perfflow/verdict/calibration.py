"""Calibrate benchmarks from comparisons of a step with itself: noise, false alarms, smallest detectable change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfflow.model.criteria import Criteria
from perfflow.model.design import Design
from perfflow.model.metrics import METRICS, Better
from perfflow.model.readings import Side
from perfflow.stats.designs import FEW
from perfflow.stats.paired_test import clopper_pearson_upper, pair_spread, quantile
from perfflow.store.record import Record, Series
from perfflow.store.run_calibration import Finding
from perfflow.verdict.comparison import Comparison, compare
from perfflow.verdict.decide import excludes_zero, rule
from perfflow.verdict.gating import Key, gating_rows
from perfflow.verdict.replay import Recorded, pairs_needed, smallest_change

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


def findings(step: str, trials: Sequence[Trial], criteria: Criteria, budget: float, seed: int) -> Iterator[Finding]:
    """Yield one finding for each comparable metric. ``budget`` is the seconds that a run spends on one benchmark."""
    rows = [_rows(trial.record, criteria) for trial in trials]
    reasons = [gating_rows(trial.record, found, criteria) for trial, found in zip(trials, rows, strict=True)]
    for key in _in_order(trials, dict.fromkeys(key for found in rows for key in found)):
        judged = [by_key[key] for by_key in reasons if key in by_key]
        own = [
            _TrialMetric(trial, trial.record.series[key], found[key])
            for trial, found in zip(trials, rows, strict=True)
            if key in found
        ]
        base = Finding(step, *key, judged=2 * len(judged) > len(own))
        base = replace(base, why=Counter(judged).most_common(1)[0][0] if base.judged else "")
        if any(item.row.metric.exact for item in own):
            yield replace(base, exact=True)
        else:
            yield _noisy(base, own, criteria, budget, seed)


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
    series: Series
    row: Comparison

    def pairs(self) -> list[tuple[float, float]]:
        """Return all pairs of positive values in the order taken.

        A few runs in random order have no pairs. Because all are of the same command, any two of them form one.
        """
        if self.series.design == Design.FEW:
            runs = [item.value for side in Side for item in self.series.sides[side] if item.value > 0]
            return list(zip(runs[::2], runs[1::2], strict=False))
        both = zip(*([item.value for item in self.series.sides[side]] for side in Side), strict=False)
        return [(a, b) for a, b in both if a > 0 and b > 0]


def _rows(record: Record, criteria: Criteria) -> dict[Key, Comparison]:
    found = {
        key: compare(series, criteria)
        for key, series in record.series.items()
        if any(series.readings(side) for side in Side)
    }
    # A metric that only one side has, or that is known only as a bound, has no spread.
    return {
        key: row for key, row in found.items() if row.metric.better is not Better.NONE and row.change and not row.only
    }


def _noisy(base: Finding, seen: Sequence[_TrialMetric], criteria: Criteria, budget: float, seed: int) -> Finding:
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
    recorded = Recorded(seen[0].row.metric, seen[0].series.design, *zip(*pairs, strict=True))
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
