"""``perfflow bisect``: compare good with bad, then commits between them with good, to find the first bad commit.

- ``bisect`` runs or resumes a bisection. ``show_again`` shows a stored one again, and writes its page from bisect.json;
  it measures and judges nothing.
- ``BisectRequest`` is what the user asked for; ``endpoints`` and ``steps_of`` find its revisions and the steps to run.
- ``Search`` chooses the commit to try next, from the commits that are left. It does not call git: git's order is passed
  in.
- ``Trials`` builds one revision after another, measures each against the good one, and stores each result as an event.
- ``require_same`` checks that an interrupted bisection can be resumed: same options, same workflow, same machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfflow.execute.context import TreeContext
from perfflow.execute.deadline import Deadline
from perfflow.jobs.bisect.build_and_measure import NotMeasuredError, SamplingLimits, SlotsInTurn
from perfflow.machine.facts import IDENTITY, facts
from perfflow.model.criteria import Criteria
from perfflow.model.errors import Exit, UserError
from perfflow.model.metrics import METRICS
from perfflow.model.plain_data import to_json
from perfflow.model.readings import Side
from perfflow.model.secrets import Secrets, masked
from perfflow.model.tree_facts import tree_of
from perfflow.plan.plan import Plan, Planned, building_steps
from perfflow.report import bisect_page, markdown
from perfflow.report.html import document
from perfflow.session.compared_trees import require_complete
from perfflow.session.known_names import KnownNames
from perfflow.session.open_workflow import Opened, select
from perfflow.session.perform import not_startable, perform_all
from perfflow.session.progress import Began, Progress
from perfflow.session.session import (
    RunSession,
    digest,
    discarding_unmeasured,
    explaining_folder_errors,
    now,
    opening_event,
    pausing,
    users_tree,
)
from perfflow.session.steps.by_role import performer_of
from perfflow.stats.paired_test import Interval
from perfflow.store import run_folder
from perfflow.store.record import Record, record_of
from perfflow.store.result_file import FILE
from perfflow.store.run_facts import BisectQuestion
from perfflow.store.run_folder import RunFolder, Subrun, json_lines
from perfflow.tools import regular_files
from perfflow.tools.adapter import Role
from perfflow.trees.line_history import BisectionCandidate, Described, candidates, described, newest_first, touched
from perfflow.trees.repository import Repository, open_repository
from perfflow.trees.slots import open_slots
from perfflow.verdict import bisection
from perfflow.verdict.bisection import (
    Bisected,
    BisectionOutcome,
    Holds,
    JudgedRevision,
    Regression,
    about_size,
    holds,
    judged_rows,
    nothing_proven,
    regressions,
    row_of,
    undecided,
    what_to_raise,
)
from perfflow.verdict.comparison import ComparedMetric
from perfflow.workflow.roles import CANDIDATES_STAGE

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
    request: BisectRequest,
    progress: Progress,
    tell: Callable[[JudgedRevision], None],
) -> FinishedBisection:
    """Find the commit that caused a regression. ^C ends the bisection with an interrupted result.

    ``tell`` is called with each revision's result. Raises UserError for bad usage before anything is executed, and if a
    file of the run or of its trees cannot be written.
    """
    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    ends, steps = endpoints(repository, request), steps_of(opened.plan, request)
    require_complete(opened)
    if request.resume:
        require_same(request.resume, opened, ends, request)
    folder = run_folder.reopen(request.resume) if request.resume else run_folder.create(opened.root, request.out)
    with folder, explaining_folder_errors(folder.path, can_resume=bool(request.resume)), discarding_unmeasured(folder):
        session = _begun(opened, request, ends, steps, folder, progress)
        trials = Trials(folder, repository, opened.plan.criteria, tell, session.context.secrets)
        bisected = _Bisection(opened, request, session, repository, ends, steps, trials).run()
        folder.append({"event": STOPPED if bisected.outcome is BisectionOutcome.INTERRUPTED else "end", "time": now()})
        _write(bisected, session.context, request.command)
        write_pages(bisected, folder.path)
    return FinishedBisection(bisected, folder.path)


def write_pages(found: Bisected, folder: Path) -> None:
    """Write the report as Markdown and as an HTML page."""
    run_folder.write_text(
        folder / run_folder.REPORT, markdown.document("bisection.md.j2", None, **bisect_page.variables(found))
    )
    run_folder.write_text(folder / run_folder.PAGE, document.render_bisection(found))


def _begun(
    opened: Opened,
    request: BisectRequest,
    ends: Endpoints,
    steps: BisectionSteps,
    folder: RunFolder,
    progress: Progress,
) -> RunSession:
    """Start a bisection and store its first event, or resume it; return its session."""
    context = users_tree(opened, folder, seed(folder.path) if request.resume else request.seed)
    selected = [item.id for item in steps.all(opened.plan)]
    if request.resume:
        folder.resume(selected, now())
    else:
        opening = opening_event(opened, context, selected, request.command, request.budget)
        # With these trees `perfflow report` can judge good against bad.
        opening["trees"] |= {
            "baseline": {"kind": "revision", "revision": ends.good.revision, "name": request.good},
            "candidate": {"kind": "revision", "revision": ends.bad.revision, "name": request.bad, "dirty": False},
        }
        opening["run"]["chosen"] = list(request.benchmarks)
        opening["run"]["bisect"] = to_json(question(request))
        folder.append(opening | {"expected": []})
    session = RunSession(context, folder, progress, performer_of, request.lock_timeout)
    session.deadline = Deadline(request.budget, lambda: session.waits.seconds)
    session.names = KnownNames(tuple(request.benchmarks), selected=select(opened.plan, (), request.only, None))
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
    steps: BisectionSteps
    trials: Trials

    def run(self) -> Bisected:
        """Bisect to an outcome. Each revision's result is stored as an event as soon as it is known."""
        good, bad = self.ends.good, self.ends.bad
        bisected = Bisected(
            BisectionOutcome.INTERRUPTED, self.opened.plan.workflow.name, good, bad, notes=tuple(self.ends.notes)
        )
        self.session.progress(Began(self.session.folder.path, self.steps.all(self.opened.plan)))
        try:
            with pausing(self.session):
                missing = self._set_up()
                if missing:
                    return bisected.ended(BisectionOutcome.NOT_MEASURED, masked(missing, self.session.context.secrets))
                with open_slots(self.repository, self.opened.plan.workflow.worktree.share) as slots:
                    trees = SlotsInTurn(self.session, slots, self.repository, self.steps.building)
                    bisected = self._ends_compared(trees, bisected)
                    return self._searched(trees, bisected, bisected.regression) if bisected.regression else bisected
        except KeyboardInterrupt:
            return replace(bisected, tried=tuple(self.trials.done)).ended(BisectionOutcome.INTERRUPTED, STOPPED)
        except NotMeasuredError as error:
            why = f"the {'good' if error.good else 'bad'} revision: {masked(str(error), self.session.context.secrets)}"
            return replace(bisected, tried=tuple(self.trials.done)).ended(BisectionOutcome.NOT_MEASURED, why)
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

    def _ends_compared(self, trees: SlotsInTurn, bisected: Bisected) -> Bisected:
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
            self.trials.note(JudgedRevision(good, Holds.NO, Interval(0.0, 0.0, 0.0), seconds=worked()))
        worked = self.session.waits.stopwatch()
        known = self.trials.of(bad.revision)
        if not known:
            context = trees.show(bad, folder)
            trees.measuring.benchmarks, trees.measuring.metric = self.asked.benchmarks, self.asked.metric
            seconds = None if self.asked.budget is None else self.asked.budget * FOR_THE_ENDS
            trees.compare(context, bad, folder, self.steps.measuring, SamplingLimits(criteria, seconds=seconds))
        record = record_of(run_folder.events(folder.path))
        rows = judged_rows(record, criteria, self.asked.benchmarks, self.asked.metric)
        proven = regressions(rows, any_level=bool(self.asked.benchmarks))
        took = worked()
        lost = [f"{name} could not be measured: {why}" for name, why in trees.measuring.failures.items()]
        if not proven:
            chosen_names = " ".join(filter(None, (" and ".join(self.asked.benchmarks), self.asked.metric)))
            same, why = nothing_proven(record, rows, chosen_names)
            outcome = BisectionOutcome(same)
            if lost and outcome is BisectionOutcome.SAME:
                raise NotMeasuredError("; ".join(lost))
            holding = {BisectionOutcome.SAME: Holds.NO, BisectionOutcome.UNPROVEN: Holds.UNPROVEN}.get(
                outcome, Holds.SKIPPED
            )
            worst = next(iter(undecided(rows)), None)
            change, pairs = (worst.comparison.change, worst.comparison.pairs) if worst else (None, 0)
            if not known:
                self.trials.note(JudgedRevision(bad, holding, change, pairs, reason=why, seconds=took))
            advised = (*bisected.notes, *lost, *what_to_raise(record, rows))
            return replace(bisected, tried=tuple(self.trials.done), notes=advised).ended(outcome, why)
        chosen, *others = proven
        row = row_of(record, criteria, chosen)
        if not known:
            self.trials.note(JudgedRevision(bad, Holds.YES, chosen.change, row.pairs if row else 0, seconds=took))
        notes = [*bisected.notes, *lost]
        if others:
            names = ", ".join(f"{item.benchmark} {item.metric}" for item in others)
            notes.append(f"this is the worst of {len(proven)} regressions; --benchmark chooses another: {names}")
        tried = tuple(self.trials.done)
        return replace(bisected, regression=chosen, others=tuple(others), notes=tuple(notes), tried=tried)

    # -- the commits between

    def _searched(self, trees: SlotsInTurn, bisected: Bisected, regression: Regression) -> Bisected:
        """Try one commit after another. Raises NotMeasuredError if the good revision can no longer be measured."""
        search = Search(self._order, bisected.bad.revision, [bisected.good.revision])
        for trial in self.trials.done:
            if trial.commit not in (bisected.good, bisected.bad):
                search.learn(trial.commit.revision, trial.holds)
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
        return self._concluded(bisected, search, regression, why)

    def _order(self, bad: str, good: Sequence[str]) -> list[BisectionCandidate]:
        return candidates(self.repository, bad, good, first_parent=self.asked.first_parent)

    def _concluded(self, found: Bisected, search: Search, regression: Regression, why: str) -> Bisected:
        left = tuple(newest_first(self.repository, search.bad, search.good, first_parent=self.asked.first_parent))
        found = replace(found, tried=tuple(self.trials.done), left=left)
        if len(left) > 1:
            return found.ended(
                BisectionOutcome.INTERRUPTED if why == STOPPED else BisectionOutcome.NARROWED, why or OPEN
            )
        notes = (*found.notes, *about_size(self.trials.done, regression, left[0]))
        return replace(found, files=tuple(touched(self.repository, left[0])), notes=notes).ended(BisectionOutcome.FOUND)


