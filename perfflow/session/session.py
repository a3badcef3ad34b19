"""A run in progress: the trees that its steps use, its folder, its events, and the processes that start children.

It writes the first event (workflow, settings, steps, machine, trees) and the event of each step, and reads both again
to resume an interrupted run. Event times come from the wall clock at the start, advanced by a clock that nobody can
set. On ^Z it stops perfflow and its children, and on ``fg`` it resumes them: children have process groups of their
own, which the terminal's signal does not reach.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, TypeVar

from perfflow.execute import invoke
from perfflow.execute.child import Spawner
from perfflow.execute.context import Settings, TreeContext
from perfflow.execute.deadline import Deadline, TotalBudget, Waits
from perfflow.execute.invoke import Failure, Invoked
from perfflow.execute.prepare import ReadyProcess, first_count, ready, sides_of
from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.library import search_path
from perfflow.library.pinned import PROJECT, Library
from perfflow.library.references import LOCK
from perfflow.machine import lock, noise
from perfflow.machine.facts import IDENTITY, facts
from perfflow.machine.noise import MachineNoise
from perfflow.model.errors import Exit, UserError
from perfflow.model.plain_data import to_json
from perfflow.model.readings import Side
from perfflow.model.result import PlannedStep
from perfflow.model.secrets import MASK
from perfflow.model.version import VERSION
from perfflow.plan.cells_of_one import axis_of, scaling_of
from perfflow.plan.groups import Benchmarks
from perfflow.plan.plan import Plan, Planned, confirmed_by, draws_layouts, expected_of, stage_plan
from perfflow.session.kept_traces import listed
from perfflow.session.known_names import KnownNames, benchmark_name
from perfflow.session.open_workflow import Opened
from perfflow.session.progress import Progress
from perfflow.session.recorded_links import with_links_recorded
from perfflow.session.services import Services
from perfflow.store import run_folder
from perfflow.store.receipts import manifest as receipt_files
from perfflow.store.record import SCHEMA, Record, reading_to_json
from perfflow.store.run_facts import NOTHING
from perfflow.store.run_folder import EVENTS, EventStore, RunFolder, events
from perfflow.store.write_failure import FolderError
from perfflow.tools.adapter import Pace, Role
from perfflow.trees import repository
from perfflow.trees.python_layout import environment
from perfflow.trees.repository import CodeState
from perfflow.trees.shared_installs import share_crates
from perfflow.trees.slots import Slot
from perfflow.verdict.acceptance import Goal
from perfflow.verdict.judge import judge
from perfflow.workflow.checks import each_step
from perfflow.workflow.declared_tool import is_tool_file
from perfflow.workflow.load import load
from perfflow.workflow.model import as_data
from perfflow.workflow.roles import CANDIDATES_STAGE
from perfflow.workflow.written_numbers import as_stored

_DONE = ("done", "cached")
_OPEN = ("unproven", "not measured")
"""Decisions of rows, and statuses of targets, that more samples may change."""


@dataclass(frozen=True)
class Earlier:
    """Finished steps with their outputs, all samples, and the hashes of the measured files; empty for a new run."""

    seed: int = 0
    done: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    samples: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)

    def samples_of(self, step_id: str) -> Sequence[Mapping[str, Any]]:
        """Return the sample events of a step in their order."""
        return self.samples.get(step_id, ())

    def files_of(self, step_id: str) -> Mapping[str, list[str]] | None:
        """Return the file hashes of a step, None if it has taken no samples."""
        return self.files.get(step_id) if self.samples_of(step_id) else None


def earlier_of_run(path: Path, digest: str, selected: frozenset[str], *, elsewhere: bool = False) -> Earlier:
    """Read the progress of the run in a folder. ``elsewhere``: it ran on other machines, so do not check this one.

    Raises UserError if the workflow, its parameters or the machine changed, and for damaged events.
    """
    record, samples, files = Record(), dict[str, list[Mapping[str, Any]]](), dict[str, Mapping[str, list[str]]]()
    with run_folder.explaining_damage(path / run_folder.EVENTS, "start a new run without --resume"):
        for event in run_folder.events(path):
            record.fold(event)
            if event.get("event") == "sample":
                samples.setdefault(event["step"], []).append(event)
            elif event.get("event") == "measuring":
                files[event["step"]] = event["files"]
        _require_same(record, digest, path, elsewhere=elsewhere)
        done = {name: step.outputs for name, step in record.steps.items() if step.status in _DONE}
        # Masked outputs were not stored, so the step must run again to give them to later steps.
        done = {name: outputs for name, outputs in done.items() if not any(MASK in text for text in outputs.values())}
        seed = int(record.run.seed)
    return Earlier(seed, {name: outputs for name, outputs in done.items() if name in selected}, samples, files)


def undecided_rows(path: Path) -> frozenset[str]:
    """Return the steps of a gate that ended whose benchmarks or targets are not all decided.

    Raises UserError for a run that has not ended, or that other machines measured, and if everything is decided: then
    there is nothing to measure.
    """
    record = record_of_events(path)
    if not record.ended:
        raise UserError.of(f"{path}: this run was not finished", "resume it with --resume, then use --again")
    if record.jobs:
        raise UserError.of(f"{path}: other machines measured this run", "measure the part there, and merge again")
    result = judge(record, record.criteria)
    rows = [row for row in result.benchmarks if row.gating and row.decision in _OPEN and row.level is None]
    names = {row.name for row in rows} | {item.benchmark for item in result.targets if item.status in _OPEN}
    steps = {row.step for row in result.benchmarks if row.name in names}
    failed = {name for name, step in record.steps.items() if step.status not in (*_DONE, "skipped")}
    if not steps and not failed:
        raise UserError.of(f"{path}: everything in this run is decided", "for a new measurement, leave out --again")
    return frozenset(steps | failed)


def trees_of_run(path: Path) -> Mapping[str, Any]:
    """Return the trees in the first event of the run in a folder; empty if it has none."""
    found = _opening(path).get("trees")
    return found if isinstance(found, dict) else {}


def chosen_run(path: Path) -> tuple[str, ...]:
    """Return the globs of the benchmarks that the run in a folder measures; () for all."""
    run = _opening(path).get("run")
    found = run.get("chosen", ()) if isinstance(run, dict) else ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def shard_of_run(path: Path) -> str:
    """Return which part of the benchmarks the run in a folder measures, such as ``2/4``; '' for all."""
    run = _opening(path).get("run")
    return str(run.get("shard", "")) if isinstance(run, dict) else ""


def _opening(path: Path) -> Mapping[str, Any]:
    try:
        return next((event for event in run_folder.events(path) if event.get("event") == "run"), {})
    except UserError:
        return {}


def _require_same(record: Record, digest: str, path: Path, *, elsewhere: bool) -> None:
    if record.run.digest != digest:
        text = f"{path}: the workflow or its parameters changed since this run of {record.run.file}"
        hint = "undo the change, name another run with --resume=RUN, or start a new run without --resume"
        raise UserError.of(text, hint)
    here = facts()
    differing = [name for name in IDENTITY if record.machine.get(name) != here[name]]
    if differing and not elsewhere:
        text = f"{path}: this run was started on another machine (other {', '.join(differing)})"
        raise UserError.of(text, "samples of two machines cannot be mixed; start a new run without --resume")


Differ = Callable[[Planned, bytes, bytes], str]
"""Returns how the output of a measured step differs from the expected one (expected, actual), '' if it may."""
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
    noise: MachineNoise | None = None
    """The noise of the machine, None before the check."""
    contexts: Mapping[Side, TreeContext] = field(default_factory=dict)
    """The trees of both sides if two are compared, else empty: both sides use ``context``."""
    tree_facts: Mapping[str, Any] = field(default_factory=dict)
    """The `trees` of the result; empty in a session for another tree."""
    trees: TreeWork | None = None
    """The job in other trees, if candidates are tried or base and head are compared."""
    differ: Differ | None = None
    """How the outputs of timed processes may differ; None if they are not compared."""
    pair_secret: str = ""
    """What `pair.seed` is drawn from, beside the seed of the run: unknown until the candidate is there."""
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
        inside = replace(self, contexts={}, tree_facts={}, earlier=Earlier(), trees=None, built={})
        return replace(inside, context=context, folder=folder, progress=progress)

    def tree_context_of(self, side: Side) -> TreeContext:
        """Return the tree in which a side runs."""
        return self.contexts.get(side, self.context)

    def built_before(self, side: Side, planned: Planned) -> Mapping[str, str] | None:
        """Return the outputs of a building step that another job or an earlier run has performed.

        None for a service: it must run while this run measures.
        """
        return None if planned.step.background else self.built.get(side, {}).get(planned.id)

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

    def invoke(
        self, planned: Planned, side: Side, run: StepRun, ops: int | None = None
    ) -> tuple[ReadyProcess, Invoked]:
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
        pair_seed: int | None = None,
    ) -> ReadyProcess:
        """Return one call of a step on one side, and note it in ``run``. Raises PreparationError."""
        folder, context = self.folder_of(planned, side), self.tree_context_of(side)
        context = context if pair_seed is None else replace(context, pair_seed=pair_seed)
        prepared = ready(context, planned, side, folder, ops, chosen)
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

    def start(self, prepared: ReadyProcess, run: StepRun) -> Invoked:
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


def users_tree(opened: Opened, folder: RunFolder, seed: int | None, *, typed: bool = False) -> TreeContext:
    """Return the context of the user's own tree, with a random seed if none is given. Events mask its secrets."""
    drawn = secrets.randbelow(2**31) if seed is None else seed
    machine, git = facts(), repository.describe_project(opened.root)
    context = TreeContext(
        opened.plan, opened.root, folder.id, drawn, folder.path, machine=machine, git=git, typed=typed
    )
    folder.secrets = context.secrets
    return context


