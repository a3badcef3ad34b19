"""Compare a candidate with the tree it builds on, and decide whether to keep it.

- ``accept`` judges one candidate by the ``Goal`` of the stage.
- ``trade_off`` finds trade-offs: regressions beyond the action threshold that the workflow accepts, with a reason,
  until a date.
- ``cheaper_than`` gives the state of the cheaper techniques when a costlier one was tried: tried, ruled out, or open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfflow.model.criteria import Accepted, Criteria, Thresholds
from perfflow.model.judging import Code, Flag, Outcome
from perfflow.model.metrics import TECHNIQUES, TIMES, Better
from perfflow.model.readings import SCHEDULES
from perfflow.model.result import Benchmark, Cheaper, GatesBy, Optimization, Reason, ReasonKind, reason
from perfflow.model.targets import matches
from perfflow.model.units import format_change
from perfflow.stats.paired_test import Interval
from perfflow.store.record import Record
from perfflow.verdict.clocks import contradiction, witnesses
from perfflow.verdict.comparison import ComparedMetric
from perfflow.verdict.decide import Ruling, rule, worse_of
from perfflow.verdict.gating import covers, gating_rows, guarded_rows, is_accepted

ACCEPT = 0.10
"""Default for the least effect for which a change is kept."""
_ON_A_CUT = 0.005
NEAR = 0.02
"""Distance from ``accept`` within which an end of the interval asks for a second look."""
Key = tuple[str, str]
"""Benchmark and metric."""


@dataclass(frozen=True)
class Goal:
    """The requirements for a candidate: an effect of at least ``accept`` on an objective, and no regression of a guard.

    Objectives are pairs of a benchmark glob and a metric, '' for its timing metric or, without one, the metrics that
    decide for it. Guards are globs, optionally with a metric.
    """

    objectives: tuple[tuple[str, str], ...]
    guards: tuple[str, ...]
    accept: float = ACCEPT
    attempts: int = 1
    """Number of candidates for the same original. The best of many seems better than it is, so what is kept is measured
    until it would be kept at the confidence that they ask for together, if there is time."""

    def is_objective(self, benchmark: str, metric: str, *, decides: bool = False) -> bool:
        """Return whether a row is an objective. One timing metric stands for all.

        decides: the row decides for its benchmark where no target, guard or objective names another.
        """
        return any(
            matches(glob, benchmark)
            and (metric == wanted or (metric in TIMES and wanted in ("", *TIMES)) or (decides and not wanted))
            for glob, wanted in self.objectives
        )

    def is_guarded(self, benchmark: str, metric: str) -> bool:
        """Return whether a regression of this row rejects the candidate."""
        return any(covers(guard, benchmark, metric) for guard in self.guards)


@dataclass(frozen=True)
class Acceptance:
    """The decision on a candidate; ``row`` is the deciding objective, None if none was measured."""

    code: Code
    reason: str
    row: ComparedMetric | None = None
    flags: tuple[Flag, ...] = ()
    """What a reader of a kept candidate should know of its measurement."""

    @property
    def accepted(self) -> bool:
        """Whether the candidate is kept."""
        return self.code.outcome is Outcome.KEPT


def goal_of(
    criteria: Criteria, objective: str | Collection[str] | None, guard: Collection[str] | None, accept: float
) -> Goal:
    """Return the goal of the stage. By default, rows with a target (else all) are objectives, and all are guarded."""
    given = [objective] if isinstance(objective, str) else objective or []
    wanted = tuple(_objective(criteria, text) for text in given)
    targeted = tuple((target.benchmark, target.metric.name) for target in criteria.targets)
    return Goal(wanted or targeted or (("**", ""),), tuple(guard) if guard is not None else ("**",), accept)


def _objective(criteria: Criteria, text: str) -> tuple[str, str]:
    """Split ``BENCHMARK METRIC``, or ``BENCHMARK`` alone, which means its timing metric ('')."""
    benchmark, _, metric = text.rpartition(" ")
    known = metric in criteria.metrics or criteria.metric(metric).better is not Better.NONE
    return (benchmark, metric) if benchmark and known else (text, "")


def effect_of(comparison: ComparedMetric) -> Interval | None:
    """Return how much better the candidate is, as a share of the baseline; None if that is not known."""
    change = comparison.change
    if change is None or math.isnan(change.estimate):
        return None
    if comparison.metric.better is Better.HIGHER:
        return change
    return Interval(-change.estimate, -change.high, -change.low)


def accept(
    record: Record, rows: Mapping[Key, ComparedMetric], criteria: Criteria, goal: Goal, identical: Callable[[str], bool]
) -> Acceptance:
    """Judge one candidate, in this order: a row is missing, a guard regressed, an objective is reached.

    Every metric with a direction can be guarded, also one that is no objective, such as memory.
    ``identical`` returns whether a step executes the same files on both sides.
    """
    deciding = deciding_rows(record, rows, criteria, goal)
    telling = {key: rows[key] for key in deciding}
    guarded = {key: rows[key] for key in guarded_rows(record, rows, goal.guards)}
    rulings = {key: _ruled(row, criteria, identical) for key, row in telling.items()}
    for key, ruling in rulings.items():
        if ruling.decision == "removed":
            return Acceptance(Code.NOT_MEASURED, f"{key[0]} {key[1]} was not measured on the candidate")
    best = _best([rows[key] for key, is_objective in deciding.items() if is_objective], goal)
    for key, row in {**telling, **guarded}.items():
        ruling = _ruled(row, criteria, identical)
        if ruling.is_regression and goal.is_guarded(*key):
            return Acceptance(Code.REGRESSED, f"{_name(key)} regressed: {_told(row)}", best)
    effect = effect_of(best) if best else None
    if best is None or effect is None:
        return Acceptance(Code.NO_OBJECTIVE, "no objective was measured")
    if effect.low > goal.accept:
        if refuted := _refuted(rows, best, goal):
            return Acceptance(Code.CLOCKS_DISAGREE, f"unproven: {refuted}", best)
        return Acceptance(Code.PROVEN, "; ".join(_reached(record, best)), best, tuple(_flags(record, rows, best)))
    ruling, code = rulings[best.benchmark, best.metric.name], Code.NOT_PROVEN
    if ruling.decision == "same" and identical(best.step):
        code = Code.SAME_FILES
    elif effect.high <= goal.accept or effect.high - effect.low <= 2 * _ON_A_CUT:
        code = Code.NO_EFFECT
    return Acceptance(code, _shortfall(best, ruling, goal), best)


def _refuted(rows: Mapping[Key, ComparedMetric], best: ComparedMetric, goal: Goal) -> str:
    """Return how another clock contradicts the gain of a timing objective; '' if none does.

    That holds for a clock that the workflow asks for too: work in a child that is not waited for is in no CPU time.
    """
    by_metric = {metric: row for (name, metric), row in rows.items() if name == best.benchmark and metric in TIMES}
    if best.metric.name not in by_metric:
        return ""
    return contradiction(best, witnesses(by_metric, best.metric.name), goal.accept)


def _reached(record: Record, row: ComparedMetric) -> Iterator[str]:
    """Yield the effect, and why it was measured with one code layout per side, if it was."""
    key = row.benchmark, row.metric.name
    yield f"{_name(key)} {_told(row)}"
    why = record.why_as_built(record.series[key])
    if why and row.layouts is None:
        yield f"with one code layout per side: {why}"


def _flags(record: Record, rows: Mapping[Key, ComparedMetric], best: ComparedMetric) -> Iterator[Flag]:
    if record.outcome_of(best.step).rebuilt and best.layouts is None and not best.metric.exact:
        yield Flag.AS_BUILT
    cpu = rows.get((best.benchmark, "cpu"))
    if cpu and best.metric.name in TIMES and worse_of(cpu).low > 0:
        yield Flag.MORE_CPU


def more_pairs(row: ComparedMetric, design: str, accept: float) -> int | None:
    """Return about how many more pairs would decide whether the effect exceeds ``accept``; None if no number would.

    It is the number that is missing to the interim analysis of ``design`` at which the interval would exclude
    ``accept``, or would be too narrow to be worth more.
    """
    effect, looks = effect_of(row), [pairs for pairs, _ in SCHEDULES.get(design, ())]
    if effect is None or not looks or row.pairs == 0:
        return None
    needed = float(looks[0])
    if math.isfinite(effect.low) and math.isfinite(effect.high):
        half = (effect.high - effect.low) / 2 - row.blur
        room = max(abs(effect.estimate - accept), _ON_A_CUT) - row.blur
        needed = row.pairs * (half / room) ** 2 if room > 0 else math.inf
    return next((look - row.pairs for look in looks if look >= needed and look > row.pairs), None)


def _ruled(row: ComparedMetric, criteria: Criteria, identical: Callable[[str], bool]) -> Ruling:
    return rule(row, criteria.thresholds_of(row.benchmark, row.metric.name), identical=identical(row.step))


def deciding_rows(
    record: Record, rows: Mapping[Key, ComparedMetric], criteria: Criteria, goal: Goal
) -> dict[Key, bool]:
    """Return the rows that judge a candidate, the main one of each benchmark, targets and objectives, in their order.

    The values are whether they are objectives. Rows that are only guarded are left out, because they are not worth
    further pairs.
    """
    gating = gating_rows(record, rows, replace(criteria, targets=()))
    chosen = {key for key, why in gating.items() if why.by != GatesBy.GUARD}
    targeted = {key for key, why in gating_rows(record, rows, criteria).items() if why.by != GatesBy.GUARD}
    main = {key for key, why in gating.items() if why.by in (GatesBy.CHOSEN, GatesBy.REQUESTED)}
    objectives = {key for key in rows if goal.is_objective(*key, decides=key in main)}
    asked = targeted | (objectives & set(guarded_rows(record, rows, ("**",))))
    return {key: key in objectives for key in rows if key in chosen or (key in asked and key[1] not in TIMES)}


def _best(objectives: Iterable[ComparedMetric], goal: Goal) -> ComparedMetric | None:
    """Return the objective with the largest proven effect. Noisy metrics rank before exact counts."""
    known = [row for row in objectives if effect_of(row) is not None]

    def rank(row: ComparedMetric) -> tuple[bool, bool, float]:
        effect = effect_of(row) or Interval(0.0, -math.inf, math.inf)
        reached = effect.low > goal.accept
        return reached, not row.metric.exact, effect.low if math.isfinite(effect.low) else -math.inf

    return max(known, key=rank, default=None)


def _shortfall(row: ComparedMetric, ruling: Ruling, goal: Goal) -> str:
    where, wanted = _name((row.benchmark, row.metric.name)), f"{goal.accept:.0%}"
    if ruling.decision == "improved":
        return f"not proven to exceed {wanted}: {where} {_told(row)}"
    told = f"{ruling.decision or 'not compared'}: {where} {_told(row)}"
    return f"{told}; {ruling.note}" if row.layouts and ruling.note else told


def _told(row: ComparedMetric) -> str:
    effect = effect_of(row)
    if effect is None:
        return "unknown"
    value = format_change(effect.estimate)
    if row.metric.exact or not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return value
    return f"{value} [{format_change(effect.low)}, {format_change(effect.high)}]"


def _name(key: Key) -> str:
    return key[0] if key[1] in TIMES else f"{key[0]} {key[1]}"


def is_reached(row: ComparedMetric, goal: Goal) -> bool:
    """Return whether a noisy objective is proven to be reached or, for a goal below 0, to be worse than the goal."""
    effect = effect_of(row)
    if effect is None or row.metric.exact:
        return False
    return effect.low > goal.accept if goal.accept >= 0 else effect.high < goal.accept


def is_near(row: ComparedMetric, goal: Goal) -> bool:
    """Return whether an end of a noisy objective's interval is so near to ``accept`` that a second look may differ."""
    effect = effect_of(row)
    if effect is None or row.metric.exact:
        return False
    return min(abs(effect.low - goal.accept), abs(effect.high - goal.accept)) <= NEAR


