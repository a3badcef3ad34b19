"""The user's request for a bisection, its good and bad revisions, and the steps that measure them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.model.metrics import METRICS
from perfflow.plan.build_steps import building_steps
from perfflow.plan.plan import Plan, Planned
from perfflow.session.open_workflow import select
from perfflow.tools.adapter import Role
from perfflow.trees.bisection import Described, described
from perfflow.trees.repository import Repository
from perfflow.workflow.roles import CANDIDATES_STAGE


@dataclass(frozen=True)
class BisectRequest:
    """The user's options. ``benchmarks`` are names or globs; without any, it is the benchmark that regressed most.

    ``budget``: seconds for all measurements together; None for no limit.
    """

    good: str
    bad: str = "HEAD"
    only: Sequence[str] = ()
    benchmarks: Sequence[str] = ()
    metric: str = ""
    budget: float | None = None
    first_parent: bool = False
    out: Path | None = None
    resume: Path | None = None
    """Folder of an interrupted bisection to resume."""
    seed: int | None = None
    lock_timeout: float = 1800.0
    command: Sequence[str] = ()


@dataclass(frozen=True)
class Endpoints:
    """A bad revision and its good ancestor, with notes about how that was found."""

    good: Described
    bad: Described
    notes: list[str] = field(default_factory=list)


def endpoints(repository: Repository, asked: BisectRequest) -> Endpoints:
    """Find both revisions. Raises UserError for unknown revisions, and if no change can lie between them."""
    good, bad = (described(repository, repository.revision(name)) for name in (asked.good, asked.bad))
    parted = repository.merge_base(good.revision, bad.revision)
    if good.revision == bad.revision:
        raise UserError.of("--good and --bad are the same commit", "name an older one as --good")
    if parted == bad.revision:
        hint = f"the older one must be the good one: --good {asked.bad} --bad {asked.good}"
        raise UserError.of(f"{asked.bad} is an ancestor of {asked.good}", hint)
    notes = []
    if parted != good.revision:
        notes.append(f"{asked.good} is not an ancestor of {asked.bad}: their merge base {parted[:12]} is used instead")
        good = described(repository, parted)
    if repository.tree(good.revision) == repository.tree(bad.revision):
        raise UserError.of(f"{asked.good} and {asked.bad} have the same files", "nothing can have changed between them")
    return Endpoints(good, bad, notes)


@dataclass(frozen=True)
class Steps:
    """Ids of the steps that run once, that build each tree, and that measure it."""

    setup: tuple[str, ...]
    building: tuple[str, ...]
    measuring: tuple[str, ...]

    def all(self, plan: Plan) -> list[Planned]:
        """Return all these steps, in the order of the plan."""
        return [item for item in plan.steps if item.id in {*self.setup, *self.building, *self.measuring}]


def steps_of(plan: Plan, asked: BisectRequest) -> Steps:
    """Choose the steps. Raises UserError if no step measures, and for an unknown metric or an unusable service."""
    selected = select(plan, (), asked.only, None, asked.benchmarks)
    stages = list(plan.workflow.stages)
    later = set(stages[stages.index(CANDIDATES_STAGE) + 1 :]) if CANDIDATES_STAGE in stages else set()
    # A step that compares two commands has its own baseline, so it cannot compare two revisions.
    able = [i for i in plan.steps if i.role is Role.MEASURE and i.stage not in later and i.step.candidate is None]
    measuring = tuple(item.id for item in able if item.id in selected)
    if not measuring:
        hint = f"steps that can: {', '.join(item.id for item in able)}" if able else "add a step that measures"
        raise UserError.of("none of the steps can be measured on two revisions", hint)
    if asked.metric and asked.metric not in {*METRICS, *plan.criteria.metrics}:
        known = ", ".join([*METRICS, *plan.criteria.metrics])
        raise UserError.of(f"--metric {asked.metric}: no such metric", f"metrics: {known}")
    setup = tuple(item.id for item in plan.steps if item.stage == "setup")
    building = building_steps(plan)
    service = next((name for name in building if plan.by_id[name].step.background), None)
    if service:
        text = f"the service `{service}` would keep running after the tree of its commit is replaced"
        raise UserError.of(text, "measure with a command that starts and stops it, or start it in the `setup` stage")
    return Steps(setup, building, measuring)
