"""Judge a batch of patches by the jobs of an executor, each of which judges a part as ``judge`` would on its node.

A job adds a line to its file of answers as soon as it knows what became of a patch, and before it the commit of a kept
one. A job that replaces a lost one judges only what the lost one had not answered.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.jobs.cluster.agent import RUN, JobFolder, JobPatch, JobWork, Judging
from perfflow.jobs.cluster.placed_run import Attempt, Placement, groups_of_equals, keep_as_run, placing, with_part
from perfflow.jobs.judge.judge import Judged, JudgeRequest, batch_of, judge
from perfflow.jobs.judge.submit import Patch
from perfflow.model.judging import Code, Outcome
from perfflow.model.plain_data import from_json, to_json
from perfflow.model.result import Optimization
from perfflow.plan.groups import UNKNOWN, Group
from perfflow.session.open_workflow import Opened
from perfflow.session.progress import Noted, Progress, unheard
from perfflow.session.session import shown_workflow
from perfflow.store import attempts, run_folder
from perfflow.trees.bundles import HEAD, read_kept, write_kept
from perfflow.trees.commits import PREFIX
from perfflow.trees.git import remove_tree

_ANSWERS = "answers"
"""The file in a job's folder with what became of its patches, a line for each."""


@dataclass(frozen=True)
class _Answer:
    """A line of it: the number of the patch in the batch, and what ``Judged`` has. ``branch``: that of a kept patch."""

    number: int
    found: Optimization
    run: str
    seconds: float
    branch: str = ""


class _Parts:
    """What the jobs have not answered yet: the patches of each group, by their numbers in the batch."""

    def __init__(self, root: Path, parts: dict[str, dict[int, Patch]], tell: Callable[[Judged], None]) -> None:
        self._root, self._tell, self.left = root, tell, parts
        self._read: dict[Path, int] = defaultdict(int)
        """The number of bytes that were read of each file of answers."""

    def look(self, attempt: Attempt) -> None:
        """Tell the new answers of a job, and fetch the branches of kept patches. Raises UserError if that fails."""
        file = attempt.folder.path / _ANSWERS
        if not file.exists():
            return
        with file.open("rb") as stream:
            stream.seek(self._read[file])
            for line in stream:
                # The rest of a line follows if it is not yet written.
                if not line.endswith(b"\n"):
                    break
                self._read[file] += len(line)
                self._take(from_json(_Answer, json.loads(line)), attempt)

    def _take(self, answer: _Answer, attempt: Attempt) -> None:
        patch = self.left[attempt.group.id].pop(answer.number)
        if answer.branch:
            read_kept(self._root, answer.branch, attempt.folder.path / _bundle(answer.number))
        self._tell(Judged(patch, answer.found, answer.run, answer.seconds))

    def give_up(self, group: Group, why: str) -> None:
        """Tell that the rest of a group cannot be judged."""
        for patch in self.left[group.id].values():
            found = Optimization(
                id=patch.name,
                technique=patch.technique,
                why=patch.why,
                decision="skipped",
                outcome=Outcome.CANNOT_JUDGE,
                code=Code.JOB_LOST,
                reason=f"no job judged it: {why}",
            )
            self._tell(Judged(patch, found))
        self.left[group.id].clear()


def judge_placed(
    opened: Opened,
    patches: Sequence[Patch],
    request: JudgeRequest,
    placement: Placement,
    progress: Progress,
    tell: Callable[[Judged], None],
) -> bool:
    """Do what ``judge`` does by the jobs of an executor. Each job leaves a run of its own.

    Raises UserError as ``batch_of`` and ``placing`` do, and if no machine is suitable.
    """
    batch = batch_of(opened, patches, request, tell)
    if batch is None:
        return False
    shared = groups_of_equals(batch.opened, placement, len(batch.patches), request.budget or UNKNOWN)
    jobs_in_words = f"{len(shared)} jobs" if len(shared) != 1 else "1 job"
    progress(Noted(f"{len(batch.patches)} patches for {placement.name}, in {jobs_in_words}"))
    numbered = list(enumerate(batch.patches))
    parts = _Parts(opened.root, {group.id: dict(numbered[i :: len(shared)]) for i, group in enumerate(shared)}, tell)
    lost = interrupted = False
    with placing(opened, placement, shared, {}, lambda text: progress(Noted(text)), parts.look) as (jobs, work):
        # As on one machine, each patch is one of all attempts, also those of other jobs.
        many = attempts.note(opened.root, batch.original.tree, batch.opened.plan.workflow.name, len(batch.patches))
        common = replace(
            work,
            workflow=shown_workflow(opened),
            settings=tuple(request.settings),
            seed=request.seed,
            lock_timeout=request.lock_timeout,
        )

        def work_of(group: Group) -> JobWork:
            mine = tuple(
                JobPatch(number, patch.name, patch.data.decode("latin-1"), patch.why)
                for number, patch in parts.left[group.id].items()
            )
            judging = Judging(mine, request.isolate, request.budget, many, tuple(request.command))
            return replace(with_part(common, group), judging=judging)

        try:
            for group, why in jobs.measure(work_of):
                lost = lost or bool(parts.left[group.id])
                parts.give_up(group, why or "it left no answer")
                _keep_runs(opened.root, jobs.home / group.id)
        except KeyboardInterrupt:
            jobs.cancel()
            interrupted = True
            for group in shared:
                _keep_runs(opened.root, jobs.home / group.id)
    if not lost:
        # Else the answers name the logs in it.
        remove_tree(jobs.files)
    return interrupted


def _keep_runs(root: Path, group: Path) -> None:
    """Copy the runs of all attempts at a group into the project's own."""
    for events in sorted(group.glob(f"*/{RUN}/{run_folder.EVENTS}")):
        if events.stat().st_size:
            keep_as_run(root, events.parent)


def judge_in_job(opened: Opened, job: JobFolder, work: JobWork, asked: Judging) -> bool:
    """Judge the patches of a job in a clone of the code; return whether it was interrupted. Raises as ``judge``."""
    patches = [(item.number, Patch(item.name, item.text.encode("latin-1"), item.why)) for item in asked.patches]

    def tell(item: Judged) -> None:
        # Patches may be equal.
        number = next(number for number, patch in patches if patch is item.patch)
        run = str(next(run_folder.own_events(job.run))["run"]["id"]) if item.run else ""
        branch = ""
        if item.found.outcome is Outcome.KEPT:
            branch = f"{PREFIX}{run}/{run_folder.file_name(item.found.id)}"
            write_kept(opened.root, branch, work.states[HEAD], job.path / _bundle(number))
        line = json.dumps(to_json(_Answer(number, item.found, run, item.seconds, branch)))
        # Closed each time, so that a shared file system sends it.
        with (job.path / _ANSWERS).open("a", encoding="ascii") as stream:
            stream.write(f"{line}\n")

    request = JudgeRequest(
        work.settings,
        asked.budget,
        asked.isolate,
        job.run,
        work.seed,
        work.lock_timeout,
        # Trust was checked on the machine that submitted the job.
        trust=True,
        command=asked.command,
        attempts=asked.attempts,
    )
    return judge(opened, [patch for _, patch in patches], request, unheard, tell)


def _bundle(number: int) -> str:
    return f"{number}.bundle"
