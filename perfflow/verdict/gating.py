"""Choose the rows that decide a verdict (gating rows), and the thresholds of each row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from perfflow.model.criteria import Accepted, Criteria, Thresholds
from perfflow.model.design import Design
from perfflow.model.metrics import MEMORY, METRICS, TIMES, Better
from perfflow.model.readings import Side
from perfflow.model.result import BESIDE_WHAT_DECIDES, GUARDED, HAS_TARGET, MEMORY_GREW, PARSED
from perfflow.model.targets import matches
from perfflow.model.tree_facts import STORED, are_two_revisions, tree_of
from perfflow.store.record import Record
from perfflow.verdict import memory
from perfflow.verdict.clocks import Clocks, timing_metric
from perfflow.verdict.comparison import Comparison
from perfflow.verdict.one_measurement import source_of
from perfflow.verdict.targets import names_by_metric

Key = tuple[str, str]
"""Benchmark and metric."""
ASKED = "as asked for"
"""Reason of a gating row whose metric the workflow names under `metric`."""


@dataclass(frozen=True)
class Choice:
    """The rows that gate, and the rows of stored sets that would gate (``leading``), each with the reason."""

    gating: Mapping[Key, str]
    leading: Mapping[Key, str]
    same_as: Mapping[Key, str]
    """For each rate that is the inverse of a time, the metric of that time."""
    refuted: Mapping[Key, str] = field(default_factory=dict)
    """Rows whose gain another clock contradicts, each with an explanation."""
    undecided: Mapping[Key, str] = field(default_factory=dict)
    """Rows for which another clock shows a possible regression beyond ``concern``, each with an explanation."""


def choose_rows(
    record: Record, comparisons: Mapping[Key, Comparison], criteria: Criteria, *, witnessed: bool = True
) -> Choice:
    """Choose one timing metric per benchmark, every row with a target, and the guarded rows of an optimize stage.

    Benchmarks under ``ignore`` never gate. ``witnessed``: clocks that include waiting also gate if they prove a
    regression beyond ``concern``, and refute gains that they exclude.

    Values that were not taken in pairs never gate, unless they are exact. Of stored sets only a row that the second
    set lacks gates.
    """
    found: dict[Key, str] = {}
    by_benchmark: dict[str, dict[str, Comparison]] = defaultdict(dict)
    same_as = _one_measurement(record, comparisons)
    comparisons = {key: item for key, item in comparisons.items() if not criteria.ignores(key[0])}
    for (name, metric), item in comparisons.items():
        by_benchmark[name][metric] = item
    clocks = Clocks()
    for name, by_metric in by_benchmark.items():
        chosen = _chosen(record, _with_known_change(record, by_metric))
        found |= {(name, metric): why for metric, why in chosen.items()}
        if witnessed:
            timed = next((metric for metric, why in chosen.items() if metric in TIMES and why != ASKED), "")
            clocks.check(by_metric, timed, criteria.thresholds_of(name))
    found |= {key: why for key, why in clocks.gating.items() if key not in found}
    known = names_by_metric(comparisons)
    for target in criteria.targets:
        metric = target.metric.name
        for name in known[metric].matching(target.benchmark) if metric in known else ():
            found.setdefault((name, metric), HAS_TARGET)
    for key in guarded_rows(record, comparisons, record.run.guard or ()):
        found.setdefault(key, GUARDED)
    for key in memory_rows(record, comparisons, criteria):
        found.setdefault(key, MEMORY_GREW)
    found = {key: why for key, why in found.items() if why == HAS_TARGET or key not in same_as}
    stored = {key for key in found if record.series[key].design == Design.UNPAIRED}
    leading = {key: found[key] for key in found if key in stored and comparisons[key].only is not Side.BASELINE}
    gating = {key: why for key, why in found.items() if not _unpaired(record, key, comparisons[key])}
    gating = {key: why for key, why in gating.items() if key not in leading}
    return Choice(gating, leading, same_as, clocks.refuted, clocks.undecided)


def gating_rows(
    record: Record, comparisons: Mapping[Key, Comparison], criteria: Criteria, *, witnessed: bool = True
) -> Mapping[Key, str]:
    """Return the gating rows, each with the reason. ``witnessed``: see ``choose_rows``."""
    return choose_rows(record, comparisons, criteria, witnessed=witnessed).gating


def covers(guard: str, benchmark: str, metric: str) -> bool:
    """Return whether a guard (``BENCHMARK`` or ``BENCHMARK METRIC``) covers a row; one timing metric covers all."""
    glob, _, wanted = guard.rpartition(" ")
    named = metric == wanted or (metric in TIMES and wanted in TIMES)
    return matches(guard, benchmark) or (named and bool(glob) and matches(glob, benchmark))


def guarded_rows(record: Record, comparisons: Mapping[Key, Comparison], guards: Iterable[str]) -> list[Key]:
    """Return the guarded rows: metrics with a direction, except timings, of the benchmarks that a glob matches.

    A row whose candidate is known only as an upper bound cannot be proven worse and is left out.
    """
    globs = tuple(guards)
    return [
        key
        for key, item in comparisons.items()
        if key[1] not in TIMES
        and item.metric.better is not Better.NONE
        and any(covers(glob, *key) for glob in globs)
        and not _unpaired(record, key, item)
        and not any(reading.at_most for reading in record.series[key].readings(Side.CANDIDATE))
    ]


def _one_measurement(record: Record, comparisons: Iterable[Key]) -> dict[Key, str]:
    return {key: time for key in comparisons if (time := source_of(record, *key))}


def memory_rows(record: Record, comparisons: Mapping[Key, Comparison], criteria: Criteria) -> list[Key]:
    """Return the memory rows of a comparison of two trees that are proven to have grown by enough to matter."""
    if not two_trees(record):
        return []
    return [
        key
        for key, item in comparisons.items()
        if key[1] in MEMORY
        and criteria.memory_of(key[0]) is not None
        and not record.plan_of(item.step).in_one_tree
        and not any(reading.at_most for reading in record.series[key].readings(Side.CANDIDATE))
        and memory.has_grown(item, criteria.thresholds_of(*key))
    ]


def two_trees(record: Record) -> bool:
    """Return whether two states of the code were compared, not two commands or two stored results."""
    return are_two_revisions(record.trees)


def two_stored(record: Record) -> bool:
    """Return whether two stored sets of samples were compared."""
    return all(tree_of(record.trees, side).kind == STORED for side in Side)


def _with_known_change(record: Record, by_metric: Mapping[str, Comparison]) -> Mapping[str, Comparison]:
    """Return the metrics of stored sets without timings of unknown change, if another timing has one.

    Some tools store only a mean.
    """
    timed = {metric: by_metric[metric] for metric in TIMES if metric in by_metric}
    silent = {
        metric
        for metric, item in timed.items()
        if record.series[item.benchmark, metric].design == Design.UNPAIRED
        and item.change is not None
        and not item.confidence
    }
    if len(silent) == len(timed):
        return by_metric
    return {metric: item for metric, item in by_metric.items() if metric not in silent}


def _chosen(record: Record, by_metric: Mapping[str, Comparison]) -> dict[str, str]:
    """Return the deciding metrics of one benchmark, and beside a time the custom metrics that the workflow reads."""
    chosen = deciding_metrics([record.plan_of(item.step).metric for item in by_metric.values()], by_metric)
    if ASKED in chosen.values():
        return chosen
    custom = {
        metric: PARSED
        for metric, item in by_metric.items()
        if is_custom(record, item) and item.metric.better is not Better.NONE
    }
    return custom | chosen


def is_custom(record: Record, item: Comparison) -> bool:
    """Return whether the workflow defines the metric by a `parse`."""
    return item.metric.name not in METRICS and record.plan_of(item.step).tool == "run"


def deciding_metrics(asked: Iterable[str | None], by_metric: Mapping[str, Comparison]) -> dict[str, str]:
    """Return the deciding metrics of one benchmark, each with the reason. Targets and guards may add others.

    ``asked`` are the values of `metric` in its steps.
    """
    wanted = next((metric for metric in asked if metric and metric != "auto"), "")
    if wanted in by_metric:
        return {wanted: ASKED}
    chosen, why = timing_metric(by_metric)
    if wanted:
        why = "; ".join(filter(None, (f"`{wanted}` was requested, but not measured", why)))
    if chosen:
        return {chosen: why}
    timed = any(metric in TIMES for metric in by_metric)
    return {} if timed else {metric: "" for metric, item in by_metric.items() if item.metric.better is not Better.NONE}


def _unpaired(record: Record, key: Key, item: Comparison) -> bool:
    return item.change is not None and not item.metric.exact and not record.series[key].comparable


def thresholds_for(record: Record, criteria: Criteria, key: Key, why: str | None) -> tuple[Thresholds, list[str]]:
    """Return the thresholds of a row, raised by accepted regressions that are in force, and notes about them.

    ``why`` is the reason for which the row gates, None if it does not.
    """
    thresholds = criteria.thresholds_of(*key)
    today = record.run.started[:10]
    notes = []
    for item in criteria.accepted:
        if not is_accepted(item, criteria, key, why):
            continue
        if item.spent:
            notes.append(f"the base already contains the accepted regression, so it is no longer accepted: {item.why}")
        elif today > item.until:
            notes.append(f"the regression was accepted until {item.until}, which has passed")
        else:
            thresholds = replace(thresholds, action=max(thresholds.action, item.change))
            notes.append(f"a regression up to {item.change:.1%} is accepted until {item.until}: {item.why}")
    return thresholds, notes


def is_accepted(item: Accepted, criteria: Criteria, key: Key, why: str | None) -> bool:
    """Return whether an accepted regression applies to a row that gates for the reason ``why``, whatever its date."""
    benchmark, metric = key
    if not criteria.matches(item.benchmark, benchmark):
        return False
    if item.metric:
        return item.metric == metric or {item.metric, metric} <= set(TIMES)
    return why is not None and why not in BESIDE_WHAT_DECIDES
