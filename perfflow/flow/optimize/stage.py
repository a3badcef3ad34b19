"""What a plan says about its optimize stage: which steps build, measure, check and profile a tree, and the goal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perfflow.plan.plan import Plan, Planned
from perfflow.samples.criteria import read_share
from perfflow.tools.protocol import Role
from perfflow.verdict.acceptance import ACCEPT, Goal, goal_of
from perfflow.workflow.expressions import Expression, pieces
from perfflow.workflow.model import Stage, Step
from perfflow.workflow.roles import CANDIDATES_STAGE, CORRECTNESS_STAGE

ATTEMPTS = 3
"""Tries of a proposer, where the stage does not say."""
DIMINISHING = 0.02
"""The effect below which going on is not worth it, where the stage does not say."""


@dataclass(frozen=True, slots=True)
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


def building_steps(plan: Plan) -> tuple[str, ...]:
    """Ids of the steps that run in every tree that is measured.

    They are those of the stages between setup and baseline, and what prepares the measuring in the baseline stage.
    """
    names = list(plan.workflow.stages)
    measuring = next((name for name in ("baseline", CANDIDATES_STAGE) if name in names), None)
    before = set(names[: names.index(measuring)] if measuring else []) - {"setup"}
    return tuple(
        item.id for item in plan.steps if item.stage in before or (item.stage == "baseline" and item.role is Role.WORK)
    )


def _checking_steps(plan: Plan, later: frozenset[str]) -> tuple[str, ...]:
    """Ids of the checks that every candidate must pass, and of the work they need.

    Other work after the stage (a package, an upload) is done once, on what was kept.
    """
    stages = {*later, CORRECTNESS_STAGE}
    able = [item for item in plan.steps if item.stage in stages and item.step.candidates]
    # A tool that does work in the correctness stage stands there for its checks.
    wanted = {
        item.id
        for item in able
        if item.role is Role.CHECK or (item.role is Role.WORK and item.stage == CORRECTNESS_STAGE)
    }
    work = {item.id for item in able if item.role is Role.WORK}
    found: set[str] = set()
    while wanted:
        found |= wanted
        needed = {name for each in wanted for name in (*plan.by_id[each].needs, *_read_by(plan, plan.by_id[each]))}
        wanted = (needed & work) - found
    return tuple(item.id for item in plan.steps if item.id in found)


def _read_by(plan: Plan, item: Planned) -> Iterator[str]:
    """Ids of the steps whose outputs a step uses."""
    used = {name for text in _expressions(item.step) for name in text.names() if name[0] == "steps" and len(name) > 1}
    for _, name, *_ in used:
        yield from (name,) if name in plan.by_id else (cell.id for cell in plan.cells_of(name))


def _expressions(step: Step) -> Iterator[Expression]:
    condition = step.if_
    if isinstance(condition, str) and "steps" in condition:
        yield Expression(condition)
    for text in _texts(step.model_dump(by_alias=True, exclude_unset=True, exclude={"if_", "id"})):
        if "${{" in text:
            yield from (part for part in pieces(text) if isinstance(part, Expression))


def _texts(value: Any) -> Iterator[str]:
    """Every text inside nested data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


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
        # A step that compares two commands where it stands has a comparison of its own.
        measuring=tuple(item.id for item in earlier if item.role is Role.MEASURE and item.step.candidate is None),
        checking=_checking_steps(plan, later),
        profiling=tuple(item.id for item in earlier if item.role is Role.PROFILE),
        later=later,
        goal=goal_of(plan.criteria, own.objective, own.guard, accept),
        diminishing=read_share(own.diminishing) if own.diminishing else DIMINISHING,
        attempts=own.attempts or ATTEMPTS,
    )
