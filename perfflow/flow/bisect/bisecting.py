"""Good against bad, then one commit after another against good, until the first bad one is left or no more is known."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfflow.errors import UserError
from perfflow.flow.bisect.endpoints import Asked, Endpoints, Steps, endpoints, steps_of
from perfflow.flow.bisect.search import Search
from perfflow.flow.bisect.slots_in_turn import Limits, NotMeasuredError, SlotsInTurn
from perfflow.flow.keeping import kept
from perfflow.flow.moment import now
from perfflow.flow.opening import Opened
from perfflow.flow.pausing import pausing
from perfflow.flow.perform import Performer
from perfflow.flow.progress import Progress
from perfflow.flow.run_events import step_event
from perfflow.flow.run_once import Request, not_startable, opening_event
from perfflow.flow.workshop import Workshop
from perfflow.machine.facts import facts
from perfflow.run.context import Scene
from perfflow.run.schedule import Schedule
from perfflow.rundir import folder as rundir
from perfflow.rundir.folder import RunFolder
from perfflow.rundir.json_text import json_lines
from perfflow.rundir.record import Record, record_of
from perfflow.rundir.section import Section
from perfflow.statistics import Interval
from perfflow.trees import project
from perfflow.trees.bisection import Described, candidates, described, touched
from perfflow.trees.repository import Repository, open_repository
from perfflow.trees.slots import open_slots
from perfflow.verdict.bisected import Bisected, Outcome, Tried, about_size
from perfflow.verdict.bisection import Holds, Regression, Standing, holds, regressions, row_of, standings

FILE = "bisect.json"
GOOD = "good"
"""Section of the run's folder for what was built of the good revision; the bad one's is the run's own."""
FOR_THE_ENDS = 0.5
"""Share of the budget that comparing good with bad may take."""
SPENT = "the budget is spent"

Tell = Callable[[Tried], None]


@dataclass(frozen=True, slots=True)
class Finished:
    """A bisection that ended or was interrupted, and where its files are."""

    found: Bisected
    folder: Path


def bisect(opened: Opened, asked: Asked, progress: Progress, tell: Tell, report: Callable[[Bisected], str]) -> Finished:
    """Find the commit that brought a regression; ^C ends in an interrupted result.

    ``tell`` hears of each revision, ``report`` makes report.md. Raises UserError for bad usage before anything is
    executed, and where a file of the run or of its trees cannot be written.
    """
    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    ends, steps = endpoints(repository, asked), steps_of(opened.plan, asked)
    with rundir.create(opened.root, asked.out) as folder, kept(folder.path, can_resume=False):
        scene = _scene(opened, folder, asked)
        selected = frozenset(item.id for item in steps.all(opened.plan))
        request = Request(only=tuple(selected), budget=asked.budget, command=asked.command)
        opening = opening_event(opened, scene, selected, request)
        opening["trees"] |= _trees(ends, asked)
        folder.append(opening | {"expected": []})
        shop = Workshop(scene, folder, progress)
        found = _Walk(opened, asked, shop, folder, repository, ends, steps, tell).run()
        found = replace(found, notes=tuple(dict.fromkeys(found.notes)))
        folder.append({"event": "interrupted" if found.outcome is Outcome.INTERRUPTED else "end", "time": now()})
        run = {"id": folder.id, "params": dict(opened.plan.params), "seed": scene.seed, "command": list(asked.command)}
        rundir.write_text(folder.path / FILE, json_lines(found.to_json(run=run, machine=dict(scene.machine)).items()))
        rundir.write_text(folder.path / rundir.REPORT, report(found))
        return Finished(found, folder.path)


def _scene(opened: Opened, folder: RunFolder, asked: Asked) -> Scene:
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    tree = project.describe(opened.root)
    return Scene(opened.plan, opened.root, folder.id, seed, folder.path, machine=facts(), git=tree)


