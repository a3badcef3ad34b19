"""Perform the steps of a run on other machines: the same plan and run folder, with groups of steps as jobs."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.execute.schedule import StepRun
from perfflow.execute.states import StepStatus
from perfflow.jobs.cluster import place_groups
from perfflow.jobs.cluster.executor import EngineError, Executor
from perfflow.jobs.cluster.job_folder import BUILD, KEPT, RUN, Work
from perfflow.jobs.cluster.outcome import Limits
from perfflow.jobs.cluster.place_groups import Placing, Where
from perfflow.jobs.cluster.site import Site
from perfflow.jobs.cluster.slurm import Slurm, why_unsuitable
from perfflow.machine.facts import facts
from perfflow.machine.private_folder import private_folder
from perfflow.model.errors import Exit, UserError
from perfflow.model.plain_data import from_json
from perfflow.model.targets import is_chosen
from perfflow.model.version import VERSION
from perfflow.plan.groups import ConflictError, Durations, Group, Lengths, groups
from perfflow.plan.runs_on import Place
from perfflow.session.first_event import digest
from perfflow.session.open_workflow import Opened
from perfflow.session.run_events import step_event
from perfflow.session.session import RunSession
from perfflow.store import run_folder
from perfflow.store.history import durations
from perfflow.store.record import record_of
from perfflow.store.run_facts import StepRecord
from perfflow.store.run_folder import RunFolder
from perfflow.tools.adapter import Role
from perfflow.trees.bundles import BASE, HEAD, commit_of, read_kept, write_source
from perfflow.trees.repository import Repository, State
from perfflow.workflow.expression_text import ExpressionError

_NOT_MEASURING = (Role.WORK, Role.MACHINE)


@dataclass(frozen=True)
class Placement:
    """Where a run is performed: an executor by its name in the site's file, and options of the command line.

    ``settings`` are those of ``--set``. ``detach``: submit the jobs and exit. ``leaves_jobs`` is called after ^C, and
    returns whether the jobs should continue.
    """

    name: str
    site: Site
    settings: tuple[str, ...] = ()
    detach: bool = False
    leaves_jobs: Callable[[], bool] = lambda: False

    @property
    def executor(self) -> Executor:
        """The engine of the executor."""
        return Slurm(self.site)


@dataclass(frozen=True)
class Code:
    """The states of the code that a run measures; ``base`` is None if it does not compare revisions."""

    repository: Repository
    head: State
    base: State | None


class DetachedError(Exception):
    """The jobs continue without the process that submitted them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder


def groups_for(
    opened: Opened, steps: frozenset[str], chosen: Sequence[str], placement: Placement, *, in_trees: bool
) -> list[Group]:
    """Return the groups of a run that measures the benchmarks of the globs ``chosen``, () for all.

    Raises UserError if no machine suits a group, or the engine does not respond.
    """
    kind = durations.RunKind(opened.plan.workflow.name, dict(opened.plan.params), facts()["identity"], in_trees)
    seen = durations.step_durations(opened.root, kind)
    steps_known = {name: item.seconds for name, item in seen.items() if item.seconds is not None}
    # The duration of each benchmark is not known, so all benchmarks of a step count the same.
    each = {step: {name: 1.0 for name in item.names if is_chosen(chosen, name)} for step, item in seen.items()}
    known = Durations(steps_known, each)
    least, most = placement.site.lengths
    try:
        nodes = placement.executor.nodes()

        def machines(place: Place) -> int:
            return max(1, sum(node.usable and not why_unsuitable(place, [node]) for node in nodes))

        found = groups(opened.plan, steps, known, Lengths(least, most, machines), in_trees=in_trees)
    except EngineError as error:
        hint = f"run `perfflow executors` to check {placement.name}"
        raise UserError.of(f"executor {placement.name}: {error}", hint, Exit.UNMEASURED) from error
    except (ConflictError, ExpressionError) as error:
        raise UserError.of(str(error)) from error
    for group in found:
        why = why_unsuitable(group.place, nodes)
        if why:
            text = f"executor {placement.name}: {', '.join(group.steps)} cannot run: {why}"
            raise UserError.of(text, "correct `runs-on`, or name another executor", Exit.UNMEASURED)
    return found


def perform(session: RunSession, code: Code, shared: list[Group], placement: Placement, base: Work) -> bool:
    """Have all groups measured; return whether it was interrupted. Raises DetachedError if the jobs continue alone."""
    folder = session.folder
    assert isinstance(folder, RunFolder)  # noqa: S101 (a run's own, as its session was begun)
    site = placement.site
    where = where_of(placement, home_of(site, folder))
    states: Mapping[str, str] = {HEAD: commit_of(code.repository, code.head)}
    states = {**states, BASE: commit_of(code.repository, code.base)} if code.base else states
    source, states = source_of(code.repository, where.home, states, bundle=site.trees == "bundle")
    work = replace(base, source=source, states=states)
    place = Placing(folder, shared, where, session.progress.noted)
    session.progress.noted(_said(shared, placement))
    told = set[str]()
    work_of = functools.partial(place_groups.with_part, work)
    try:
        for group, why in place.measure(work_of, detach=placement.detach):
            job = place_groups.folder_of(folder.path, group.id)
            _tell(session, group, job, why, told)
            _take_kept(session, job)
    except place_groups.SubmittedError:
        raise DetachedError(folder.path) from None
    except KeyboardInterrupt:
        if place.open and placement.leaves_jobs():
            raise DetachedError(folder.path) from None
        place.cancel()
        return True
    tidy(where.home, whole=bool(site.folder))
    return False


