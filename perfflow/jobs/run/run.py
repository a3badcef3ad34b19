"""``perfflow run``: plan, measure, judge and write the result.

The trees that a run works in beside the user's own: none, those of candidates, or those of base and head.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfflow.execute import prepare
from perfflow.execute.deadline import KEPT_SHARE, Deadline, TotalBudget
from perfflow.execute.schedule import UNABLE, StepRun, StepStatus
from perfflow.jobs.gate.base_and_head import BaseAndHead, ends, states, without_spent
from perfflow.machine.facts import facts
from perfflow.model.errors import Exit, UserError
from perfflow.model.plain_data import to_json
from perfflow.model.readings import Side
from perfflow.model.result import Expected, Result
from perfflow.model.tree_facts import tree_of
from perfflow.plan.groups import Benchmarks, Group, Shard, shard_of, sharded
from perfflow.plan.plan import Plan, Planned, building_steps, draws_layouts, stage_plan
from perfflow.session.compared_trees import require_complete
from perfflow.session.known_names import KnownNames
from perfflow.session.open_workflow import Opened, own_template, select
from perfflow.session.perform import not_startable, result_of_events, schedule, write, write_profiles
from perfflow.session.progress import Began, Noted, Progress, StepEnded
from perfflow.session.session import (
    Earlier,
    RunSession,
    chosen_run,
    digest,
    discarding_unmeasured,
    earlier_of_run,
    explaining_folder_errors,
    now,
    opening_event,
    pausing,
    shard_of_run,
    step_event,
    trees_of_run,
    undecided_rows,
    users_tree,
)
from perfflow.session.steps.by_role import performer_of
from perfflow.store import calibrations, run_folder
from perfflow.store.receipts import manifest
from perfflow.store.receipts.manifest import changed_files, hash_of, own_files
from perfflow.store.record import record_of
from perfflow.store.run_facts import Alteration
from perfflow.store.run_folder import RunFolder, json_lines
from perfflow.tools.adapter import Role
from perfflow.trees.overlay import overlaid
from perfflow.trees.repository import CodeState, Repository, look_at, open_repository
from perfflow.trees.slots import ASIDE, restore
from perfflow.trees.snapshots import at, snapshot
from perfflow.verdict.judge import judge
from perfflow.workflow.load import Draft, resolved_lines

if TYPE_CHECKING:
    from perfflow.jobs.cluster.placed_run import Placement


@dataclass(frozen=True)
class RunTrees:
    """The trees of a run, as found before anything ran. ``told``: their description for the result."""

    draft: Draft
    repository: Repository | None = None
    base: CodeState | None = None
    head: CodeState | None = None
    told: dict[str, Any] | None = None
    unsure: tuple[str, ...] = ()
    """Warnings about files that the trees may lack."""
    fresh: bool = False
    """Whether both trees are built from nothing, whatever earlier runs have built."""
    original: CodeState | None = None
    """The tree that candidates start from; None for the user's tree as it is."""
    independent: bool = False
    """Whether every candidate is judged against the original alone."""
    each: float | None = None
    """Longest time of one candidate (s); None for no limit."""
    attempts: int = 0
    """Number of attempts on the original, if other runs try some of them; 0: counted here."""

    def cautions(self) -> list[str]:
        """Return the warnings about the trees."""
        return [*self.compared(), *self.unsure]

    def compared(self) -> list[str]:
        """Return what the user should know of base and head before they are measured."""
        if self.base is None or self.head is None:
            return []
        if self.base.tree == self.head.tree:
            return [*self._overlaid(), "base and head are the same code: any difference between them is noise"]
        dirty = bool(self.told and self.told["candidate"].get("dirty"))
        text = "head is the working tree with its uncommitted changes; `--head HEAD` leaves them out"
        return [*self._overlaid(), *([text] if dirty else [])]

    def _overlaid(self) -> list[str]:
        """Return what the user should know of files of head in the base; empty if there are none."""
        facts = tree_of(self.told or {}, Side.BASELINE)
        if not facts.overlay:
            return []
        files = f"{facts.replaced} files differ" if facts.replaced != 1 else "1 file differs"
        return [f"base is measured with head's {', '.join(facts.overlay)}: {files} from its own"]


