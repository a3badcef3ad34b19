"""Which target of the workflow a line of the result is about, and the bound that it sets."""

from __future__ import annotations

from perfflow.model.criteria import Criteria
from perfflow.model.result import TargetResult
from perfflow.model.targets import Target, matches
from perfflow.model.units import Requirement


def bound_of(target: TargetResult, criteria: Criteria) -> Requirement | None:
    """What is required, in base units; None where it is about a peak that is not known."""
    alike = [wanted for wanted in criteria.targets if _is_alike(wanted, target)]
    named = (wanted for wanted in alike if wanted.benchmark == target.benchmark)
    found = next(named, None) or next((wanted for wanted in alike if is_about(wanted, target)), None)
    if found is None or not found.requirement.of_peak:
        return found.requirement if found else None
    return found.requirement.scaled(target.peak) if target.peak is not None else None


def is_about(wanted: Target, target: TargetResult) -> bool:
    """Whether a target of the workflow is the one that a result's line is about; the line may name its glob."""
    named = wanted.benchmark == target.benchmark or matches(wanted.benchmark, target.benchmark)
    return _is_alike(wanted, target) and named


def _is_alike(wanted: Target, target: TargetResult) -> bool:
    return (
        wanted.requirement.text == target.requirement
        and wanted.metric.name == target.metric
        and wanted.statistic == target.statistic
    )
