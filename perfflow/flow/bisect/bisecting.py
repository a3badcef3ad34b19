"""Good against bad, then one commit after another against good, until the first bad one is left or no more is known."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfflow.flow.bisect import going_on
from perfflow.flow.bisect.endpoints import Asked, Endpoints, Steps, endpoints, steps_of
from perfflow.flow.bisect.search import Search
from perfflow.flow.bisect.slots_in_turn import Limits, NotMeasuredError, SlotsInTurn, perform
from perfflow.flow.bisect.trying import Trials
from perfflow.flow.compared_trees import require_complete
from perfflow.flow.keeping import kept
from perfflow.flow.moment import now
from perfflow.flow.opening import Opened
from perfflow.flow.pausing import pausing
from perfflow.flow.perform import Performer
from perfflow.flow.progress import Progress
from perfflow.flow.run_once import Request, not_startable, opening_event
from perfflow.flow.workshop import Workshop
from perfflow.machine.facts import facts
from perfflow.run.context import Scene
from perfflow.run.secrets import masked
from perfflow.rundir import folder as rundir
from perfflow.rundir.bisection import FILE
from perfflow.rundir.folder import RunFolder
from perfflow.rundir.json_text import json_lines
from perfflow.rundir.record import Record, record_of
from perfflow.rundir.section import Section
from perfflow.statistics import Interval
from perfflow.trees import project
from perfflow.trees.bisection import Candidate, candidates, described, touched
from perfflow.trees.repository import Repository, open_repository
from perfflow.trees.slots import open_slots
from perfflow.verdict.bisected import Bisected, Outcome, Tried, about_size
from perfflow.verdict.bisection import (
    Holds,
    Regression,
    nothing_proven,
    regressions,
    row_of,
    standings,
    undecided,
    what_to_raise,
)

GOOD = "good"
"""Section of the run's folder for what was built of the good revision; the bad one's is the run's own."""
FOR_THE_ENDS = 0.5
"""Share of the budget that comparing good with bad may take."""
SPENT = "the budget is spent"
OPEN = "of the commits between nothing could be found out"
STOPPED = "interrupted"


@dataclass(frozen=True, slots=True)
class Finished:
    """A bisection that ended or was interrupted, and where its files are."""

    found: Bisected
    folder: Path


def bisect(
    opened: Opened,
    asked: Asked,
    progress: Progress,
    tell: Callable[[Tried], None],
    report: Callable[[Bisected], str],
) -> Finished:
    """Find the commit that brought a regression; ^C ends in an interrupted result.

    ``tell`` hears of each revision, ``report`` makes report.md. Raises UserError for bad usage before anything is
    executed, and where a file of the run or of its trees cannot be written.
    """
    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    ends, steps = endpoints(repository, asked), steps_of(opened.plan, asked)
    require_complete(opened)
    if asked.resume:
        going_on.require_same(asked.resume, opened, ends, asked)
    folder = rundir.reopen(asked.resume) if asked.resume else rundir.create(opened.root, asked.out)
    with folder, kept(folder.path, can_resume=bool(asked.resume)):
        seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
        if asked.resume:
            seed = going_on.seed(folder.path)
        tree = project.describe(opened.root)
        scene = Scene(opened.plan, opened.root, folder.id, seed, folder.path, machine=facts(), git=tree)
        folder.secrets = scene.secrets
        selected = frozenset(item.id for item in steps.all(opened.plan))
        if asked.resume:
            folder.append({"event": "resumed", "time": now(), "selected": sorted(selected)})
        else:
            request = Request(only=tuple(selected), budget=asked.budget, command=asked.command)
            opening = opening_event(opened, scene, selected, request)
            opening["trees"] |= _told(ends, asked)
            opening["run"]["bisect"] = going_on.question(asked)
            folder.append(opening | {"expected": []})
        trials = Trials(folder, repository, opened.plan.criteria, tell, scene.secrets)
        found = _Walk(opened, asked, Workshop(scene, folder, progress), folder, repository, ends, steps, trials).run()
        folder.append({"event": STOPPED if found.outcome is Outcome.INTERRUPTED else "end", "time": now()})
        run = {"id": folder.id, "params": dict(opened.plan.params), "seed": seed, "command": list(asked.command)}
        data = masked(found.to_json(run=run, machine=dict(scene.machine)), scene.secrets)
        rundir.write_text(folder.path / FILE, json_lines(data.items()))
        rundir.write_text(folder.path / rundir.REPORT, report(found))
        return Finished(found, folder.path)


def _told(ends: Endpoints, asked: Asked) -> dict[str, Any]:
    """What a result says of both sides: ``perfflow report`` makes one of good against bad."""
    return {
        "baseline": {"kind": "revision", "revision": ends.good.revision, "name": asked.good},
        "candidate": {"kind": "revision", "revision": ends.bad.revision, "name": asked.bad, "dirty": False},
    }