def show_again(folder: Path) -> FinishedBisection:
    """Read a stored bisection, and write its page again if the folder can be written.

    Raises UserError while it is running, if it was killed before bisect.json was written, and for a damaged file.
    """
    run_folder.require_ended(folder)
    path = folder / FILE
    try:
        with run_folder.explaining_damage(path):
            bisected = bisection.read_bisection(json.loads(regular_files.read(path)))
    except FileNotFoundError as error:
        if not were_compared(folder):
            text = f"{folder}: the bisection was killed before good was compared with bad"
            raise UserError.of(text, f"nothing was found; {AGAIN}") from error
        hint = "resume it with `perfflow bisect` and --resume, or use --out DIR to judge good against bad"
        raise UserError.of(f"{folder}: the bisection has no {FILE}: it was killed", hint) from error
    except OSError as error:
        raise UserError.of(f"{path}: {error.strerror}", "this file is needed to show the bisection") from error
    try:
        write_pages(bisected, folder)
    except OSError:
        # A read-only folder keeps its old page; the printed text is the same.
        return FinishedBisection(bisected, folder)
    return FinishedBisection(bisected, folder)


@dataclass(frozen=True)
class BisectRequest:
    """The user's options. ``benchmarks`` are names or globs; without any, it is the benchmark that regressed most.

    ``budget``: seconds for all measurements together; None for no limit.
    """

    good: str
    bad: str = "HEAD"
    only: Sequence[str] = ()
    benchmarks: Sequence[str] = ()
    metric: str = ""
    budget: float | None = None
    first_parent: bool = False
    out: Path | None = None
    resume: Path | None = None
    """Folder of an interrupted bisection to resume."""
    seed: int | None = None
    lock_timeout: float = 1800.0
    command: Sequence[str] = ()


