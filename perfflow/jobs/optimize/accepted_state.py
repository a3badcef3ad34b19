"""The code and settings that the optimize stage has accepted so far, built in one of two slots.

The other slot holds the next candidate, which is built on top of it. Both are built and checked here, in a sandbox if
the code comes from strangers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from perfflow.execute import sandbox
from perfflow.execute.context import Settings, TreeContext
from perfflow.execute.invoke import Failure
from perfflow.execute.sandbox import Sandbox
from perfflow.execute.schedule import StepRun
from perfflow.jobs.optimize.apply_change import AppliedChange
from perfflow.jobs.optimize.holdout import Holdouts
from perfflow.jobs.optimize.protect import is_of_settings
from perfflow.model.judging import Code, RejectedError
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned, StagePlan
from perfflow.session.perform import failure_of, log_of, perform_all
from perfflow.session.progress import of_candidate
from perfflow.session.session import RunSession, shown_in
from perfflow.store.run_folder import Subrun
from perfflow.trees.repository import CodeState
from perfflow.trees.slots import Slot, Slots

_SHARE = "if it needs an ignored file, list the file under `worktree: {share: [...]}`"


class AcceptedState:
    """The code and settings accepted so far, built in ``slot``. The other slot is for the next candidate."""

    def __init__(
        self, session: RunSession, stage: StagePlan, slots: Slots, original: CodeState, holdouts: Holdouts | None
    ) -> None:
        self._session, self._stage, self._holdouts = session, stage, holdouts
        self._passed: dict[str, int | None] = {}
        """By check, how many tests passed on the original."""
        self._made: frozenset[str] = frozenset()
        """What building and checking change on the original as well, as ``_made`` lists it."""
        self.original, self.state, self.settings = original, original, Settings()
        self.slot, self.other = slots.a, slots.b
        self.context: TreeContext | None = None
        self.keeper, why = keeper_of(stage, session)
        """What keeps processes in their sandbox, '' if there is none."""
        if why:
            raise Failure(why, code=Code.NO_ISOLATION)

    @property
    def standing(self) -> TreeContext:
        """The tree in which the accepted state is built. Raises Failure before ``set_up``."""
        if self.context is None:
            raise Failure("the accepted state is not built")
        return self.context

    @property
    def changed(self) -> bool:
        """Whether any candidate was accepted."""
        return self.state.tree != self.original.tree or self.settings != Settings()

    def session_in(self, context: TreeContext, subrun: Subrun, candidate: Planned) -> RunSession:
        """Return a session whose steps run in one tree."""
        return self._session.nested(context, subrun, of_candidate(self._session.progress, candidate))

    def session_between(
        self, baseline: TreeContext, candidate: TreeContext, subrun: Subrun, planned: Planned
    ) -> RunSession:
        """Return a session whose steps alternate between two trees. Steps with one side run in the candidate's."""
        contexts = {Side.BASELINE: baseline, Side.CANDIDATE: candidate}
        # A candidate that executes the same is measured too: its effect is what the report tells.
        return replace(self.session_in(candidate, subrun, planned), contexts=contexts, times_all=True)

    def built(self, slot: Slot, tree: str, settings: Settings, subrun: Subrun, candidate: Planned) -> TreeContext:
        """Check out a tree in a slot and build it, in a sandbox if it is not the original, which may load dependencies.

        Raises RejectedError if a building step fails.
        """
        state = replace(self.state, tree=tree)
        context = shown_in(slot, state, self._session.context, settings, self._stage.building)
        inside = replace(context, sandbox=self._sandbox(slot)) if self.keeper else context
        session = self.session_in(context if tree == self.original.tree else inside, subrun, candidate)
        self.perform(session, self._stage.building, Code.BUILD_FAILED, "it does not build")
        return replace(inside, outputs=session.context.outputs)

    def _sandbox(self, slot: Slot) -> Sandbox:
        """Return what the processes in a slot see: its folders, and the user's shared ones."""
        repository, folder = slot.repository, self._session.folder.path
        shown = tuple(repository.root / path for path in slot.share)
        hidden = (repository.root, repository.home, Path(os.path.realpath(folder)))
        slot.layouts.mkdir(exist_ok=True)
        # Outputs of the setup stage are valid in every tree, such as the interpreter that it made.
        told = (value for outputs in self._session.context.outputs.values() for value in outputs.values())
        programs = tuple(value for value in told if value.startswith("/") and os.access(value, os.X_OK))
        return Sandbox(self.keeper, (slot.path, slot.build, slot.layouts), hidden, shown, programs)

    def perform(self, session: RunSession, steps: Collection[str], code: Code, what: str) -> list[StepRun]:
        """Run steps of the plan.

        Raises RejectedError with ``code``, its text beginning with ``what``, if a step fails; Failure if it fails on
        the baseline.
        """
        runs = perform_all(session, steps)
        for run in runs:
            if run.blocks and run.failing_side is Side.BASELINE:
                message = f"{run.planned.id} failed on the baseline: {run.reason}; {_SHARE}"
                raise failure_of(run, session.folder.path, message)
            # Without time a step is skipped, and what it would have found is not known.
            if run.blocks or (run.out_of_time and run.not_started):
                detail = f": {run.detail}" if run.detail else ""
                about = "" if run.code else f"{what}: "
                message = f"{about}step {run.planned.id}: {run.reason}{detail}"
                raise RejectedError(run.code or code, message, log_of(run, session.folder.path))
        return runs

    def set_up(self, subrun: Callable[[], Subrun], candidate: Planned) -> None:
        """Build the accepted state, unless it is built. Raises Failure, since without it nothing can be compared."""
        if self.context is not None:
            return
        where = subrun()
        try:
            context = self.built(self.slot, self.state.tree, self.settings, where, candidate)
            session = self.session_in(context, where, candidate)
            self._made |= _made(self.slot, self.state.tree)
            checks = self.perform(session, self._stage.checking, Code.CHECK_FAILED, "correctness does not hold")
            self._made |= _made(self.slot, self.state.tree)
            self._passed |= {run.planned.id: run.passed_tests for run in checks if run.passed_tests}
            if self._holdouts:
                self._holdouts.take(session, candidate)
        except RejectedError as error:
            message = f"the current code does not work in a separate folder: {error}; {_SHARE}"
            raise Failure(message, log=error.log) from error
        self.context = context

    def check(self, session: RunSession, tree: str) -> None:
        """Run the checks on a candidate. Raises RejectedError, also if fewer tests pass or if they change sources."""
        for run in self.perform(session, self._stage.checking, Code.CHECK_FAILED, "correctness does not hold"):
            passed, before = run.passed_tests or 0, self._passed.get(run.planned.id) or 0
            if passed < before:
                raise RejectedError(
                    Code.FEWER_TESTS,
                    f"step {run.planned.id}: {passed} of {before} tests passed on the candidate",
                    log_of(run, session.folder.path),
                )
        self.require_sources(tree, "its checks")

    def try_holdouts(self, session: RunSession, subrun: Subrun, candidate: Planned) -> None:
        """Try the inputs that a candidate cannot know. Raises RejectedError, and Failure if the base fails."""
        if self._holdouts:
            self._holdouts.require_same(self.session_in(self.standing, subrun, candidate), session, candidate)

    def require_sources(self, tree: str, what: str) -> None:
        """Require that both slots show their trees and have no new settings of tests, but for what the original makes.

        Raises RejectedError.
        """
        own, others = (
            _made(slot, shown) - self._made for slot, shown in ((self.other, tree), (self.slot, self.state.tree))
        )
        # Benchmarks run on both sides, and some of them write to a file of the tree.
        for changed, whose in ((own - others, ""), (others - own, " of the other side")):
            if changed:
                more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
                raise RejectedError(Code.TREE_CHANGED, f"{what} changed {min(changed)}{more}{whose}")

    def keep(self, state: CodeState, change: AppliedChange, context: TreeContext) -> None:
        """Accept a candidate, which is built in the other slot."""
        self.state, self.settings, self.context = state, change.own.on_top(self.settings), context
        self.slot, self.other = self.other, self.slot


def keeper_of(stage: StagePlan, session: RunSession) -> tuple[str, str]:
    """Return the program that keeps candidates in a sandbox, '' if they need none, and why one that they need lacks."""
    wanted = stage.isolate
    if wanted == "off":
        return "", ""
    keeper, why = sandbox.available()
    serving = [item.id for item in session.context.plan.steps if item.step.background]
    if serving:
        keeper, why = "", f"the service {serving[0]} cannot be reached from a sandbox"
    if keeper or wanted == "auto":
        return keeper, ""
    hint = "install bubblewrap 0.11 or later, allow user namespaces, or set `isolate: auto` if you trust the code"
    return "", f"`isolate: strict`, but nothing can keep the code of a candidate in: {why}; {hint}"


def _made(slot: Slot, tree: str) -> frozenset[str]:
    """Return the files of a tree that are changed in its slot, and settings of tests that the tree does not have."""
    return frozenset((*slot.changes(tree), *filter(is_of_settings, slot.other_files())))