@dataclass
class _Walk:
    """One bisection as it goes on."""

    opened: Opened
    asked: Asked
    shop: Workshop
    folder: RunFolder
    repository: Repository
    ends: Endpoints
    steps: Steps
    trials: Trials

    def run(self) -> Bisected:
        """Walk to an outcome; what was found of each revision is an event as soon as it is known."""
        good, bad = self.ends.good, self.ends.bad
        found = Bisected(Outcome.INTERRUPTED, self.opened.plan.workflow.name, good, bad, notes=tuple(self.ends.notes))
        self.shop.progress.began(self.folder.path, self.steps.all(self.opened.plan))
        try:
            with pausing(self.shop):
                missing = self._set_up()
                if missing:
                    return found.ended(Outcome.NOT_MEASURED, masked(missing, self.shop.scene.secrets))
                with open_slots(self.repository, self.opened.plan.workflow.worktree.share) as slots:
                    building, patience = self.steps.building, self.asked.lock_timeout
                    trees = SlotsInTurn(self.shop, slots, self.repository, building, patience)
                    found = self._ends_compared(trees, found)
                    return self._searched(trees, found, found.regression) if found.regression else found
        except KeyboardInterrupt:
            return replace(found, tried=tuple(self.trials.done)).ended(Outcome.INTERRUPTED, STOPPED)
        except NotMeasuredError as error:
            why = f"the {'good' if error.good else 'bad'} revision: {masked(str(error), self.shop.scene.secrets)}"
            return replace(found, tried=tuple(self.trials.done)).ended(Outcome.NOT_MEASURED, why)
        finally:
            self.shop.close()

    def _set_up(self) -> str:
        """Run the setup, once, in the user's tree; returns what is missing or failed."""
        selected = frozenset(item.id for item in self.steps.all(self.opened.plan))
        for absent in not_startable(self.shop.scene, selected):
            if absent.blocks:
                return f"step {absent.planned.id}: {absent.reason}"
        performer = Performer(self.shop, self.asked.lock_timeout)
        failed = [run for run in perform(self.shop, performer, self.steps.setup) if run.blocks]
        return f"step {failed[0].planned.id}: {failed[0].reason}" if failed else ""

    # -- good against bad

    def _ends_compared(self, trees: SlotsInTurn, found: Bisected) -> Bisected:
        """Measure both ends, unless an interrupted bisection did, and choose the regression.

        Raises NotMeasuredError.
        """
        good, bad, criteria = self.ends.good, self.ends.bad, self.opened.plan.criteria
        worked = self.shop.waits.stopwatch()
        try:
            trees.show_good(good, Section(self.folder, GOOD, Record()))
        except NotMeasuredError as error:
            raise NotMeasuredError(str(error), good=True) from error
        if self.asked.resume:
            self.trials.recall(rundir.events(self.folder.path))
        if not self.trials.of(good.revision):
            self.trials.note(Tried(good, Holds.NO, Interval(0.0, 0.0, 0.0), seconds=worked()))
        worked = self.shop.waits.stopwatch()
        known = self.trials.of(bad.revision)
        if not known:
            scene = trees.show(bad, self.folder)
            trees.measuring.benchmark, trees.measuring.metric = self.asked.benchmark, self.asked.metric
            seconds = None if self.asked.budget is None else self.asked.budget * FOR_THE_ENDS
            trees.compare(scene, bad, self.folder, self.steps.measuring, Limits(criteria, seconds=seconds))
        record = record_of(rundir.events(self.folder.path))
        rows = standings(record, criteria, self.asked.benchmark, self.asked.metric)
        proven = regressions(rows, any_level=bool(self.asked.benchmark))
        took = worked()
        if not proven:
            same, why = nothing_proven(record, rows, " ".join(filter(None, (self.asked.benchmark, self.asked.metric))))
            outcome = Outcome(same)
            holding = {Outcome.SAME: Holds.NO, Outcome.UNPROVEN: Holds.UNPROVEN}.get(outcome, Holds.SKIPPED)
            worst = next(iter(undecided(rows)), None)
            change, pairs = (worst.comparison.change, worst.comparison.pairs) if worst else (None, 0)
            if not known:
                self.trials.note(Tried(bad, holding, change, pairs, reason=why, seconds=took))
            advised = (*found.notes, *what_to_raise(record, rows))
            return replace(found, tried=tuple(self.trials.done), notes=advised).ended(outcome, why)
        chosen, *others = proven
        row = row_of(record, criteria, chosen)
        if not known:
            self.trials.note(Tried(bad, Holds.YES, chosen.change, row.pairs if row else 0, seconds=took))
        notes = list(found.notes)
        if others:
            names = ", ".join(f"{item.benchmark} {item.metric}" for item in others)
            notes.append(f"the worst of {len(proven)} that regressed; --benchmark looks for another: {names}")
        tried = tuple(self.trials.done)
        return replace(found, regression=chosen, others=tuple(others), notes=tuple(notes), tried=tried)

    # -- what lies between

    def _searched(self, trees: SlotsInTurn, found: Bisected, regression: Regression) -> Bisected:
        """Try one commit after another. Raises NotMeasuredError where the good revision cannot be measured any more."""
        search = Search(self._order, found.bad.revision, [found.good.revision])
        for item in self.trials.done:
            if item.commit not in (found.good, found.bad):
                search.learn(item.commit.revision, item.holds)
        trees.measuring.benchmark, trees.measuring.metric = regression.benchmark, regression.metric
        why = ""
        try:
            while (commit := search.next()) is not None:
                seconds = None
                if self.asked.budget is not None:
                    seconds = (self.asked.budget - trees.measuring.spent) / max(1, search.steps())
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
