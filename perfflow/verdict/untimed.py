"""Rows of benchmarks that were not timed, because both sides execute and read the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perfflow.model.criteria import Criteria
from perfflow.model.result import Benchmark, Reason, ReasonKind, reason
from perfflow.model.units import format_interval
from perfflow.store.record import Record
from perfflow.workflow.roles import AUTO

_TIMED = "time"
DEFECT = (
    "base and head execute the same code, but a regression was measured and confirmed: a defect of the method or of "
    "measuring. Please report it with the files steps/STEP/*/trace of the run; `--all` decides without the method"
)


def rows(record: Record, criteria: Criteria) -> Iterator[Benchmark]:
    """Yield a row without figures for each benchmark that cannot have changed and was not measured."""
    measured = {name for name, _ in record.series}
    for unchanged in record.unchanged.values():
        if unchanged.benchmark in measured:
            continue
        planned = record.plan_of(unchanged.step)
        metric = criteria.metric(_TIMED if planned.metric in (None, AUTO) else str(planned.metric))
        ignored = criteria.ignores(unchanged.benchmark)
        yield Benchmark(
            name=unchanged.benchmark,
            step=unchanged.step,
            tool=planned.tool,
            metric=metric.name,
            statistic="p50",
            unit=metric.dimension.base_unit,
            better=metric.better.value,
            confidence=None,
            baseline=None,
            candidate=None,
            change=None,
            speedup=None,
            decision="same",
            level="ok",
            gating=not ignored,
            ignored=ignored,
            pairs=0,
            more=None,
            warnings=[],
            unchanged=unchanged.by,
        )


def audited(record: Record, row: Benchmark, criteria: Criteria) -> Benchmark:
    """Return the row of a benchmark that was timed although its code is the same: it is `same`, if not contradicted."""
    item = record.unchanged.get((row.step, row.name))
    if item is None:
        return row
    marked = row.model_copy(update={"unchanged": item.by})
    if row.decision not in ("regressed", "improved", "unproven"):
        return marked
    decision = "unproven" if _contradicts(record, row, criteria) else "same"
    return marked.model_copy(update={"decision": decision, "level": "ok", "more": None})


def contradictions(rows: Iterable[Benchmark]) -> Iterator[Reason]:
    """Yield an error for each benchmark whose measured regression contradicts that its code is the same."""
    for row in rows:
        if row.unchanged and row.gating and row.decision == "unproven" and row.change and row.change.value is not None:
            text = (
                f"audit: {row.title} ({format_interval(row.change.value, row.change.low, row.change.high)}): {DEFECT}"
            )
            yield reason(ReasonKind.CONTRADICTION, text, row.name, metric=row.metric, change=row.change.value)


def _contradicts(record: Record, row: Benchmark, criteria: Criteria) -> bool:
    """Return whether a confirmed interval is beyond the concern threshold as a whole.

    Native code may cost that much more at other addresses; fresh layouts of both sides rule this out.
    """
    series, concern = record.series[row.name, row.metric], criteria.thresholds_of(row.name, row.metric).concern
    if record.unchanged[row.step, row.name].native and not series.built:
        return False
    if row.decision != "regressed" or row.change is None or not (series.built or series).confirmations:
        return False
    worse = row.change.low if row.better == "lower" else None if row.change.high is None else -row.change.high
    return row.gating and worse is not None and worse > concern
