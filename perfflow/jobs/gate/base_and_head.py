"""The regression gate: every step that measures compares a base revision with head, each built in a tree of its own."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from perfflow.execute.context import Settings, TreeContext
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import sides_of
from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.model.targets import matches
from perfflow.plan.building import building_steps
from perfflow.plan.coverage import metrics_of
from perfflow.plan.plan import Planned
from perfflow.session.attribution.blaming import blame
from perfflow.session.perform import failure_of, perform_all
from perfflow.session.presence import absent
from perfflow.session.progress import Nested
from perfflow.session.session import RunSession
from perfflow.session.tree_contexts import built_with, context_in
from perfflow.store import folder as rundir
from perfflow.store.record import Record, record_of
from perfflow.store.subrun import Section
from perfflow.tools.adapter import Role
from perfflow.trees.repository import Repository, State
from perfflow.trees.shared_crates import share_crates
from perfflow.trees.slots import Slot, Slots, open_slots
from perfflow.trees.snapshots import at, snapshot
from perfflow.verdict.comparison import compare
from perfflow.verdict.decide import rule

BASE = "base"
"""Section of the run's folder for what was built of the base."""


class BaseAndHead:
    """Both trees of one gate. They are shown and built when the first step that needs them comes."""

    def __init__(self, session: RunSession, repository: Repository, base: State, head: State) -> None:
        self._session, self._repository, self._base, self._head = session, repository, base, head
        self._building = building_steps(session.context.plan)
        self._slots: Slots | None = None
        self._contexts: dict[Side, TreeContext] = {}
        self._head_session: RunSession | None = None
        self._both: RunSession | None = None
        # A run that is resumed builds again, in both trees; where nothing was changed, that is soon done.
        done = {name: outputs for name, outputs in session.earlier.done.items() if name not in self._building}
        session.earlier = replace(session.earlier, done=done)

    def session_for(self, planned: Planned) -> RunSession:
        """Steps before the baseline stage run in both trees, what compares in both at once, the rest in head's.

        Raises Failure where the base does not build, or the trees cannot be shown.
        """
        if planned.stage == "setup":
            return self._session
        contexts = self._shown()
        if self._head_session is None or self._both is None:
            # Kept, so that the machine's noise is looked at once and not before every step.
            self._head_session = replace(self._session, context=contexts[Side.CANDIDATE])
            self._both = replace(self._head_session, contexts=contexts)
        if planned.id in self._building:
            base = self._session.built.get(Side.BASELINE, {}).get(planned.id)
            if base is not None:
                contexts[Side.BASELINE].outputs[planned.id] = dict(base)
                return self._head_session
            self._build_base(planned)
            if self._slots and not self._is_one:
                share_crates(self._slots.a, self._slots.b)
            return self._head_session
        # What compares two commands or variants where it stands has sides of its own, as has what checks them.
        return self._head_session if len(sides_of(self._session.context, planned)) == 2 else self._both

    def why_not(self, planned: Planned) -> str:
        """Candidates are not tried, and only what regressed is profiled, what a target needs, or the conditions."""
        if planned.role is Role.CANDIDATE:
            return "a gate compares base with head, and tries no candidates"
        if planned.role is Role.COMPARE:
            return "base and head are compared where they are measured"
        if planned.role is Role.PROFILE and not self._is_wanted(planned):
            return "nothing that it profiles regressed"
        return ""

    def finish(self) -> None:
        """Find out who touched the functions that got slower."""
        blame(self._session, self._repository, self._base, self._head)

    def close(self) -> None:
        """Let other runs have the slots."""
        if self._slots:
            self._slots.close()
            self._slots = None

    def _shown(self) -> dict[Side, TreeContext]:
        if not self._contexts:
            try:
                self._slots = open_slots(self._repository, self._session.context.plan.workflow.worktree.share)
                self._show(self._slots.a, self._base)
                if not self._is_one:
                    self._show(self._slots.b, self._head)
            except UserError as error:
                problem = error.problems[0]
                raise Failure("; ".join(filter(None, (problem.message, problem.hint)))) from error
            for side, slot in zip(Side, (self._slots.a, self._slots.a if self._is_one else self._slots.b), strict=True):
                self._contexts[side] = context_in(self._session.context, slot, Settings())
            done = {name: dict(outputs) for name, outputs in self._session.earlier.done.items()}
            self._contexts[Side.CANDIDATE].outputs.update(done)
        return self._contexts

    @property
    def _is_one(self) -> bool:
        """Whether base and head are one state of the code, which is then built once, in one tree."""
        return (self._base.commit, self._base.tree) == (self._head.commit, self._head.tree)

    def _show(self, slot: Slot, state: State) -> None:
        """Show a state, without anything that was built there with other settings or from files that are gone.

        A program whose source is gone would else still be there, and a benchmark that was lost be measured.
        """
        if self._session.built and slot.shows(state.tree):
            return
        changed = slot.switch(state.tree, state.commit)
        if any(not os.path.lexists(slot.path / path) for path in changed):
            slot.forget_builds_unless("")
        slot.forget_builds_unless(built_with(self._session.context, self._building))

    def _build_base(self, planned: Planned) -> None:
        section = Section(self._session.folder, BASE, Record())
        # A crate or folder that is new on head has nothing to be built on base.
        if absent(self._contexts, planned, section.step(planned.id), folders_only=True) is Side.BASELINE:
            return
        progress = Nested(self._session.progress, planned)
        session = self._session.nested(self._contexts[Side.BASELINE], section, progress)
        (run,) = perform_all(session, [planned.id])
        if run.blocks:
            raise failure_of(run, session.folder.path, f"the base does not build: {run.reason}")

    def _is_wanted(self, planned: Planned) -> bool:
        criteria = self._session.context.plan.criteria
        if planned.tool and planned.tool.conditions:
            return True
        if any(target.metric.name in metrics_of(planned) for target in criteria.targets):
            return True
        record = record_of(rundir.events(self._session.folder.path))
        for (benchmark, metric), series in record.series.items():
            ruling = rule(
                compare(series, criteria),
                criteria.thresholds_of(benchmark, metric),
                identical=False,
            )
            about = not planned.benchmark or matches(planned.benchmark, benchmark) or planned.benchmark == benchmark
            if about and ruling.decision == "regressed" and ruling.level in ("concern", "action"):
                return True
        return False


def ends(repository: Repository, base: str, head: str | None) -> tuple[str, str]:
    """The commits of head, and of where its history parted from ``base``. Raises UserError as ``states`` does."""
    tip = repository.revision(head) if head else repository.head()
    if tip is None:
        raise UserError.of("the repository has no commit yet", "commit the state that the gate should compare with")
    return tip, repository.merge_base(base, tip)


def states(repository: Repository, base: str, head: str | None) -> tuple[State, State, dict[str, Any]]:
    """The two states, and what the result says of them.

    The base is where head's history parted from the revision ``base``; head is the tree as it stands where no
    revision is named. Raises UserError for unknown revisions, and with the remedy for shallow clones.
    """
    tip, parted = ends(repository, base, head)
    one = at(repository, parted)
    other = at(repository, tip) if head else snapshot(repository)
    told: dict[str, Any] = {
        "baseline": {"kind": "revision", "revision": parted, "name": base, "tree": one.tree},
        "candidate": {"kind": "revision" if head else "working tree", "revision": tip, "name": head or "HEAD"},
    }
    told["candidate"]["tree"] = other.tree
    told["candidate"]["dirty"] = other.tree != repository.tree(tip)
    return one, other, told
