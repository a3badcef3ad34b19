"""The facts of a run that the rules under ``routes`` use; ``workflow.route_facts`` defines their meanings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perfflow.model.result import Attribution, Benchmark
from perfflow.verdict.findings import Findings, worse_by
from perfflow.verdict.gating import is_accepted
from perfflow.verdict.localization import current, leading, localized_in
from perfflow.workflow.route_facts import FoundNames, context

_SHORT = 12


def facts_of(found: Findings) -> dict[str, Any]:
    """Return every fact of a run, nested as expressions read them."""
    gating = [row for row in found.rows if row.gating]
    failed_checks = [item.id for item in found.checks if item.status == "failed"]
    values: dict[str, Any] = {
        "verdict": found.verdict,
        "gate": "pass" if found.verdict == "pass" else "fail",
        "workflow": found.record.run.workflow,
        "component": found.record.run.component,
        "benchmarks": _benchmarks(found.rows),
        "regressions": _benchmarks(found.regressed()),
        "regressions.action": _benchmarks(found.regressed("action")),
        "regressions.concern": _benchmarks(found.regressed("concern")),
        "regressions.worst": max((worse_by(row) or 0.0 for row in found.regressed()), default=0.0),
        "improvements": _benchmarks(row for row in gating if row.decision == "improved"),
        "unproven": _benchmarks(found.undecided()),
        "new": _benchmarks(row for row in found.rows if row.decision == "new"),
        "removed": _benchmarks(row for row in found.rows if row.decision == "removed"),
        "baseline.missing": bool(found.rows) and all(row.decision in (None, "new") for row in found.rows),
        "accepted.used": _benchmarks(row for row in found.rows if row.accepted),
        "accepted.expired": FoundNames(_accepted_expired(found)),
        "correctness.failed": FoundNames(failed_checks),
        "errors": FoundNames(_errors(found, failed_checks)),
        "recommendations": FoundNames(item.rule for item in found.advice if not item.source),
        "commits": FoundNames(commit.revision[:_SHORT] for item in found.blamed for commit in item.commits),
    }
    for status in ("met", "not met", "unproven", "not measured"):
        names = FoundNames(target.benchmark for target in found.targets if target.status == status)
        values[f"targets.{status.replace(' ', '_')}"] = names
    return context(values | _hotspots(found))


def _benchmarks(rows: Iterable[Benchmark]) -> FoundNames:
    return FoundNames(row.name for row in rows)


def _hotspots(found: Findings) -> dict[str, Any]:
    place, top = localized_in(found), leading(found)
    lost = [item.function for item in found.blamed]
    blamed = top if isinstance(top, Attribution) else None
    name = "" if top is None else top.function if isinstance(top, Attribution) else top.location
    return {
        "hotspots": FoundNames(lost or (spot.location for spot in current(found.hotspots))),
        "hotspots.localized": bool(place),
        "hotspots.localized_in": place,
        "hotspots.top": name,
        "hotspots.file": top.file if top else "",
        "hotspots.crate": blamed.crate if blamed else "",
        "hotspots.region": blamed.region if blamed else "",
        "hotspots.share": (top.share or 0.0) if top else 0.0,
        "hotspots.files": FoundNames(item.file for item in found.blamed if item.file),
        "hotspots.crates": FoundNames(item.crate for item in found.blamed if item.crate),
        "hotspots.regions": FoundNames(item.region for item in found.blamed if item.region),
    }


def _accepted_expired(found: Findings) -> list[str]:
    today = found.record.run.started[:10]
    over = [item for item in found.criteria.accepted if not item.in_force(today)]
    return [
        row.name
        for row in found.regressed()
        if any(is_accepted(item, found.criteria, (row.name, row.metric), row.why) for item in over)
    ]


def _errors(found: Findings, failed_checks: list[str]) -> list[str]:
    return [
        step_id
        for step_id, step in found.record.ended_steps()
        if step.status in ("failed", "timeout")
        and not found.record.planned[step_id].allowed
        and step_id not in failed_checks
    ]
