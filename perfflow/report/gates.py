"""The Gates table: what a verdict rests on, group by group, each with its status and the figures that decided it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from perfflow.result import ACCEPTED, WARNED, Benchmark, Result
from perfflow.samples.criteria import Criteria
from perfflow.units import format_change, significant

T = TypeVar("T")

MOST_NAMED = 3
"""Offenders that a row of the table names; all of them stand in the tables of their own."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """One gate. ``status`` is pass, fail, unproven or error; ``evidence`` is plain text with names as they are."""

    name: str
    status: str
    evidence: str


def gate_rows(result: Result, criteria: Criteria) -> tuple[GateRow, ...]:
    """The gates of a result: the whole, then regressions, targets and correctness as far as it has any.

    A last row says what could not be measured, or what else keeps the verdict from a pass.
    """
    groups = [
        row for make in (_regressions, _accepted, _targets, _correctness) for row in [make(result, criteria)] if row
    ]
    rest = [row for row in [_remaining(result, groups)] if row]
    whole = GateRow(result.gate.name, result.gate.status, f"verdict: {result.verdict}")
    return (whole, *groups, *rest)


def _regressions(result: Result, criteria: Criteria) -> GateRow | None:
    rows = [row for row in result.benchmarks if row.gating and row.decision]
    if not rows:
        return None
    worse = [row for row in rows if row.decision == "regressed" and row.level == "action"]
    missing = [row for row in rows if row.decision in ("removed", "not measured")]
    open_ = [row for row in rows if row.decision == "unproven" and row.level is None]
    said = [
        _listed("regressed: ", worse, lambda row: _changed(row, criteria)),
        _listed("not measured: ", missing, lambda row: f"{row.name} {row.metric}"),
        _listed("unproven: ", open_, lambda row: f"{row.name} {row.metric}"),
    ]
    fine = len(rows) - len(worse) - len(missing) - len(open_)
    status = "fail" if worse else "error" if missing else "unproven" if open_ else "pass"
    counted = f"{fine} of {len(rows)} within {_limits(rows, criteria)}"
    return GateRow("regressions", status, "; ".join(filter(None, [*said, counted])))


def _accepted(result: Result, _criteria: Criteria) -> GateRow | None:
    used = [text for text in result.reasons if text.startswith(ACCEPTED)]
    return GateRow("accepted trade-offs", "pass", _listed("", used, str)) if used else None


def _targets(result: Result, _criteria: Criteria) -> GateRow | None:
    if not result.targets:
        return None
    statuses = [target.status for target in result.targets]
    word = next(
        (
            word
            for status, word in (("not met", "fail"), ("not measured", "error"), ("unproven", "unproven"))
            if status in statuses
        ),
        "pass",
    )
    short = [target for target in result.targets if target.status != "met"]
    said = _listed("", short, lambda target: f"{target.benchmark} {target.metric} {target.requirement} {target.status}")
    return GateRow("targets", word, "; ".join(filter(None, [said, f"{statuses.count('met')} of {len(statuses)} met"])))


def _correctness(result: Result, _criteria: Criteria) -> GateRow | None:
    ran = [check for check in result.verification if check.status in ("passed", "failed")]
    if not ran:
        return None
    allowed = {step.id for step in result.steps if step.allowed}
    failed = [check for check in ran if check.status == "failed" and check.id not in allowed]
    said = _listed("failed: ", failed, lambda check: check.id)
    passed = sum(check.status == "passed" for check in ran)
    return GateRow(
        "correctness",
        "fail" if failed else "pass",
        "; ".join(filter(None, [said, f"{passed} of {len(ran)} passed"])),
    )


def _remaining(result: Result, groups: Iterable[GateRow]) -> GateRow | None:
    """What was not measured as a whole: a run that did not end, failed steps; or why a verdict is no pass at all."""
    failed = [
        step
        for step in result.steps
        if step.status in ("failed", "timeout") and not step.allowed and step.role not in ("check", "profile")
    ]
    said = ["the run did not come to its end"] if result.run.interrupted else []
    said += [f"step {step.id}: {step.reason}" for step in failed]
    if said:
        return GateRow("measurement", "error", _listed("", said, str))
    if result.verdict == "pass" or any(row.status == result.verdict for row in groups):
        return None
    reasons = [text for text in result.reasons if not text.startswith(WARNED)]
    return GateRow("measurement", result.verdict, _listed("", reasons, str) or "no reason is stored")


def _changed(row: Benchmark, criteria: Criteria) -> str:
    if not row.change or row.change.value is None:
        return f"{row.name} {row.metric}"
    limit = _percent(criteria.thresholds_of(row.name).action)
    return f"{row.name} {row.metric} Δ {format_change(row.change.value)} > {limit}"


def _limits(rows: Sequence[Benchmark], criteria: Criteria) -> str:
    """The thresholds that these rows are judged by: one figure, or from the least to the largest."""
    found = sorted({criteria.thresholds_of(row.name).action for row in rows})
    if len(found) == 1:
        return f"threshold {_percent(found[0])}"
    return f"thresholds {_percent(found[0])} to {_percent(found[-1])}"


def _percent(share: float) -> str:
    text = significant(share * 100)
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def _listed(head: str, items: Sequence[T], name: Callable[[T], str]) -> str:
    """The first few of a list by name, with the number of the others; '' of none."""
    if not items:
        return ""
    more = f" and {len(items) - MOST_NAMED} more" if len(items) > MOST_NAMED else ""
    return f"{head}{', '.join(name(item) for item in items[:MOST_NAMED])}{more}"