def clear(row: ComparedMetric, thresholds: Thresholds, goal: Goal, *, is_objective: bool) -> bool:
    """Return whether more pairs could not change the decision on an objective or a guard.

    An interval that includes a threshold and has a half-width of 0.5% will go on including it. One that ends within
    NEAR of ``accept`` is measured further, so that another judgement of the same candidate has the same outcome.
    """
    effect = effect_of(row)
    if effect is None:
        return True
    half = (effect.high - effect.low) / 2
    if half <= _ON_A_CUT:
        return True
    if is_objective and (effect.low <= goal.accept <= effect.high or is_near(row, goal)):
        return False
    worse_low, worse_high = -effect.high, -effect.low
    return worse_high <= thresholds.concern or worse_low > thresholds.concern or half <= thresholds.concern / 2


def worst(row: Benchmark) -> float | None:
    """Return how much worse a row is, as a share: the estimate if that is proven, else the bad end of the interval.

    None if the row is neither regressed nor unproven, or if it fails the run.
    """
    if row.decision not in ("regressed", "unproven") or row.level in ("action", None) or row.change is None:
        return None
    end = row.change.low if row.better == "higher" else row.change.high
    change = row.change.value if row.decision == "regressed" else end
    if change is None:
        return None
    return -change if row.better == "higher" else change


