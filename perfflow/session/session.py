"""State shared by the steps of a run: the tree context, the run's folder, and the processes that start children."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from perfflow.execute import invoke
from perfflow.execute.child import Spawner
from perfflow.execute.context import TreeContext
from perfflow.execute.deadline import Deadline
from perfflow.execute.invoke import Failure, Invoked
from perfflow.execute.prepare import Ready, first_count, ready, sides_of
from perfflow.execute.schedule import StepRun
from perfflow.machine import noise
from perfflow.machine.noise import Noise
from perfflow.model.readings import Side
from perfflow.plan.groups import Benchmarks
from perfflow.plan.plan import Planned
from perfflow.session.benchmark_names import benchmark_name
from perfflow.session.earlier_run import Earlier
from perfflow.session.kept_traces import listed
from perfflow.session.known_names import KnownNames
from perfflow.session.progress import Progress
from perfflow.session.recorded_links import with_links_recorded
from perfflow.session.services import Services
from perfflow.session.total_budget import TotalBudget
from perfflow.session.wait_times import Waits
from perfflow.store.subrun import EventStore
from perfflow.tools.pacing import Pace
from perfflow.trees.shared_crates import share_crates
from perfflow.verdict.acceptance import Goal

Perform = Callable[["RunSession", Planned, StepRun], None]
"""Performs a step and stores the results in the StepRun. Raises Failure, PreparationError and ExpressionError."""


class TreeWork(Protocol):
    """A job that works in trees other than the user's: it tries candidates, or compares base and head."""

    def show(self, planned: Planned) -> None:  # noqa: ARG002 (for jobs whose trees an earlier run may have built)
        """Show the trees in which a step builds, so that it is known whether they are built already. Raises Failure."""
        return

    def session_for(self, planned: Planned) -> RunSession:
        """Return the session in which a step of the run runs."""

    def why_not(self, planned: Planned) -> str:  # noqa: ARG002 (for jobs that skip steps)
        """Return why a step is not needed, '' if it is."""
        return ""

    def finish(self) -> None:
        """Finish the job after the last step, unless the run was interrupted."""

    def close(self) -> None:
        """Release the trees for other runs."""


T = TypeVar("T")
_TREES = {Side.BASELINE: "base", Side.CANDIDATE: "head"}