def _are_two(trees: Mapping[str, Any]) -> bool:
    """Return whether a run's stored trees are a base and a head that it compares."""
    return all(isinstance(trees.get(side), dict) and "tree" in trees[side] for side in ("baseline", "candidate"))


def with_builds(opened: Opened, selected: frozenset[str]) -> frozenset[str]:
    """Return the selected steps, plus the building steps if any of them runs in the compared trees.

    The slot of a tree could otherwise contain an earlier run's build of other code.
    """
    in_trees = any(item.stage != "setup" for item in opened.plan.steps if item.id in selected)
    return selected.union(building_steps(opened.plan)) if in_trees else selected


def _resumed_trees(opened: Opened, trees: Mapping[str, Any], base: str | None, overlay: Sequence[str]) -> RunTrees:
    """Return base and head of a resumed run, as the run found them, even if the base has moved since.

    Empty values of ``base`` and ``overlay`` stand for the run's own. Raises UserError if others are requested, or if
    head has changed.
    """
    was, is_ = trees["baseline"], trees["candidate"]
    if base and base not in (was["name"], was["revision"]):
        text = f"this run compares with {was['name']}, not with {base}"
        raise UserError.of(text, "leave out --base, or start a new run without --resume")
    facts = tree_of(trees, Side.BASELINE)
    if overlay and set(overlay) != set(facts.overlay):
        text = "this run was started with another --overlay" if facts.overlay else "this run has no --overlay"
        raise UserError.of(text, "leave it out, or start a new run without --resume")
    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    other = at(repository, is_["revision"]) if is_["kind"] == "revision" else snapshot(repository)
    one, _ = overlaid(repository, at(repository, was["revision"]), other, facts.overlay)
    if (one.tree, other.tree) != (was["tree"], is_["tree"]):
        text = "the code has changed since the run was interrupted"
        raise UserError.of(text, "undo the change, or start a new run without --resume")
    return RunTrees(opened.draft, repository, one, other)


def run_trees(
    opened: Opened,
    selected: frozenset[str],
    base: str | None,
    head: str | None,
    resume: Path | None,
    *,
    overlay: Sequence[str] = (),
    elsewhere: bool = False,
) -> RunTrees:
    """Return the trees that the run needs.

    elsewhere: other machines perform the steps, and get the code from the repository.
    Raises UserError if there is no repository or no such revision, if a tree would lack a file that a step starts, and
    if ``base`` is given for a resumed run that does not compare trees.
    """
    before = trees_of_run(resume) if resume else {}
    if _are_two(before):
        return _resumed_trees(opened, before, base, overlay)
    if base is not None and resume is not None:
        raise UserError.of(f"{resume}: this run does not compare base and head", "leave out --base")
    candidates = any(item.role is Role.CANDIDATE and item.id in selected for item in opened.plan.steps)
    if base is None and not candidates and not elsewhere:
        return RunTrees(opened.draft)

    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    if stage := stage_plan(opened.plan) if candidates else None:
        from perfflow.jobs.optimize.holdout import holdout_files

        holdout_files(opened.draft, stage.own, opened.root)
    unsure = require_complete(opened)
    if base is None and elsewhere:
        return RunTrees(opened.draft, repository, head=snapshot(repository), unsure=unsure)
    if base is None:
        return RunTrees(opened.draft, repository, unsure=unsure)

    return RunTrees(opened.draft, repository, *states(repository, base, head, overlay), unsure=unsure)


def require_revisions(opened: Opened, base: str, head: str | None) -> None:
    """Raise UserError if a run that compares these revisions would. Changes nothing."""
    ends(look_at(opened.root), base, head)