def context_in(context: TreeContext, slot: Slot, settings: Settings) -> TreeContext:
    """Return the context of a step in a slot: its root, its own outputs, and the settings, which take precedence.

    The outputs of the setup stage are valid in all trees, because it runs once.
    """
    setup = {item.id for item in context.plan.steps if item.stage == "setup"}
    outputs = {name: dict(found) for name, found in context.outputs.items() if name in setup}
    inherited = dict(context.inherited)
    for name, value in environment(slot, inherited).items():
        if value is None:
            inherited.pop(name, None)
        else:
            inherited[name] = value
    layouts = slot.layouts if draws_layouts(context.plan, in_trees=True) else None
    return replace(
        context, root=slot.path, outputs=outputs, inherited=inherited, settings=settings, slot=slot, layouts=layouts
    )


def shown_in(
    slot: Slot, state: CodeState, context: TreeContext, settings: Settings, building: Collection[str]
) -> TreeContext:
    """Check out a state of the code in a slot, remove builds made with other settings, and return its context."""
    slot.switch(state.tree, state.commit)
    inside = context_in(context, slot, settings)
    slot.forget_builds_unless(built_with(inside, building))
    return inside


def built_with(context: TreeContext, steps: Collection[str]) -> str:
    """Return a hash of the known inputs of a build except the code: settings, parameters, environment and steps."""
    workflow = context.plan.workflow
    steps_planned = [context.plan.by_id[name] for name in steps]
    parts = [
        dict(context.settings.env),
        context.layouts is not None,
        {**context.plan.params, **context.settings.params},
        dict(workflow.env),
        dict(workflow.defaults.env),
        [dict(context.plan.stage(item.stage).env) for item in steps_planned],
        [item.step.model_dump(mode="json") for item in steps_planned],
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


# CLOCK_BOOTTIME keeps running while a laptop sleeps, so later events are not stamped hours too early.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_OFFSET = time.time() - time.clock_gettime(_CLOCK)


def now() -> str:
    """Return the time in UTC as ISO 8601 with milliseconds. It never goes back within one process."""
    moment = datetime.fromtimestamp(_OFFSET + time.clock_gettime(_CLOCK), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def pausing(session: RunSession) -> Iterator[None]:
    """Pause on SIGTSTP, unless it is ignored (nohup, no job control) or this is not the main thread."""
    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTSTP)
    if not here or before in (signal.SIG_IGN, None):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        session.pause()
        lock.stand_aside()
        # A live progress display stops this process itself, after it has cleared the terminal.
        if callable(before):
            before(number, frame)
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
        session.resume()

    signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def step_event(step: StepRun) -> dict[str, Any]:
    """Return the event of a step that ended; a step that ended before the run was resumed gets a `cached` event."""
    if step.status is StepStatus.CACHED and not step.reason:
        return {"event": "cached", "id": step.planned.id}
    sparse = {
        "blocked": step.blocked,
        "not_started": step.not_started,
        "out_of_time": step.out_of_time,
        "failing": step.failing,
        "failing_side": step.failing_side and step.failing_side.value,
        "tail": step.tail,
        "detail": step.detail,
        "outputs": step.outputs,
        "identical": step.identical,
        "rebuilt": step.rebuilt,
        "cautions": step.cautions,
        "few_samples": step.few_samples,
        "readings": {side.value: [*map(reading_to_json, items)] for side, items in step.readings.items()},
    }
    return {
        "event": "step",
        "id": step.planned.id,
        "time": now(),
        "status": step.status.value,
        "reason": step.reason,
        "seconds": round(step.seconds, 6),
        "waited": round(step.waited, 6),
        "argv": step.argv,
        "exit_code": step.exit_code,
        "warnings": step.warnings,
        "log": step.log,
        **{name: value for name, value in sparse.items() if value},
        **(to_json(step.found) if step.found is not NOTHING else {}),
    }


def opening_event(
    opened: Opened,
    context: TreeContext,
    selected: Collection[str],
    command: Sequence[str],
    budget: float | None = None,
    out: Path | None = None,
) -> dict[str, Any]:
    """Return the first event of a run. ``budget``: seconds for all measuring together."""
    workflow = opened.plan.workflow
    return {
        "event": "run",
        "schema": SCHEMA,
        "run": {
            "id": context.run_id,
            "workflow": workflow.name,
            "component": workflow.component or workflow.name,
            "started": now(),
            "seed": context.seed,
            "file": shown_workflow(opened),
            "params": as_stored(dict(opened.plan.params)),
            "digest": digest(opened),
            "version": VERSION,
            "budget": budget,
            "command": list(command),
            "out": str(out.absolute()) if out else "",
            "data_missing": receipt_files.unmatched(opened.root, workflow.data),
            "template": workflow.report.template,
            **_library(opened),
            **_optimizing_info(opened.plan),
        },
        "machine": dict(context.machine),
        "trees": {"baseline": {**context.git, **_untracked(opened)}, "candidate": None},
        "criteria": opened.plan.criteria.to_json(),
        "data": receipt_files.data_hashes(opened.root, workflow.data),
        "steps": [
            planned_step(item, opened.plan.params, selected=item.id in selected).model_dump(exclude_defaults=True)
            for item in opened.plan.steps
        ],
    }


def digest(opened: Opened) -> str:
    """Return a hash of the workflow and its parameters, which must be the same when a run is resumed."""
    workflow = as_data(opened.plan.workflow)
    tools = {item.step.uses: item.step.declared.digest for item in opened.plan.steps if item.step.declared}
    parts = [workflow, dict(opened.plan.params), *([tools] if tools else [])]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _library(opened: Opened) -> dict[str, Any]:
    """Return the files used from other repositories with their commits; empty if there are none."""
    used = sorted(opened.library.used.items())
    items = [{"reference": name, "commit": pin.commit, "sha256": pin.sha256} for name, pin in used]
    return {"library": items} if items else {}


def _optimizing_info(plan: Plan) -> dict[str, Any]:
    """Return the optimize stage's acceptance rule, guards and ruled-out techniques; empty without such a stage."""
    if CANDIDATES_STAGE not in plan.workflow.stages:
        return {}

    stage = stage_plan(plan)
    if stage is None:
        return {}
    own = stage.own
    return {"accept": stage.goal.accept, "guard": own.guard or [], "ruled_out": dict(own.ruled_out or {})}


def _untracked(opened: Opened) -> dict[str, Any]:
    """Return whether there are untracked files, which candidates start from too; empty without candidates."""
    candidates = any(item.role is Role.CANDIDATE for item in opened.plan.steps)
    return {"untracked": repository.has_untracked(opened.root)} if candidates else {}


def planned_step(planned: Planned, params: Mapping[str, Any], *, selected: bool) -> PlannedStep:
    """Return a step of the plan as its event stores it."""
    step, candidate = planned.step, planned.role is Role.CANDIDATE
    return PlannedStep(
        id=planned.id,
        stage=planned.stage,
        tool=step.tool_name,
        role=planned.role.value,
        compare=planned.role is Role.COMPARE,
        benchmark=planned.benchmark,
        metric=step.metric,
        expect=list(expected_of(planned, params)),
        allowed=step.continue_on_error,
        selected=selected,
        technique=(step.technique or "") if candidate else "",
        why=(step.why or "") if candidate else "",
        scaling=scaling_of(planned, params),
        axis=axis_of(planned, params),
        scenario=step.scenario or "",
        confirms=list(confirmed_by(planned, params)),
        precision=(step.work.precision if step.work else None) or "",
        in_one_tree=planned.in_one_tree,
    )


def shown_workflow(opened: Opened) -> str:
    """Return the workflow as `perfflow run` accepts it at the root: a path in the project, its origin, or a full path.

    The temporary file of a comparison of two commands no longer exists, so only its name is returned.
    """
    if opened.origin != PROJECT:
        return opened.origin
    resolved = opened.path.resolve()
    if resolved.is_relative_to(opened.root):
        return str(resolved.relative_to(opened.root))
    return str(resolved) if resolved.is_file() else opened.path.name


@contextmanager
def explaining_folder_errors(folder: Path, *, can_resume: bool) -> Iterator[None]:
    """Turn errors with the files of a run into a UserError with exit 3 and a remedy.

    ``can_resume``: whether the command that made the run accepts ``--resume``.
    """
    try:
        yield
    except FolderError as error:
        raise _explained(error, can_resume=can_resume) from error
    except OSError as error:
        raise _explained(FolderError.of(folder, error), can_resume=can_resume) from error


@contextmanager
def discarding_unmeasured(folder: RunFolder) -> Iterator[None]:
    """Remove the folder of a run that a wrong name stopped before it took a sample."""
    try:
        yield
    except UserError as error:
        taken = any(event.get("event") == "sample" for event in events(folder.path))
        if error.exit is Exit.USAGE and not taken:
            folder.discard()
        raise


@contextmanager
def calibration_kept(file: Path) -> Iterator[None]:
    """Do the same for a calibration, which saves its findings in ``file`` after each step."""
    try:
        yield
    except (FolderError, OSError) as error:
        problem = error if isinstance(error, FolderError) else FolderError.of(file, error)
        hint = f"{problem.remedy}; {file} has the findings of the earlier steps; run `perfflow calibrate` again"
        raise UserError.of(problem.reason, hint, Exit.UNMEASURED) from error


def _holds_something(folder: Path) -> bool:
    try:
        return (folder / EVENTS).stat().st_size > 0
    except OSError:
        return False


def _explained(error: FolderError, *, can_resume: bool) -> UserError:
    if not _holds_something(error.folder):
        return UserError.of(error.reason, f"{error.remedy}; nothing was measured yet", Exit.UNMEASURED)
    where = shlex.quote(str(error.folder))
    going_on = f"; the same command with --resume={where} resumes it" if can_resume else ""
    hint = f"{error.remedy}; `perfflow report {where}` judges the samples so far{going_on}"
    return UserError.of(error.reason, hint, Exit.UNMEASURED)


def of_project(root: Path, names: tuple[str, ...]) -> dict[Path, list[Path]]:
    """Return the project's workflows, or the named ones, with the other files of each; relative to ``root``.

    Raises UserError for an unknown name, and if there is no workflow.
    """
    own = [path for path in search_path.workflows(root) if path.parent == root / search_path.FOLDER]
    if names:
        own = [_of_project(search_path.find(name, root), own) for name in names]
    if not own:
        raise UserError.of("no workflow found", "keep workflows in ./workflows; `perfflow init` writes a first one")
    return {path.relative_to(root): sorted(set(_others(path, root))) for path in own}


def _of_project(path: Path, own: list[Path]) -> Path:
    if path.absolute() not in own:
        raise UserError.of(
            f"{path} is not one of the project's workflows", "keep it in ./workflows, or extend it there"
        )
    return path.absolute()


def _others(path: Path, root: Path) -> Iterator[Path]:
    """Yield the files besides the workflow's own; none if it cannot be read, which its run will report."""
    try:
        library = Library(root)
        draft = load(path, library.resolve, library.readable(path))
        places = [(step.uses, draft.document.place((*loc, "uses")).file) for _, step, loc in each_step(draft)]
        used = {library.tool(name, file) for name, file in places if name and is_tool_file(name)}
    except UserError:
        return
    pinned = [root / LOCK] if library.used else []
    for other in [*(Path(name) for name in draft.document.lines), *sorted(used), *pinned]:
        real = other.resolve()
        if real != path.resolve() and real.is_relative_to(root) and real.is_file():
            yield real.relative_to(root)


def record_of_events(folder: Path) -> Record:
    """Fold the events of a run into a record. Raises UserError if they contain no run."""
    record = Record()
    for event in run_folder.events(folder):
        record.fold(event)
    if not record.run.id:
        raise UserError.of(f"{folder / run_folder.EVENTS}: holds no run", "was it killed before it started?")
    return record
