"""What performing a step needs: the context of the tree, the run's folder, and processes that start children."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol

from perfflow.execute import invoke
from perfflow.execute.child import Spawner
from perfflow.execute.context import TreeContext
from perfflow.execute.invoke import Failure, Invoked
from perfflow.execute.prepare import Ready, first_count, ready, sides_of
from perfflow.execute.schedule import StepRun
from perfflow.machine import noise
from perfflow.machine.noise import Noise
from perfflow.model.later import dataclass
from perfflow.model.readings import Side
from perfflow.plan.groups import Benchmarks
from perfflow.plan.plan import Planned
from perfflow.session.progress import Progress
from perfflow.session.resuming import Earlier
from perfflow.session.services import Services
from perfflow.session.total_budget import TotalBudget
from perfflow.session.waits import Waits
from perfflow.session.watched_links import watched
from perfflow.store.subrun import Keeper
from perfflow.tools.pacing import Pace
from perfflow.verdict.acceptance import Goal

Perform = Callable[["RunSession", Planned, StepRun], None]
"""Does a step's work; what it finds is in the StepRun. Raises Failure, PreparationError and ExpressionError."""


class TreeWork(Protocol):
    """What works in other trees than the user's own: it tries candidates, or compares base and head."""

    def session_for(self, planned: Planned) -> RunSession:
        """Where a step of the run runs."""

    def why_not(self, planned: Planned) -> str:  # noqa: ARG002 (for those that leave steps out)
        """Why a step is not needed; '' where it is."""
        return ""

    def finish(self) -> None:
        """After the last step of a run that was not interrupted."""

    def close(self) -> None:
        """Let other runs have the trees."""


_TREES = {Side.BASELINE: "base", Side.CANDIDATE: "head"}


@dataclass
class RunSession:
    """Shared by all steps of a run; each thread has a spawner of its own."""

    context: TreeContext
    folder: Keeper
    progress: Progress
    performer_of: Callable[[Planned], Perform]
    """What performs a step."""
    patience: float = 1800.0
    """Seconds for which a step waits for the machine."""
    budget: TotalBudget = field(default_factory=TotalBudget)
    looks: bool = True
    """Whether to look how noisy the machine is before the first measuring."""
    earlier: Earlier = field(default_factory=Earlier)
    """What the run had done before it was interrupted."""
    noise: Noise | None = None
    """What was seen of the machine; None before that."""
    contexts: Mapping[Side, TreeContext] = field(default_factory=dict)
    """The trees of both sides, where two are compared; else both are the context's."""
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
    parts: Mapping[str, Benchmarks] = field(default_factory=dict)
    """Which benchmarks of a suite are measured, by its step, where others are measured elsewhere."""
    built: Mapping[Side, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    """What build steps put out, by side, where another job built the trees as they stand."""
    asks_where: bool = True
    """Whether a step with `runs-on` is measured only where this machine is such a place."""
    allow_skipped: bool = False
    """Whether the run may do without steps that are measured elsewhere."""
    waits: Waits = field(default_factory=Waits)
    """How long steps waited for the machine, in whatever tree."""
    _spawners: list[Spawner] = field(default_factory=list)
    _local: threading.local = field(default_factory=threading.local)
    _stopped: bool = False
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _looking: threading.Lock = field(default_factory=threading.Lock)

    def nested(self, context: TreeContext, folder: Keeper, progress: Progress) -> RunSession:
        """The session of steps that run in another tree for one step of this run."""
        # What was built elsewhere are the trees of the run, not this one.
        inside = replace(self, contexts={}, earlier=Earlier(), trees=None, built={})
        return replace(inside, context=context, folder=folder, progress=progress)

    def tree_context_of(self, side: Side) -> TreeContext:
        """The tree in which a side runs."""
        return self.contexts.get(side, self.context)

    def where(self, side: Side) -> str:
        """``on head: ``, to begin what is said of a side, where two trees are compared; else nothing."""
        return f"on {_TREES[side]}: " if self.contexts else ""

    def sides_of(self, planned: Planned) -> tuple[Side, ...]:
        """Baseline alone, or both where two trees, commands or settings are compared."""
        return (Side.BASELINE, Side.CANDIDATE) if self.contexts else sides_of(self.context, planned)

    def spawner(self) -> Spawner:
        """The calling thread's spawner, started on first use. Raises KeyboardInterrupt after ``stop``."""
        found = getattr(self._local, "spawner", None)
        if isinstance(found, Spawner):
            return found
        self._local.spawner = fresh = self.further_spawner()
        return fresh

    def further_spawner(self) -> Spawner:
        """One for a process that goes on beside the steps. Raises KeyboardInterrupt after ``stop``."""
        fresh = Spawner()
        with self._guard:
            self._spawners.append(fresh)
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
            for spawner in self._spawners:
                spawner.stop()

    def pause(self) -> None:
        """Stop all that runs until ``resume``. No lock is taken: a signal's handler calls it."""
        for spawner in tuple(self._spawners):
            spawner.pause()

    def resume(self) -> None:
        """Let all that was paused go on."""
        for spawner in tuple(self._spawners):
            spawner.resume()

    def close(self) -> None:
        """Stop the services, then end all spawners and what they still run."""
        self.services.stop()
        with self._guard:
            for spawner in self._spawners:
                spawner.close()

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
        prepared = ready(self.tree_context_of(side), planned, side, folder, ops, only)
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
            return invoke.run(self.spawner(), prepared, folder)
        except Failure:
            # `argv` is the baseline's wherever there is one, and the candidate may be what failed.
            run.failing, run.failing_side = list(prepared.shown), prepared.side
            raise

    def build_first(self, planned: Planned, run: StepRun, sides: Sequence[Side], seed: int = 0) -> None:
        """Let the step's tool build what it measures, on each side. Raises PreparationError and Failure.

        ``seed``: the number of the code layout, where the step builds several.
        """
        for side in sides if planned.tool and planned.tool.is_built_first else ():
            context = replace(self.tree_context_of(side), layout_seed=seed)
            if side is not sides[0]:
                self._share_crates(self.tree_context_of(sides[0]), context)
            prepared = ready(context, planned, side, self.folder.step(planned.id) / side.value)
            if not run.argv:
                run.argv = list(prepared.shown)
            try:
                invoke.prepare(self.spawner(), watched(context, prepared))
            except Failure as failure:
                failure.reason = f"{self.where(side)}{failure.reason}"
                run.failing = list(prepared.shown)
                raise

    def _share_crates(self, built: TreeContext, other: TreeContext) -> None:
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
        folder, ops = self.folder.step(planned.id), first_count(self.context, planned)
        return ready(self.tree_context_of(side), planned, side, folder, ops).cwd / parse.file

    def benchmarks(self, planned: Planned, side: Side = Side.BASELINE) -> tuple[str, ...]:
        """Ids of a suite's benchmarks, () where the tool runs one command. Raises PreparationError and Failure."""
        folder = self.folder.step(planned.id) / ("listing" if side is Side.BASELINE else "listing-of-candidate")
        prepared = ready(self.tree_context_of(side), planned, side, folder, first_count(self.context, planned))
        return invoke.benchmarks(self.spawner(), prepared, folder)
