"""Several clocks time one run. Choose the one that decides, and check it against the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfflow.model.criteria import Thresholds
from perfflow.model.metrics import TIMES, in_words
from perfflow.model.units import format_change, format_interval
from perfflow.stats.paired_test import Interval, quantile
from perfflow.verdict.comparison import ComparedMetric, SideSummary
from perfflow.verdict.decide import rule_unconfirmed, worse_of

Key = tuple[str, str]
"""Benchmark and metric."""
_CPU_BOUND = 0.9
_ONE_THREAD = 1.05
_ALONE = 0.95
_FINER = {
    "service_cpu": ("time",),
    "cpu": ("uncontended", "time"),
    "uncontended": ("time",),
}
"""For each clock, those that also include waiting or queueing for a core."""
_LEVELS = ("ok", "concern", "action")
_ON_A_CUT = 0.005


def timing_metric(by_metric: Mapping[str, ComparedMetric]) -> tuple[str, str]:
    """Return which of the clocks decides about a benchmark, and why.

    The CPU time of a program that only computes is 10 to 100 times finer than its wall time on a busy machine. It is
    rejected if the program waits, forks or has threads, or if wall time without waiting for a core provably changes the
    other way. The latency of a service holds the load generator and the network, and hardly shows what a request costs
    it.
    """
    timed = {name: by_metric[name] for name in TIMES if name in by_metric}
    # A clock that one side lacks (`uncontended` of a program that now uses threads) cannot show the difference.
    most = max((len(_sides(item)) for item in timed.values()), default=0)
    present = [name for name, item in timed.items() if len(_sides(item)) == most]
    if len(present) < 2:
        return (present[0] if present else ""), ""
    if "service_cpu" in present:
        return "service_cpu", "latency also contains the load generator, the network and waiting"
    time, cpu, uncontended = (timed[name] if name in present else None for name in ("time", "cpu", "uncontended"))
    if not time or not cpu:
        return present[0], ""
    chosen = _of_computing(by_metric, cpu, time, uncontended)
    # Where wall time without waiting for a core is known, waiting for a core explains the rest of wall time.
    waiting = uncontended if uncontended and not uncontended.bounded else time
    if chosen[0] == "cpu" and _opposite(cpu, waiting):
        return "time", "wall time provably changed in the opposite direction to CPU time"
    return chosen


def _sides(comparison: ComparedMetric) -> list[SideSummary]:
    return [side for side in (comparison.baseline, comparison.candidate) if side]


def _of_computing(
    by_metric: Mapping[str, ComparedMetric],
    cpu: ComparedMetric,
    time: ComparedMetric,
    uncontended: ComparedMetric | None,
) -> tuple[str, str]:
    """Return the clock that covers all of a program's work, and why, from how it computes, waits and forks."""
    if "main_share" in by_metric and any(side.value < _ALONE for side in _sides(by_metric["main_share"])):
        if _takes_turns(by_metric):
            return "cpu", "its processes or threads take turns and only compute, so CPU time covers all of their work"
        return "time", "the program forks or has threads, so only wall time covers all of its work"
    if "uncontended" in by_metric and not uncontended:
        return "time", "one side has threads or children, so only wall time covers all of its work"
    if uncontended and _fewest(uncontended) < _fewest(time):
        return "time", "some runs have threads or children, so only wall time covers all of its work"
    if uncontended and uncontended.bounded:
        # Only bounds are known. A program that waits does so in every process, and then no bound is low.
        if _best_share(cpu, uncontended) >= _CPU_BOUND:
            return "cpu", "the program only computes, and CPU time is not disturbed by other processes"
        return "time", "the program may wait, so only wall time covers all of its work"
    if uncontended and _share(cpu, uncontended) < _CPU_BOUND:
        return "uncontended", "the program waits, so wall time without waiting for a core decides"
    if uncontended:
        return "cpu", "the program only computes, and CPU time is not disturbed by other processes"
    if _only_computes(cpu, time):
        return "cpu", "the program only computes in one thread, and CPU time is not disturbed by other processes"
    return "time", "the program waits, forks or has threads, so only wall time covers all of its work"


def _takes_turns(by_metric: Mapping[str, ComparedMetric]) -> bool:
    """Return whether both sides compute all the time, in one thread or in several that take turns."""
    main, turns = by_metric["main_share"], by_metric.get("turns")
    sides = [(main.baseline, turns and turns.baseline), (main.candidate, turns and turns.candidate)]
    several = [observed for share, observed in sides if share and share.value < _ALONE]
    return all(observed and observed.value >= _CPU_BOUND for observed in several)


def _fewest(comparison: ComparedMetric) -> int:
    return min((side.n for side in _sides(comparison)), default=0)


def _share(part: ComparedMetric, whole: ComparedMetric) -> float:
    """Return the median share over all processes of the side with the lower share."""
    pairs = zip(_sides(part), _sides(whole), strict=True)
    return min(a.value / b.value if b.value else 1.0 for a, b in pairs)


def _best_share(part: ComparedMetric, whole: ComparedMetric) -> float:
    """Return the share that the best tenth of the processes has, of the side with the lower one."""
    found = []
    for a, b in zip(_sides(part), _sides(whole), strict=True):
        shares = [own / all_ for own, all_ in zip(a.samples, b.samples, strict=False) if all_ > 0]
        found.append(quantile(shares, 0.9) if shares else 0.0)
    return min(found, default=0.0)


