"""Run the optimize stage: each candidate is one change, which is built, checked, measured, then kept or reverted.

Correctness is checked first, in the candidate's own tree. Then pairs of processes compare it with the accepted state.
An accepted change is the base of the next candidate. The final effect is measured against the original, not added up.

- ``ledger_entry`` makes an entry of the ledger: one for each try of a candidate, with its change, figures, decision and
  reason.
- ``Optimizer`` tries the candidates.
"""

from __future__ import annotations

import itertools
import json
import math
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from perfflow.execute import invoke
from perfflow.execute.context import Settings, TreeContext
from perfflow.execute.deadline import KEPT_SHARE, Deadline, TotalBudget
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import PreparationError
from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.jobs.optimize.accepted_state import AcceptedState, keeper_of
from perfflow.jobs.optimize.apply_change import (
    AppliedChange,
    brief_of,
    change_of,
    edited,
    patched,
    proposing,
    sets_build,
    settings_of,
)
from perfflow.jobs.optimize.holdout import Holdouts, holdout_files
from perfflow.jobs.optimize.protect import Opened, Protection, is_protected
from perfflow.model.errors import UserError
from perfflow.model.judging import Code, Flag, NoProposalError, RejectedError
from perfflow.model.metrics import COMPARED_STATISTICS
from perfflow.model.plain_data import to_json
from perfflow.model.result import Bounds, Needs, Optimization
from perfflow.model.secrets import masked
from perfflow.model.stacks import Stack, read_folded, share_below
from perfflow.model.targets import matches
from perfflow.model.units import brief_duration, format_change
from perfflow.plan.plan import Planned, StagePlan
from perfflow.session.opened_files import opened_files
from perfflow.session.perform import perform_all
from perfflow.session.session import Perform, RunSession, TreeWork, context_in
from perfflow.session.steps.by_role import performer_of
from perfflow.session.steps.check import acceptable, command
from perfflow.store import attempts, run_folder
from perfflow.store.record import Record, record_of
from perfflow.store.run_facts import Branch, StepFindings
from perfflow.store.run_folder import Subrun, write_text
from perfflow.tools.adapter import Role
from perfflow.trees import commits, patches
from perfflow.trees.repository import CodeState, Repository
from perfflow.trees.slots import Slots, open_slots
from perfflow.trees.snapshots import at, snapshot
from perfflow.verdict import targets
from perfflow.verdict.acceptance import Acceptance, Goal, accept, effect_of, more_pairs
from perfflow.verdict.comparison import ComparedMetric
from perfflow.verdict.decide import SPARE
from perfflow.verdict.gating import compared, covers
from perfflow.workflow.load import Draft

Decision = Literal["accepted", "rejected", "skipped"]
LONGEST_DIFF = 1 << 16
"""The most characters of a diff that a result contains. A longer diff is only in its file."""


def ledger_entry(
    planned: Planned,
    name: str,
    decision: Decision,
    code: Code,
    reason: str,
    row: ComparedMetric | None = None,
    bound: float | None = None,
) -> Optimization:
    """Return the entry of one try."""
    return Optimization(
        id=name,
        technique=planned.step.technique or "",
        why=planned.step.why or "",
        decision=decision,
        outcome=code.outcome,
        code=code,
        reason=reason,
        bound=bound,
        **(_figures(row) if row else {}),
    )


def _figures(row: ComparedMetric) -> dict[str, Any]:
    effect = effect_of(row)
    return {
        "benchmark": row.benchmark,
        "metric": row.metric.name,
        "unit": row.metric.dimension.base_unit,
        "pairs": row.pairs,
        "before": row.baseline.value if row.baseline else None,
        "after": row.candidate.value if row.candidate else None,
        "effect": Bounds(value=effect.estimate, low=effect.low, high=effect.high) if effect else None,
    }


def with_change(entry: Optimization, change: AppliedChange, path: str) -> Optimization:
    """Add the change to an entry; ``path`` is that of the diff in the run's folder."""
    text, files = change.difference.text, change.difference.files
    return entry.model_copy(
        update={
            "diff": text if len(text) <= LONGEST_DIFF else "",
            "diff_file": path if files else "",
            "files": [file.path for file in files],
            "lines": change.difference.lines,
            "env": dict(change.own.env),
            "params": dict(change.own.params),
        }
    )


