"""Perform a run on other machines: the same plan and run folder, with groups of steps as jobs.

- ``Placing`` has the groups measured. Submitted, lost and collected jobs are events of the run. So the watching process
  may be killed: the jobs continue, and ``--resume`` watches them again. A finished job is never measured again, and a
  repeated one is reported.
- ``groups_for`` divides a run into groups. ``perform`` has them measured, and collects their results into the run's
  folder.
- ``placed_command`` runs a whole command as one job on another machine: a bisection, or a calibration of that machine.
"""

from __future__ import annotations

import functools
import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.jobs.cluster.agent import BUILD, KEPT, LOG, RUN, STDOUT, WORK, JobFolder, JobWork
from perfflow.jobs.cluster.outcome import AttemptOutcome, Observation, WaitingLimits, outcome_of
from perfflow.jobs.cluster.slurm import (
    EngineError,
    Executor,
    Node,
    Phase,
    Site,
    Slurm,
    Status,
    Submission,
    why_unsuitable,
)
from perfflow.machine.facts import facts
from perfflow.machine.private_folder import private_folder
from perfflow.model.errors import DetachedError, Exit, UserError
from perfflow.model.plain_data import from_json, to_json
from perfflow.model.targets import is_chosen
from perfflow.model.version import VERSION
from perfflow.plan.groups import ConflictError, Durations, Group, Lengths, NodeRequirement, groups, place_of_all
from perfflow.session.open_workflow import Opened
from perfflow.session.progress import Noted, StepEnded
from perfflow.session.session import RunSession, digest, step_event
from perfflow.store import run_folder
from perfflow.store.history import durations
from perfflow.store.record import GroupJob, record_of
from perfflow.store.run_facts import StepRecord
from perfflow.store.run_folder import RunFolder
from perfflow.tools.adapter import Role
from perfflow.tools.tool_files import last_line
from perfflow.trees.bundles import BASE, HEAD, commit_of, read_kept, write_source
from perfflow.trees.repository import CodeState, Repository, open_repository
from perfflow.trees.snapshots import snapshot
from perfflow.workflow.expression_text import ExpressionError

GROUPS = "groups"
"""The folder for jobs in the run's folder."""
LEAST_MINUTES = 15
ROOM = 3
"""The time limit of a job, as a multiple of its expected duration."""
_WHOLE = 0.9
"""Share of its time limit after which a stopped job counts as stopped by the limit: starting it takes time too."""
LOOK = 0.5
"""Seconds between two checks of the jobs' files."""


WorkOf = Callable[[Group], JobWork]
"""Returns the work of a group's job."""


class SubmittedError(Exception):
    """All jobs are submitted, and the caller does not wait for them."""


@dataclass
class Attempt:
    """One job of a group: its number, its folder, and observations with times in s by this machine's clock."""

    group: Group
    number: int
    folder: JobFolder
    minutes: int
    job: str = ""
    again: bool = False
    """Whether it replaces a lost job."""
    began: float = field(default_factory=time.monotonic)
    beat: float | None = None
    beaten: float = 0.0
    status: Status = field(default_factory=lambda: Status(Phase.UNKNOWN))
    over: float | None = None
    stopped: float | None = None
    told: str = ""

    def observation(self, now: float) -> Observation:
        """Return what is known about the job now."""
        beat = self.folder.last_beat()
        if beat != self.beat:
            self.beat, self.beaten = beat, now
        if self.status.phase is not Phase.ENDED:
            self.over = None
        elif self.over is None:
            self.over = now
        ended = self.folder.ended()
        if ended and self.stopped is None:
            self.stopped = now
        silent = None if beat is None else now - self.beaten
        over = 0.0 if self.over is None else now - self.over
        stopped = 0.0 if self.stopped is None else now - self.stopped
        return Observation(ended, self.status, silent, over, now - self.began, stopped)

    @property
    def reached_its_limit(self) -> bool:
        """Whether the engine ended the job for its time limit, also if the engine has forgotten the job by now."""
        ended = self.folder.ended()
        by_duration = ended is not None and ended.state == "stopped" and ended.seconds >= _WHOLE * 60 * self.minutes
        return "TIMEOUT" in self.status.reason or by_duration


@dataclass(frozen=True)
class Where:
    """Where jobs go: the engine, the folder for their files, the limits, and the time between queries in s."""

    executor: Executor
    home: Path
    limits: WaitingLimits
    poll: float
    longest: int | None = None
    """The engine's time limit of a job, in minutes."""


