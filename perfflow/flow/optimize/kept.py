"""What is kept so far, in one of two slots, and a candidate on top of it in the other."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from perfflow.flow.optimize.changes import Change, RejectedError
from perfflow.flow.optimize.stage import StagePlan
from perfflow.flow.optimize.tree_shop import Nested, built_with, failure_of, log_of, perform_all, scene_in
from perfflow.flow.resuming import Earlier
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run.context import Scene, Settings
from perfflow.run.invoke import Failure
from perfflow.run.schedule import StepRun
from perfflow.rundir.section import Section
from perfflow.samples.readings import Side
from perfflow.trees.repository import State
from perfflow.trees.slots import Slot, Slots

_SHARE = "is something ignored that it needs? name it under `worktree: {share: [...]}`"


class Kept:
    """The code and settings kept so far, built in ``slot``; the other slot is for what comes next."""

    def __init__(self, shop: Workshop, stage: StagePlan, slots: Slots, original: State, lock_timeout: float) -> None:
        self._shop, self._stage, self._lock_timeout = shop, stage, lock_timeout
        self.original, self.state, self.settings = original, original, Settings()
        self.slot, self.other = slots.a, slots.b
        self.scene: Scene | None = None

    @property
    def standing(self) -> Scene:
        """The tree in which what is kept stands built. Raises Failure before ``set_up``."""
        if self.scene is None:
            raise Failure("what was kept is not built")
        return self.scene

    @property
    def changed(self) -> bool:
        """Whether anything was kept."""
        return self.state.tree != self.original.tree or self.settings != Settings()

    def shop_in(self, scene: Scene, section: Section, candidate: Planned) -> Workshop:
        """The workshop whose steps run in one tree."""
        nested = Nested(self._shop.progress, candidate)
        return replace(
            self._shop, scene=scene, scenes={}, folder=section, earlier=Earlier(), progress=nested, trees=None
        )

    def shop_between(self, baseline: Scene, candidate: Scene, section: Section, planned: Planned) -> Workshop:
        """The workshop whose steps run in two trees, turn about; steps with one side run in the candidate's."""
        scenes = {Side.BASELINE: baseline, Side.CANDIDATE: candidate}
        return replace(self.shop_in(candidate, section, planned), scenes=scenes)

    def built(self, slot: Slot, tree: str, settings: Settings, section: Section, candidate: Planned) -> Scene:
        """Show a tree in a slot and build it. Raises RejectedError where a step of the build fails."""
        slot.switch(tree, self.state.commit)
        scene = scene_in(self._shop.scene, slot, settings)
        slot.forget_builds_unless(built_with(scene, self._stage.building))
        self.perform(self.shop_in(scene, section, candidate), self._stage.building, "it does not build")
        return scene

    def perform(self, shop: Workshop, steps: Collection[str], what: str) -> list[StepRun]:
        """Run steps of the plan. Raises RejectedError, beginning with ``what``, where one fails."""
        runs = perform_all(shop, steps, self._lock_timeout)
        for run in runs:
            if run.blocks and run.details.get("failing_side") == Side.BASELINE.value:
                said = f"{run.planned.id}, on the code it is compared with: {run.reason}; {_SHARE}"
                raise failure_of(run, shop.folder.path, said)
            if run.blocks:
                detail = f": {run.details['detail']}" if run.details.get("detail") else ""
                said = f"{what}: step {run.planned.id}: {run.reason}{detail}"
                raise RejectedError(said, log_of(run, shop.folder.path))
        return runs

    def set_up(self, section: Callable[[], Section], candidate: Planned) -> None:
        """Build what is kept where it is not built yet. Raises Failure: without it nothing can be compared."""
        if self.scene is not None:
            return
        where = section()
        try:
            scene = self.built(self.slot, self.state.tree, self.settings, where, candidate)
            shop = self.shop_in(scene, where, candidate)
            self.perform(shop, self._stage.checking, "correctness does not hold")
        except RejectedError as error:
            said = f"the code as it stands cannot be compared in another folder: {error}; {_SHARE}"
            raise Failure(said, log=error.log) from error
        self.scene = scene

    def keep(self, state: State, change: Change, scene: Scene) -> None:
        """Take over a candidate that stands built in the other slot."""
        self.state, self.settings, self.scene = state, change.own.on_top(self.settings), scene
        self.slot, self.other = self.other, self.slot