def trade_off(record: Record, row: Benchmark, criteria: Criteria) -> Accepted | None:
    """Return the trade-off that lets a row pass beyond its own action threshold; None if none does or none is needed.

    If there are several, the one that allows most. The date of the run's start counts as today.
    """
    found = worst(row)
    if not row.gating or found is None or found <= criteria.thresholds_of(row.name, row.metric).action:
        return None
    today = _today(record)
    valid = [item for item in criteria.accepted if _is_about(item, criteria, row) and item.in_force(today)]
    return max(valid, key=lambda item: item.change, default=None)


def marked_tradeoffs(record: Record, row: Benchmark, criteria: Criteria) -> Benchmark:
    """Return the row, marked with the trade-off that lets it pass, if any."""
    item = trade_off(record, row, criteria)
    return row.model_copy(update={"accepted": _mark(item)}) if item else row


def lapsed_tradeoffs(record: Record, row: Benchmark, criteria: Criteria) -> Iterator[Reason]:
    """Yield the trade-offs that no longer let a failing row pass."""
    change = row.change.value if row.change else None
    worse = None if change is None else -change if row.better == "higher" else change
    for accepted in criteria.accepted:
        if not _is_about(accepted, criteria, row) or worse is None or worse > accepted.change:
            continue
        if accepted.spent:
            what = f"the regression accepted until {accepted.until}"
            text = f"{row.title}: the base already contains {what}: {accepted.why}"
        elif _today(record) > accepted.until:
            text = f"{row.title} was accepted until {accepted.until}, which has passed: {accepted.why}"
        else:
            continue
        yield reason(ReasonKind.NO_LONGER_ACCEPTED, text, row.name, metric=row.metric, until=accepted.until)


