"""Perform planned steps, and write the results of a run.

- ``perform`` performs one step: it checks requirements and services, holds the machine for measurements, and calls the
  performer of the step.
- ``machine_for`` waits for the machine, shows the wait to the user, and stores it as events.
- ``copy_artifacts`` copies the files that a step lists under `artifacts` into the run folder, where the receipt covers
  them.
- ``not_startable`` checks that the programs of steps exist, before anything runs and before waiting for the machine.
- ``result_of_events`` judges a run's events, and ``write`` writes the result files, in the same way for a live, a
  killed and a stored run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from perfflow.execute import invoke, prepare
from perfflow.execute.child import find_program
from perfflow.execute.context import TreeContext, search_path, variables_of
from perfflow.execute.deadline import Deadline
from perfflow.execute.invoke import Failure, OutOfTimeFailure, require_space, trim_and_mask
from perfflow.execute.prepare import (
    PreparationError,
    ReadyProcess,
    first_count,
    missing_program,
    rendered,
    why_elsewhere,
)
from perfflow.execute.schedule import Schedule, StepRun, StepStatus
from perfflow.machine.lock import LockQueue, machine_alone
from perfflow.model.errors import StepError, UserError
from perfflow.model.readings import Side
from perfflow.model.result import Result
from perfflow.model.secrets import masked
from perfflow.plan.coverage import requires_of
from perfflow.plan.groups import place_of
from perfflow.plan.plan import Planned, profiles_several
from perfflow.report import markdown
from perfflow.report.html import document
from perfflow.report.stack_files.files import FORMATS, files_of
from perfflow.report.template import TEMPLATES
from perfflow.session.missing_side import missing_side
from perfflow.session.progress import Granted, Started, StepEnded, Waiting
from perfflow.session.session import RunSession, now, record_of_events, step_event
from perfflow.store import run_folder
from perfflow.store.receipts.manifest import sha256
from perfflow.store.result_file import chunks
from perfflow.store.run_facts import NOTHING, StoredProfile
from perfflow.store.sample_order import order_in
from perfflow.store.stored_stacks import has_stacks, stack_profiles
from perfflow.tools.adapter import OPTIONAL_ROLES, Role
from perfflow.verdict.judge import judge
from perfflow.workflow.artifact_checks import glob_mistake
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import condition

BUILT = "built before, by an earlier run or by another job"
"""The reason of a building step that is not performed, because its outputs are there."""
_LOCKING_INSIDE = (Role.CANDIDATE, Role.COMPARE)
"""Roles whose inner steps hold the machine one by one, so that others may measure while they build."""
_MASKED_FIELDS = ("reason", "argv", "warnings", "cautions", "failing", "tail", "detail", "outputs")
"""Fields of a StepRun that are printed or stored as text, so secrets in them are masked."""


def perform_all(session: RunSession, selected: Collection[str]) -> list[StepRun]:
    """Run some steps of the plan in the session's tree, append an event for each, and stop at the first failure."""
    runs = []
    for run in schedule(session, selected):
        session.folder.append(step_event(run))
        session.progress(StepEnded(run))
        runs.append(run)
    return runs


def schedule(session: RunSession, selected: Collection[str], *, jobs: int = 1, keep_going: bool = False) -> Schedule:
    """Return the schedule of the selected steps of the plan. Iterating over it performs them."""
    return Schedule(
        session.context.plan,
        partial(perform, session),
        partial(allows, session.context),
        selected=selected,
        jobs=jobs,
        keep_going=keep_going,
        stop=session.stop,
    )


def perform(session: RunSession, planned: Planned) -> StepRun:
    """Run one step to its end. Errors of the step are in the StepRun; ^C and defects are raised."""
    run = StepRun(planned, StepStatus.DONE)
    worked, before = session.waits.stopwatch(), session.waits.seconds
    try:
        without = _without_performing(session, planned)
        if without:
            return without
        session.progress(Started(planned))
        if planned.step.if_ is None:  # a step with `if: always()` may only clean up
            _require_services(session, planned)
        with _in_time(session, planned):
            where = session.trees.session_for(planned) if session.trees else session
            with _machine(session, where, planned, run), _files_kept(where, planned, run):
                where.performer_of(planned)(where, planned, run)
        if planned.id in where.context.outputs:
            # Conditions of later steps are evaluated in the run's own context.
            session.context.outputs[planned.id] = where.context.outputs[planned.id]
        _require_services(session, planned)
    except Failure as failure:
        _blame_service(session, planned, failure)
        _fail(run, failure, session.folder.path)
    except StepError as error:
        _fail(run, Failure(str(error)), session.folder.path)
    except OSError as error:
        # A file of this step: a full disk or a removed folder. Errors in the run's own files are FolderErrors.
        place = error.filename or session.folder.path
        _fail(run, Failure(f"{place}: {error.strerror or error}"), session.folder.path)
    run.seconds, run.waited = worked(), session.waits.seconds - before
    for name in _MASKED_FIELDS if run.found is NOTHING else (*_MASKED_FIELDS, "found"):
        if value := getattr(run, name):
            setattr(run, name, masked(value, session.context.secrets))
    return run