@dataclass
class RunSession:
    """The state shared by all steps of a run. Each thread has its own spawner."""

    context: TreeContext
    folder: EventStore
    progress: Progress
    performer_of: Callable[[Planned], Perform]
    """Returns the function that performs a step."""
    lock_timeout: float = 1800.0
    """Longest time (s) that a step waits for the machine."""
    deadline: Deadline = field(default_factory=Deadline)
    """When the command must have ended."""
    budget: TotalBudget = field(default_factory=TotalBudget)
    checks_noise: bool = True
    """Whether to check the noise of the machine before the first measurement."""
    earlier: Earlier = field(default_factory=Earlier)
    """Steps and samples from before the run was interrupted."""
    noise: Noise | None = None
    """The noise of the machine, None before the check."""
    contexts: Mapping[Side, TreeContext] = field(default_factory=dict)
    """The trees of both sides if two are compared, else empty: both sides use ``context``."""
    trees: TreeWork | None = None
    """The job in other trees, if candidates are tried or base and head are compared."""
    goal: Goal | None = None
    """The goal that a candidate must reach, while one is measured."""
    over_layouts: bool = False
    """Whether to measure all benchmarks over code layouts if layouts are drawn, whatever the result as built."""
    times_all: bool = False
    """Whether to time also benchmarks that cannot have changed."""
    changed: frozenset[str] = frozenset()
    """Paths of the files that differ between base and head."""
    plants: bool = False
    """Whether head is slowed down on purpose, to test whether the gate finds it."""
    compared_steps: int = 1
    """Number of steps that compare two sides. If there are many, each is screened first."""
    services: Services = field(default_factory=Services)
    """Services that were started in the background."""
    disturbed: frozenset[str] = frozenset()
    """Steps with a suite whose benchmarks disturb each other, so that each of them has its own process."""
    parts: Mapping[str, Benchmarks] = field(default_factory=dict)
    """By step, the benchmarks of its suite to measure here, if others are measured elsewhere."""
    built: Mapping[Side, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    """Outputs of the build steps by side, if another job or an earlier run built the trees."""
    asks_where: bool = True
    """Whether to measure a step with `runs-on` only if this machine matches."""
    allow_skipped: bool = False
    """Whether the run may skip steps that are measured elsewhere."""
    names: KnownNames = field(default_factory=KnownNames)
    """The names of the benchmarks so far, and those that the user chose."""
    waits: Waits = field(default_factory=Waits)
    """Time that steps of any tree waited for the machine."""
    _spawners: list[Spawner] = field(default_factory=list)
    _local: threading.local = field(default_factory=threading.local)
    _stopped: bool = False
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _checking_noise: threading.Lock = field(default_factory=threading.Lock)

    def nested(self, context: TreeContext, folder: EventStore, progress: Progress) -> RunSession:
        """Return a session for steps that run in another tree for one step of this run."""
        # `built` describes the trees of the run, not this one.
        inside = replace(self, contexts={}, earlier=Earlier(), trees=None, built={})
        return replace(inside, context=context, folder=folder, progress=progress)

    def tree_context_of(self, side: Side) -> TreeContext:
        """Return the tree in which a side runs."""
        return self.contexts.get(side, self.context)

    def where(self, side: Side) -> str:
        """Return a prefix for messages about a side, such as ``on head: ``, if two trees are compared; else ''."""
        return f"on {_TREES[side]}: " if self.contexts else ""

    def sides_of(self, planned: Planned) -> tuple[Side, ...]:
        """Return both sides if two trees, commands or settings are compared, else the baseline alone."""
        return (Side.BASELINE, Side.CANDIDATE) if self.contexts else sides_of(self.context, planned)

    def spawner(self) -> Spawner:
        """Return the calling thread's spawner, started on first use. Raises KeyboardInterrupt after ``stop``."""
        found = getattr(self._local, "spawner", None)
        if isinstance(found, Spawner):
            return found
        self._local.spawner = fresh = self.extra_spawner(self.deadline)
        return fresh

    def extra_spawner(self, deadline: Deadline | None = None) -> Spawner:
        """Return a spawner for a process that runs beside the steps. Raises KeyboardInterrupt after ``stop``.

        ``deadline``: when its children must have ended; None for children that end with the run.
        """
        fresh = Spawner(deadline)
        with self._guard:
            self._spawners.append(fresh)
            stopped = self._stopped
        if stopped:
            raise KeyboardInterrupt
        return fresh

    def at_once(self, first: Callable[[], T], second: Callable[[], T]) -> tuple[T, T]:
        """Call two functions that start processes at the same time.

        Raises what the first one raises, or else the second one, after both end.
        """
        if not hasattr(self._local, "beside"):
            self._local.beside = ThreadPoolExecutor(1)
        future = self._local.beside.submit(first)
        try:
            done = second()
        except KeyboardInterrupt:
            self.stop()
            raise
        except Exception:
            future.result()
            raise
        finally:
            wait([future])
        return future.result(), done

    def check_noise(self) -> bool:
        """Check the noise of the machine and record it, once, while holding the machine. Return whether it checked."""
        # Steps that share the machine (`alone: false`) may call this at the same time.
        with self._checking_noise:
            if not self.checks_noise or self.noise is not None:
                return False
            self.noise = noise.quick_check()
            self.folder.append({"event": "noise", **noise.as_json(self.noise.findings, self.noise.test)})
            return True

    def stop(self) -> None:
        """Stop the processes of all threads, and start no more."""
        with self._guard:
            self._stopped = True
            for spawner in self._spawners:
                spawner.stop()

    def pause(self) -> None:
        """Stop all processes until ``resume``. Takes no lock, because a signal handler calls it."""
        for spawner in tuple(self._spawners):
            spawner.pause()

    def resume(self) -> None:
        """Continue all paused processes."""
        for spawner in tuple(self._spawners):
            spawner.resume()

    def close(self) -> None:
        """Stop the services, then end all spawners and their processes."""
        self.services.stop()
        with self._guard:
            for spawner in self._spawners:
                spawner.close()

    def invoke(self, planned: Planned, side: Side, run: StepRun, ops: int | None = None) -> tuple[Ready, Invoked]:
        """Prepare and run one call of a step on one side. Raises PreparationError and Failure."""
        prepared = self.prepare(planned, side, run, ops)
        return prepared, self.start(prepared, run)

    def prepare(
        self,
        planned: Planned,
        side: Side,
        run: StepRun,
        ops: int | None = None,
        chosen: tuple[str, ...] = (),
        pace: Pace | None = None,
    ) -> Ready:
        """Return one call of a step on one side, and note it in ``run``. Raises PreparationError."""
        folder = self.folder_of(planned, side)
        prepared = ready(self.tree_context_of(side), planned, side, folder, ops, chosen)
        if pace and prepared.call:
            prepared = replace(prepared, call=replace(prepared.call, pace=pace))
        if side is Side.BASELINE or not run.argv:
            run.argv = list(prepared.shown)
        run.log = self.log_in(folder, "stderr")
        return prepared

    def log_in(self, folder: Path, name: str) -> str:
        """Return the path of a log in a step's folder, relative to the run's folder."""
        # Text, since this is done for each step: `relative_to` takes ten times as long.
        return f"{folder}{os.sep}{name}".removeprefix(f"{self.folder.path}{os.sep}")

    def folder_of(self, planned: Planned, side: Side) -> Path:
        """Return the folder for the files of a step's call on one side, and create it."""
        folder = self.folder.step(planned.id)
        if planned.tool:
            folder /= side.value
            folder.mkdir(exist_ok=True)
        return folder

    def start(self, prepared: Ready, run: StepRun) -> Invoked:
        """Run a prepared call, as many times as it specifies. Raises Failure."""
        folder = self.folder_of(prepared.planned, prepared.side)
        try:
            return invoke.run(self.spawner(), prepared, folder)
        except Failure:
            # `argv` is the baseline's if there is one, but the candidate may have failed.
            run.failing, run.failing_side = list(prepared.shown), prepared.side
            raise

    def build_first(self, planned: Planned, run: StepRun, sides: Sequence[Side], seed: int = 0) -> None:
        """Let the step's tool build its benchmarks on each side. Raises PreparationError and Failure.

        ``seed``: number of the code layout, if the step builds several.
        """
        places = {(planned.id, side, self.tree_context_of(side).root) for side in sides}
        if not seed and places and places <= self.names.built:
            # Built when the suite was listed. A later call builds again: the sources may have changed by then.
            self.names.built -= places
            return
        for side in sides if planned.tool and planned.tool.is_built_first else ():
            context = replace(self.tree_context_of(side), layout_seed=seed)
            if side is not sides[0]:
                self._share_crates(self.tree_context_of(sides[0]), context)
            prepared = ready(context, planned, side, self.folder.step(planned.id) / side.value)
            if not run.argv:
                run.argv = list(prepared.shown)
            try:
                invoke.prepare(self.spawner(), with_links_recorded(context, prepared))
            except Failure as failure:
                failure.reason = f"{self.where(side)}{failure.reason}"
                run.failing = list(prepared.shown)
                raise

    def _share_crates(self, built: TreeContext, other: TreeContext) -> None:
        """Reuse one side's builds of third-party crates on the other side."""
        if built.slot and other.slot:
            share_crates(built.slot, other.slot)

    def parsed_file(self, planned: Planned, side: Side) -> Path | None:
        """Return the file that ``parse`` reads, None for standard output. Raises PreparationError."""
        parse = planned.step.parse
        if parse is None or not parse.file:
            return None
        folder, ops = self.folder.step(planned.id), first_count(self.context, planned)
        return ready(self.tree_context_of(side), planned, side, folder, ops).cwd / parse.file

    def benchmarks(self, planned: Planned, side: Side = Side.BASELINE) -> tuple[str, ...]:
        """Return the ids of a suite's chosen benchmarks, () if there is one command.

        With ``variants`` these are all ids. Raises PreparationError and Failure.
        """
        place = (planned.id, side, self.tree_context_of(side).root)
        ids = self.names.listed.pop(place, None) or self.list_ids(planned, side)
        if planned.step.variants:
            return ids
        return tuple(name for name in ids if self.names.is_chosen(benchmark_name(planned, name)))

    def list_ids(self, planned: Planned, side: Side) -> tuple[str, ...]:
        """List a suite: return the ids of its benchmarks, () if there is one command.

        Raises PreparationError and Failure.
        """
        folder = self.folder.step(planned.id) / ("listing" if side is Side.BASELINE else "listing-of-candidate")
        prepared = ready(self.tree_context_of(side), planned, side, folder, first_count(self.context, planned))

        def take() -> tuple[str, ...]:
            return invoke.benchmarks(self.spawner(), prepared, folder)

        if prepared.slot is None:
            return take()

        return listed(prepared, take)
