"""The target of the workflow that belongs to a target of the result, and its bound."""

from __future__ import annotations

from perfflow.model.criteria import Criteria
from perfflow.model.result import TargetResult
from perfflow.model.targets import Target, matches
from perfflow.model.units import Requirement


def bound_of(target: TargetResult, criteria: Criteria) -> Requirement | None:
    """Return the requirement in base units, or None if it refers to a peak that is not known."""
    alike = [wanted for wanted in criteria.targets if _is_alike(wanted, target)]
    named = (wanted for wanted in alike if wanted.benchmark == target.benchmark)
    found = next(named, None) or next((wanted for wanted in alike if is_about(wanted, target)), None)
    if found is None or not found.requirement.of_peak:
        return found.requirement if found else None
    return found.requirement.scaled(target.peak) if target.peak is not None else None


def is_about(wanted: Target, target: TargetResult) -> bool:
    """Return whether a target of the result belongs to a target of the workflow, by its name or its glob."""
    named = wanted.benchmark == target.benchmark or matches(wanted.benchmark, target.benchmark)
    return _is_alike(wanted, target) and named


def _is_alike(wanted: Target, target: TargetResult) -> bool:
    return (
        wanted.requirement.text == target.requirement
        and wanted.metric.name == target.metric
        and wanted.statistic == target.statistic
    )