def _proven_effect(rival: Rival) -> float:
    """Return the smallest effect that is proven."""
    low = rival.found.effect.low if rival.found.effect else None
    return -math.inf if low is None else low


def message_of(found: Optimization) -> str:
    """Return the commit message of an accepted change: ``perf: <change> (<effect>)``, and the reason below."""
    known = found.effect.value if found.effect else None
    effect = "effect unknown" if known is None else format_change(known)
    change = " ".join((found.why or found.id).split())
    return f"perf: {change} ({effect})\n\n{found.id}: {found.reason}\n"


_ENDED_BY_TIME = frozenset({Code.MALFORMED, Code.BUILD_FAILED, Code.CHECK_FAILED, Code.NOT_MEASURED})
"""Codes of steps that may have failed since the time was over."""
ORIGINAL = "original"
"""Subrun of the run's folder for the original tree, built outside the project."""
DIFF = "change.diff"
FOLDED = "folded"
"""The kind of profile from which a hotspot's share is read."""
MET = "all targets are met"


@dataclass(frozen=True)
class Rival:
    """An acceptable candidate. Of several alternatives, only the best one is kept."""

    planned: Planned
    change: AppliedChange
    subrun: Subrun
    found: Optimization


class Optimizer(TreeWork):
    """The optimize stage of one run. It touches nothing before the first candidate is tried."""

    def __init__(
        self,
        session: RunSession,
        stage: StagePlan,
        repository: Repository,
        draft: Draft,
        original: CodeState | None = None,
        *,
        independent: bool = False,
        each: float | None = None,
        attempts: int = 0,
    ) -> None:
        """``draft``: the workflow, to whose file patches are relative. ``original``: None for the user's tree.

        independent: every candidate is compared with the original, and none is kept on top of another. each: longest
        time of one candidate (s), without the build of the original; None for no limit. attempts: their number on
        the original, if other runs try some of them; 0 to count them here.
        """
        self._session, self._folder, self._stage, self._repository = session, session.folder, stage, repository
        self._draft, self._independent, self._each = draft, independent, each
        self._attempts = attempts
        self._broken: Failure | None = None
        self._slots: Slots | None = None
        self._kept: AcceptedState | None = None
        self._record = Record()
        self._ledger: list[Optimization] = []
        self._no_idea = False
        self._stop = ""
        self._rivals: list[Rival] = []
        self._given = original
        self._original: CodeState | None = None
        self._kept_names: list[str] = []
        self._opened: Opened | None = None
        files = holdout_files(draft, stage.own, repository.root)
        self._holdouts = Holdouts(stage.own.holdout, files) if stage.own.holdout else None

    def _try(self, planned: Planned, run: StepRun, name: str, attempt: int, bound: float | None) -> Optimization:
        """Apply one change, build it, check it, measure it against the accepted state, and keep or reject it."""
        kept, subrun, seconds = self._begun(), self._subrun(name), self._session.waits.stopwatch()
        change: AppliedChange | None = None
        try:
            if not (planned.step.patch or planned.step.ref):
                # A command may write what the build has made. A patch is refused before anything is built.
                self._set_up(planned)
            change = self._change(planned, run, subrun, attempt)
            self._set_up(planned)
            context = kept.built(kept.other, change.tree, change.own.on_top(kept.settings), subrun, planned)
            kept.require_sources(change.tree, "its build")
            between = kept.session_between(kept.standing, context, subrun, planned)
            kept.check(between, change.tree)
            self._require_checks(planned, between)
            kept.try_holdouts(between, subrun, planned)
            timed = replace(
                between,
                goal=replace(self._stage.goal, attempts=self._attempt()),
                budget=self._share_of_time(planned, attempt),
                differ=partial(acceptable, between) if kept.keeper else None,
                pair_secret=secrets.token_hex(16),
            )
            runs = kept.perform(timed, self._stage.measuring, Code.NOT_MEASURED, "it could not be measured")
            kept.require_sources(change.tree, "its benchmarks")
            acceptance = self._judged(subrun.record)
        except (RejectedError, PreparationError) as error:
            code = error.code if isinstance(error, RejectedError) else Code.MALFORMED
            code = Code.OUT_OF_TIME if self._session.deadline.is_over and code in _ENDED_BY_TIME else code
            entry = ledger_entry(planned, name, "rejected", code, str(error), bound=bound)
            entry = entry.model_copy(update=self._last_words(error))
            if code is Code.OUT_OF_TIME:
                longer = 2 * self._session.deadline.seconds
                entry = entry.model_copy(update={"needs": Needs(budget=brief_duration(longer))})
            self._no_idea = isinstance(error, NoProposalError)
            return self._kept_diff(entry, change, subrun)
        decision: Decision = "accepted" if acceptance.accepted else "rejected"
        reason = acceptance.reason
        if acceptance.code is Code.SAME_FILES:
            # If files changed but the same programs ran, the change was probably not built.
            unbuilt = ": was it built?" if change.difference.files else ""
            reason += f" (both sides execute the same files{unbuilt})"
        entry = ledger_entry(planned, name, decision, acceptance.code, reason, acceptance.row, bound)
        entry = self._with_facts(entry, acceptance, change, subrun.record, seconds())
        told = set(entry.flags).union(*(run.flags for run in runs))
        unkept = {Flag.NOT_ISOLATED} if self._stage.own.isolate and not kept.keeper else set()
        entry = entry.model_copy(update={"flags": sorted(told | unkept)})
        entry = self._kept_diff(entry, change, subrun)
        if acceptance.accepted and planned.cell and not self._independent:
            self._rivals.append(Rival(planned, change, subrun, entry))
        elif acceptance.accepted and self._independent:
            return self._keep_apart(entry, change, subrun)
        elif acceptance.accepted:
            self._keep(Rival(planned, change, subrun, entry), context)
        return entry

    def _set_up(self, planned: Planned) -> None:
        """Build the accepted state once. Raises Failure, for every candidate again."""
        if self._broken:
            raise self._broken
        try:
            self._begun().set_up(lambda: self._subrun(ORIGINAL), planned)
        except Failure as failure:
            self._broken = failure
            raise
        # The build of the original does not count towards the time of a candidate.
        if self._each is not None:
            self._session.deadline.restart(self._each)

    def _attempt(self) -> int:
        """Count the attempts on the original: one more, or at once all of those that are independent."""
        if not (self._independent and self._attempts):
            name, count = self._session.context.plan.workflow.name, 1
            if self._independent:
                count = len(self._stage.candidates)
            self._attempts = attempts.note(self._repository.root, self._begun().original.tree, name, count)
        return self._attempts

    def _share_of_time(self, planned: Planned, attempt: int) -> TotalBudget:
        """Return the time to measure this try: its share of what is left, which may be more than its own budget."""
        deadline = self._session.deadline
        if math.isinf(deadline.left):
            return self._session.budget
        if self._independent:
            return TotalBudget(deadline, self._stage.measuring, kept=deadline.seconds * KEPT_SHARE, whole=True)
        later = itertools.dropwhile(lambda item: item.id != planned.id, self._stage.candidates)
        tries = sum(self._stage.attempts if item.step.propose else 1 for item in later) - (attempt - 1)
        compared = any(item.step.compare for item in self._session.context.plan.steps)
        seconds = deadline.left * (1 - KEPT_SHARE) / (tries + compared)
        return TotalBudget(Deadline(seconds, lambda: self._session.waits.seconds), self._stage.measuring, whole=True)

    def _with_facts(
        self, entry: Optimization, found: Acceptance, change: AppliedChange, record: Record, seconds: float
    ) -> Optimization:
        """Add the flags of a measured try, the number of attempts, and the time that would decide.

        ``seconds``: time that the try took.
        """
        row = found.row
        if row is None:
            return entry
        series, surely, number = record.series[row.benchmark, row.metric.name], None, self._attempts
        if number > 1 and not row.metric.exact:
            again = compared(record, self._session.context.plan.criteria, attempts=number)
            effect = effect_of(again[row.benchmark, row.metric.name])
            surely = effect.low if effect and math.isfinite(effect.low) else None
        more = more_pairs(row, series.design, self._stage.goal.accept) if found.code is Code.NOT_PROVEN else None
        needs = None
        if more:
            given = seconds if math.isinf(self._session.deadline.seconds) else self._session.deadline.seconds
            needs = Needs(budget=brief_duration(math.ceil(given + SPARE * more * series.seconds / row.pairs)))
        flags = [*found.flags, *self._flags(change, row, number, surely)] if found.accepted else []
        return entry.model_copy(update={"attempts": number, "surely": surely, "needs": needs, "flags": flags})

    def _flags(self, change: AppliedChange, row: ComparedMetric, number: int, surely: float | None) -> Iterator[Flag]:
        if sets_build(change):
            yield Flag.BUILD_SETTINGS
        steps = self._session.context.plan.by_id
        drawn = any("pair.seed" in steps[name].step.model_dump_json() for name in self._stage.measuring)
        if self._stage.own.holdout is None and not drawn:
            yield Flag.FIXED_INPUT
        if number > 1 and not row.metric.exact and (surely is None or surely <= self._stage.goal.accept):
            yield Flag.MANY_ATTEMPTS

    # -- steps of the run

    def performer_of(self, planned: Planned) -> Perform:
        """Return the function that performs a step of a run with candidates."""
        own = {Role.CANDIDATE: self._try_candidate, Role.COMPARE: self._compare_with_original}
        return own[planned.role] if planned.role in own else performer_of(planned)

    def _try_candidate(self, _: RunSession, planned: Planned, run: StepRun) -> None:
        """Try one candidate, and put its ledger entries into ``run``. Raises Failure and PreparationError."""
        entries: list[Optimization] = []
        try:
            self._try_as_often_as_asked(planned, run, entries)
        except UserError as error:
            failure = Failure(error.in_one_line)
            entries.append(self._not_tried(planned, failure))
            raise failure from error
        except Failure as failure:
            # The ledger lists every candidate, also one that could not be tried.
            entries.append(self._not_tried(planned, failure))
            raise
        finally:
            run.found = StepFindings(optimizations=tuple(entries))
            if self._each is not None:
                self._session.deadline.restart(None)
        run.exit_code = 0

    def _not_tried(self, planned: Planned, failure: Failure) -> Optimization:
        code = failure.code or (Code.OUT_OF_TIME if self._session.deadline.is_over else Code.BASE_FAILS)
        return ledger_entry(planned, planned.id, "skipped", code, failure.reason)

    def _try_as_often_as_asked(self, planned: Planned, run: StepRun, entries: list[Optimization]) -> None:
        """Try a candidate once, and a proposer up to the stage's number of attempts. Skip it if it cannot gain."""
        self._begun()
        self._settle(but=planned.step.id)
        name, bound, stop = planned.id, self._bound(planned, run), self._stop
        if stop:
            run.status, run.reason = StepStatus.SKIPPED, stop
            entries.append(ledger_entry(planned, name, "skipped", Code.NOT_NEEDED, stop, bound=bound))
            return
        if bound is not None and bound < self._stage.diminishing:
            reason = f"its hotspot and all it calls take {bound:.1%} of the time, so it cannot gain more than that"
            entries.append(ledger_entry(planned, name, "skipped", Code.BOUNDED, reason, bound=bound))
            return
        if not planned.step.propose:
            self._ledger.append(self._try(planned, run, name, 1, bound))
            entries.append(self._ledger[-1])
            return
        for attempt in range(1, self._stage.attempts + 1):
            self._ledger.append(self._try(planned, run, f"{name}.{attempt}", attempt, bound))
            entries.append(self._ledger[-1])
            # `_try` may accept the change and so end the stage.
            if self._stop or self._no_idea:
                return

    def _compare_with_original(self, _: RunSession, planned: Planned, run: StepRun) -> None:
        """Measure the accepted state against the original. Raises Failure and PreparationError."""
        kept = self._begun()
        self._settle()
        if not kept.changed:
            run.reason = "no candidate was accepted, so there is nothing to compare with the baseline"
            return
        kept.set_up(lambda: self._subrun(ORIGINAL), planned)
        subrun = self._subrun(planned.id)
        try:
            original = kept.built(kept.other, kept.original.tree, Settings(), subrun, planned)
            # This is the final result, so measure it over several code layouts, not by one layout's luck.
            session = replace(kept.session_between(original, kept.standing, subrun, planned), over_layouts=True)
            kept.perform(session, self._stage.measuring, Code.NOT_MEASURED, "it could not be measured")
        except RejectedError as error:
            raise Failure(f"cannot compare the accepted changes with the original: {error}", log=error.log) from error
        except UserError as error:
            raise Failure(error.in_one_line) from error
        run.exit_code = 0

    def session_for(self, planned: Planned) -> RunSession:
        """Return the session for a step. Steps after the candidates run on the accepted state."""
        if planned.stage != "setup":
            # Before anything is built in the user's tree, where build output may not be ignored.
            self._note_original()
        if planned.stage in self._stage.later:
            self._settle()
        if planned.stage not in self._stage.later or self._kept is None or not self._kept.changed:
            return self._session
        self._kept.set_up(lambda: self._subrun(ORIGINAL), planned)
        return replace(self._session, context=self._kept.standing)

    def finish(self) -> None:
        """Make the branch with a commit for each accepted change, unless the final checks failed."""
        record = record_of(run_folder.events(self._folder.path))
        try:
            self._settle()
            kept = self._begun() if record.kept else self._kept
        except Failure as failure:
            self._folder.append({"event": "branch", **to_json(Branch(reason=failure.reason))})
            return
        if kept is None or kept.state.tree == kept.original.tree:
            return
        failed = [
            name
            for name, step in record.ended_steps()
            if step.status in ("failed", "timeout")
            and record.planned[name].role == "check"
            and not record.planned[name].allowed
        ]
        if failed:
            return
        context = self._session.context
        name = f"{commits.PREFIX}{context.run_id}/{run_folder.file_name(context.plan.workflow.name)}"
        branch = Branch(name, kept.state.commit)
        try:
            commits.branch(self._repository, name, kept.state.commit)
        except UserError as error:
            # The measurements remain valid, and the diffs are in the run's folder.
            branch = replace(branch, name="", reason=f"cannot make {name}: {error.in_one_line}")
        self._folder.append({"event": "branch", **to_json(branch)})

    def close(self) -> None:
        """Release the slots to other runs."""
        if self._slots:
            self._slots.close()
            self._slots = None

    # -- parts of one try

    def _settle(self, but: str = "") -> None:
        """Of the acceptable alternatives, keep the one with the largest proven effect.

        Alternatives of the step ``but`` are left, since more of them may follow. Raises Failure.
        """
        rivals = [rival for rival in self._rivals if rival.planned.step.id != but]
        if not rivals:
            return
        kept = self._begun()
        best = max(rivals, key=_proven_effect)
        self._rivals = [rival for rival in self._rivals if rival not in rivals]
        kept.set_up(lambda: self._subrun(ORIGINAL), best.planned)
        settings = best.change.own.on_top(kept.settings)
        try:
            context = kept.built(kept.other, best.change.tree, settings, best.subrun, best.planned)
        except RejectedError as error:
            raise Failure(f"{best.subrun.name} built before, but not again: {error}", log=error.log) from error
        self._keep(best, context)

    def _change(self, planned: Planned, run: StepRun, subrun: Subrun, attempt: int) -> AppliedChange:
        """Return the candidate's change. Raises RejectedError if it cannot be made or is not allowed."""
        kept = self._begun()
        base = kept.state.tree
        context = context_in(self._session.context, kept.other, kept.settings)
        session = kept.session_in(context, subrun, planned)
        settings = settings_of(session, planned)
        tree = patched(session, self._repository, planned, base, self._draft)
        if tree is None and (planned.step.run or planned.step.argv or planned.step.propose):
            kept.other.switch(base, kept.state.commit)
            doing = planned
            if planned.step.propose:
                brief = subrun.step(planned.id) / "brief.json"
                content = brief_of(
                    self._stage,
                    self._latest(),
                    self._targets(),
                    [item.model_dump(exclude_defaults=True) for item in self._ledger],
                    kept.other.path,
                    attempt,
                )
                write_text(brief, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
                doing = proposing(planned, brief)
            try:
                tree = edited(session, doing, run, kept.other)
            except RejectedError as error:
                if not planned.step.propose:
                    raise
                raise NoProposalError(Code.NO_PROPOSAL, f"no proposal: {error}", error.log) from error
        protection = self._protection(planned, run) if is_protected(self._stage.own, planned) else None
        new = base if tree is None else tree
        return change_of(self._repository, self._stage.own, base, new, settings, protection)

    def _protection(self, planned: Planned, run: StepRun) -> Protection:
        def opened() -> Opened:
            if self._opened is None:
                self._opened = self._opened_on_base(planned, run)
            return self._opened

        return Protection(self._repository, self._draft, self._session.context.plan, self._stage, opened)

    def _opened_on_base(self, planned: Planned, run: StepRun) -> Opened:
        """Return what checks and benchmarks read in the accepted state, and warn if that is not known."""
        kept = self._begun()
        self._set_up(planned)
        session = kept.session_in(kept.standing, Subrun(self._folder, ORIGINAL, Record()), planned)
        found: list[frozenset[str]] = []
        for names in (self._stage.checking, self._stage.measuring):
            paths: set[str] = set()
            for item in (self._session.context.plan.by_id[name] for name in names):
                if item.step.background:
                    continue
                try:
                    with TemporaryDirectory(prefix="perfflow-") as folder:
                        paths |= opened_files(session, item, Path(folder))
                except (Failure, PreparationError) as error:
                    run.warnings.append(
                        f"what {item.id} reads is not known, so that only names protect its files: {error}"
                    )
            found.append(frozenset(paths))
        return Opened(*found)

    def _require_checks(self, planned: Planned, session: RunSession) -> None:
        """Run the stage's ``check`` commands on the candidate. Raises RejectedError, "needs approval"."""
        given = self._stage.own.check
        for number, text in enumerate([given] if isinstance(given, str) else given or []):
            step = planned.step.model_copy(update={"run": text, "env": {}, "propose": None, "argv": None})
            check = StepRun(planned, StepStatus.DONE)
            try:
                command(session, replace(planned, id=f"check-{number + 1}", step=step), check)
            except Failure as failure:
                raise RejectedError(
                    Code.NEEDS_APPROVAL, f"needs approval: `check: {text}`: {failure.reason}", failure.log
                ) from failure

    def _judged(self, record: Record) -> Acceptance:
        criteria = self._session.context.plan.criteria
        rows = compared(record, criteria)
        identical = {name for name, step in record.steps.items() if step.identical}
        return accept(record, rows, criteria, self._stage.goal, lambda step: step in identical)

    def _keep(self, best: Rival, context: TreeContext) -> None:
        """Accept a candidate: commit it, profile it, and decide whether the stage ends."""
        kept, entry = self._begun(), best.found
        state = kept.state
        if best.change.difference.files:
            state = commits.commit(self._repository, best.change.tree, state, message_of(entry))
        self._folder.append({"event": "kept", "id": best.subrun.name, "revision": state.commit, "tree": state.tree})
        kept.keep(state, best.change, context)
        self._kept_names.append(best.subrun.name)
        perform_all(kept.session_in(context, best.subrun, best.planned), self._stage.profiling)
        self._record.trials[best.subrun.name] = best.subrun.record
        effect = entry.effect.value if entry.effect else None
        if self._targets_met(best.subrun.record):
            self._stop = MET
        elif effect is not None and effect < self._stage.diminishing:
            self._stop = f"diminishing: the last accepted change brought {effect:.1%}"

    def _keep_apart(self, entry: Optimization, change: AppliedChange, subrun: Subrun) -> Optimization:
        """Commit an accepted candidate on top of the original, in a branch of its own. Raises Failure."""
        original = self._begun().original
        state = original
        try:
            if change.difference.files:
                state = commits.commit(self._repository, change.tree, original, message_of(entry))
                name = f"{commits.PREFIX}{self._session.context.run_id}/{run_folder.file_name(entry.id)}"
                commits.branch(self._repository, name, state.commit)
        except UserError as error:
            raise Failure(error.in_one_line) from error
        self._folder.append({"event": "kept", "id": subrun.name, "revision": state.commit, "tree": state.tree})
        return entry.model_copy(update={"revision": state.commit})

    def _last_words(self, error: Exception) -> dict[str, Any]:
        """Return the last lines of the command that caused a rejection, and the path of its log."""
        log = error.log if isinstance(error, RejectedError) else None
        if log is None:
            return {}
        tail = masked(list(invoke.tail(log)), self._session.context.secrets)
        return {"tail": tail, "log": str(log.relative_to(self._folder.path))}

    def _kept_diff(self, found: Optimization, change: AppliedChange | None, subrun: Subrun) -> Optimization:
        if change is None:
            return found
        path = self._folder.step(subrun.name) / DIFF
        path.write_bytes(change.difference.patch)
        return with_change(found, change, str(path.relative_to(self._folder.path)))

    # -- state of the stage

    def _begun(self) -> AcceptedState:
        """Return the accepted state. On first use, record the original and redo what an interrupted run accepted."""
        if self._kept is None:
            original = self._note_original()
            self._record = record_of(run_folder.events(self._folder.path))
            self._require_goal()
            try:
                share = self._session.context.plan.workflow.worktree.share
                self._slots = self._slots or open_slots(self._repository, share)
                kept = AcceptedState(self._session, self._stage, self._slots, original, self._holdouts)
                self._recall(kept)
                self._kept = kept
            except UserError as error:
                raise Failure(error.in_one_line) from error
            except OSError as error:
                raise Failure(f"{error.filename}: {error.strerror}") from error
        return self._kept

    def _note_original(self) -> CodeState:
        """Record the tree before the first step after the setup. Raises Failure if a resumed run's tree changed."""
        if self._original is None:
            before = record_of(run_folder.events(self._folder.path)).original
            try:
                self._original = self._given or snapshot(self._repository)
                self._keep_base(self._original)
            except UserError as error:
                raise Failure(error.in_one_line) from error
            if before and before != self._original.tree:
                raise Failure("the code was changed since the run was interrupted; start a new run")
            if not before:
                keeper, _ = keeper_of(self._stage, self._session)
                self._folder.append({"event": "optimizing", "tree": self._original.tree, "isolation": keeper})
        return self._original

    def _keep_base(self, original: CodeState) -> None:
        """Store what the original changes in its commit, so that others can make it from the commit."""
        head = self._session.context.git.get("revision")
        if self._given or not head:
            return
        changes = patches.difference(self._repository, at(self._repository, head).tree, original.tree)
        if changes.files:
            run_folder.write_bytes(self._folder.path / run_folder.BASE, [changes.patch])

    def _require_goal(self) -> None:
        """Raise Failure if an objective or a guard matches nothing that the baseline measured."""
        known, goal = list(self._record.series), self._stage.goal
        if not known:
            return
        names = ", ".join(sorted({benchmark for benchmark, _ in known}))
        own = self._stage.own
        for glob, metric in goal.objectives if own.objective else ():
            about = Goal(((glob, metric),), ())
            if not any(about.is_objective(*key) or (not metric and matches(glob, key[0])) for key in known):
                raise Failure(
                    f"`objective: {glob} {metric}`".rstrip() + f" matches nothing that was measured ({names})"
                )
        for glob in own.guard or ():
            if not any(covers(glob, *key) for key in known):
                raise Failure(f"`guard: {glob}` matches nothing that was measured ({names})")

    def _recall(self, kept: AcceptedState) -> None:
        """Redo the accepted changes of the interrupted run from its diffs."""
        for entry in self._record.tried():
            self._ledger.append(entry)
            if entry.decision != "accepted" or self._independent:
                continue
            if entry.id not in self._record.kept:
                self._recall_rival(kept, entry)
                continue
            if entry.diff_file:
                tree = self._patched(kept.state.tree, entry)
                kept.state = commits.commit(self._repository, tree, kept.state, message_of(entry))
            kept.settings = Settings(entry.env, entry.params).on_top(kept.settings)
            self._kept_names.append(entry.id)
            if self._targets_met(self._record.trials.get(entry.id, Record())):
                self._stop = MET

    def _recall_rival(self, kept: AcceptedState, found: Optimization) -> None:
        """Restore an acceptable alternative, unless the interrupted run had already chosen one of its step."""
        planned = next((item for item in self._stage.candidates if item.id == found.id), None)
        settled = any(name.partition("[")[0] == found.id.partition("[")[0] for name in self._record.kept)
        if planned is None or settled:
            return
        own, tree = Settings(found.env, found.params), self._patched(kept.state.tree, found)
        change = change_of(self._repository, self._stage.own, kept.state.tree, tree, own)
        trial = self._record.trials.get(found.id, Record(run=self._record.run, planned=self._record.planned))
        self._rivals.append(Rival(planned, change, Subrun(self._folder, found.id, trial), found))

    def _patched(self, tree: str, made: Optimization) -> str:
        """Return the tree with the diff of a try applied; the same tree if the try changed no code."""
        if not made.diff_file:
            return tree
        patch = (self._folder.path / made.diff_file).read_bytes()
        return patches.apply(self._repository, tree, patch, name=made.diff_file)

    def _subrun(self, name: str) -> Subrun:
        subrun = Subrun(self._folder, name, Record(run=self._record.run, planned=self._record.planned))
        # Separates this try from the events of an interrupted one.
        subrun.append({"event": "begun"})
        return subrun

    def _latest(self) -> Record:
        """Return the record with the newest profiles: the last accepted candidate's, else the run's own."""
        for name in reversed(self._kept_names):
            trial = self._record.trials.get(name)
            if trial is not None and any(step.profiles for step in trial.steps.values()):
                return trial
        return self._record

    def _bound(self, planned: Planned, run: StepRun) -> float | None:
        """Return the share of time below the candidate's hotspot: Amdahl's bound of its effect. None if unknown."""
        glob = planned.step.hotspot
        if not glob:
            return None
        shares = [share_below(stacks, lambda name: matches(glob, name)) for stacks in self._latest_stacks()]
        if not any(shares):
            run.warnings.append(f"no profile shows `hotspot: {glob}`, so its largest possible effect is not known")
            return None
        return max(shares)

    def _latest_stacks(self) -> Iterator[Mapping[Stack, int]]:
        """Yield the folded stacks of the accepted state."""
        for _, step in self._latest().ended_steps():
            for profile in step.profiles:
                # Shares of memory or of instructions, and shares without callers, do not bound a time.
                counts = profile.stacks
                if profile.kind == FOLDED and (not counts or (counts.metric == "time" and not counts.is_call_pairs)):
                    try:
                        yield read_folded((self._folder.path / profile.path).read_text(encoding="utf-8"))
                    except (OSError, ValueError):
                        continue  # the file was damaged after its step ended; the effect then has no bound

    def _targets(self) -> list[Mapping[str, Any]]:
        record = self._with_latest_samples(self._latest())
        return [item.model_dump(mode="json") for item in self._judged_targets(record)]

    def _targets_met(self, record: Record) -> bool:
        """Return whether all targets are met. Targets relative to the original are known only at the end."""
        wanted = self._session.context.plan.criteria.targets
        if not wanted or any(target.statistic in COMPARED_STATISTICS for target in wanted):
            return False
        return all(item.status == "met" for item in self._judged_targets(self._with_latest_samples(record)))

    def _with_latest_samples(self, record: Record) -> Record:
        return (
            self._record
            if record is self._record
            else replace(self._record, series={**self._record.series, **record.series})
        )

    def _judged_targets(self, record: Record) -> Iterator[Any]:
        criteria = self._session.context.plan.criteria
        rows = compared(record, criteria)
        return targets.judge(criteria, rows, record)
