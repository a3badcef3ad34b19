"""The rows of a gate, counted by decision, and the regressions with their thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.model.criteria import Accepted, Criteria
from perfflow.model.metrics import in_words
from perfflow.model.readings import Side
from perfflow.model.result import Benchmark, Result
from perfflow.model.targets import Names
from perfflow.model.units import format_threshold
from perfflow.model.version import KEPT, STORED, tree_of
from perfflow.report.rows import values_of
from perfflow.report.truncate import Truncated, rank_of_row, truncated
from perfflow.verdict.acceptance import taken
from perfflow.verdict.comparison import without_inverse_rates
from perfflow.verdict.row_text import change_of

_COUNTED = ("improved", "same", "concern", "action", "unproven", "not run", "new", "removed")
_BELOW, _ACCEPTED = "regressed below concern", "accepted"
_SYMBOLS = {"action": "❌", "concern": "❔"}


@dataclass(frozen=True)
class Regressed:
    """One regression: both values, the change, its thresholds, and a remark on its confirmation."""

    benchmark: str
    metric: str
    values: str
    change: str
    concern: str
    action: str
    symbol: str
    level: str
    remark: str


@dataclass(frozen=True)
class Summary:
    """The rows of a gate: the number of each kind, and the regressions.

    ``accepted`` are rows that pass by a trade-off, with that trade-off; ``refuted`` are suspected rows that fresh pairs
    did not confirm, with their decision.
    """

    counts: tuple[tuple[str, int], ...]
    regressed: Truncated[Regressed]
    accepted: Truncated[tuple[str, str]]
    refuted: Truncated[tuple[str, str]]


def is_gate(result: Result) -> bool:
    """Return whether two revisions were compared, each in its own tree."""
    kinds = [tree_of(result.trees, side).kind for side in Side]
    return all(kind and kind not in (STORED, KEPT) for kind in kinds)


def summary_of(result: Result, criteria: Criteria) -> Summary:
    """Count the rows that the verdict rests on, including expected benchmarks that were not measured."""
    rows = [row for row in without_inverse_rates(result.benchmarks) if row.gating]
    confirmed = {(item.get("benchmark"), item.get("metric")): item for item in result.confirmations}
    passing = {id(row): item for row in rows if (item := taken(row, criteria))}
    counted = [_kind(row, accepted=id(row) in passing) for row in rows] + ["not run" for _ in not_run(result)]
    refuted = [row for row in rows if row.decision in ("same", "unproven") and (row.name, row.metric) in confirmed]
    return Summary(
        counts=tuple(
            (kind, counted.count(kind))
            for kind in (*_COUNTED, _BELOW, _ACCEPTED)
            if kind in _COUNTED or kind in counted
        ),
        regressed=truncated(worst_first(rows), rank_of_row).each(
            lambda row: _regressed(row, criteria, confirmed.get((row.name, row.metric)), accepted=id(row) in passing)
        ),
        accepted=truncated([row for row in rows if id(row) in passing]).each(
            lambda row: (row.title, f"{change_of(row, criteria)}, {trade_off(passing[id(row)])}")
        ),
        refuted=truncated(refuted).each(
            lambda row: (row.title, f"{row.decision}, {_fresh(confirmed[row.name, row.metric])}")
        ),
    )


def worst_first(rows: Sequence[Benchmark]) -> list[Benchmark]:
    """Return the proven regressions of gating rows: failures first, then the largest change."""
    worse = [row for row in without_inverse_rates(rows) if row.gating and row.decision == "regressed"]
    return sorted(worse, key=lambda row: (rank_of_row(row), -(worst_of(row) or 0.0)))


def worst_of(row: Benchmark) -> float | None:
    """Return by which share of the baseline a row got worse: the estimate, or the far end if unproven."""
    if row.change is None:
        return None
    far = row.change.low if row.better == "higher" else row.change.high
    worst = far if row.decision == "unproven" else row.change.value
    return worst if worst is None or row.better != "higher" else -worst


def not_run(result: Result) -> Iterator[str]:
    """Yield what is missing: expected benchmarks, failed measure steps, and rows that were not measured."""
    names = Names(row.name for row in result.benchmarks)
    measured = {row.step for row in result.benchmarks}
    for step in result.steps:
        missing = [glob for glob in step.expect or () if step.selected and not names.matching(glob)]
        yield from missing
        silent = step.role == "measure" and step.selected and step.status in ("failed", "timeout", "skipped")
        if silent and not missing and step.id not in measured:
            yield step.benchmark if step.benchmark and "*" not in step.benchmark else step.id
    yield from (row.name for row in result.benchmarks if row.gating and row.decision == "not measured")


def trade_off(item: Accepted) -> str:
    """Return the limit, the end date and the reason of an accepted regression."""
    return f"accepted up to {format_threshold(item.change)} until {item.until}: {item.why}"


def _kind(row: Benchmark, *, accepted: bool) -> str:
    if row.decision == "regressed":
        return _ACCEPTED if accepted else row.level if row.level in ("concern", "action") else _BELOW
    return "" if row.decision == "not measured" else row.decision or ""


def _regressed(row: Benchmark, criteria: Criteria, confirmed: Mapping[str, Any] | None, *, accepted: bool) -> Regressed:
    thresholds = criteria.thresholds_of(row.name, row.metric)
    level = row.level if row.level in _SYMBOLS else "below concern"
    return Regressed(
        benchmark=row.name,
        metric=in_words(row.metric),
        values=values_of(row, criteria),
        change=change_of(row, criteria),
        concern=format_threshold(thresholds.concern),
        action=format_threshold(thresholds.action),
        symbol="✅" if accepted else _SYMBOLS.get(level, "✅"),
        level=_ACCEPTED if accepted else level,
        remark=f"confirmed with {_fresh(confirmed)}" if confirmed else "",
    )


def _fresh(item: Mapping[str, Any]) -> str:
    return f"{item.get('pairs')} fresh pairs"