def _without_performing(session: RunSession, planned: Planned) -> StepRun | None:
    """Return the outcome of a step that was done before, built by another job, or cannot run here, else None."""
    outputs = session.earlier.done.get(planned.id)
    if outputs is not None and not planned.step.background:
        session.context.outputs[planned.id] = dict(outputs)
        return StepRun(planned, StepStatus.CACHED)
    if session.trees:
        session.trees.show(planned)
    built = session.built_before(Side.CANDIDATE, planned)
    if built is not None:
        where = session.trees.session_for(planned) if session.trees else session
        where.context.outputs[planned.id] = session.context.outputs[planned.id] = dict(built)
        return StepRun(planned, StepStatus.CACHED, BUILT, outputs=dict(built))
    if session.deadline.is_over and not _cleans_up(planned):
        left_out = planned.role in OPTIONAL_ROLES
        reason = session.deadline.reason
        return StepRun(planned, StepStatus.SKIPPED, reason, not_started=not left_out, out_of_time=True)
    unmet = _unmet_requirements(session, planned) or (session.trees.why_not(planned) if session.trees else "")
    if unmet:
        return StepRun(planned, StepStatus.SKIPPED, unmet)
    elsewhere = _why_elsewhere(session, planned)
    if elsewhere:
        return StepRun(planned, StepStatus.SKIPPED, elsewhere, not_started=not session.allow_skipped)
    return None


def why_not_here(session: RunSession, planned: Planned) -> str:
    """Return why this machine does not perform a step, '' if it does."""
    return _unmet_requirements(session, planned) or _why_elsewhere(session, planned)


def allows(context: TreeContext, planned: Planned, blocked: bool) -> bool:
    """Return whether a step's ``if`` (its own, else its stage's) lets it run."""
    own = planned.step.if_
    text = own if own is not None else context.plan.stage(planned.stage).if_
    if text is None or isinstance(text, bool):
        return not blocked and text is not False
    variables = variables_of(context, planned)
    variables |= {"success": lambda: not blocked, "failure": lambda: blocked, "always": lambda: True}
    asks = any(f"{name}(" in text for name in ("success", "failure", "always"))
    return (asks or not blocked) and condition(text, variables)


def failure_of(run: StepRun, folder: Path, reason: str) -> Failure:
    """Return a Failure with the command and log of a failed step, for the step that it was run for.

    folder: the run's folder.
    """
    argv, kind = run.failing or run.argv, OutOfTimeFailure if run.out_of_time else Failure
    return kind(reason, timeout=run.out_of_time, log=log_of(run, folder), argv=tuple(argv))


def log_of(run: StepRun, folder: Path) -> Path | None:
    """Return the path of a step's log, None if it has none. ``folder`` is the run's."""
    return folder / run.log if run.log else None


def _cleans_up(planned: Planned) -> bool:
    """Return whether a step runs whatever happened before it."""
    return isinstance(planned.step.if_, str) and "always(" in planned.step.if_


@contextmanager
def _in_time(session: RunSession, planned: Planned) -> Iterator[None]:
    """Let a step that cleans up finish after the time of the command."""
    spawner = session.spawner()
    before = spawner.deadline
    if _cleans_up(planned):
        spawner.deadline = Deadline()
    try:
        yield
    finally:
        spawner.deadline = before


@contextmanager
def _machine(session: RunSession, where: RunSession, planned: Planned, run: StepRun) -> Iterator[None]:
    """Hold the machine for a step that needs it. Raises Failure, PreparationError and LockError."""
    if not planned.alone or planned.role in _LOCKING_INSIDE:
        yield
        return
    # Check before queueing for the machine: the wait would be wasted if a program is missing.
    require_startable(where, planned, run)
    with machine_for(session, planned):
        yield


@contextmanager
def _files_kept(session: RunSession, planned: Planned, run: StepRun) -> Iterator[None]:
    """Keep the step's files and artifacts, also after a failure: they may hold its reason."""
    try:
        yield
    except Failure:
        with contextlib.suppress(Failure, PreparationError, ExpressionError, OSError):
            _keep_artifacts(session, planned, run)
        raise
    finally:
        if not planned.step.background:  # a service still writes to its files
            _keep_files(session, planned, run)
    _keep_artifacts(session, planned, run)


class _DeadServiceError(Failure):
    """A service that the step needs has ended."""


