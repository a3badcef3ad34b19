"""``perfflow bisect``: compare good with bad, then commits between them with good, to find the first bad commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.execute.context import TreeContext
from perfflow.execute.deadline import Deadline
from perfflow.jobs.bisect import resume
from perfflow.jobs.bisect.build_and_measure import Limits, NotMeasuredError, SlotsInTurn
from perfflow.jobs.bisect.endpoints import BisectRequest, Endpoints, Steps, endpoints, steps_of
from perfflow.jobs.bisect.search import Search
from perfflow.jobs.bisect.trials import Trials
from perfflow.model.plain_data import to_json
from perfflow.model.secrets import masked
from perfflow.report import bisect_page, markdown
from perfflow.report.html import document
from perfflow.session.clock import now
from perfflow.session.compared_trees import require_complete
from perfflow.session.first_event import opening_event
from perfflow.session.guard_run_folder import discarding_unmeasured, explaining_folder_errors
from perfflow.session.known_names import KnownNames
from perfflow.session.open_workflow import Opened, select
from perfflow.session.pause import pausing
from perfflow.session.perform import perform_all
from perfflow.session.progress import Progress
from perfflow.session.session import RunSession
from perfflow.session.startable import not_startable
from perfflow.session.steps.by_role import performer_of
from perfflow.session.tree_contexts import users_tree
from perfflow.stats.paired_test import Interval
from perfflow.store import run_folder
from perfflow.store.json_text import json_lines
from perfflow.store.record import Record, record_of
from perfflow.store.run_bisection import FILE
from perfflow.store.run_folder import RunFolder
from perfflow.store.subrun import Subrun
from perfflow.trees.bisection import Candidate, candidates, described, touched
from perfflow.trees.repository import Repository, open_repository
from perfflow.trees.slots import open_slots
from perfflow.verdict.bisect_result import Bisected, Outcome, Tried, about_size
from perfflow.verdict.bisection import (
    Holds,
    Regression,
    judged_rows,
    nothing_proven,
    regressions,
    row_of,
    undecided,
    what_to_raise,
)

GOOD = "good"
"""Subrun of the run's folder for the good revision's build. The bad revision's build is in the run's own folder."""
FOR_THE_ENDS = 0.5
"""The share of the budget for comparing good with bad."""
SPENT = "the budget is spent"
OPEN = "none of the commits between them could be decided"
STOPPED = "interrupted"


@dataclass(frozen=True)
class FinishedBisection:
    """A bisection that ended or was interrupted, and its folder."""

    found: Bisected
    folder: Path


def bisect(
    opened: Opened,
    asked: BisectRequest,
    progress: Progress,
    tell: Callable[[Tried], None],
) -> FinishedBisection:
    """Find the commit that caused a regression. ^C ends the bisection with an interrupted result.

    ``tell`` is called with each revision's result. Raises UserError for bad usage before anything is executed, and if a
    file of the run or of its trees cannot be written.
    """
    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    ends, steps = endpoints(repository, asked), steps_of(opened.plan, asked)
    require_complete(opened)
    if asked.resume:
        resume.require_same(asked.resume, opened, ends, asked)
    folder = run_folder.reopen(asked.resume) if asked.resume else run_folder.create(opened.root, asked.out)
    with folder, explaining_folder_errors(folder.path, can_resume=bool(asked.resume)), discarding_unmeasured(folder):
        session = _begun(opened, asked, ends, steps, folder, progress)
        trials = Trials(folder, repository, opened.plan.criteria, tell, session.context.secrets)
        found = _Bisection(opened, asked, session, repository, ends, steps, trials).run()
        folder.append({"event": STOPPED if found.outcome is Outcome.INTERRUPTED else "end", "time": now()})
        _write(found, session.context, asked.command)
        write_pages(found, folder.path)
    return FinishedBisection(found, folder.path)


def write_pages(found: Bisected, folder: Path) -> None:
    """Write the report as Markdown and as an HTML page."""
    run_folder.write_text(folder / run_folder.REPORT, markdown.document_text(bisect_page.document(found)))
    run_folder.write_text(folder / run_folder.PAGE, document.render_bisection(found))


def _begun(
    opened: Opened, asked: BisectRequest, ends: Endpoints, steps: Steps, folder: RunFolder, progress: Progress
) -> RunSession:
    """Start a bisection and store its first event, or resume it; return its session."""
    context = users_tree(opened, folder, resume.seed(folder.path) if asked.resume else asked.seed)
    selected = [item.id for item in steps.all(opened.plan)]
    if asked.resume:
        folder.resume(selected, now())
    else:
        opening = opening_event(opened, context, selected, asked.command, asked.budget)
        # With these trees `perfflow report` can judge good against bad.
        opening["trees"] |= {
            "baseline": {"kind": "revision", "revision": ends.good.revision, "name": asked.good},
            "candidate": {"kind": "revision", "revision": ends.bad.revision, "name": asked.bad, "dirty": False},
        }
        opening["run"]["chosen"] = list(asked.benchmarks)
        opening["run"]["bisect"] = to_json(resume.question(asked))
        folder.append(opening | {"expected": []})
    session = RunSession(context, folder, progress, performer_of, asked.lock_timeout)
    session.deadline = Deadline(asked.budget, lambda: session.waits.seconds)
    session.names = KnownNames(tuple(asked.benchmarks), selected=select(opened.plan, (), asked.only, None))
    return session


def _write(found: Bisected, context: TreeContext, command: Sequence[str]) -> None:
    """Write bisect.json."""
    run = {"id": context.run_id, "params": dict(context.plan.params), "seed": context.seed, "command": list(command)}
    data = masked(found.to_json(run=run, machine=dict(context.machine)), context.secrets)
    run_folder.write_text(context.folder / FILE, json_lines(data.items()))


@dataclass
class _Bisection:
    """One bisection in progress."""

    opened: Opened
    asked: BisectRequest
    session: RunSession
    repository: Repository
    ends: Endpoints
    steps: Steps
    trials: Trials

    def run(self) -> Bisected:
        """Bisect to an outcome. Each revision's result is stored as an event as soon as it is known."""
        good, bad = self.ends.good, self.ends.bad
        found = Bisected(Outcome.INTERRUPTED, self.opened.plan.workflow.name, good, bad, notes=tuple(self.ends.notes))
        self.session.progress.began(self.session.folder.path, self.steps.all(self.opened.plan))
        try:
            with pausing(self.session):
                missing = self._set_up()
                if missing:
                    return found.ended(Outcome.NOT_MEASURED, masked(missing, self.session.context.secrets))
                with open_slots(self.repository, self.opened.plan.workflow.worktree.share) as slots:
                    trees = SlotsInTurn(self.session, slots, self.repository, self.steps.building)
                    found = self._ends_compared(trees, found)
                    return self._searched(trees, found, found.regression) if found.regression else found
        except KeyboardInterrupt:
            return replace(found, tried=tuple(self.trials.done)).ended(Outcome.INTERRUPTED, STOPPED)
        except NotMeasuredError as error:
            why = f"the {'good' if error.good else 'bad'} revision: {masked(str(error), self.session.context.secrets)}"
            return replace(found, tried=tuple(self.trials.done)).ended(Outcome.NOT_MEASURED, why)
        finally:
            self.session.close()

    def _set_up(self) -> str:
        """Run the setup once, in the user's tree; return what is missing or failed, or ''."""
        selected = frozenset(item.id for item in self.steps.all(self.opened.plan))
        for absent in not_startable(self.session.context, selected):
            if absent.blocks:
                return f"step {absent.planned.id}: {absent.reason}"
        failed = [run for run in perform_all(self.session, self.steps.setup) if run.blocks]
        return f"step {failed[0].planned.id}: {failed[0].reason}" if failed else ""

    # -- good against bad

    def _ends_compared(self, trees: SlotsInTurn, found: Bisected) -> Bisected:
        """Compare good with bad, unless the interrupted bisection did, and choose the regression.

        Raises NotMeasuredError.
        """
        good, bad, criteria = self.ends.good, self.ends.bad, self.opened.plan.criteria
        folder = self.session.folder
        worked = self.session.waits.stopwatch()
        try:
            trees.show_good(good, Subrun(folder, GOOD, Record()))
        except NotMeasuredError as error:
            raise NotMeasuredError(str(error), good=True) from error
        if self.asked.resume:
            self.trials.recall(run_folder.events(folder.path))
        if not self.trials.of(good.revision):
            self.trials.note(Tried(good, Holds.NO, Interval(0.0, 0.0, 0.0), seconds=worked()))
        worked = self.session.waits.stopwatch()
        known = self.trials.of(bad.revision)
        if not known:
            context = trees.show(bad, folder)
            trees.measuring.benchmarks, trees.measuring.metric = self.asked.benchmarks, self.asked.metric
            seconds = None if self.asked.budget is None else self.asked.budget * FOR_THE_ENDS
            trees.compare(context, bad, folder, self.steps.measuring, Limits(criteria, seconds=seconds))
        record = record_of(run_folder.events(folder.path))
        rows = judged_rows(record, criteria, self.asked.benchmarks, self.asked.metric)
        proven = regressions(rows, any_level=bool(self.asked.benchmarks))
        took = worked()
        lost = [f"{name} could not be measured: {why}" for name, why in trees.measuring.failures.items()]
        if not proven:
            wanted = " ".join(filter(None, (" and ".join(self.asked.benchmarks), self.asked.metric)))
            same, why = nothing_proven(record, rows, wanted)
            outcome = Outcome(same)
            if lost and outcome is Outcome.SAME:
                raise NotMeasuredError("; ".join(lost))
            holding = {Outcome.SAME: Holds.NO, Outcome.UNPROVEN: Holds.UNPROVEN}.get(outcome, Holds.SKIPPED)
            worst = next(iter(undecided(rows)), None)
            change, pairs = (worst.comparison.change, worst.comparison.pairs) if worst else (None, 0)
            if not known:
                self.trials.note(Tried(bad, holding, change, pairs, reason=why, seconds=took))
            advised = (*found.notes, *lost, *what_to_raise(record, rows))
            return replace(found, tried=tuple(self.trials.done), notes=advised).ended(outcome, why)
        chosen, *others = proven
        row = row_of(record, criteria, chosen)
        if not known:
            self.trials.note(Tried(bad, Holds.YES, chosen.change, row.pairs if row else 0, seconds=took))
        notes = [*found.notes, *lost]
        if others:
            names = ", ".join(f"{item.benchmark} {item.metric}" for item in others)
            notes.append(f"this is the worst of {len(proven)} regressions; --benchmark chooses another: {names}")
        tried = tuple(self.trials.done)
        return replace(found, regression=chosen, others=tuple(others), notes=tuple(notes), tried=tried)

    # -- the commits between

    def _searched(self, trees: SlotsInTurn, found: Bisected, regression: Regression) -> Bisected:
        """Try one commit after another. Raises NotMeasuredError if the good revision can no longer be measured."""
        search = Search(self._order, found.bad.revision, [found.good.revision])
        for item in self.trials.done:
            if item.commit not in (found.good, found.bad):
                search.learn(item.commit.revision, item.holds)
        trees.measuring.benchmarks, trees.measuring.metric = (regression.benchmark,), regression.metric
        why = ""
        try:
            while (commit := search.next()) is not None:
                seconds = None
                if self.asked.budget is not None:
                    seconds = self.session.deadline.left / max(1, search.steps())
                    if seconds <= 0:
                        why = SPENT
                        break
                tried = self.trials.make(trees, described(self.repository, commit), regression, seconds)
                search.learn(commit, tried.holds)
        except KeyboardInterrupt:
            why = STOPPED
        return self._concluded(found, search, regression, why)

    def _order(self, bad: str, good: Sequence[str]) -> list[Candidate]:
        return candidates(self.repository, bad, good, first_parent=self.asked.first_parent)

    def _concluded(self, found: Bisected, search: Search, regression: Regression, why: str) -> Bisected:
        commits = [described(self.repository, commit) for commit in search.left()]
        left = tuple(sorted(commits, key=lambda item: item.revision != search.bad))
        found = replace(found, tried=tuple(self.trials.done), left=left)
        if len(left) > 1:
            return found.ended(Outcome.INTERRUPTED if why == STOPPED else Outcome.NARROWED, why or OPEN)
        notes = (*found.notes, *about_size(self.trials.done, regression, left[0]))
        return replace(found, files=tuple(touched(self.repository, left[0])), notes=notes).ended(Outcome.FOUND)