def _only_computes(cpu: ComparedMetric, time: ComparedMetric) -> bool:
    """Return whether both sides compute all the time, in one thread.

    A program that waits does so in every process, so the highest share decides; contention only lowers it. More CPU
    time than wall time in half of the processes indicates threads.
    """
    for part, whole in zip(_sides(cpu), _sides(time), strict=True):
        shares = [a / b for a, b in zip(part.samples, whole.samples, strict=False) if b > 0]
        if not shares or max(shares) < _CPU_BOUND or quantile(shares, 0.5) > _ONE_THREAD:
            return False
    return True


def _opposite(a: ComparedMetric, b: ComparedMetric) -> bool:
    if a.change is None or b.change is None:
        return False
    return (a.change.low > 0 and b.change.high < 0) or (a.change.high < 0 and b.change.low > 0)


def witnesses(by_metric: Mapping[str, ComparedMetric], chosen: str) -> list[ComparedMetric]:
    """Return the clocks that include more than the chosen one and were measured in the same pairs."""
    pairs = by_metric[chosen].pairs
    clocks = (by_metric[name] for name in _FINER.get(chosen, ()) if name in by_metric)
    return [item for item in clocks if item.change is not None and item.only is None and item.pairs == pairs > 0]


def worse_by(chosen: ComparedMetric, clocks: Sequence[ComparedMetric], thresholds: Thresholds) -> ComparedMetric | None:
    """Return the clock that proves a regression beyond ``concern`` which the chosen one does not show at that level."""
    # One that fresh samples did not confirm shows it all the same, and decides.
    ruling = rule_unconfirmed(chosen, thresholds, identical=False)
    known = _LEVELS.index(ruling.level or "ok") if ruling.decision == "regressed" else 0
    for item in clocks:
        worse = worse_of(item)
        if worse.low > thresholds.concern and (worse.estimate > thresholds.action or known == 0) and known < 2:
            return item
    return None


def contradiction(chosen: ComparedMetric, clocks: Sequence[ComparedMetric], gain: float) -> str:
    """Return why another clock contradicts the gain of the chosen clock; '' if none does.

    A clock contradicts it if it excludes the gain and does not show the required ``gain`` (a share of the baseline)
    itself. An interval that is only wider is no contradiction.
    """
    claimed = worse_of(chosen).estimate
    if not worse_of(chosen).high < -gain:
        return ""
    for item in clocks:
        worse = worse_of(item)
        if worse.low > claimed and worse.high >= -gain:
            shown_name, other = (in_words(each.metric.name) for each in (chosen, item))
            return f"{shown_name} shows {format_change(claimed)}, which {other} contradicts: {_shown(item)}"
    return ""


def _shown(item: ComparedMetric) -> str:
    worse = worse_of(item)
    return f"{in_words(item.metric.name)} changed by {format_interval(worse.estimate, worse.low, worse.high)}"


def _slower_by(item: ComparedMetric) -> str:
    return f"{_shown(item)}, which is not proven to exceed the concern threshold"


@dataclass
class OtherClocks:
    """The results of the clocks that were not chosen, collected benchmark by benchmark."""

    gating: dict[Key, str] = field(default_factory=dict)
    """Clocks that prove a regression beyond ``concern`` which the chosen one does not show, each with its reason."""
    refuted: dict[Key, str] = field(default_factory=dict)
    """Gains of the chosen clock that another one contradicts, each with an explanation."""
    undecided: dict[Key, str] = field(default_factory=dict)
    """Chosen clocks for which another one shows a possible regression beyond ``concern``, each with an explanation."""

    def check(self, by_metric: Mapping[str, ComparedMetric], chosen: str, thresholds: Thresholds) -> None:
        """Check the chosen clock of one benchmark ('' for none) against its other clocks."""
        others = witnesses(by_metric, chosen) if chosen else []
        if not others:
            return
        row = by_metric[chosen]
        slower = worse_by(row, others, thresholds)
        if slower:
            self.gating[row.benchmark, slower.metric.name] = f"it proves a regression that `{chosen}` does not show"
        else:
            # If the chosen clock already shows a regression, only a higher level is worth a warning.
            shown = rule_unconfirmed(row, thresholds, identical=False).decision == "regressed"
            doubtful = (item for item in others if _may_regress(worse_of(item), thresholds.concern))
            maybe = None if shown else next(doubtful, None)
            # Wall time that seems worse tells little, if bounds show that the program does not wait.
            bound = by_metric.get("uncontended")
            if not maybe and not (bound and bound.bounded):
                maybe = _seems_worse(row, others[0], thresholds)
            self.undecided |= {(row.benchmark, chosen): _slower_by(maybe)} if maybe else {}
        refuted = contradiction(row, others, thresholds.floor)
        if refuted:
            self.refuted[row.benchmark, chosen] = refuted


def _seems_worse(chosen: ComparedMetric, finest: ComparedMetric, thresholds: Thresholds) -> ComparedMetric | None:
    """Return the finest of the other clocks if it suggests a regression of a higher level than the chosen one."""
    if _level(worse_of(finest), thresholds) <= _level(worse_of(chosen), thresholds):
        return None
    return None if worse_of(finest).low > thresholds.concern else finest


def _level(worse: Interval, thresholds: Thresholds) -> int:
    return (worse.estimate > thresholds.concern) + (worse.estimate > thresholds.action)


def _may_regress(worse: Interval, concern: float) -> bool:
    return 0 < worse.low <= concern < worse.high and worse.high - worse.low > 2 * _ON_A_CUT
