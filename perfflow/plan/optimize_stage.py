"""Read the optimize stage of a plan: the steps that build, measure, check and profile a tree, and the goal."""

from __future__ import annotations

from dataclasses import dataclass

from perfflow.model.criteria import read_share
from perfflow.plan.build_steps import building_steps
from perfflow.plan.plan import Plan, Planned
from perfflow.plan.references import read_by
from perfflow.tools.adapter import Role
from perfflow.verdict.acceptance import ACCEPT, Goal, goal_of
from perfflow.workflow.model import Stage
from perfflow.workflow.roles import CANDIDATES_STAGE, stage_role

ATTEMPTS = 3
"""Default number of attempts of a proposer."""
DIMINISHING = 0.02
"""Default effect below which the stage stops, as a share."""


@dataclass(frozen=True)
class StagePlan:
    """Ids of the steps that run on each tree, by purpose, and the limits of the stage."""

    own: Stage
    candidates: tuple[Planned, ...]
    building: tuple[str, ...]
    measuring: tuple[str, ...]
    checking: tuple[str, ...]
    profiling: tuple[str, ...]
    later: frozenset[str]
    """Stages after this one, which run on the kept candidates."""
    goal: Goal
    diminishing: float
    attempts: int


def _checking_steps(plan: Plan, later: frozenset[str]) -> tuple[str, ...]:
    """Return the ids of the checks that every candidate must pass, and of the work steps they need.

    Other work after the stage (a package, an upload) is done once, on the kept candidates.
    """
    correctness = {name for name in plan.workflow.stages if stage_role(plan.workflow, name) is Role.CHECK}
    stages = {*later, *correctness}
    able = [item for item in plan.steps if item.stage in stages and item.step.candidates]
    # A work step in a correctness stage is there for the checks.
    wanted = {
        item.id for item in able if item.role is Role.CHECK or (item.role is Role.WORK and item.stage in correctness)
    }
    work = {item.id for item in able if item.role is Role.WORK}
    found: set[str] = set()
    while wanted:
        found |= wanted
        needed = {name for each in wanted for name in (*plan.by_id[each].needs, *read_by(plan, plan.by_id[each]))}
        wanted = (needed & work) - found
    return tuple(item.id for item in plan.steps if item.id in found)


def stage_plan(plan: Plan) -> StagePlan | None:
    """Return the optimize stage of a plan, or None if the workflow has no candidates."""
    candidates = tuple(item for item in plan.steps if item.role is Role.CANDIDATE)
    if not candidates:
        return None
    own, names = plan.stage(CANDIDATES_STAGE), list(plan.workflow.stages)
    later = frozenset(names[names.index(CANDIDATES_STAGE) + 1 :])
    earlier = [item for item in plan.steps if item.stage not in later]
    accept = read_share(own.accept) if own.accept else ACCEPT
    return StagePlan(
        own,
        candidates,
        building=building_steps(plan),
        # A step with `candidate` or `variants` compares its own two sides.
        measuring=tuple(
            item.id
            for item in earlier
            if item.role is Role.MEASURE and item.step.candidate is None and item.step.variants is None
        ),
        checking=_checking_steps(plan, later),
        profiling=tuple(item.id for item in earlier if item.role is Role.PROFILE),
        later=later,
        goal=goal_of(plan.criteria, own.objective, own.guard, accept),
        diminishing=read_share(own.diminishing) if own.diminishing else DIMINISHING,
        attempts=own.attempts or ATTEMPTS,
    )
