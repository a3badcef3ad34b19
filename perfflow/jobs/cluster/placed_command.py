"""Run a whole command as one job on another machine: a bisection, or a calibration of that machine."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perfflow.jobs.cluster import place_groups
from perfflow.jobs.cluster.executor import EngineError
from perfflow.jobs.cluster.job_folder import LOG, RUN, STDOUT, JobFolder, Work
from perfflow.jobs.cluster.place_groups import Placing
from perfflow.jobs.cluster.placed_run import Placement, home_of, source_of, tidy, where_of
from perfflow.jobs.cluster.site import Site
from perfflow.jobs.cluster.slurm import why_unsuitable
from perfflow.model.errors import Exit, UserError
from perfflow.model.version import VERSION
from perfflow.plan.groups import ConflictError, Group, place_of_all
from perfflow.session.first_event import digest
from perfflow.session.open_workflow import Opened
from perfflow.store import run_folder
from perfflow.store.run_folder import RunFolder
from perfflow.tools.adapter import Role
from perfflow.trees.bundles import HEAD, commit_of
from perfflow.trees.repository import open_repository
from perfflow.trees.snapshots import snapshot
from perfflow.workflow.expression_text import ExpressionError

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


def perform(
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
    group = _group(opened, placement, only)
    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    states = {HEAD: commit_of(repository, snapshot(repository)), **revisions}
    place = run_folder.home(opened.root) / "placed"
    place.mkdir(exist_ok=True)
    site = placement.site
    with run_folder.create(opened.root, place / run_folder.new_id()) as folder, _home_of(site, folder) as home:
        source, _ = source_of(repository, home, states, bundle=site.trees == "bundle")
        work = Work(
            root=str(opened.root),
            workflow="",
            digest=digest(opened),
            source=source,
            states=states,
            share=tuple(opened.plan.workflow.worktree.share),
            scratch=site.scratch,
            version=VERSION,
            command=tuple(words),
        )
        where = where_of(placement, home)
        jobs = Placing(folder, [group], where, tell)
        try:
            ((_, why),) = jobs.measure(functools.partial(place_groups.with_part, work))
        except KeyboardInterrupt:
            jobs.cancel()
            raise
        return _performed(folder.path, why)


@contextmanager
def _home_of(site: Site, folder: RunFolder) -> Iterator[Path]:
    """Yield the folder for the files of the job. Remove it at the end, or what only the job needed."""
    home = home_of(site, folder)
    try:
        yield home
    finally:
        tidy(home, whole=bool(site.folder))


def keep_as_run(root: Path, found: Path) -> Path:
    """Copy a job's run into the project's own runs; return its folder."""
    with run_folder.create(root, None) as folder:
        shutil.copytree(found, folder.path, dirs_exist_ok=True, symlinks=True)
        folder.become_latest()
        return folder.path


def _group(opened: Opened, placement: Placement, only: Collection[str]) -> Group:
    """Return all steps as one group. Raises UserError if they need different places, or a place that does not exist."""
    steps = [item for item in opened.plan.steps if not only or item.id in only or item.step.id in only]
    measuring = [item for item in steps if item.role not in (Role.WORK, Role.CANDIDATE, Role.COMPARE)]
    try:
        place = place_of_all(opened.plan, measuring)
        why = why_unsuitable(place, placement.executor.nodes())
    except (ConflictError, ExpressionError) as error:
        raise UserError.of(str(error), "choose steps of one place with --only") from error
    except EngineError as error:
        raise UserError.of(f"executor {placement.name}: {error}", "perfflow executors", Exit.UNMEASURED) from error
    if why:
        raise UserError.of(f"executor {placement.name}: {why}", "correct `runs-on`", Exit.UNMEASURED)
    return Group("g1", tuple(item.id for item in steps), place, EXPECTED)


def _performed(folder: Path, why: str) -> CommandResult:
    job = place_groups.folder_of(folder, "g1")
    ended = JobFolder(job).ended()
    if ended is None or ended.status is None or not (job / STDOUT).is_file():
        text = f"the job did not finish: {why or 'it left no result'}"
        hint = f"its log: {job / LOG}" if (job / LOG).is_file() else "run `perfflow executors` to check the executor"
        raise UserError.of(text, hint, Exit.UNMEASURED)
    printed = (job / STDOUT).read_text(encoding="utf-8", errors="replace")
    return CommandResult(printed, ended.status, job / RUN, ended.worker.node, folder)
