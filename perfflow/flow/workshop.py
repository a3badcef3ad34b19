"""What performing a step needs: the scene, the run's folder, and processes that start children."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from perfflow.flow.code_layouts.watching import watched
from perfflow.flow.progress import Progress
from perfflow.flow.resuming import Earlier
from perfflow.flow.services import Services
from perfflow.flow.total_budget import TotalBudget
from perfflow.flow.waiting import Waits
from perfflow.machine import noise
from perfflow.machine.noise import Noise
from perfflow.plan.plan import Planned
from perfflow.process.child import Attendant
from perfflow.run import invoke
from perfflow.run.context import Scene
from perfflow.run.invoke import Failure, Invoked
from perfflow.run.prepare import Ready, operations, ready, sides_of
from perfflow.run.schedule import StepRun
from perfflow.rundir.section import Keeper
from perfflow.samples.readings import Side
from perfflow.tools.pacing import Pace
from perfflow.verdict.acceptance import Goal


class TreeWork(Protocol):
    """What works in other trees than the user's own: it tries candidates, or compares base and head."""

    def try_candidate(self, planned: Planned, run: StepRun) -> None:
        """Try one candidate; what became of it is in the run's details."""

    def compare_with_original(self, planned: Planned, run: StepRun) -> None:
        """Measure what was kept against the code as it stood."""

    def shop_for(self, planned: Planned) -> Workshop:
        """Where a step of the run runs."""

    def why_not(self, planned: Planned) -> str:
        """Why a step is not needed; '' where it is."""

    def finish(self) -> None:
        """After the last step of a run that was not interrupted."""

    def close(self) -> None:
        """Let other runs have the trees."""


_TREES = {Side.BASELINE: "base", Side.CANDIDATE: "head"}