@dataclass(frozen=True)
class Endpoints:
    """A bad revision and its good ancestor, with notes about how that was found."""

    good: Described
    bad: Described
    notes: list[str] = field(default_factory=list)


def endpoints(repository: Repository, request: BisectRequest) -> Endpoints:
    """Find both revisions. Raises UserError for unknown revisions, and if no change can lie between them."""
    good, bad = (described(repository, repository.revision(name)) for name in (request.good, request.bad))
    parted = repository.merge_base(good.revision, bad.revision)
    if good.revision == bad.revision:
        raise UserError.of("--good and --bad are the same commit", "name an older one as --good")
    if parted == bad.revision:
        hint = f"the older one must be the good one: --good {request.bad} --bad {request.good}"
        raise UserError.of(f"{request.bad} is an ancestor of {request.good}", hint)
    notes = []
    if parted != good.revision:
        notes.append(
            f"{request.good} is not an ancestor of {request.bad}: their merge base {parted[:12]} is used instead"
        )
        good = described(repository, parted)
    if repository.tree(good.revision) == repository.tree(bad.revision):
        raise UserError.of(
            f"{request.good} and {request.bad} have the same files", "nothing can have changed between them"
        )
    return Endpoints(good, bad, notes)


@dataclass(frozen=True)
class BisectionSteps:
    """Ids of the steps that run once, that build each tree, and that measure it."""

    setup: tuple[str, ...]
    building: tuple[str, ...]
    measuring: tuple[str, ...]

    def all(self, plan: Plan) -> list[Planned]:
        """Return all these steps, in the order of the plan."""
        return [item for item in plan.steps if item.id in {*self.setup, *self.building, *self.measuring}]