class Placing:
    """The jobs of one run."""

    def __init__(
        self,
        folder: RunFolder,
        groups: Sequence[Group],
        where: Where,
        tell: Callable[[str], None],
        look: Callable[[Attempt], None] = lambda _attempt: None,
    ) -> None:
        """``look`` is called with each attempt twice a second, and before it is collected or replaced."""
        self._folder, self._groups, self._where, self._tell, self._look = folder, groups, where, tell, look
        self._open: dict[str, Attempt] = {}
        self._lost: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        """Number of the last attempt at each group by an earlier process."""
        self._asked = -math.inf
        self._away = ""

    def measure(self, work_of: WorkOf, *, detach: bool = False) -> Iterator[tuple[Group, str]]:
        """Submit missing jobs, and yield each group as it ends, with the reason why it was not measured, or ''.

        detach: only submit the jobs, then raise SubmittedError.
        """
        done = self._recalled()
        for group in self._groups:
            if group.id in done:
                continue
            attempt = self._open.get(group.id)
            number = 1 + self._numbers.get(group.id, 0)
            refused = self._take_up(attempt) if attempt else self._submit(group, number, work_of)
            if refused:
                self._open.pop(group.id, None)
                yield group, refused
        if detach:
            raise SubmittedError
        while self._open:
            self._ask()
            for attempt in list(self._open.values()):
                outcome, why = outcome_of(attempt.observation(time.monotonic()), self._where.limits)
                self._look(attempt)
                if outcome is AttemptOutcome.WAIT:
                    self._say_where(attempt)
                    continue
                ended, why = self._over(attempt, outcome, why, work_of)
                if ended:
                    # Only now: if ^C comes earlier, `cancel` still has to collect this job.
                    del self._open[attempt.group.id]
                    yield attempt.group, why
            if self._open:
                time.sleep(LOOK)

    def _over(self, attempt: Attempt, outcome: AttemptOutcome, why: str, work_of: WorkOf) -> tuple[bool, str]:
        """Collect or repeat an attempt that is over; return whether its group ended, and why it was not measured."""
        if outcome is AttemptOutcome.REFUSED:
            self._cancel([attempt])
        longer = self._lose(attempt, why) if outcome is AttemptOutcome.LOST else 0
        if longer:
            refused = self._submit(attempt.group, attempt.number + 1, work_of, longer=longer)
            return bool(refused), refused
        return True, self._collect(attempt, why)

    def cancel(self) -> None:
        """Cancel all unfinished jobs, and collect their samples."""
        left = list(self._open.values())
        for attempt in left:
            attempt.folder.cancel()
        self._cancel([attempt for attempt in left if attempt.folder.worker() is None])
        ends = time.monotonic() + self._where.limits.silence + 10
        while time.monotonic() < ends and any(item.folder.worker() and not item.folder.ended() for item in left):
            time.sleep(LOOK)
        self._cancel(left)
        for attempt in left:
            self._look(attempt)
            self._collect(attempt, "cancelled")
        self._open.clear()

    @property
    def home(self) -> Path:
        """The folder in which the jobs work, one folder for each attempt at each group."""
        return self._where.home

    @property
    def files(self) -> Path:
        """The folder with what was collected of the jobs."""
        return self._folder.path

    @property
    def open(self) -> Sequence[str]:
        """The groups that have not ended."""
        return list(self._open)

    def _recalled(self) -> set[str]:
        """Restore the jobs that an earlier process submitted; return the groups that are already measured."""
        by_name = {group.id: group for group in self._groups}
        done = set[str]()
        for event in run_folder.own_events(self._folder.path):
            kind, name = event.get("event"), event.get("group")
            if name not in by_name or kind not in ("submitting", "submitted", "refused", "lost", "group"):
                continue
            self._numbers[name] = max(self._numbers.get(name, 0), event["attempt"])
            if kind in ("submitting", "submitted"):
                self._open[name] = _attempt_of(event, by_name[name])
                continue
            self._open.pop(name, None)
            if kind == "lost":
                self._lost[name] = event["reason"]
            elif kind == "group" and event["state"] == "done":
                done.add(name)
        return done

    def _take_up(self, attempt: Attempt) -> str:
        """Find a job whose number was not stored because the watching process was killed; else submit it again.

        Submitting twice is safe, since only one job can claim the folder. Return why it cannot be watched, or ''.
        """
        if attempt.job or attempt.folder.ended():
            return ""
        try:
            attempt.job = self._where.executor.find(self._name(attempt))
        except EngineError as error:
            # Not stored as refused, since the engine may have the job.
            return str(error)
        return "" if attempt.job or attempt.folder.worker() else self._send(attempt)

    def _name(self, attempt: Attempt) -> str:
        return f"pf-{self._folder.id}-{attempt.group.id}-{attempt.number}"

    def _submit(self, group: Group, number: int, work_of: WorkOf, *, longer: int = 0) -> str:
        """Submit a job; return why the engine refuses it, or ''.

        longer: factor for the time limit of a job that replaces a lost one; 0 for a first job.
        """
        minutes = group.place.minutes or max(LEAST_MINUTES, math.ceil(ROOM * group.seconds / 60))
        folder = JobFolder(self._where.home / group.id / str(number))
        folder.write(work_of(group))
        minutes = min(minutes * (longer or 1), self._where.longest or sys.maxsize)
        attempt = Attempt(group, number, folder, minutes, again=bool(longer))
        self._note("submitting", attempt)
        return self._send(attempt)

    def _send(self, attempt: Attempt) -> str:
        """Send a job to the engine; return why it is refused, or ''."""
        about = Submission(attempt.folder.path, self._name(attempt), attempt.group.place, attempt.minutes)
        try:
            attempt.job = self._where.executor.submit(about)
        except EngineError as error:
            # It contains secrets. Without it, a job that the engine queued in spite of its answer ends at once.
            (attempt.folder.path / WORK).unlink(missing_ok=True)
            self._note("refused", attempt, reason=str(error))
            return str(error)
        self._note("submitted", attempt)
        self._open[attempt.group.id] = attempt
        return ""

    def _note(self, kind: str, attempt: Attempt, **more: str) -> None:
        """Store the facts about a job that a resuming process needs."""
        about = {"folder": str(attempt.folder.path), "minutes": attempt.minutes, "job": attempt.job}
        about |= {"again": attempt.again, **more}
        self._folder.append({"event": kind, "group": attempt.group.id, "attempt": attempt.number, **about})

    def _ask(self) -> None:
        """Query the engine about all jobs, if the last query is long enough ago."""
        now = time.monotonic()
        if now < self._asked + self._where.poll:
            return
        self._asked = now
        statuses = self._where.executor.poll([attempt.job for attempt in self._open.values() if attempt.job])
        for attempt in self._open.values():
            attempt.status = statuses.get(attempt.job, attempt.status)
        away = {status.reason for status in statuses.values() if status.phase is Phase.UNKNOWN}
        note = f"the engine does not respond: {', '.join(sorted(away))}; the jobs continue" if away else ""
        if note != self._away:
            self._tell(note or "the engine responds again")
        self._away = note

    def _say_where(self, attempt: Attempt) -> None:
        """Report the state of a group if it changed."""
        worker = attempt.folder.worker()
        if worker:
            text = f"runs on {worker.node} (job {worker.job or attempt.job})"
        elif attempt.status.phase is Phase.QUEUED:
            reason = f", {attempt.status.reason}" if attempt.status.reason not in ("", "None") else ""
            text = f"waits in the queue (job {attempt.job}{reason})"
        elif attempt.status.phase is Phase.RUNNING:
            text = f"starts on {attempt.status.node} (job {attempt.job})"
        else:
            text = f"submitted (job {attempt.job})" if not attempt.told else attempt.told
        if text != attempt.told:
            attempt.told = text
            self._tell(f"{attempt.group.id}: {text}")

    def _lose(self, attempt: Attempt, why: str) -> int:
        """Store that a job was lost; return the factor for the time limit of its replacement, 0 for no replacement."""
        self._cancel([attempt])
        worker = attempt.folder.worker()
        reason = f"{why} on {worker.node}" if worker else why
        name = attempt.group.id
        self._folder.append({"event": "lost", "group": name, "attempt": attempt.number, "reason": reason})
        self._lost[name] = reason
        again = not attempt.again
        self._tell(f"{name}: lost, {reason}{'; it is measured once more, from its first pair' if again else ''}")
        return (2 if attempt.reached_its_limit else 1) if again else 0

    def _cancel(self, attempts: Sequence[Attempt]) -> None:
        try:
            self._where.executor.cancel([attempt.job for attempt in attempts if attempt.job])
        except EngineError as error:
            self._tell(f"the engine cannot cancel jobs: {error}")

    def _collect(self, attempt: Attempt, why: str) -> str:
        """Add a job's results to the run as one event; return why it did not measure, or ''."""
        place = self._folder.path / GROUPS / attempt.group.id / str(attempt.number)
        if place.resolve() != attempt.folder.path.resolve():
            if place.exists():
                shutil.rmtree(place)
            own_copies(self._folder.path)
            shutil.copytree(attempt.folder.path, place, symlinks=True)
        # It contains the settings as they were typed, including secrets.
        (place / WORK).unlink(missing_ok=True)
        ended, worker = attempt.folder.ended(), attempt.folder.worker()
        if not (place / RUN / run_folder.EVENTS).is_file():
            reason = ended.reason if ended and ended.reason else why or "it left no result"
            return f"{reason}; its log is {place / 'log'}" if worker else f"{reason}; {_why_not_begun(place)}"
        lost = self._lost.get(attempt.group.id, "")
        built = place / BUILD if (place / BUILD / run_folder.EVENTS).is_file() else None
        about = GroupJob(
            group=attempt.group.id,
            attempt=attempt.number,
            folder=str((place / RUN).relative_to(self._folder.path)),
            state=ended.state if ended else "lost",
            node=worker.node if worker else "",
            job=(worker.job if worker else "") or attempt.job,
            seconds=ended.seconds if ended else 0.0,
            lost=lost,
            reason="" if ended and ended.state == "done" else why,
            built=str(built.relative_to(self._folder.path)) if built else "",
            machine=ended.machine if ended else {},
        )
        self._folder.append(about.event())
        if ended and ended.state == "done":
            self._tell(f"{attempt.group.id}: measured on {about.node} in {about.seconds:.0f} s")
        return why


