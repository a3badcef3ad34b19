"""Choose the rows that decide a verdict (gating rows), and the thresholds of each row.

- ``choose_rows`` and ``gating_rows`` choose the rows; ``thresholds_for`` returns their thresholds.
- ``compared`` compares all rows of a run. The gating rows of a benchmark share its allowance for false alarms.
- ``memory_rows`` chooses memory metrics without a target or guard: those with growth that is large enough to matter,
  proven (``memory_has_grown``) or not yet.
- ``confirmed_scenarios`` checks changes of synthetic benchmarks against the realistic benchmarks that ``confirm`` them.
  A synthetic benchmark measures one thing in isolation, and may show a change that no user notices. If it changed by
  more than the concern threshold, the realistic benchmarks that confirm it are checked. A realistic benchmark that
  provably did not change, or changed the other way, adds a warning to the synthetic row. The verdict stays the same,
  because each row is judged by its own measurements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from perfflow.model.criteria import Accepted, Criteria, Thresholds
from perfflow.model.metrics import MEMORY, METRICS, TIMES, Better, is_exact
from perfflow.model.readings import Design, Side
from perfflow.model.result import BESIDE, Benchmark, GatesBy
from perfflow.model.targets import matches
from perfflow.model.tree_facts import STORED, are_two_revisions, tree_of
from perfflow.model.units import Dimension, format_change
from perfflow.stats.paired_test import FEW
from perfflow.store.record import MetricSeries, Record
from perfflow.verdict.clocks import OtherClocks, timing_metric, witnesses
from perfflow.verdict.comparison import ComparedMetric, compare, source_of
from perfflow.verdict.decide import rule, rule_unconfirmed, worse_of
from perfflow.verdict.targets import names_by_metric

Key = tuple[str, str]
"""Benchmark and metric."""


class WhyGating(NamedTuple):
    """What makes a row gate, and the explanation that reports show."""

    by: GatesBy
    text: str = ""


@dataclass(frozen=True)
class GatingRows:
    """The rows that gate, and the rows of stored sets that would gate (``leading``), each with the reason."""

    gating: Mapping[Key, WhyGating]
    leading: Mapping[Key, WhyGating]
    same_as: Mapping[Key, str]
    """For each rate that is the inverse of a time, the metric of that time."""
    refuted: Mapping[Key, str] = field(default_factory=dict)
    """Rows whose gain another clock contradicts, each with an explanation."""
    undecided: Mapping[Key, str] = field(default_factory=dict)
    """Rows for which another clock shows a possible regression beyond ``concern``, each with an explanation."""


def choose_rows(
    record: Record, comparisons: Mapping[Key, ComparedMetric], criteria: Criteria, *, witnessed: bool = True
) -> GatingRows:
    """Choose one timing metric per benchmark, every row with a target, and the guarded rows of an optimize stage.

    Benchmarks under ``ignore`` never gate. ``witnessed``: clocks that include waiting also gate if they prove a
    regression beyond ``concern``, and refute gains that they exclude.

    Values that were not taken in pairs never gate, unless they are exact. Of stored sets only a row that the second
    set lacks gates.
    """
    chosen_rows: dict[Key, WhyGating] = {}
    by_benchmark: dict[str, dict[str, ComparedMetric]] = defaultdict(dict)
    same_as = _one_measurement(record, comparisons)
    comparisons = {key: item for key, item in comparisons.items() if not criteria.ignores(key[0])}
    for (name, metric), item in comparisons.items():
        by_benchmark[name][metric] = item
    clocks = OtherClocks()
    for name, by_metric in by_benchmark.items():
        chosen = _chosen(record, _with_known_change(record, by_metric))
        chosen_rows |= {(name, metric): why for metric, why in chosen.items()}
        if witnessed:
            timed = next(
                (metric for metric, why in chosen.items() if metric in TIMES and why.by != GatesBy.REQUESTED), ""
            )
            clocks.check(by_metric, timed, criteria.thresholds_of(name))
    for key, text in clocks.gating.items():
        chosen_rows.setdefault(key, WhyGating(GatesBy.CONTRADICTION, text))
    known = names_by_metric(comparisons)
    for target in criteria.targets:
        metric = target.metric.name
        for name in known[metric].matching(target.benchmark) if metric in known else ():
            chosen_rows.setdefault((name, metric), WhyGating(GatesBy.TARGET, "has a target"))
    for key in guarded_rows(record, comparisons, record.run.guard or ()):
        chosen_rows.setdefault(key, WhyGating(GatesBy.GUARD, "is guarded"))
    for key in memory_rows(record, comparisons, criteria):
        chosen_rows.setdefault(key, WhyGating(GatesBy.MEMORY, "memory grew, or seems to have grown"))
    chosen_rows = {key: why for key, why in chosen_rows.items() if why.by == GatesBy.TARGET or key not in same_as}
    stored = {key for key in chosen_rows if record.series[key].design == Design.UNPAIRED}
    leading = {
        key: chosen_rows[key] for key in chosen_rows if key in stored and comparisons[key].only is not Side.BASELINE
    }
    gating = {key: why for key, why in chosen_rows.items() if not _unpaired(record, key, comparisons[key])}
    gating = {key: why for key, why in gating.items() if key not in leading}
    return GatingRows(gating, leading, same_as, clocks.refuted, clocks.undecided)


def gating_rows(
    record: Record, comparisons: Mapping[Key, ComparedMetric], criteria: Criteria, *, witnessed: bool = True
) -> Mapping[Key, WhyGating]:
    """Return the gating rows, each with the reason. ``witnessed``: see ``choose_rows``."""
    return choose_rows(record, comparisons, criteria, witnessed=witnessed).gating


def covers(guard: str, benchmark: str, metric: str) -> bool:
    """Return whether a guard (``BENCHMARK`` or ``BENCHMARK METRIC``) covers a row; one timing metric covers all."""
    glob, _, wanted = guard.rpartition(" ")
    named = metric == wanted or (metric in TIMES and wanted in TIMES)
    return matches(guard, benchmark) or (named and bool(glob) and matches(glob, benchmark))


def guarded_rows(record: Record, comparisons: Mapping[Key, ComparedMetric], guards: Iterable[str]) -> list[Key]:
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


def memory_rows(record: Record, comparisons: Mapping[Key, ComparedMetric], criteria: Criteria) -> list[Key]:
    """Return the memory rows of a comparison of two trees that grew by enough to matter, or seem to have grown so."""
    if not two_trees(record):
        return []
    return [
        key
        for key, item in comparisons.items()
        if key[1] in MEMORY
        and criteria.memory_of(key[0]) is not None
        and not record.plan_of(item.step).in_one_tree
        and not any(reading.at_most for reading in record.series[key].readings(Side.CANDIDATE))
        and (
            memory_has_grown(item, thresholds := criteria.thresholds_of(*key))
            or _seems_grown(item, record.series[key], criteria, thresholds)
        )
    ]


def two_trees(record: Record) -> bool:
    """Return whether two states of the code were compared, not two commands or two stored results."""
    return are_two_revisions(record.trees)


def two_stored(record: Record) -> bool:
    """Return whether two stored sets of samples were compared."""
    return all(tree_of(record.trees, side).kind == STORED for side in Side)


def _with_known_change(record: Record, by_metric: Mapping[str, ComparedMetric]) -> Mapping[str, ComparedMetric]:
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


def _chosen(record: Record, by_metric: Mapping[str, ComparedMetric]) -> dict[str, WhyGating]:
    """Return the deciding metrics of one benchmark, and beside a time the custom metrics that the workflow reads."""
    chosen = deciding_metrics([record.plan_of(item.step).metric for item in by_metric.values()], by_metric)
    if any(why.by == GatesBy.REQUESTED for why in chosen.values()):
        return chosen
    custom = {
        metric: WhyGating(GatesBy.PARSED, "the workflow reads it")
        for metric, item in by_metric.items()
        if is_custom(record, item) and item.metric.better is not Better.NONE
    }
    return custom | chosen


def is_custom(record: Record, item: ComparedMetric) -> bool:
    """Return whether the workflow defines the metric by a `parse`."""
    return item.metric.name not in METRICS and record.plan_of(item.step).tool == "run"


def deciding_metrics(requested: Iterable[str | None], by_metric: Mapping[str, ComparedMetric]) -> dict[str, WhyGating]:
    """Return the deciding metrics of one benchmark, each with the reason. Targets and guards may add others.

    ``requested`` are the values of `metric` in its steps.
    """
    metric_requested = next((metric for metric in requested if metric and metric != "auto"), "")
    if metric_requested in by_metric:
        return {metric_requested: WhyGating(GatesBy.REQUESTED, "as asked for")}
    chosen, why = timing_metric(by_metric)
    if metric_requested:
        why = "; ".join(filter(None, (f"`{metric_requested}` was requested, but not measured", why)))
    if chosen:
        return {chosen: WhyGating(GatesBy.CHOSEN, why)}
    timed = any(metric in TIMES for metric in by_metric)
    by_itself = WhyGating(GatesBy.CHOSEN)
    return {} if timed else {name: by_itself for name, item in by_metric.items() if item.metric.better != Better.NONE}


def _unpaired(record: Record, key: Key, item: ComparedMetric) -> bool:
    return item.change is not None and not item.metric.exact and not record.series[key].comparable


def thresholds_for(record: Record, criteria: Criteria, key: Key, by: GatesBy | None) -> tuple[Thresholds, list[str]]:
    """Return the thresholds of a row, raised by accepted regressions that are in force, and notes about them.

    ``by`` is what makes the row gate, None if it does not.
    """
    thresholds = criteria.thresholds_of(*key)
    today = record.run.started[:10]
    notes = []
    for accepted in criteria.accepted:
        if not is_accepted(accepted, criteria, key, by):
            continue
        if accepted.spent:
            notes.append(
                f"the base already contains the accepted regression, so it is no longer accepted: {accepted.why}"
            )
        elif today > accepted.until:
            notes.append(f"the regression was accepted until {accepted.until}, which has passed")
        else:
            thresholds = replace(thresholds, action=max(thresholds.action, accepted.change))
            notes.append(f"a regression up to {accepted.change:.1%} is accepted until {accepted.until}: {accepted.why}")
    return thresholds, notes


def is_accepted(item: Accepted, criteria: Criteria, key: Key, by: GatesBy | None) -> bool:
    """Return whether an accepted regression applies to a row, whatever its date. ``by``: what makes the row gate."""
    benchmark, metric = key
    if not criteria.matches(item.benchmark, benchmark):
        return False
    if item.metric:
        return item.metric == metric or {item.metric, metric} <= set(TIMES)
    return by is not None and by not in BESIDE


def compared(
    record: Record, criteria: Criteria, measured: Mapping[Key, MetricSeries] | None = None, attempts: int = 1
) -> dict[Key, ComparedMetric]:
    """Compare all series with readings, or those of ``measured``. The rows of a benchmark share its false alarms.

    ``attempts``: number of comparisons that share them, of which the best one is chosen.
    """
    series = {
        key: item
        for key, item in (record.series if measured is None else measured).items()
        if any(map(item.readings, Side))
    }
    rows = {key: compare(item, criteria) for key, item in series.items()}
    shares = {
        key: share / attempts for key, share in {**dict.fromkeys(rows, 1.0), **_shares(record, rows, criteria)}.items()
    }
    return rows | {key: compare(series[key], criteria, share) for key, share in shares.items() if share < 1}


_OF_CHOSEN, _OF_WITNESSES = 8, 2


def _shares(record: Record, rows: Mapping[Key, ComparedMetric], criteria: Criteria) -> dict[Key, float]:
    """Return the part of a benchmark's false alarms that each of its rows may raise.

    The rows that always gate get most of it. Clocks and memory that gate only if they prove a regression share the
    rest. They can raise an alarm on one side only, so the interval of each may have twice the error. The smallest
    number of runs in random order needs the whole allowance to prove a change, so there the chosen row keeps it.
    """
    weights: dict[str, dict[Key, float]] = defaultdict(dict)
    shares: dict[Key, float] = {}
    # Without the other clocks, because the shares must not depend on what these clocks prove.
    gating = gating_rows(record, rows, criteria, witnessed=False)
    for key, why in gating.items():
        if not rows[key].metric.exact and why.by != GatesBy.MEMORY:
            weights[key[0]][key] = _OF_CHOSEN
    for name, weight_of in weights.items():
        chosen = next((metric for _, metric in weight_of if metric in TIMES and _is_chosen(gating[name, metric])), "")
        others = [*(_others(rows, name, chosen) if chosen else []), *_watched_memory(record, rows, criteria, name)]
        fewest = bool(chosen) and record.series[name, chosen].design == Design.FEW and rows[name, chosen].pairs <= FEW
        one_sided = [key for key in others if key not in weight_of] if len(weight_of) > 1 or not fewest else []
        whole = sum(weight_of.values()) + (_OF_WITNESSES if one_sided else 0)
        each = 2 * _OF_WITNESSES / max(1, len(one_sided))
        shares |= {key: weight / whole for key, weight in {**weight_of, **dict.fromkeys(one_sided, each)}.items()}
    return shares


def _is_chosen(why: WhyGating) -> bool:
    """Return whether a clock gates because it was chosen automatically."""
    return why.by not in (GatesBy.REQUESTED, GatesBy.TARGET, GatesBy.GUARD)


def _others(rows: Mapping[Key, ComparedMetric], name: str, chosen: str) -> list[Key]:
    by_metric = {metric: rows[name, metric] for metric in TIMES if (name, metric) in rows}
    return [(name, item.metric.name) for item in witnesses(by_metric, chosen)]


def _watched_memory(record: Record, rows: Mapping[Key, ComparedMetric], criteria: Criteria, name: str) -> list[Key]:
    """Return the noisy memory rows, which gate if they grow."""
    if criteria.memory_of(name) is None or not two_trees(record):
        return []
    known = [(name, metric) for metric in MEMORY if (name, metric) in rows]
    return [key for key in known if rows[key].pairs and not rows[key].metric.exact]


LEAST_BYTES = 2**20
"""Bytes of growth that matter for inexact memory metrics: allocators and libraries alone cause less than this."""


def memory_has_grown(item: ComparedMetric, thresholds: Thresholds) -> bool:
    """Return whether memory is proven to have grown, exactly or by more than ``LEAST_BYTES``."""
    return rule(item, thresholds, identical=False).decision == "regressed" and _by_enough(item)


def _by_enough(item: ComparedMetric) -> bool:
    if not item.baseline or not item.candidate:
        return False
    in_bytes = item.metric.dimension is Dimension.BYTES
    return item.metric.exact or not in_bytes or item.candidate.value - item.baseline.value > LEAST_BYTES


def _seems_grown(item: ComparedMetric, series: MetricSeries, criteria: Criteria, thresholds: Thresholds) -> bool:
    """Return whether memory seems to have grown by more than ``concern``, and more samples will tell.

    It would be proven with all false alarms that its benchmark may raise, or if it needed no confirmation. Its part of
    them is so small that the first eleven pairs prove nothing.
    """
    is_known = item.metric.exact or item.change is None or not all(fresh.agrees for fresh in item.confirmations)
    if is_known or worse_of(item).estimate <= thresholds.concern or not _by_enough(item):
        return False
    return rule_unconfirmed(compare(series, criteria), thresholds, identical=False).decision == "regressed"


def memory_concerns(rows: Iterable[Benchmark], criteria: Criteria) -> Iterator[Benchmark]:
    """Yield the memory rows that do not gate and are proven to have grown beyond their concern threshold."""
    for row in rows:
        judged = (
            row.metric in MEMORY and not row.gating and not row.ignored and criteria.memory_of(row.name) is not None
        )
        if judged and row.decision == "regressed" and row.level in ("concern", "action") and _matters(row):
            yield row


def _matters(row: Benchmark) -> bool:
    values = [side.value for side in (row.baseline, row.candidate) if side]
    before, after = values if len(values) == 2 else (None, None)
    in_bytes = row.unit == Dimension.BYTES.base_unit
    return is_exact(row.statistic) or not in_bytes or (after or 0.0) - (before or 0.0) > LEAST_BYTES


_OPPOSITE = {"improved": "regressed", "regressed": "improved"}


def confirmed_scenarios(record: Record, rows: Sequence[Benchmark]) -> tuple[list[Benchmark], list[dict[str, Any]]]:
    """Return the rows, with notes on changed synthetic benchmarks, and an entry for each confirming benchmark.

    An entry has ``benchmark``, ``metric`` and ``decision`` of the synthetic row, ``by`` and ``by_decision`` of the
    realistic one, and ``agrees``: true, false, or null if that is not known.
    """
    confirming = {name: step.confirms for name, step in record.planned.items() if step.confirms}
    if not confirming:
        return list(rows), []
    noted: list[Benchmark] = []
    entries: list[dict[str, Any]] = []
    for row in rows:
        entries_of_row = list(_entries(row, rows, confirming)) if _changed(row, record) else []
        notes = [note for _, note in entries_of_row if note]
        noted.append(row.model_copy(update={"warnings": [*row.warnings, *notes]}) if notes else row)
        entries += [entry for entry, _ in entries_of_row]
    return noted, entries


def _changed(row: Benchmark, record: Record) -> bool:
    """Return whether a row of a benchmark that is not realistic changed by more than the concern threshold."""
    if not row.gating or row.decision not in _OPPOSITE or record.plan_of(row.step).scenario == "realistic":
        return False
    value = row.change.value if row.change else None
    return value is None or abs(value) > record.criteria.thresholds_of(row.name, row.metric).concern


def _entries(
    row: Benchmark, rows: Iterable[Benchmark], confirming: Mapping[str, Sequence[str]]
) -> Iterator[tuple[dict[str, Any], str]]:
    for other in rows:
        globs = confirming.get(other.step, ())
        if not other.gating or other.step == row.step or not any(matches(glob, row.name) for glob in globs):
            continue
        if other.metric != row.metric and not {row.metric, other.metric} <= set(TIMES):
            continue
        agrees = _agrees(row, other)
        entry: dict[str, Any] = {"benchmark": row.name, "metric": row.metric, "decision": row.decision}
        entry |= {"by": other.name, "by_decision": other.decision, "agrees": agrees}
        yield entry, _note(other, agrees)


def _agrees(row: Benchmark, other: Benchmark) -> bool | None:
    if other.decision == row.decision:
        return True
    return False if other.decision in ("same", _OPPOSITE[str(row.decision)]) else None


def _note(other: Benchmark, agrees: bool | None) -> str:
    if agrees is None:
        return f"{other.name} neither confirms nor refutes this: {other.decision or 'not compared'}"
    return f"{'confirmed' if agrees else 'not confirmed'} by {other.name}: {other.decision}{_by(other)}"


def _by(row: Benchmark) -> str:
    """Return `` +12.0%``, or `` ±1.2%`` if the decision is ``same``."""
    change = row.change
    if change is None or change.value is None:
        return ""
    if row.decision != "same" or change.low is None or change.high is None:
        return f" {format_change(change.value)}"
    return f" ±{max(abs(change.low), abs(change.high)):.1%}"
