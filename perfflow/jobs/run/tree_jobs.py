"""The trees that a run works in beside the user's own: none, those of candidates, or those of base and head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfflow.jobs.gate.base_and_head import BaseAndHead, ends, states
from perfflow.jobs.optimize.optimize import Optimizer
from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.model.tree_facts import tree_of
from perfflow.plan.build_steps import building_steps
from perfflow.plan.optimize_stage import stage_plan
from perfflow.session import earlier_run
from perfflow.session.compared_trees import require_complete
from perfflow.session.open_workflow import Opened
from perfflow.session.session import RunSession
from perfflow.tools.adapter import Role
from perfflow.trees.overlay import overlaid
from perfflow.trees.repository import Repository, State, look_at, open_repository
from perfflow.trees.snapshots import at, snapshot
from perfflow.workflow.load import Draft


@dataclass(frozen=True)
class RunTrees:
    """The trees of a run, as found before anything ran. ``told``: their description for the result."""

    draft: Draft
    repository: Repository | None = None
    base: State | None = None
    head: State | None = None
    told: dict[str, Any] | None = None
    unsure: tuple[str, ...] = ()
    """Warnings about files that the trees may lack."""
    fresh: bool = False
    """Whether both trees are built from nothing, whatever earlier runs have built."""

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
    before = earlier_run.trees(resume) if resume else {}
    if _are_two(before):
        return _resumed_trees(opened, before, base, overlay)
    if base is not None and resume is not None:
        raise UserError.of(f"{resume}: this run does not compare base and head", "leave out --base")
    candidates = any(item.role is Role.CANDIDATE and item.id in selected for item in opened.plan.steps)
    if base is None and not candidates and not elsewhere:
        return RunTrees(opened.draft)

    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
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
    # Imported here because most runs need no trees.
    if wanted.base and wanted.head:
        session.trees = BaseAndHead(session, wanted.repository, wanted.base, wanted.head, fresh=wanted.fresh)
    else:
        stage = stage_plan(session.context.plan)
        if stage:
            session.trees = optimizer = Optimizer(session, stage, wanted.repository, wanted.draft)
            session.performer_of = optimizer.performer_of
    try:
        yield
    finally:
        if session.trees:
            session.trees.close()
