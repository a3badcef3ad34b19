"""Which trees a run works in beside the user's own: none, those of candidates, or those of base and head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfflow.model.errors import UserError
from perfflow.model.later import dataclass
from perfflow.session import resuming
from perfflow.session.opening import Opened
from perfflow.session.session import RunSession
from perfflow.tools.adapter import Role

if TYPE_CHECKING:
    from perfflow.trees.repository import Repository, State


@dataclass(frozen=True)
class RunTrees:
    """What was found of the trees before anything ran; ``told`` is what the result says of them."""

    workflow: Path
    repository: Repository | None = None
    base: State | None = None
    head: State | None = None
    told: dict[str, Any] | None = None
    unsure: tuple[str, ...] = ()
    """What the trees may lack."""

    def cautions(self) -> list[str]:
        """What to know of the trees before anything is read off them."""
        alike = self.base is not None and self.head is not None and self.base.tree == self.head.tree
        said = ["base and head are the same code: what differs between them is noise"] if alike else []
        return [*said, *self.unsure]


def _are_two(trees: Mapping[str, Any]) -> bool:
    """Whether what a run said of its trees is a base and a head that it compares."""
    return all(isinstance(trees.get(side), dict) and "tree" in trees[side] for side in ("baseline", "candidate"))


def with_builds(opened: Opened, selected: frozenset[str]) -> frozenset[str]:
    """The steps of a run that compares two trees: whichever of it was chosen, what builds the trees goes with it.

    A tree lies in a slot, which else holds what an earlier run built there, of other code.
    """
    from perfflow.plan.building import building_steps

    in_trees = any(item.stage != "setup" for item in opened.plan.steps if item.id in selected)
    return selected.union(building_steps(opened.plan)) if in_trees else selected


def _asked_again(opened: Opened, trees: Mapping[str, Any], base: str | None) -> RunTrees:
    """The base and the head of a run that is resumed, as it found them, wherever the base has moved since.

    An empty ``base`` is that of the run.

    Raises UserError where another base is asked for, or head is not what it was.
    """
    from perfflow.trees.repository import open_repository
    from perfflow.trees.snapshots import at, snapshot

    was, is_ = trees["baseline"], trees["candidate"]
    if base and base not in (was["name"], was["revision"]):
        text = f"the run compares with {was['name']}, not with {base}"
        raise UserError.of(text, "leave out --base, or start a new run without --resume")
    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    one = at(repository, was["revision"])
    other = at(repository, is_["revision"]) if is_["kind"] == "revision" else snapshot(repository)
    if (one.tree, other.tree) != (was["tree"], is_["tree"]):
        text = "the code is not what it was when the run was interrupted"
        raise UserError.of(text, "undo the change, or start a new run without --resume")
    return RunTrees(opened.path, repository, one, other)


def asked(
    opened: Opened,
    selected: frozenset[str],
    base: str | None,
    head: str | None,
    resume: Path | None,
    *,
    elsewhere: bool = False,
) -> RunTrees:
    """Look at the repository, where trees are needed: ``elsewhere``, since other machines get the code from it.

    Raises UserError where there is none, or no such revision, where a tree would lack what a step starts, and where a
    run that compares no trees is resumed as one that does.
    """
    before = resuming.trees(resume) if resume else {}
    if _are_two(before):
        return _asked_again(opened, before, base)
    if base is not None and resume is not None:
        raise UserError.of(f"{resume}: this run does not compare base and head", "leave out --base")
    candidates = any(item.role is Role.CANDIDATE and item.id in selected for item in opened.plan.steps)
    if base is None and not candidates and not elsewhere:
        return RunTrees(opened.path)
    # Imported where they are needed: most runs need no trees.
    from perfflow.session.compared_trees import require_complete
    from perfflow.trees.repository import open_repository

    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    unsure = require_complete(opened)
    if base is None and elsewhere:
        from perfflow.trees.snapshots import snapshot

        return RunTrees(opened.path, repository, head=snapshot(repository), unsure=unsure)
    if base is None:
        return RunTrees(opened.path, repository, unsure=unsure)
    from perfflow.jobs.gate.base_and_head import states

    return RunTrees(opened.path, repository, *states(repository, base, head), unsure=unsure)


def require_revisions(opened: Opened, base: str, head: str | None) -> None:
    """Raise UserError where a run that compares these revisions would. Looks, and makes nothing."""
    from perfflow.jobs.gate.base_and_head import ends
    from perfflow.trees.repository import look_at

    ends(look_at(opened.root), base, head)


@contextmanager
def working_in(wanted: RunTrees, session: RunSession) -> Iterator[None]:
    """Give the session what works in other trees, and let other runs have them afterwards."""
    if wanted.repository is None:
        yield
        return
    # Imported where they are needed: most runs need no trees.
    if wanted.base and wanted.head:
        from perfflow.jobs.gate.base_and_head import BaseAndHead

        session.trees = BaseAndHead(session, wanted.repository, wanted.base, wanted.head)
    else:
        from perfflow.jobs.optimize.optimize import Optimizer
        from perfflow.plan.optimize_stage import stage_plan

        stage = stage_plan(session.context.plan)
        if stage:
            session.trees = optimizer = Optimizer(session, stage, wanted.repository, wanted.workflow)
            session.performer_of = optimizer.performer_of
    try:
        yield
    finally:
        if session.trees:
            session.trees.close()
