"""What a plan says about its optimize stage: which steps build, measure, check and profile a tree, and the goal."""

from __future__ import annotations

from perfflow.model.criteria import read_share
from perfflow.model.later import dataclass
from perfflow.plan.building import building_steps
from perfflow.plan.plan import Plan, Planned
from perfflow.plan.references import read_by
from perfflow.tools.adapter import Role
from perfflow.verdict.acceptance import ACCEPT, Goal, goal_of
from perfflow.workflow.model import Stage
from perfflow.workflow.roles import CANDIDATES_STAGE, stage_role

ATTEMPTS = 3
"""Tries of a proposer, where the stage does not say."""
DIMINISHING = 0.02
"""The effect below which going on is not worth it, where the stage does not say."""


@dataclass(frozen=True)
class StagePlan:
    """Ids of steps by what they do to each tree, and the limits of the stage."""

    own: Stage
    candidates: tuple[Planned, ...]
    building: tuple[str, ...]
    measuring: tuple[str, ...]
    checking: tuple[str, ...]
    profiling: tuple[str, ...]
    later: frozenset[str]
    """Stages after this one: they run on what was kept."""
    goal: Goal
    diminishing: float
    attempts: int


def _checking_steps(plan: Plan, later: frozenset[str]) -> tuple[str, ...]:
    """Ids of the checks that every candidate must pass, and of the work they need.

    Other work after the stage (a package, an upload) is done once, on what was kept.
    """
    correctness = {name for name in plan.workflow.stages if stage_role(plan.workflow, name) is Role.CHECK}
    stages = {*later, *correctness}
    able = [item for item in plan.steps if item.stage in stages and item.step.candidates]
    # A tool that does work in the correctness stage stands there for its checks.
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
    """Read it off a plan; None where the workflow has no candidates."""
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
        # A step that compares two commands or variants where it stands has a comparison of its own.
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