@contextmanager
def working_in(wanted: RunTrees, session: RunSession) -> Iterator[None]:
    """Give the session the work in other trees, and release the trees afterwards."""
    if wanted.repository is None:
        yield
        return
    if wanted.base and wanted.head:
        session.trees = BaseAndHead(session, wanted.repository, wanted.base, wanted.head, fresh=wanted.fresh)
    else:
        stage = stage_plan(session.context.plan)
        if stage:
            from perfflow.jobs.optimize.optimize import Optimizer

            how: Any = {"independent": wanted.independent, "each": wanted.each, "attempts": wanted.attempts}
            optimizer = Optimizer(session, stage, wanted.repository, wanted.draft, wanted.original, **how)
            session.trees = optimizer
            session.performer_of = optimizer.performer_of
    try:
        yield
    finally:
        if session.trees:
            session.trees.close()


@dataclass(frozen=True)
class RunPart:
    """The part of a run that one machine measures: the benchmarks of distributed suites, by step.

    ``compared_steps`` is the number of steps of the whole run that compare two sides. If there are many, each step is
    screened first.
    """

    parts: Mapping[str, Benchmarks]
    compared_steps: int
    built: Mapping[Side, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    """The outputs of the build steps, by side, if the trees are already built."""


@dataclass(frozen=True)
class RunRequest:
    """The user's options for one run of a workflow."""

    stages: Sequence[str] = ()
    only: Sequence[str] = ()
    start: str | None = None
    benchmarks: Sequence[str] = ()
    """Globs of the benchmarks to measure; () for all. A resumed run keeps its own."""
    jobs: int = 1
    keep_going: bool = False
    out: Path | None = None
    resume: Path | None = None
    """Folder of an interrupted run to resume."""
    again: bool = False
    """Whether ``resume`` is a gate that ended, of which only what is undecided is measured further."""
    seed: int | None = None
    lock_timeout: float = 1800.0
    checks_noise: bool = True
    command: Sequence[str] = ()
    """The command line that repeats this run, if it is not `perfflow run`."""
    report: bool = True
    """Whether report.md is written now; `perfflow report` can do it later."""
    budget: float | None = None
    """Seconds for the whole run, builds included; None for no limit."""
    base: str | None = None
    """The revision whose merge base with head is the baseline; None if base and head are not compared."""
    times_all: bool = False
    """Whether to time also benchmarks that execute the same on base and head."""
    self_test: bool = False
    """Whether to slow head down on purpose; such a run is not part of the history."""
    head: str | None = None
    """The candidate's revision; None for the working tree as it is."""
    overlay: Sequence[str] = ()
    """Paths of the tree whose files both sides take from the candidate."""
    fresh: bool = False
    """Whether base and head are built from nothing, whatever earlier runs have built."""
    independent: bool = False
    """Whether every candidate is judged against the original, and none is kept on top of another."""
    each: float | None = None
    """With ``independent``: longest time of one candidate (s), without the build of the original."""
    attempts: int = 0
    """With ``independent``: number of attempts on the original, if other runs try some of them; 0: counted here."""
    about_base: Mapping[str, Any] = field(default_factory=dict)
    """Further facts about the base for the result, if perfflow chose it."""
    original: CodeState | None = None
    """The tree that candidates start from; None for the user's tree as it is."""
    cautions: Sequence[str] = ()
    """Warnings that the report shows first, about how the run was started."""
    allow_skipped: bool = False
    """Whether steps that must be measured on other machines may be skipped."""
    shard: Shard | None = None
    """The part of the benchmarks that this run measures, None for all. A resumed run keeps its own."""
    placement: Placement | None = None
    """How other machines perform the steps; None for a run on this machine."""
    part: RunPart | None = None
    """The part that this machine measures of a run on several machines; None for a whole run."""
    typed: bool = False
    """Whether the workflow was made from the command line, so that its texts may contain what a shell expanded."""


@dataclass(frozen=True)
class FinishedRun:
    """A run that ended or was interrupted: its result, its folder and further notes."""

    result: Result
    folder: Path
    interrupted: bool
    notes: tuple[str, ...] = ()


def run(opened: Opened, request: RunRequest, progress: Progress) -> FinishedRun:
    """Run a plan. ^C ends it with an interrupted result.

    Raises UserError for bad usage before anything is executed, for a name that is not among the listed benchmarks
    before anything is timed, and if the run's folder can no longer be written.
    """
    if request.resume:
        request = replace(
            request,
            benchmarks=_chosen_before(request.resume, request.benchmarks),
            shard=_shard_before(request.resume, request.shard),
        )
    chosen = _chosen(opened, request)
    plan, selected = chosen.opened.plan, chosen.steps
    folder = run_folder.reopen(request.resume) if request.resume else run_folder.create(opened.root, request.out)
    own = own_files() if _tries_candidates(plan, selected) else {}
    with folder, explaining_folder_errors(folder.path, can_resume=chosen.is_gate or not request.command):
        session = _begun(chosen, request, folder, progress)
        progress(Began(folder.path, [item for item in plan.steps if item.id in selected]))
        for caution in chosen.trees.compared():
            progress(Noted(caution))
        ended, unable = set[str](), False
        interrupted = _placed(session, chosen, request, folder)
        with discarding_unmeasured(folder), working_in(chosen.trees_here, session):
            try:
                with pausing(session):
                    for step in _steps(session, chosen, request):
                        session.budget.passed(step.planned.id)
                        folder.append(step_event(step))
                        unable = unable or (step.status is StepStatus.SKIPPED and step.exit_code == UNABLE)
                        # All remaining steps are skipped for the same reason, which the summary gives once.
                        if not (unable and step.status is StepStatus.SKIPPED):
                            progress(StepEnded(step))
                        ended.add(step.planned.id)
                        if not session.trees:
                            session.services.stop_unneeded(plan, selected, ended)
                    if session.trees and not interrupted and not _alterations(folder, own):
                        session.trees.finish()
                session.services.stop()
                for died in session.services.unexpected_ends():
                    folder.append(step_event(died))
                    progress(StepEnded(died))
            except KeyboardInterrupt:
                interrupted = True
            finally:
                session.close()
        result = _judged(folder, _alterations(folder, own), interrupted=interrupted)
        page = "html" in chosen.opened.plan.workflow.report.formats
        write(result, folder.path, report=request.report, page=page, tell=lambda text: progress(Noted(text)))
        if request.report:
            write_profiles(result, folder.path)
        _write_receipt(chosen.opened, result, folder, own)
    return FinishedRun(result, folder.path, interrupted, _remembered(opened, request, result, folder.path))


def _remembered(opened: Opened, request: RunRequest, finished: Result, folder: Path) -> tuple[str, ...]:
    """Add a finished run to the history; return notes for the user."""
    notes: list[str] = []
    partial = request.part or request.shard or finished.run.interrupted
    if finished.benchmarks and not (request.typed or request.self_test or partial):
        from perfflow.jobs.history.collect import record as add_to_history

        add_to_history(opened.root, finished, folder, notes.append)
    return tuple(notes)


def _placed(session: RunSession, chosen: _Chosen, request: RunRequest, folder: RunFolder) -> bool:
    """Have other machines perform the steps, if requested; return whether it was interrupted. Raises DetachedError."""
    placement, trees = request.placement, chosen.trees
    if placement is None or trees.repository is None or trees.head is None:
        return False

    from perfflow.jobs.cluster import placed_run

    if not request.resume:
        folder.append(placed_run.RunPartition(placement.name, trees.head.tree, tuple(chosen.groups)).event())
    keep_going = request.keep_going or chosen.is_gate
    work = placed_run.work_of(session, chosen.opened, placement, request.budget, keep_going=keep_going)
    code = placed_run.MeasuredCode(trees.repository, trees.head, trees.base)
    return placed_run.perform(session, code, chosen.groups, placement, work)


@dataclass(frozen=True)
class _Calibrated:
    """What the calibration of this machine tells about the workflow."""

    expected: list[tuple[str, str, Expected]] = field(default_factory=list)
    disturbed: frozenset[str] = frozenset()
    """Steps with a suite whose benchmarks disturb each other."""


@dataclass(frozen=True)
class _Chosen:
    """What a run consists of: its steps, its trees beside the user's own, expectations and warnings."""

    opened: Opened
    steps: frozenset[str]
    trees: RunTrees
    calibrated: _Calibrated
    cautions: list[str]
    """Warnings that are known before anything is measured."""
    groups: list[Group] = field(default_factory=list)
    """The groups that other machines measure, each in its own job; empty for a run on this machine."""
    parts: Mapping[str, Benchmarks] = field(default_factory=dict)
    """By step, the benchmarks that the run measures of divided suites."""
    compared_steps: int = 0
    """Number of steps that compare two sides with interim analyses, also those of other shards."""

    @property
    def trees_here(self) -> RunTrees:
        """The trees that this machine works in: none if other machines do the work."""
        return RunTrees(self.trees.draft) if self.groups else self.trees

    @property
    def is_gate(self) -> bool:
        """Whether base and head are compared."""
        return self.trees.base is not None


def _chosen_before(folder: Path, asked: Sequence[str]) -> tuple[str, ...]:
    """Return the globs of the benchmarks that a resumed run measures. Raises UserError if others are asked for."""
    before = chosen_run(folder)
    if asked and set(asked) != set(before):
        measured = " ".join(f"--benchmark {glob}" for glob in before) or "all benchmarks"
        text = f"{folder}: this run measures {measured}"
        raise UserError.of(text, "leave out --benchmark, or start a new run without --resume")
    return before


def _shard_before(folder: Path, asked: Shard | None) -> Shard | None:
    """Return the part that a resumed run measures. Raises UserError if another one is asked for."""
    before = shard_of_run(folder)
    if asked and str(asked) != before:
        what = f"part {before}" if before else "all benchmarks"
        hint = "leave out --shard, or start a new run without --resume"
        raise UserError.of(f"{folder}: this run measures {what}", hint)
    return shard_of(before) if before else None


def _chosen(opened: Opened, request: RunRequest) -> _Chosen:
    """Choose steps and trees. Raises UserError for unknown names and for unusable trees."""
    # The steps of a part were chosen where the run began.
    benchmarks = () if request.part else request.benchmarks
    steps = select(opened.plan, request.stages, request.only, request.start, benchmarks)
    trees = run_trees(
        opened,
        steps,
        request.base,
        request.head,
        request.resume,
        overlay=request.overlay,
        elsewhere=request.placement is not None,
    )
    trees = replace(trees, fresh=request.fresh, original=request.original)
    trees = replace(trees, independent=request.independent, each=request.each, attempts=request.attempts)
    known, cautions = _calibrated(opened) if request.checks_noise else (_Calibrated(), [])
    cautions = [*request.cautions, *cautions, *trees.cautions()]
    if trees.repository and trees.base:
        steps = with_builds(opened, steps)
        opened, unsure = without_spent(opened, trees.repository, trees.base)
        cautions += unsure
    chosen = _Chosen(opened, steps, trees, known, cautions)
    measuring = [item for item in opened.plan.steps if item.id in steps and item.role is Role.MEASURE]
    compared = sum(_has_interim_analyses(item, gate=chosen.is_gate) for item in measuring)
    chosen = replace(chosen, compared_steps=compared)
    if request.shard:
        part = sharded(opened.plan, steps, request.shard, in_trees=chosen.is_gate)
        chosen = replace(chosen, steps=frozenset(part.steps), parts=part.parts)
    return replace(chosen, groups=_groups(chosen, request)) if request.placement else chosen


def _groups(chosen: _Chosen, request: RunRequest) -> list[Group]:
    """Return the groups for other machines; for a resumed run, the groups it had. Raises UserError."""
    if request.placement is None:
        return []

    from perfflow.jobs.cluster import placed_run

    if request.resume:
        earlier = placed_run.partition(request.resume)
        if earlier and chosen.trees.head and earlier.tree != chosen.trees.head.tree:
            raise UserError.of(
                "the code has changed since the run began", "undo the change, or start a new run without --resume"
            )
        return list(earlier.groups) if earlier else []
    return placed_run.groups_for(
        chosen.opened, chosen.steps, request.benchmarks, request.placement, in_trees=chosen.is_gate
    )


def _calibrated(opened: Opened) -> tuple[_Calibrated, list[str]]:
    """Return what this machine's calibration tells, and a warning if its file is damaged."""
    asked = opened.root, facts()["identity"], opened.plan.workflow.name, opened.plan.params
    try:
        return _Calibrated(list(calibrations.expected_noise(*asked)), calibrations.disturbed_suites(*asked)), []
    except UserError as error:
        return _Calibrated(), [error.in_one_line]


def _begun(chosen: _Chosen, request: RunRequest, folder: RunFolder, progress: Progress) -> RunSession:
    """Start a run and store its first event, or resume it; return its session."""
    opened, steps = chosen.opened, chosen.steps
    elsewhere = request.placement is not None
    earlier = earlier_of_run(folder.path, digest(opened), steps, elsewhere=elsewhere) if request.resume else Earlier()
    if request.again:
        left = undecided_rows(folder.path)
        earlier = replace(earlier, done={name: told for name, told in earlier.done.items() if name not in left})
    context = users_tree(opened, folder, earlier.seed if request.resume else request.seed, typed=request.typed)
    context.layouts = _layouts(opened)
    if request.resume:
        folder.resume(steps, now())
    else:
        opening = opening_event(opened, context, steps, request.command, request.budget, request.out)
        absent = [f"data: `{glob}` matches no file" for glob in opening["run"]["data_missing"]]
        opening["run"]["warnings"] = [*chosen.cautions, *absent]
        opening["run"]["chosen"] = list(request.benchmarks)
        opening["run"]["shard"] = str(request.shard or "")
        opening["run"]["independent"] = request.independent
        opening["trees"] |= chosen.trees.told or {}
        opening["trees"]["baseline"] |= request.about_base
        if _tries_candidates(opened.plan, steps):
            lines = resolved_lines(opened.draft.document, lambda name: os.path.relpath(name, opened.root))
            run_folder.write_text(folder.path / run_folder.WORKFLOW, (f"{line}\n" for line in lines))
        if own := own_template(opened.draft):
            run_folder.write_text(folder.path / run_folder.TEMPLATE, own.read_text(encoding="utf-8"))
        expected = [
            {"benchmark": name, "metric": metric, **known.model_dump()}
            for name, metric, known in chosen.calibrated.expected
        ]
        folder.append(opening | {"expected": expected})
    measuring = [item for item in opened.plan.steps if item.id in steps and item.role is Role.MEASURE]
    session = RunSession(context, folder, progress, performer_of, request.lock_timeout)
    session.tree_facts = trees_of_run(folder.path)
    session.deadline = Deadline(request.budget, lambda: session.waits.seconds)
    # A run without checks and without a gate has nothing to do after measuring.
    follows = chosen.is_gate or any(item.role is Role.CHECK and item.id in steps for item in opened.plan.steps)
    kept = (request.budget or 0.0) * KEPT_SHARE if follows else 0.0
    session.budget = TotalBudget(session.deadline, [item.id for item in measuring], kept=kept, whole=chosen.is_gate)
    session.times_all, session.plants = request.times_all or request.self_test, request.self_test
    session.checks_noise, session.earlier = request.checks_noise, earlier
    # The names in the file of a part are not checked: its steps do not measure all benchmarks.
    every = select(opened.plan, request.stages, request.only, request.start)
    checked = (None, frozenset[str]()) if request.part else (opened.draft, every)
    session.names = KnownNames(tuple(request.benchmarks), *checked)
    session.allow_skipped, session.disturbed = request.allow_skipped, chosen.calibrated.disturbed
    session.compared_steps, session.parts = chosen.compared_steps, chosen.parts
    if request.part:
        session.asks_where, session.parts, session.built = False, request.part.parts, request.part.built
        session.compared_steps = max(session.compared_steps, request.part.compared_steps)
    return session


def _layouts(opened: Opened) -> Path | None:
    """Return the folder for code layouts of programs built in the user's tree; None if the run draws no layouts."""
    layouts = opened.root / run_folder.HOME / "layouts"
    if layouts.is_dir():
        restore(layouts / ASIDE)
    return run_folder.home(opened.root) / layouts.name if draws_layouts(opened.plan, in_trees=False) else None


def _has_interim_analyses(item: Planned, *, gate: bool) -> bool:
    """Return whether a step compares two sides of a noisy metric with interim analyses."""
    noisy = item.step.runs is None and not (item.tool and item.tool.deterministic)
    return noisy and (gate or item.step.candidate is not None)


def _steps(session: RunSession, chosen: _Chosen, request: RunRequest) -> Iterable[StepRun]:
    """Yield the steps that this machine performs, each as it ends; none if other machines perform them."""
    if request.placement:
        return ()
    # In a gate, a benchmark that cannot be measured must not prevent a verdict on the others.
    keep_going = request.keep_going or chosen.is_gate
    todo = schedule(session, chosen.steps, jobs=request.jobs, keep_going=keep_going)
    return not_startable(session.context, chosen.steps) or todo


def _tries_candidates(plan: Plan, steps: frozenset[str]) -> bool:
    """Return whether code of others is run, which may rewrite perfflow. Other runs need not hash perfflow's files."""
    return any(item.role is Role.CANDIDATE and item.id in steps for item in plan.steps)


def _alterations(folder: RunFolder, own: Mapping[str, str]) -> list[Alteration]:
    """Return what another program changed since the run began; ``own``: perfflow's own files then, {} if not needed."""
    line, files = folder.altered_line(), changed_files(own) if own else []
    found = [Alteration("events", (str(line),))] if line else []
    return [*found, Alteration("perfflow", tuple(files))] if files else found


def _judged(folder: RunFolder, altered: Sequence[Alteration], *, interrupted: bool) -> Result:
    """Store how the run ended, and judge its events. Raises UserError if another program made them unreadable."""
    for found in altered:
        folder.append({"event": "altered", **to_json(found)})
    folder.append({"event": "interrupted" if interrupted else "end", "time": now()})
    if not altered:
        record = record_of(run_folder.events(folder.path))
        return judge(record, record.criteria)
    try:
        return result_of_events(folder.path)
    except UserError as error:
        hint = "the samples of this run are lost; measure again with `isolate: strict`"
        text = f"another program changed the samples of this run: {error.problems[0].message}"
        raise UserError.of(text, hint, Exit.UNMEASURED) from error


def _write_receipt(opened: Opened, result: Result, folder: RunFolder, own: Mapping[str, str]) -> None:
    used = {item.step.uses: item.tool for item in opened.plan.steps if item.tool and item.step.uses}
    versions = {name: prepare.version_of(tool) or "" for name, tool in used.items() if tool.program}
    made = manifest.make(result, folder.path, versions, folder.chain, hash_of(own) if own else "")
    run_folder.write_text(folder.path / run_folder.RECEIPT, json_lines(made.items()))
