"""The accepted state in one of two slots. The other slot holds the next candidate, which is built on top of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from perfflow.execute.context import Settings, TreeContext
from perfflow.execute.invoke import Failure
from perfflow.execute.schedule import StepRun
from perfflow.jobs.optimize.apply_change import Change, RejectedError
from perfflow.model.readings import Side
from perfflow.plan.optimize_stage import StagePlan
from perfflow.plan.plan import Planned
from perfflow.session.perform import failure_of, log_of, perform_all
from perfflow.session.progress import Nested
from perfflow.session.session import RunSession
from perfflow.session.tree_contexts import shown_in
from perfflow.store.subrun import Subrun
from perfflow.trees.repository import State
from perfflow.trees.slots import Slot, Slots

_SHARE = "if it needs an ignored file, list the file under `worktree: {share: [...]}`"


class AcceptedState:
    """The code and settings accepted so far, built in ``slot``. The other slot is for the next candidate."""

    def __init__(self, session: RunSession, stage: StagePlan, slots: Slots, original: State) -> None:
        self._session, self._stage = session, stage
        self.original, self.state, self.settings = original, original, Settings()
        self.slot, self.other = slots.a, slots.b
        self.context: TreeContext | None = None

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
        return self._session.nested(context, subrun, Nested(self._session.progress, candidate))

    def session_between(
        self, baseline: TreeContext, candidate: TreeContext, subrun: Subrun, planned: Planned
    ) -> RunSession:
        """Return a session whose steps alternate between two trees. Steps with one side run in the candidate's."""
        contexts = {Side.BASELINE: baseline, Side.CANDIDATE: candidate}
        # A candidate that executes the same is measured too: its effect is what the report tells.
        return replace(self.session_in(candidate, subrun, planned), contexts=contexts, times_all=True)

    def built(self, slot: Slot, tree: str, settings: Settings, subrun: Subrun, candidate: Planned) -> TreeContext:
        """Check out a tree in a slot and build it. Raises RejectedError if a building step fails."""
        state = replace(self.state, tree=tree)
        context = shown_in(slot, state, self._session.context, settings, self._stage.building)
        self.perform(self.session_in(context, subrun, candidate), self._stage.building, "it does not build")
        return context

    def perform(self, session: RunSession, steps: Collection[str], what: str) -> list[StepRun]:
        """Run steps of the plan.

        Raises RejectedError, its text beginning with ``what``, if a step fails; Failure if it fails on the baseline.
        """
        runs = perform_all(session, steps)
        for run in runs:
            if run.blocks and run.failing_side is Side.BASELINE:
                said = f"{run.planned.id} failed on the baseline: {run.reason}; {_SHARE}"
                raise failure_of(run, session.folder.path, said)
            if run.blocks:
                detail = f": {run.detail}" if run.detail else ""
                said = f"{what}: step {run.planned.id}: {run.reason}{detail}"
                raise RejectedError(said, log_of(run, session.folder.path))
        return runs

    def set_up(self, subrun: Callable[[], Subrun], candidate: Planned) -> None:
        """Build the accepted state, unless it is built. Raises Failure, since without it nothing can be compared."""
        if self.context is not None:
            return
        where = subrun()
        try:
            context = self.built(self.slot, self.state.tree, self.settings, where, candidate)
            session = self.session_in(context, where, candidate)
            self.perform(session, self._stage.checking, "correctness does not hold")
        except RejectedError as error:
            said = f"the current code does not work in a separate folder: {error}; {_SHARE}"
            raise Failure(said, log=error.log) from error
        self.context = context

    def keep(self, state: State, change: Change, context: TreeContext) -> None:
        """Accept a candidate, which is built in the other slot."""
        self.state, self.settings, self.context = state, change.own.on_top(self.settings), context
        self.slot, self.other = self.other, self.slot
