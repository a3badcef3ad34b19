"""The steps of a workflow in another tree: the same plan, with that tree's root, environment and outputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.flow.perform import Performer
from perfflow.flow.progress import Progress, Taken
from perfflow.flow.run_events import step_event
from perfflow.flow.workshop import Workshop
from perfflow.machine.lock import Queue
from perfflow.plan.layouts import draws_layouts
from perfflow.plan.plan import Planned
from perfflow.run.context import Scene, Settings
from perfflow.run.invoke import Failure
from perfflow.run.schedule import Schedule, StepRun
from perfflow.trees.environment import environment
from perfflow.trees.slots import Slot


@dataclass(frozen=True, slots=True)
class Nested:
    """Tells the progress of a candidate's own steps as that of the candidate."""

    outer: Progress
    candidate: Planned

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        """Nothing: the run has long begun."""

    def started(self, planned: Planned) -> None:
        """Nothing: the candidate has."""

    def waiting(self, planned: Planned, queue: Queue) -> None:  # noqa: ARG002 (the protocol's name)
        """The candidate waits for the machine."""
        self.outer.waiting(self.candidate, queue)

    def granted(self, planned: Planned) -> None:  # noqa: ARG002 (the protocol's name)
        """The candidate has the machine."""
        self.outer.granted(self.candidate)

    def sampled(self, planned: Planned, taken: Taken) -> None:  # noqa: ARG002 (the protocol's name)
        """The candidate is between two rounds of its sampling."""
        self.outer.sampled(self.candidate, taken)

    def ended(self, run: StepRun) -> None:
        """Nothing: the candidate goes on."""


def scene_in(scene: Scene, slot: Slot, settings: Settings) -> Scene:
    """The scene of a step that runs in a slot: its root, its own outputs, and the settings on top of everything.

    What the setup stage put out stands for all trees, since it runs once.
    """
    setup = {item.id for item in scene.plan.steps if item.stage == "setup"}
    outputs = {name: dict(found) for name, found in scene.outputs.items() if name in setup}
    inherited = dict(scene.inherited)
    for name, value in environment(slot, inherited).items():
        if value is None:
            inherited.pop(name, None)
        else:
            inherited[name] = value
    layouts = slot.layouts if draws_layouts(scene.plan, in_trees=True) else None
    return replace(
        scene, root=slot.path, outputs=outputs, inherited=inherited, settings=settings, slot=slot, layouts=layouts
    )


def built_with(scene: Scene, steps: Collection[str]) -> str:
    """A hash of all but the code that a build depends on as far as perfflow knows: settings, and its steps' words."""
    workflow = scene.plan.workflow
    own = [scene.plan.by_id[name] for name in steps]
    parts = [
        dict(scene.settings.env),
        scene.layouts is not None,
        {**scene.plan.params, **scene.settings.params},
        dict(workflow.env),
        dict(workflow.defaults.env),
        [dict(scene.plan.stage(item.stage).env) for item in own],
        [item.step.model_dump(mode="json") for item in own],
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def perform_all(shop: Workshop, selected: Collection[str], lock_timeout: float) -> list[StepRun]:
    """Run some steps of the plan in the shop's tree, each an event when it ends; stops at the first failure."""
    performer = Performer(shop, lock_timeout)
    runs = []
    for run in Schedule(shop.scene.plan, performer, performer.allows, selected=selected, stop=shop.stop):
        shop.folder.append(step_event(run))
        runs.append(run)
    return runs


def failure_of(run: StepRun, folder: Path, reason: str) -> Failure:
    """The failure of a step as that of the step it was run for, with its command and its log.

    ``folder`` is the run's.
    """
    argv = run.details.get("failing") or run.argv
    return Failure(reason, log=log_of(run, folder), argv=tuple(argv))


def log_of(run: StepRun, folder: Path) -> Path | None:
    """The log of a step in the run's folder."""
    return folder / run.log if run.log else None