def _is_about(item: Accepted, criteria: Criteria, row: Benchmark) -> bool:
    return is_accepted(item, criteria, (row.name, row.metric), row.gates_by)


def _today(record: Record) -> str:
    """Return the date of the run's start."""
    return record.run.started[:10]


def taken(row: Benchmark, criteria: Criteria) -> Accepted | None:
    """Return the trade-off that a row is marked with, None without one."""
    found = [item for item in criteria.accepted if row.accepted == _mark(item) and _is_about(item, criteria, row)]
    return max(found, key=lambda item: item.change, default=None)


def _mark(item: Accepted) -> str:
    return f"until {item.until}: {item.why}"


_WORDS = {"accepted": "kept", "rejected": "reverted", "skipped": "not tried"}


def cheaper_than(found: Optimization, before: Sequence[Optimization], why_not: Mapping[str, str]) -> list[Cheaper]:
    """Return the state of each technique that is before that of ``found`` in the hierarchy; none if it is not in it.

    ``before`` are the earlier tries; ``why_not`` maps the techniques that the workflow rules out to the reasons.
    """
    technique = found.technique
    if technique not in TECHNIQUES:
        return []
    return [_state(name, before, why_not) for name in TECHNIQUES[: TECHNIQUES.index(technique)]]


def _state(technique: str, before: Sequence[Optimization], why_not: Mapping[str, str]) -> Cheaper:
    own = [item for item in before if item.technique == technique]
    said = ", ".join(f"{item.id} {_WORDS[item.decision]}" for item in own)
    if any(item.decision != "skipped" for item in own):
        return Cheaper(technique=technique, status="tried", detail=said)
    if technique in why_not:
        return Cheaper(technique=technique, status="ruled out", detail=why_not[technique])
    skipped = "; ".join(f"{item.id}: {item.reason}" for item in own)
    return Cheaper(technique=technique, status="open", detail=skipped)