def own_copies(run: Path) -> Path:
    """Create and return the folder of the jobs in a run's folder. Only this user can read the code and the logs in it.

    Raises OSError, and UserError if another user owns it.
    """
    return private_folder(run / GROUPS, below=run)


def folder_of(run: Path, group: str) -> Path:
    """Return the folder of the last attempt at a group, in a run's folder."""
    place = run / GROUPS / group
    attempts = [int(path.name) for path in place.iterdir()] if place.is_dir() else []
    return place / str(max(attempts, default=0))


def _why_not_begun(place: Path) -> str:
    """Return a hint for a job that was never claimed: the last line of the engine's log, or the node's requirements."""
    try:
        last = last_line((place / "engine.log").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        last = ""
    needs = f"the nodes need to see {place} (or the `folder` of executors.yaml), and perfflow (`python`)"
    return f"on the node: {last}" if last else needs


def _attempt_of(event: Mapping[str, Any], group: Group) -> Attempt:
    """Return the attempt that an event of a run describes."""
    job = JobFolder(Path(event["folder"]))
    return Attempt(group, event["attempt"], job, event["minutes"], event["job"], event["again"])


@dataclass(frozen=True)
class RunPartition:
    """How a run was divided among machines: the executor, the tree of the code, and the groups. It never changes."""

    executor: str
    tree: str
    groups: tuple[Group, ...]

    def event(self) -> dict[str, Any]:
        """Return the event that stores it."""
        return {"event": "groups", **to_json(self)}


def partition(path: Path) -> RunPartition | None:
    """Return how a run was divided; None for a run on this machine."""
    for event in run_folder.own_events(path):
        if event.get("event") == "groups":
            return from_json(RunPartition, event)
    return None


def with_part(work: JobWork, group: Group) -> JobWork:
    """Return the work of one group. Each group has the whole budget, since they run beside each other."""
    found = replace(work, steps=group.steps, parts=group.parts)
    return replace(found, labels=group.place.labels, gpus=group.place.gpus)


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
class MeasuredCode:
    """The states of the code that a run measures; ``base`` is None if it does not compare revisions."""

    repository: Repository
    head: CodeState
    base: CodeState | None


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
    try:
        nodes = placement.executor.nodes()
        divided = groups(opened.plan, steps, known, _lengths(placement, nodes), in_trees=in_trees)
    except EngineError as error:
        hint = f"run `perfflow executors` to check {placement.name}"
        raise UserError.of(f"executor {placement.name}: {error}", hint, Exit.UNMEASURED) from error
    except (ConflictError, ExpressionError) as error:
        raise UserError.of(str(error)) from error
    for group in divided:
        why = why_unsuitable(group.place, nodes)
        if why:
            text = f"executor {placement.name}: {', '.join(group.steps)} cannot run: {why}"
            raise UserError.of(text, "correct `runs-on`, or name another executor", Exit.UNMEASURED)
    return divided


def _lengths(placement: Placement, nodes: Sequence[Node]) -> Lengths:
    def machines(place: NodeRequirement) -> int:
        return max(1, sum(node.usable and not why_unsuitable(place, [node]) for node in nodes))

    return Lengths(*placement.site.lengths, machines)


def perform(session: RunSession, code: MeasuredCode, shared: list[Group], placement: Placement, base: JobWork) -> bool:
    """Have all groups measured; return whether it was interrupted. Raises DetachedError if the jobs continue alone."""
    folder = session.folder
    assert isinstance(folder, RunFolder)  # noqa: S101 (a run's own, as its session was begun)
    site = placement.site
    where = where_of(placement, home_of(site, folder))
    states: Mapping[str, str] = {HEAD: commit_of(code.repository, code.head)}
    states = {**states, BASE: commit_of(code.repository, code.base)} if code.base else states
    source, states = source_of(code.repository, where.home, states, bundle=site.trees == "bundle")
    work = replace(base, source=source, states=states)
    place = Placing(folder, shared, where, lambda text: session.progress(Noted(text)))
    session.progress(Noted(_said(shared, placement)))
    shown = set[str]()
    work_of = functools.partial(with_part, work)
    try:
        for group, why in place.measure(work_of, detach=placement.detach):
            job = folder_of(folder.path, group.id)
            _tell(session, group, job, why, shown)
            _take_kept(session, job)
    except SubmittedError:
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
) -> JobWork:
    """Return the work that all jobs of a run have in common."""
    run = record_of(run_folder.own_events(session.folder.path)).run
    return JobWork(
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
    return own_copies(folder.path)


def where_of(placement: Placement, home: Path) -> Where:
    """Return where the jobs below ``home`` go. Raises UserError if the engine does not respond."""
    site = placement.site
    try:
        longest = placement.executor.longest()
    except EngineError as error:
        raise UserError.of(f"executor {placement.name}: {error}", "perfflow executors", Exit.UNMEASURED) from error
    limits = WaitingLimits(site.seconds("pending"), site.seconds("grace"))
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


def _tell(session: RunSession, group: Group, place: Path, why: str, shown: set[str]) -> None:
    """Store and show how the steps of a group ended. A step that every group performs is shown once."""
    plan, steps = session.context.plan, _ended(session.folder.path, place)
    for name in group.steps:
        planned, step = plan.by_id[name], steps.get(name)
        if step is not None:
            run = StepRun(planned, StepStatus(step.status), step.reason, step.seconds, step.waited)
            run.log, run.tail, run.warnings = step.log, list(step.tail), list(step.warnings)
        elif planned.role not in _NOT_MEASURING:
            run = StepRun(planned, StepStatus.FAILED, f"group {group.id} was not measured: {why}", not_started=True)
            session.folder.append({**step_event(run), "group": group.id})
        else:
            continue
        if name not in shown or run.status not in (StepStatus.DONE, StepStatus.CACHED):
            session.progress(StepEnded(run))
        shown.add(name)


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


EXPECTED = 1800.0
"""Assumed duration of a command in s, since its real duration is not known before."""


@dataclass(frozen=True)
class CommandResult:
    """The result of a command: its output, its exit status, its node, and the folder of its run, if it made one.

    ``files``: the folder of all files of the job, to be discarded after they are read.
    """

    printed: str
    status: int
    run: Path
    node: str
    files: Path

    def discard(self) -> None:
        """Remove all files of the job."""
        shutil.rmtree(self.files, ignore_errors=True)


def placed_command(
    opened: Opened,
    placement: Placement,
    words: Sequence[str],
    only: Collection[str],
    revisions: Mapping[str, str],
    tell: Callable[[str], None],
) -> CommandResult:
    """Run ``words``, a command of perfflow, on a machine where the steps ``only`` (empty: all) may run.

    revisions: by name, the commits that it needs beside the user's tree. ^C ends the job.
    Raises UserError if no machine is suitable, and if the command does not finish.
    """
    place, _ = _place_of(opened, placement, only)
    group = Group("g1", (), place, EXPECTED)
    with placing(opened, placement, [group], revisions, tell) as (jobs, work):
        ((_, why),) = jobs.measure(functools.partial(with_part, replace(work, command=tuple(words))))
        return _performed(jobs.files, why)


@contextmanager
def placing(
    opened: Opened,
    placement: Placement,
    groups: Sequence[Group],
    revisions: Mapping[str, str],
    tell: Callable[[str], None],
    look: Callable[[Attempt], None] = lambda _attempt: None,
) -> Iterator[tuple[Placing, JobWork]]:
    """Yield jobs that are no part of a run, and the work that all of them have in common.

    revisions: by name, the commits that they need beside the user's tree. look: as that of ``Placing``. An exception
    cancels the jobs. The files in ``Placing.files`` are the caller's to remove. Raises UserError as ``source_of`` and
    ``where_of`` do.
    """
    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    states = {HEAD: commit_of(repository, snapshot(repository)), **revisions}
    place = run_folder.home(opened.root) / "placed"
    place.mkdir(exist_ok=True)
    site = placement.site
    with run_folder.create(opened.root, place / run_folder.new_id()) as folder, _home_of(site, folder) as home:
        source, _ = source_of(repository, home, states, bundle=site.trees == "bundle")
        work = JobWork(
            root=str(opened.root),
            workflow="",
            digest=digest(opened),
            source=source,
            states=states,
            share=tuple(opened.plan.workflow.worktree.share),
            scratch=site.scratch,
            version=VERSION,
        )
        jobs = Placing(folder, groups, where_of(placement, home), tell, look)
        try:
            yield jobs, work
        except BaseException:
            jobs.cancel()
            raise


@contextmanager
def _home_of(site: Site, folder: RunFolder) -> Iterator[Path]:
    """Yield the folder for the files of the job. Remove it at the end, or what only the job needed."""
    home = home_of(site, folder)
    try:
        yield home
    finally:
        tidy(home, whole=bool(site.folder))


def keep_as_run(root: Path, found: Path) -> Path:
    """Copy a job's run into the project's own runs, under its own id; return its folder."""
    name = run_folder.file_name(next(run_folder.own_events(found))["run"]["id"])
    runs = run_folder.home(root) / "runs"
    if not (runs / name).exists():
        shutil.copytree(found, runs / name, symlinks=True)
        run_folder.point_latest(runs, name)
    return runs / name


def groups_of_equals(opened: Opened, placement: Placement, number: int, seconds: float) -> list[Group]:
    """Return groups for ``number`` things that take ``seconds`` each, and that may be measured anywhere the steps may.

    The groups have no steps. Raises UserError as ``groups_for`` does.
    """
    place, nodes = _place_of(opened, placement, ())
    whole = number * seconds
    count = min(number, _lengths(placement, nodes).number(whole, place))
    return [Group(f"g{index + 1}", (), place, whole / count) for index in range(count)]


def _place_of(opened: Opened, placement: Placement, only: Collection[str]) -> tuple[NodeRequirement, Sequence[Node]]:
    """Return the one place of all steps, and the nodes. Raises UserError for several, or one that does not exist."""
    steps = [item for item in opened.plan.steps if not only or item.id in only or item.step.id in only]
    measuring = [item for item in steps if item.role not in (Role.WORK, Role.CANDIDATE, Role.COMPARE)]
    try:
        place, nodes = place_of_all(opened.plan, measuring), placement.executor.nodes()
    except (ConflictError, ExpressionError) as error:
        raise UserError.of(str(error), "use steps of one place (--only), or a workflow of such steps") from error
    except EngineError as error:
        raise UserError.of(f"executor {placement.name}: {error}", "perfflow executors", Exit.UNMEASURED) from error
    if why := why_unsuitable(place, nodes):
        raise UserError.of(f"executor {placement.name}: {why}", "correct `runs-on`", Exit.UNMEASURED)
    return place, nodes


def _performed(folder: Path, why: str) -> CommandResult:
    job = folder_of(folder, "g1")
    ended = JobFolder(job).ended()
    if ended is None or ended.status is None or not (job / STDOUT).is_file():
        text = f"the job did not finish: {why or 'it left no result'}"
        hint = f"its log: {job / LOG}" if (job / LOG).is_file() else "run `perfflow executors` to check the executor"
        raise UserError.of(text, hint, Exit.UNMEASURED)
    printed = (job / STDOUT).read_text(encoding="utf-8", errors="replace")
    return CommandResult(printed, ended.status, job / RUN, ended.worker.node, folder)