def steps_of(plan: Plan, request: BisectRequest) -> BisectionSteps:
    """Choose the steps. Raises UserError if no step measures, and for an unknown metric or an unusable service."""
    selected = select(plan, (), request.only, None, request.benchmarks)
    stages = list(plan.workflow.stages)
    later = set(stages[stages.index(CANDIDATES_STAGE) + 1 :]) if CANDIDATES_STAGE in stages else set()
    # A step that compares two commands has its own baseline, so it cannot compare two revisions.
    able = [i for i in plan.steps if i.role is Role.MEASURE and i.stage not in later and i.step.candidate is None]
    measuring = tuple(item.id for item in able if item.id in selected)
    if not measuring:
        hint = f"steps that can: {', '.join(item.id for item in able)}" if able else "add a step that measures"
        raise UserError.of("none of the steps can be measured on two revisions", hint)
    if request.metric and request.metric not in {*METRICS, *plan.criteria.metrics}:
        known = ", ".join([*METRICS, *plan.criteria.metrics])
        raise UserError.of(f"--metric {request.metric}: no such metric", f"metrics: {known}")
    setup = tuple(item.id for item in plan.steps if item.stage == "setup")
    building = building_steps(plan)
    service = next((name for name in building if plan.by_id[name].step.background), None)
    if service:
        text = f"the service `{service}` would keep running after the tree of its commit is replaced"
        raise UserError.of(text, "measure with a command that starts and stops it, or start it in the `setup` stage")
    return BisectionSteps(setup, building, measuring)


Order = Callable[[str, Sequence[str]], list[BisectionCandidate]]
"""(bad, good ones) → the commits that may be the first bad one. The best commit to try is first."""


