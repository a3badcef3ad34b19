"""Checks that involve several values: known steps and tools, expressions, units; and the criteria of the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import Metric
from perfflow.workflow import criteria_checks, expression_checks, step_checks, worktree_checks
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Step
from perfflow.workflow.roles import metrics_added_by


def check(draft: Draft, params: Mapping[str, Any]) -> Criteria:
    """Check the valid parts of the draft, add the problems to it, and return the criteria that could be read."""
    for stage, step, loc in each_step(draft):
        if draft.full:
            break
        step_checks.check(draft, stage, step, loc)
        expression_checks.check_step(draft, step, loc)
    for name, stage_model in draft.workflow.stages.items():
        step_checks.check_stage(draft, stage_model, ("stages", name))
        expression_checks.check_stage(draft, stage_model, ("stages", name))
    expression_checks.check_header(draft)
    step_checks.check_header(draft)
    worktree_checks.check(draft)
    return criteria_checks.read(draft, _metrics(draft), params)


def each_step(draft: Draft) -> Iterator[tuple[str, Step, Loc]]:
    """Yield the stage name, the step and the location of every step, including invalid ones."""
    for name, stage in draft.workflow.stages.items():
        for step in stage.steps:
            yield name, step, draft.steps[step.id]


def _metrics(draft: Draft) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for _, step, loc in each_step(draft):
        for name, metric in metrics_added_by(step).items():
            other = found.setdefault(name, metric)
            if other.dimension is not metric.dimension:
                message = f"`{name}` is a {metric.dimension.noun} here, but a {other.dimension.noun} in another step"
                draft.complain((*loc, "parse", "units", name), message, "rename one of the two metrics")
    return found