def _require_services(session: RunSession, planned: Planned) -> None:
    """Raise Failure if a service that the step needs has ended."""
    dead = session.services.dead_for(session.context.plan, planned)
    if dead:
        raise _DeadServiceError(dead.unexpected_end, exit_code=dead.service.exit_code, log=dead.log)


def _blame_service(session: RunSession, planned: Planned, failure: Failure) -> None:
    """Add a dead service to the reason of a failure, because it is the most likely cause."""
    dead = session.services.dead_for(session.context.plan, planned)
    if dead and not isinstance(failure, _DeadServiceError):
        failure.reason = f"{failure.reason}; {dead.unexpected_end}"


def _unmet_requirements(session: RunSession, planned: Planned) -> str:
    """Return which requirements of the step are missing; '' if none are."""
    if planned.role not in OPTIONAL_ROLES and planned.step.requires is None:
        return ""
    path = search_path(session.context, planned) or os.environ.get("PATH", os.defpath)
    unmet = prepare.unmet(requires_of(planned, session.context.plan.params), path)
    return unmet or (missing_program(planned, path) if planned.role in OPTIONAL_ROLES else "")


def _why_elsewhere(session: RunSession, planned: Planned) -> str:
    """Return why ``runs-on`` excludes this machine for the step; '' if it does not."""
    workflow = session.context.plan.workflow
    if not session.asks_where or (planned.step.runs_on is None and workflow.defaults.runs_on is None):
        return ""

    path = search_path(session.context, planned) or os.environ.get("PATH", os.defpath)
    return why_elsewhere(place_of(planned, session.context.plan), path)


def _keep_artifacts(session: RunSession, planned: Planned, run: StepRun) -> None:
    if planned.step.artifacts:
        copy_artifacts(session, planned, run)