@dataclass
class Search:
    """The remaining commits: those in the history of ``bad``, but of no good commit."""

    order: Order
    bad: str
    good: list[str]
    passed_over: set[str] = field(default_factory=set)
    """Commits that could not be decided."""

    def left(self) -> list[str]:
        """Return the commits that may be the first bad one, including ``bad``."""
        return [item.commit for item in self.order(self.bad, self.good)]

    def next(self) -> str | None:
        """Return the commit to try next; None if one is left, or none of the others can be decided.

        Commits that cannot be tried are often neighbours, so after them a more distant commit is chosen. The distance
        never adds a try in the worst case.
        """
        ordered = [item for item in self.order(self.bad, self.good) if item.commit != self.bad]
        able = [item for item in ordered if item.commit not in self.passed_over]
        if not able:
            return None
        count = len(ordered) + 1
        best = _tries(count, able[0])
        equal = [item for item in able if _tries(count, item) == best]
        passed = len(ordered) - len(able)
        return equal[min((1 << passed) - 1, len(equal) - 1)].commit

    def steps(self) -> int:
        """Return the number of tries that are left in the worst case."""
        return (len(self.left()) - 1).bit_length()

    def learn(self, commit: str, what: Holds) -> None:
        """Record the result of a commit."""
        if what in (Holds.YES, Holds.PART):
            self.bad = commit
        elif what is Holds.NO:
            self.good.append(commit)
        else:
            self.passed_over.add(commit)


def _tries(count: int, item: BisectionCandidate) -> int:
    """Return the number of tries that the larger part needs after this one."""
    return (count - item.distance - 1).bit_length()


ATTEMPTS = 2
"""The most comparisons of one revision. If the first leaves it undecided, new pairs alone decide."""
TRIED = "tried"
"""The event that stores the result of a revision."""