@dataclass
class Workshop:
    """Shared by all steps of a run; each thread has an attendant of its own."""

    scene: Scene
    folder: Keeper
    progress: Progress
    budget: TotalBudget = field(default_factory=TotalBudget)
    looks: bool = True
    """Whether to look how noisy the machine is before the first measuring."""
    earlier: Earlier = field(default_factory=Earlier)
    """What the run had done before it was interrupted."""
    noise: Noise | None = None
    """What was seen of the machine; None before that."""
    scenes: Mapping[Side, Scene] = field(default_factory=dict)
    """The trees of both sides, where two are compared; else both are the scene's."""
    trees: TreeWork | None = None
    """What works in other trees, where candidates are tried or base and head compared."""
    goal: Goal | None = None
    """What a candidate must reach, while one is measured."""
    over_layouts: bool = False
    """Whether all is measured over code layouts where they are drawn, whatever was found as built."""
    comparing: int = 1
    """How many steps of the run compare two sides: of many, each is screened first."""
    services: Services = field(default_factory=Services)
    """What was started in the background."""
    waits: Waits = field(default_factory=Waits)
    """How long steps waited for the machine, in whatever tree."""
    _attendants: list[Attendant] = field(default_factory=list)
    _local: threading.local = field(default_factory=threading.local)
    _stopped: bool = False
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _looking: threading.Lock = field(default_factory=threading.Lock)

    def scene_of(self, side: Side) -> Scene:
        """The tree in which a side runs."""
        return self.scenes.get(side, self.scene)

    def where(self, side: Side) -> str:
        """``on head: ``, to begin what is said of a side, where two trees are compared; else nothing."""
        return f"on {_TREES[side]}: " if self.scenes else ""

    def sides_of(self, planned: Planned) -> tuple[Side, ...]:
        """Baseline alone, or both where two trees, commands or settings are compared."""
        return (Side.BASELINE, Side.CANDIDATE) if self.scenes else sides_of(self.scene, planned)

    def attendant(self) -> Attendant:
        """The calling thread's attendant, started on first use. Raises KeyboardInterrupt after ``stop``."""
        found = getattr(self._local, "attendant", None)
        if isinstance(found, Attendant):
            return found
        self._local.attendant = fresh = self.further_attendant()
        return fresh

    def further_attendant(self) -> Attendant:
        """One for a process that goes on beside the steps. Raises KeyboardInterrupt after ``stop``."""
        fresh = Attendant()
        with self._guard:
            self._attendants.append(fresh)
            stopped = self._stopped
        if stopped:
            raise KeyboardInterrupt
        return fresh

    def look_at_noise(self) -> bool:
        """See how noisy the machine is and record it, once; called while holding the machine. Whether it looked."""
        # Steps that share the machine (`alone: false`) may come here at once.
        with self._looking:
            if not self.looks or self.noise is not None:
                return False
            self.noise = noise.glance()
            self.folder.append({"event": "noise", **noise.as_json(self.noise.findings, self.noise.test)})
            return True

    def stop(self) -> None:
        """Stop whatever runs in any thread, and start nothing more."""
        with self._guard:
            self._stopped = True
            for attendant in self._attendants:
                attendant.stop()

    def pause(self) -> None:
        """Stop all that runs until ``resume``. No lock is taken: a signal's handler calls it."""
        for attendant in tuple(self._attendants):
            attendant.pause()

    def resume(self) -> None:
        """Let all that was paused go on."""
        for attendant in tuple(self._attendants):
            attendant.resume()

    def close(self) -> None:
        """Stop the services, then end all attendants and what they still run."""
        self.services.stop()
        with self._guard:
            for attendant in self._attendants:
                attendant.close()

    def invoke(
        self, planned: Planned, side: Side, run: StepRun, ops: int | None = None, only: str = ""
    ) -> tuple[Ready, Invoked]:
        """Prepare and run one call of a step on one side. Raises PreparationError and Failure."""
        prepared = self.prepare(planned, side, run, ops, only)
        return prepared, self.start(prepared, run)

    def prepare(
        self,
        planned: Planned,
        side: Side,
        run: StepRun,
        ops: int | None = None,
        only: str = "",
        pace: Pace | None = None,
    ) -> Ready:
        """What one call of a step on one side will start, noted in ``run``. Raises PreparationError."""
        folder = self.folder_of(planned, side)
        prepared = ready(self.scene_of(side), planned, side, folder, ops, only)
        if pace and prepared.call:
            prepared = replace(prepared, call=replace(prepared.call, pace=pace))
        if side is Side.BASELINE or not run.argv:
            run.argv = list(prepared.shown)
        run.log = str((folder / "stderr").relative_to(self.folder.path))
        return prepared

    def folder_of(self, planned: Planned, side: Side) -> Path:
        """Where the files of a step's call on one side lie."""
        folder = self.folder.step(planned.id)
        return folder / side.value if planned.tool else folder

    def start(self, prepared: Ready, run: StepRun) -> Invoked:
        """Run a prepared call, as often as it is wanted. Raises Failure."""
        folder = self.folder_of(prepared.planned, prepared.side)
        folder.mkdir(exist_ok=True)
        try:
            return invoke.run(self.attendant(), prepared, folder)
        except Failure:
            # `argv` is the baseline's wherever there is one, and the candidate may be what failed.
            run.details |= {"failing": list(prepared.shown), "failing_side": prepared.side.value}
            raise

    def build_first(self, planned: Planned, run: StepRun, sides: Sequence[Side], seed: int = 0) -> None:
        """Let the step's tool build what it measures, on each side. Raises PreparationError and Failure.

        ``seed``: the number of the code layout, where the step builds several.
        """
        for side in sides if planned.tool and planned.tool.is_built_first else ():
            scene = replace(self.scene_of(side), layout_seed=seed)
            if side is not sides[0]:
                self._share_crates(self.scene_of(sides[0]), scene)
            prepared = ready(scene, planned, side, self.folder.step(planned.id) / side.value)
            if not run.argv:
                run.argv = list(prepared.shown)
            try:
                invoke.prepare(self.attendant(), watched(scene, prepared))
            except Failure as failure:
                failure.reason = f"{self.where(side)}{failure.reason}"
                run.details["failing"] = list(prepared.shown)
                raise

    def _share_crates(self, built: Scene, other: Scene) -> None:
        """Hand on what one side's build made of crates from elsewhere."""
        if built.slot and other.slot:
            # Imported where it is needed: most runs need no trees.
            from perfflow.trees.shared_crates import share_crates

            share_crates(built.slot, other.slot)

    def parsed_file(self, planned: Planned, side: Side) -> Path | None:
        """The file that ``parse`` reads, None for standard output. Raises PreparationError."""
        parse = planned.step.parse
        if parse is None or not parse.file:
            return None
        folder, ops = self.folder.step(planned.id), self._first_ops(planned)
        return ready(self.scene_of(side), planned, side, folder, ops).cwd / parse.file

    def _first_ops(self, planned: Planned) -> int | None:
        """A number for `${{ ops }}` where it makes no difference which."""
        return next(iter(operations(self.scene, planned)), None)

    def benchmarks(self, planned: Planned, side: Side = Side.BASELINE) -> tuple[str, ...]:
        """Ids of a suite's benchmarks, () where the tool runs one command. Raises PreparationError and Failure."""
        folder = self.folder.step(planned.id) / ("listing" if side is Side.BASELINE else "listing-of-candidate")
        prepared = ready(self.scene_of(side), planned, side, folder, self._first_ops(planned))
        return invoke.benchmarks(self.attendant(), prepared, folder)