def work_of(
    session: RunSession, opened: Opened, placement: Placement, budget: float | None, *, keep_going: bool
) -> Work:
    """Return the work that all jobs of a run have in common."""
    run = record_of(run_folder.own_events(session.folder.path)).run
    return Work(
        root=str(opened.root),
        workflow=run.file,
        settings=placement.settings,
        chosen=session.names.chosen,
        digest=digest(opened),
        compared_steps=session.compared_steps,
        seed=session.context.seed,
        source="",
        states={},
        share=tuple(opened.plan.workflow.worktree.share),
        scratch=placement.site.scratch,
        keep_going=keep_going,
        budget=budget,
        lock_timeout=session.lock_timeout,
        version=VERSION,
    )


def home_of(site: Site, folder: RunFolder) -> Path:
    """Create and return the folder for the files of a run's jobs, which no other user can read or change.

    Raises UserError for a folder of the site that other users could replace, OSError if it cannot be created.
    """
    if site.folder:
        return private_folder(Path(site.folder).expanduser() / folder.id)
    return place_groups.own_copies(folder.path)


def where_of(placement: Placement, home: Path) -> Where:
    """Return where the jobs below ``home`` go. Raises UserError if the engine does not respond."""
    site = placement.site
    try:
        longest = placement.executor.longest()
    except EngineError as error:
        raise UserError.of(f"executor {placement.name}: {error}", "perfflow executors", Exit.UNMEASURED) from error
    limits = Limits(site.seconds("pending"), site.seconds("grace"))
    return Where(placement.executor, home, limits, site.seconds("poll"), longest)


def source_of(
    repository: Repository, home: Path, states: Mapping[str, str], *, bundle: bool
) -> tuple[str, Mapping[str, str]]:
    """Return the repository or bundle that the jobs read the code from, and its commits by name. It is made once.

    A resumed run keeps its first commits, because an uncommitted tree becomes a new commit each time. Raises UserError
    as ``write_source`` does.
    """
    there = [path for path in (home / "trees.bundle", home / "trees.git") if path.exists()]
    note = home / "states.json"
    if there and note.is_file():
        return str(there[0]), json.loads(note.read_text(encoding="utf-8"))
    run_folder.write_text(note, json.dumps(dict(states)))
    return str(write_source(repository, home, states, bundle=bundle)), states


def tidy(home: Path, *, whole: bool) -> None:
    """Remove the code and the builds, which only the jobs needed; with ``whole``, the folder itself.

    whole: the run's folder has copies of all results.
    """
    for path in [home] if whole else [home / "builds", home / "trees.git"]:
        shutil.rmtree(path, ignore_errors=True)
    for name in ("trees.bundle", "states.json"):
        (home / name).unlink(missing_ok=True)


def _take_kept(session: RunSession, place: Path) -> None:
    """Fetch the branch of a job's accepted candidates into the user's repository."""
    bundle = place / KEPT
    if bundle.is_file():
        branch = record_of(run_folder.events(session.folder.path)).branch
        if branch and branch.name:
            read_kept(session.context.root, branch.name, bundle)


def _said(shared: list[Group], placement: Placement) -> str:
    seconds = sum(group.seconds for group in shared)
    many = f"{len(shared)} groups" if len(shared) != 1 else "1 group"
    return f"{many} for {placement.name}, about {max(1, round(seconds / 60))} min of measurement in all"


def _tell(session: RunSession, group: Group, place: Path, why: str, told: set[str]) -> None:
    """Store and show how the steps of a group ended. A step that every group performs is shown once."""
    plan, steps = session.context.plan, _ended(session.folder.path, place)
    for name in group.steps:
        item, step = plan.by_id[name], steps.get(name)
        if step is not None:
            run = StepRun(item, StepStatus(step.status), step.reason, step.seconds, step.waited)
            run.log, run.tail, run.warnings = step.log, list(step.tail), list(step.warnings)
        elif item.role not in _NOT_MEASURING:
            run = StepRun(item, StepStatus.FAILED, f"group {group.id} was not measured: {why}", not_started=True)
            session.folder.append({**step_event(run), "group": group.id})
        else:
            continue
        if name not in told or run.status not in (StepStatus.DONE, StepStatus.CACHED):
            session.progress.ended(run)
        told.add(name)


def _ended(run: Path, place: Path) -> dict[str, StepRecord]:
    """Return how the steps of a job and of its own build ended; empty if it left no events."""
    found: dict[str, StepRecord] = {}
    for folder in (place / BUILD, place / RUN):
        for event in run_folder.own_events(folder) if (folder / run_folder.EVENTS).is_file() else ():
            if event.get("event") == "step" and "trial" not in event and event["id"] not in found:
                step = from_json(StepRecord, event)
                log = f"{folder.relative_to(run)}/{step.log}" if step.log else ""
                found[step.id] = replace(step, log=log)
    return found