def _keep_files(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Trim and mask the step's files, and update the hashes of changed profiles."""
    changed = trim_and_mask(session.folder.step(planned.id), session.context.secrets)
    if changed:
        run.found = replace(run.found, profiles=tuple(_hashed(session, changed, item) for item in run.found.profiles))


def _hashed(session: RunSession, changed: Collection[Path], profile: StoredProfile) -> StoredProfile:
    path = session.folder.path / profile.path
    return replace(profile, sha256=sha256(path)) if path in changed else profile


def _fail(run: StepRun, failure: Failure, folder: Path) -> None:
    run.status = StepStatus.TIMEOUT if failure.timeout else StepStatus.FAILED
    run.reason, run.exit_code, run.code = failure.reason, failure.exit_code, failure.code
    run.tail = list(invoke.tail(failure.log))
    if failure.argv:
        run.failing = list(failure.argv)
    if failure.log:
        run.log = str(failure.log.relative_to(folder))
    run.out_of_time = isinstance(failure, OutOfTimeFailure)
    if failure.exit_code is None and not failure.timeout:
        run.not_started = True


@contextmanager
def machine_for(session: RunSession, planned: Planned) -> Iterator[None]:
    """Give a step the machine alone. Raises LockError, also after the lock timeout of the session."""
    last: LockQueue | None = None

    def waiting(queue: LockQueue) -> None:
        nonlocal last
        session.waits.begin()
        if queue != last:
            last = queue
            event = {"event": "waiting", "step": planned.id, "time": now()}
            session.folder.append(event | {"place": queue.place, "holder": queue.holder})
        session.progress(Waiting(planned, queue))

    with ExitStack() as held:
        try:
            who = f"{session.context.plan.workflow.name}, step {planned.id}"
            held.enter_context(machine_alone(who, session.lock_timeout, waiting))
        finally:
            session.waits.end()
        session.progress(Granted(planned))
        yield


FOLDER = "artifacts"
MOST_KEPT = 2**30
"""Largest total size (bytes) of the files that one step keeps."""
_OWN = (".perfflow", ".git")
"""Top-level folders that globs skip: their contents are kept already."""


def copy_artifacts(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Copy the files that the step's globs match, relative to the root of its tree. Warn of a glob without a match.

    Raises PreparationError for a glob that leaves the tree, OSError and Failure if a file cannot be copied whole.
    """
    root, folder = session.context.root, session.folder.step(planned.id) / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    context, kept = variables_of(session.context, planned), 0
    for item in planned.step.artifacts:
        glob = str(rendered(item, context))
        if glob_mistake(glob):
            raise PreparationError(f"artifacts: {glob_mistake(glob)}")
        matches = [path for path in sorted(root.glob(glob)) if _is_kept(path, root)]
        if not matches:
            run.warnings.append(f"artifacts: `{glob}` matches no file")
        for path in matches:
            kept += path.stat().st_size
            if kept > MOST_KEPT:
                reason = f"artifacts: {path.relative_to(root)} and all later files are left out"
                run.warnings.append(f"{reason}: a step keeps at most {MOST_KEPT >> 30} GiB")
                return
            copy = folder / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    if folder.exists():
        require_space(folder)


def _is_kept(path: Path, root: Path) -> bool:
    return path.is_file() and path.relative_to(root).parts[0] not in _OWN


def require_startable(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Find the program of a step on each side that has one. Raises Failure and PreparationError, as starting it would.

    Programs that the step builds first, or chooses from earlier results, are not checked here.
    """
    built_first = planned.tool is not None and planned.tool.is_built_first
    if planned.role not in (Role.MEASURE, Role.PROFILE) or built_first or profiles_several(planned):
        return

    absent = missing_side(session, planned)
    ops = first_count(session.context, planned)
    for side in session.sides_of(planned):
        if side is absent:
            continue
        prepared = session.prepare(planned, side, run, ops)
        reason = _not_startable(prepared)
        if reason:
            run.failing, run.failing_side = list(prepared.shown), side
            raise Failure(f"{session.where(side)}{reason}")


def _not_startable(prepared: ReadyProcess) -> str:
    """Return why the first process of a call cannot start, '' if no reason is known."""
    try:
        first = prepared.invocations()[0]
    except (StepError, IndexError):
        return ""
    path = {**prepared.env, **first.env}.get("PATH", os.defpath)
    if find_program(first.argv[0], path, prepared.cwd / first.cwd):
        return ""
    return missing_program(prepared.planned, path) or f"{first.argv[0]}: not found or not executable"


def not_startable(context: TreeContext, selected: Collection[str]) -> list[StepRun]:
    """Return the selected steps as failed or skipped if a program is missing, else an empty list."""
    plan = context.plan
    failed = {}
    for item in plan.steps:
        if item.id not in selected or item.tool is None or item.role in OPTIONAL_ROLES or item.step.continue_on_error:
            continue
        path = search_path(context, item)
        if path is not None and not prepare.unmet(requires_of(item, plan.params), path):
            problem = missing_program(item, path)
            if problem:
                failed[item.id] = StepRun(item, StepStatus.FAILED, problem, not_started=True)
    if not failed:
        return []
    reason = "nothing was run, because a tool is missing"
    return [
        failed.get(item.id) or StepRun(item, StepStatus.SKIPPED, reason) for item in plan.steps if item.id in selected
    ]


def write(
    result: Result,
    folder: Path,
    *,
    report: bool = True,
    page: bool = True,
    source: Path | None = None,
    template: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Path:
    """Write result.json and the report as Markdown and HTML; return the path of the Markdown file.

    Without ``report``, only result.json is written, and without ``page`` no HTML. ``source``: the run's own folder, if
    it differs from ``folder``. ``template``: the template of the Markdown file, in place of that of the run. Raises
    UserError if it fails; if that of the run fails, the report is perfflow's, and ``tell`` is called with the reason.
    """
    source = source or folder
    run_folder.write_text(folder / run_folder.RESULT, chunks(result))
    if report:
        text = markdown.render_own(result, template) if template else _report(result, source, tell)
        run_folder.write_text(folder / run_folder.REPORT, text)
    if report and page:
        profiles = stack_profiles(source, result) if has_stacks(result) else ()
        run_folder.write_text(folder / run_folder.PAGE, document.render(result, order_in(source), profiles))
    return folder / run_folder.REPORT


def _report(result: Result, source: Path, tell: Callable[[str], None] | None) -> str:
    """Return the report by its template. One of the user that fails is replaced by perfflow's, with a note."""
    if result.run.template in TEMPLATES:
        return markdown.render(result)
    try:
        return markdown.render_own(result, source / run_folder.TEMPLATE, result.run.template)
    except UserError as error:
        note = f"report.md has the layout of perfflow: {error.in_one_line}"
        if tell:
            tell(note)
        return f"{markdown.escaped(note)}\n\n{markdown.render(result)}"


def write_profiles(result: Result, folder: Path) -> None:
    """Write the run's profiles with stacks as files for other viewers; replace those of an earlier part of the run.

    Profiles that cannot be read any more are skipped, because no measurement depends on them.
    """
    place = folder / run_folder.PROFILES
    shutil.rmtree(place, ignore_errors=True)
    if not has_stacks(result):
        return

    for name, content in files_of(stack_profiles(folder, result), FORMATS):
        place.mkdir(exist_ok=True)
        run_folder.write_bytes(place / name, [content])


def result_of_events(folder: Path) -> Result:
    """Judge the events of a run by its own criteria. Raises UserError if they are damaged."""
    with run_folder.explaining_damage(folder / run_folder.EVENTS):
        record = record_of_events(folder)
        return judge(record, record.criteria)