@dataclass
class Trials:
    """The results of all revisions so far; ``tell`` is called with each new one."""

    folder: RunFolder
    repository: Repository
    criteria: Criteria
    tell: Callable[[JudgedRevision], None]
    secrets: Secrets = field(default_factory=Secrets)
    """Texts that must not be stored."""
    done: list[JudgedRevision] = field(default_factory=list)
    _by_tree: dict[str, JudgedRevision] = field(default_factory=dict)

    def note(self, item: JudgedRevision) -> JudgedRevision:
        """Store the result of a revision, and pass it to ``tell``."""
        # Rounded here, so that a page of the stored result has the same figures.
        item = replace(item, reason=masked(item.reason, self.secrets), seconds=round(item.seconds, 3))
        self._take(item)
        self.folder.append({"event": TRIED, **item.to_json()})
        self.tell(item)
        return item

    def recall(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Restore the results of an interrupted bisection. Raises LookupError for events of another shape."""
        for event in events:
            if event.get("event") == TRIED:
                self._take(_from_json(self.repository, event))

    def of(self, revision: str) -> JudgedRevision | None:
        """Return the result of a revision; None if it was not tried."""
        return next((item for item in self.done if item.commit.revision == revision), None)

    def _take(self, item: JudgedRevision) -> None:
        self.done.append(item)
        self._by_tree.setdefault(self.repository.tree(item.commit.revision), item)

    def make(
        self, trees: SlotsInTurn, commit: Described, regression: Regression, seconds: float | None
    ) -> JudgedRevision:
        """Build one commit and measure it against good, unless a commit with the same files was measured.

        seconds: time limit for measuring it; None for no limit. Raises NotMeasuredError if the good revision can no
        longer be measured, and UserError if the disk cannot be written.
        """
        known = self._by_tree.get(self.repository.tree(commit.revision))
        if known:
            reason = f"the same files as {known.commit.revision[:12]}"
            return self.note(replace(known, commit=commit, reason=reason, seconds=0.0, built=False))
        worked = trees.session.waits.stopwatch()
        try:
            judged = self._measured(trees, commit, regression, seconds)
        except NotMeasuredError as error:
            if error.good:
                raise
            judged = JudgedRevision(commit, Holds.SKIPPED, reason=str(error))
        except UserError as error:
            if error.exit is Exit.UNMEASURED:
                raise
            # This revision cannot be checked out: a submodule lacks a commit, or a shared path is in the way.
            judged = JudgedRevision(commit, Holds.SKIPPED, reason=error.problems[0].message)
        return self.note(replace(judged, seconds=worked()))

    def _measured(
        self, trees: SlotsInTurn, commit: Described, regression: Regression, seconds: float | None
    ) -> JudgedRevision:
        name = commit.revision[:12]
        subrun = Subrun(self.folder, name, Record())
        # Separates this try from the events of an interrupted one.
        subrun.append({"event": "begun"})
        context = trees.show(commit, subrun)
        criteria, goal = regression.criteria(self.criteria), regression.goal()
        ends = math.inf if seconds is None else trees.measuring.spent + seconds
        judged = JudgedRevision(commit, Holds.UNPROVEN, reason="no time was left to measure it")
        for attempt in range(ATTEMPTS):
            left = ends - trees.measuring.spent
            if left <= 0:
                break
            if attempt:
                subrun = Subrun(self.folder, f"{name}.{attempt + 1}", Record())
                subrun.append({"event": "begun"})
            trees.measuring.attempt = attempt
            limits = SamplingLimits(criteria, goal, left if math.isfinite(left) else None)
            trees.compare(context, commit, subrun, [regression.step], limits)
            row = row_of(subrun.record, self.criteria, regression)
            if row is None:
                reason = f"{regression.benchmark} {regression.metric} is not measured at this commit"
                return JudgedRevision(commit, Holds.SKIPPED, reason=reason)
            layouts = _layouts_told(subrun.record, row)
            judged = JudgedRevision(commit, holds(row, regression), row.change, row.pairs, reason=layouts)
            if judged.holds is not Holds.UNPROVEN:
                break
        return judged


def _layouts_told(record: Record, row: ComparedMetric) -> str:
    """Return the number of code layouts that a revision was measured over, or why it was one; '' if irrelevant."""
    if row.layouts:
        return f"over {row.layouts.n} code layouts of each side"
    why = record.why_as_built(record.series[row.benchmark, row.metric.name])
    return f"with one code layout of each side: {why}" if why else ""


def _from_json(repository: Repository, event: Mapping[str, Any]) -> JudgedRevision:
    bounds = event["change"]
    change = None
    if bounds:
        ends = ("value", math.nan), ("low", -math.inf), ("high", math.inf)
        change = Interval(*(open_ if bounds[name] is None else bounds[name] for name, open_ in ends))
    return JudgedRevision(
        described(repository, event["revision"]),
        Holds(event["decision"]),
        change,
        event["pairs"],
        event["reason"],
        event["seconds"],
        event["built"],
    )


AGAIN = "start a new one without --resume"


def require_same(path: Path, opened: Opened, ends: Endpoints, request: BisectRequest) -> None:
    """Raise UserError if the bisection in a folder had other revisions, options, workflow or machine."""
    record = _opened(path)
    before = [tree_of(record.trees, side).revision for side in Side]
    if before != [ends.good.revision, ends.bad.revision]:
        raise UserError.of(f"{path}: this run is not a bisection of these two revisions", AGAIN)
    if record.run.digest != digest(opened) or record.bisect != question(request):
        raise UserError.of(f"{path}: the workflow or the options differ from those of this run", AGAIN)
    if not were_compared(path):
        raise UserError.of(f"{path}: it was interrupted before good was compared with bad", AGAIN)
    here = facts()
    differing = [name for name in IDENTITY if record.machine.get(name) != here[name]]
    if differing:
        text = f"{path}: this run was started on another machine (other {', '.join(differing)})"
        raise UserError.of(text, f"samples of two machines are not mixed; {AGAIN}")


def were_compared(path: Path) -> bool:
    """Return whether good and bad were compared. A bisection that ended before that cannot be resumed."""
    bad = tree_of(_opened(path).trees, Side.CANDIDATE).revision
    return any(event.get("event") == TRIED and event.get("revision") == bad for event in run_folder.events(path))


def seed(path: Path) -> int:
    """Return the seed of the run in a folder."""
    return _opened(path).run.seed


def question(asked: BisectRequest) -> BisectQuestion:
    """Return the options that the answer depends on, beside the revisions, as the run's first event stores them."""
    return BisectQuestion(tuple(asked.only), tuple(asked.benchmarks), asked.metric, asked.first_parent)


def _opened(path: Path) -> Record:
    with run_folder.explaining_damage(path / run_folder.EVENTS):
        return record_of(event for event in run_folder.events(path) if event.get("event") == "run")