def _trees(ends: Endpoints, asked: Asked) -> dict[str, Any]:
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
    tell: Tell
    tried: list[Tried] = field(default_factory=list)
    by_tree: dict[str, Tried] = field(default_factory=dict)

    def run(self) -> Bisected:
        """Walk to an outcome; what was found of each revision is an event as soon as it is known."""
        notes = tuple(self.ends.notes)
        found = Bisected(
            Outcome.INTERRUPTED, self.opened.plan.workflow.name, self.ends.good, self.ends.bad, notes=notes
        )
        self.shop.progress.began(self.folder.path, self.steps.all(self.opened.plan))
        try:
            with pausing(self.shop):
                missing = self._prepare()
                if missing:
                    return found.ended(Outcome.NOT_MEASURED, missing)
                share = self.opened.plan.workflow.worktree.share
                with open_slots(self.repository, share) as slots:
                    trees = SlotsInTurn(self.shop, slots, self.repository, self.steps.building, self.asked.lock_timeout)
                    found = self._ends_compared(trees, found)
                    return self._searched(trees, found) if found.regression else found
        except KeyboardInterrupt:
            return replace(found, tried=tuple(self.tried)).ended(Outcome.INTERRUPTED, "interrupted")
        except NotMeasuredError as error:
            whose = "the good revision" if error.good else "the bad revision"
            return replace(found, tried=tuple(self.tried)).ended(Outcome.NOT_MEASURED, f"{whose}: {error}")
        finally:
            self.shop.close()

    def _prepare(self) -> str:
        """Run the setup, once, in the user's tree; returns what is missing or failed."""
        selected = frozenset(item.id for item in self.steps.all(self.opened.plan))
        for absent in not_startable(self.shop.scene, selected):
            if absent.blocks and not absent.details.get("blocked"):
                return f"step {absent.planned.id}: {absent.reason}"
        performer = Performer(self.shop, self.asked.lock_timeout)
        plan = self.shop.scene.plan
        for run in Schedule(plan, performer, performer.allows, selected=self.steps.setup, stop=self.shop.stop):
            self.folder.append(step_event(run))
            self.shop.progress.ended(run)
            if run.blocks:
                return f"step {run.planned.id}: {run.reason}"
        return ""

    # -- good against bad

    def _ends_compared(self, trees: SlotsInTurn, found: Bisected) -> Bisected:
        """Measure both ends, and choose the regression. Raises NotMeasuredError."""
        good, bad = self.ends.good, self.ends.bad
        began = time.monotonic()
        try:
            trees.show_good(good, Section(self.folder, GOOD, Record()))
        except NotMeasuredError as error:
            raise NotMeasuredError(str(error), good=True) from error
        self._note(Tried(good, Holds.NO, Interval(0.0, 0.0, 0.0), seconds=time.monotonic() - began))
        began = time.monotonic()
        scene = trees.show(bad, self.folder)
        criteria = self.opened.plan.criteria
        trees.measuring.benchmark, trees.measuring.metric = self.asked.benchmark, self.asked.metric
        budget = self.asked.budget
        limits = Limits(criteria, seconds=None if budget is None else budget * FOR_THE_ENDS)
        trees.compare(scene, bad, self.folder, self.steps.measuring, limits)
        record = record_of(rundir.events(self.folder.path))
        rows = standings(record, criteria, self.asked.benchmark, self.asked.metric)
        proven = regressions(rows, any_level=bool(self.asked.benchmark))
        seconds = time.monotonic() - began
        if not proven:
            outcome, why = _nothing_proven(record, rows, self.asked)
            holding = Holds.NO if outcome is Outcome.SAME else Holds.UNPROVEN
            self._note(Tried(bad, holding, reason=why, seconds=seconds))
            return replace(found, tried=tuple(self.tried)).ended(outcome, why)
        chosen, *others = proven
        row = row_of(record, criteria, chosen)
        self._note(Tried(bad, Holds.YES, chosen.change, row.pairs if row else 0, seconds=seconds))
        notes = list(found.notes)
        if others:
            names = ", ".join(f"{item.benchmark} {item.metric}" for item in others)
            notes.append(f"it is the worst of {len(proven)} that regressed; --benchmark looks for another: {names}")
        return replace(found, regression=chosen, others=tuple(others), notes=tuple(notes), tried=tuple(self.tried))

    # -- what lies between

    def _searched(self, trees: SlotsInTurn, found: Bisected) -> Bisected:
        """Try one commit after another. Raises NotMeasuredError where the good revision cannot be measured any more."""
        regression = found.regression
        if regression is None:
            return found
        search = Search(self._order, found.bad.revision, [found.good.revision])
        self.folder.append({"event": "bisecting", **(found.to_json()["regression"] or {})})
        trees.measuring.benchmark, trees.measuring.metric = regression.benchmark, regression.metric
        why = ""
        try:
            while (commit := search.next()) is not None:
                seconds = self._seconds_for(trees, search)
                if seconds is not None and seconds <= 0:
                    why = SPENT
                    break
                item = self._try(trees, described(self.repository, commit), regression, seconds)
                search.learn(commit, item.holds)
        except KeyboardInterrupt:
            why = "interrupted"
        return self._concluded(found, search, regression, why)

    def _order(self, bad: str, good: Any) -> Any:
        return candidates(self.repository, bad, good, first_parent=self.asked.first_parent)

    def _seconds_for(self, trees: SlotsInTurn, search: Search) -> float | None:
        if self.asked.budget is None:
            return None
        return (self.asked.budget - trees.measuring.spent) / max(1, search.steps())

    def _try(self, trees: SlotsInTurn, commit: Described, regression: Regression, seconds: float | None) -> Tried:
        """Build one commit and measure it against good, unless another one with the same files was."""
        known = self.by_tree.get(self.repository.tree(commit.revision))
        if known:
            reason = f"the same files as {known.commit.revision[:12]}"
            same = replace(known, commit=commit, reason=reason, seconds=0.0, built=False)
            return self._note(same)
        began = time.monotonic()
        section = Section(self.folder, commit.revision[:12], Record())
        criteria = self.opened.plan.criteria
        try:
            scene = trees.show(commit, section)
            limits = Limits(regression.criteria(criteria), regression.goal(), seconds)
            trees.compare(scene, commit, section, [regression.step], limits)
        except NotMeasuredError as error:
            if error.good:
                raise
            return self._note(Tried(commit, Holds.SKIPPED, reason=str(error), seconds=time.monotonic() - began))
        except UserError as error:
            # A submodule that lacks a commit, a shared path that is in the way: what was found so far is kept.
            problem = error.problems[0]
            return self._note(Tried(commit, Holds.SKIPPED, reason=problem.message, seconds=time.monotonic() - began))
        row = row_of(section.record, criteria, regression)
        took = time.monotonic() - began
        if row is None:
            reason = f"{regression.benchmark} {regression.metric} is not measured there"
            return self._note(Tried(commit, Holds.SKIPPED, reason=reason, seconds=took))
        return self._note(Tried(commit, holds(row, regression), row.change, row.pairs, seconds=took))

    def _note(self, item: Tried) -> Tried:
        self.tried.append(item)
        self.by_tree.setdefault(self.repository.tree(item.commit.revision), item)
        self.folder.append({"event": "tried", **item.to_json()})
        self.tell(item)
        return item

    def _concluded(self, found: Bisected, search: Search, regression: Regression, why: str) -> Bisected:
        left = tuple(described(self.repository, commit) for commit in search.left())
        # Git lists what is best to try first; the newest first is what people read.
        newest = sorted(left, key=lambda item: item.revision != search.bad)
        found = replace(found, tried=tuple(self.tried), left=tuple(newest))
        if len(left) > 1:
            outcome = Outcome.INTERRUPTED if why == "interrupted" else Outcome.NARROWED
            return found.ended(outcome, why or "of the commits between nothing could be found out")
        first = left[0]
        notes = (*found.notes, *about_size(self.tried, regression, first))
        return replace(found, files=tuple(touched(self.repository, first)), notes=notes).ended(Outcome.FOUND)


def _nothing_proven(record: Record, rows: list[Standing], asked: Asked) -> tuple[Outcome, str]:
    """Why nothing can be looked for: nothing was measured of what was asked for, all is the same, or not known."""
    if not rows:
        known = ", ".join(sorted({f"{name} {metric}" for name, metric in record.series})) or "nothing"
        wanted = " ".join(filter(None, (asked.benchmark or "what was asked for", asked.metric)))
        return Outcome.NOT_MEASURED, f"{wanted} was not measured on both revisions; measured: {known}"
    gone = [item for item in rows if item.comparison.only is not None or item.comparison.change is None]
    open_ = [item for item in rows if item.ruling.decision == "unproven"]
    if open_:
        names = ", ".join(" ".join(item.key) for item in open_)
        return Outcome.UNPROVEN, f"no regression is proven, and none is excluded of: {names}"
    if gone:
        names = ", ".join(" ".join(item.key) for item in gone)
        return Outcome.NOT_MEASURED, f"not measured on both revisions: {names}"
    better = [item for item in rows if item.ruling.decision == "improved"]
    if better and len(better) == len(rows):
        return Outcome.SAME, "bad is better than good; were they swapped?"
    return Outcome.SAME, "bad is no worse than good by what counts"
