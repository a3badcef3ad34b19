"""The good revision built in one slot, and one revision after another built in the other and measured against it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from perfflow.flow.bisect.renamed import Renamed
from perfflow.flow.measuring import Bench
from perfflow.flow.optimize.tree_shop import built_with, scene_in
from perfflow.flow.perform import BY_ROLE, Performer
from perfflow.flow.resuming import Earlier
from perfflow.flow.run_events import step_event
from perfflow.flow.total_budget import TotalBudget
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.report.plain import shortened
from perfflow.run.context import Scene, Settings
from perfflow.run.schedule import Schedule, StepRun
from perfflow.rundir.section import Keeper
from perfflow.samples.criteria import Criteria
from perfflow.samples.readings import Side
from perfflow.samples.targets import matches
from perfflow.tools.adapter import Role
from perfflow.trees.bisection import Described
from perfflow.trees.repository import Repository
from perfflow.trees.slots import Slot, Slots
from perfflow.trees.snapshots import at
from perfflow.verdict.acceptance import Goal

SHORT = 9
"""Letters of a revision in a line of progress."""
_LONGEST_LINE = 120


class NotMeasuredError(Exception):
    """A revision cannot be built or measured; the text says which step failed, and how. ``good``: the good one's."""

    def __init__(self, reason: str, *, good: bool = False) -> None:
        super().__init__(reason)
        self.good = good


@dataclass
class Measuring:
    """The role of a step that measures: the benchmarks that are asked for, by the metric that is; all without."""

    benchmark: str = ""
    metric: str = ""
    attempt: int = 0
    """Each has coins of its own."""
    spent: float = 0.0
    """Seconds of all measuring so far."""

    def __call__(self, shop: Workshop, planned: Planned, run: StepRun) -> None:
        """Sample until all is decided. Raises Failure and PreparationError."""
        if self.metric:
            planned = replace(planned, step=planned.step.model_copy(update={"metric": self.metric}))
        bench = Bench(shop, planned, run)
        bench.start_over(shop.scene.seed + self.attempt)
        bench.note_files()
        subjects = bench.subjects()
        if self.benchmark and len(subjects) > 1:
            wanted = [item for item in subjects if self.benchmark == item.name or matches(self.benchmark, item.name)]
            subjects = wanted or subjects
        began = time.monotonic()
        try:
            with shop.budget.share(planned.id, len(subjects)) as ends:
                bench.measure(subjects, ends)
                bench.measure_over_layouts(subjects, ends)
        finally:
            self.spent += time.monotonic() - began
        bench.sampling.tell_why_stopped(subjects)
        run.warnings += bench.warnings
        run.exit_code = 0
        run.details |= bench.evidence.details() | {"identical": bench.identical}


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends the sampling of one comparison: its criteria, a goal, and seconds for it, None without a limit."""

    criteria: Criteria
    goal: Goal | None = None
    seconds: float | None = None


@dataclass
class SlotsInTurn:
    """Both slots of one bisection. The good revision stays where it is from ``show_good`` on."""

    shop: Workshop
    slots: Slots
    repository: Repository
    building: tuple[str, ...]
    lock_timeout: float
    measuring: Measuring = field(default_factory=Measuring)
    _good: Scene | None = None

    def show_good(self, commit: Described, keeper: Keeper) -> None:
        """Build the good revision. Raises NotMeasuredError and UserError."""
        self._good = self._built(self.slots.a, commit, keeper)

    def show(self, commit: Described, keeper: Keeper) -> Scene:
        """Build a revision in the other slot. Raises NotMeasuredError and UserError."""
        return self._built(self.slots.b, commit, keeper)

    def compare(self, scene: Scene, commit: Described, keeper: Keeper, steps: Collection[str], limits: Limits) -> None:
        """Measure a revision that was built in pairs with the good one. Raises NotMeasuredError."""
        if self._good is None:
            raise NotMeasuredError("the good revision is not built", good=True)
        own = replace(scene, plan=replace(scene.plan, criteria=limits.criteria))
        shop = replace(
            self._shop_in(own, commit, keeper),
            scenes={Side.BASELINE: self._good, Side.CANDIDATE: scene},
            goal=limits.goal,
            budget=TotalBudget(limits.seconds, steps),
        )
        self._perform(shop, steps)

    def _built(self, slot: Slot, commit: Described, keeper: Keeper) -> Scene:
        state = at(self.repository, commit.revision)
        slot.switch(state.tree, state.commit)
        scene = scene_in(self.shop.scene, slot, Settings())
        slot.forget_builds_unless(built_with(scene, self.building))
        self._perform(self._shop_in(scene, commit, keeper), self.building)
        return scene

    def _shop_in(self, scene: Scene, commit: Described, keeper: Keeper) -> Workshop:
        told = Renamed(self.shop.progress, commit.revision[:SHORT])
        return replace(self.shop, scene=scene, folder=keeper, earlier=Earlier(), progress=told)

    def _perform(self, shop: Workshop, steps: Collection[str]) -> None:
        performer = Performer(shop, self.lock_timeout, {**BY_ROLE, Role.MEASURE: self.measuring})
        _require_done(perform(shop, performer, steps))
        # The glance at the machine was taken once, by whichever shop measured first.
        self.shop.noise = self.shop.noise or shop.noise


def perform(shop: Workshop, performer: Performer, steps: Collection[str]) -> list[StepRun]:
    """Run some steps of the plan in the shop's tree, each an event when it ends; stops at the first failure."""
    runs = []
    for run in Schedule(shop.scene.plan, performer, performer.allows, selected=steps, stop=shop.stop):
        shop.folder.append(step_event(run))
        shop.progress.ended(run)
        runs.append(run)
    return runs


def _require_done(runs: Iterable[StepRun]) -> None:
    for run in runs:
        if run.blocks:
            good = run.details.get("failing_side") == Side.BASELINE.value
            raise NotMeasuredError(f"step {run.planned.id}: {run.reason}{_last_words(run)}", good=good)


def _last_words(run: StepRun) -> str:
    """The last line that a failed step printed, and its log; '' where it printed nothing."""
    said = [line.strip() for line in run.details.get("tail", []) if line.strip()]
    return f': "{shortened(said[-1], _LONGEST_LINE)}" (log: {run.log})' if said else ""
