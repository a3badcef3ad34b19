"""Which trees a run works in beside the user's own: none, those of candidates, or those of base and head."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfflow.flow.opening import Opened
from perfflow.flow.workshop import TreeWork, Workshop
from perfflow.tools.protocol import Role

if TYPE_CHECKING:
    from perfflow.trees.repository import Repository, State


@dataclass(frozen=True, slots=True)
class Asked:
    """What was found of the trees before anything ran; ``told`` is what the result says of them."""

    workflow: Path
    repository: Repository | None = None
    base: State | None = None
    head: State | None = None
    told: dict[str, Any] | None = None


def asked(opened: Opened, selected: frozenset[str], base: str | None, head: str | None) -> Asked:
    """Look at the repository, where trees are needed. Raises UserError where there is none, or no such revision."""
    candidates = any(item.role is Role.CANDIDATE and item.id in selected for item in opened.plan.steps)
    if base is None and not candidates:
        return Asked(opened.path)
    # Imported where they are needed: most runs need no trees.
    from perfflow.trees.repository import open_repository

    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    if base is None:
        return Asked(opened.path, repository)
    from perfflow.flow.base_and_head import states

    return Asked(opened.path, repository, *states(repository, base, head))


@contextmanager
def working_in(wanted: Asked, shop: Workshop, timeout: float) -> Iterator[None]:
    """Give the workshop what works in other trees, and let other runs have them afterwards."""
    work = _work(wanted, shop, timeout)
    shop.trees = work
    try:
        yield
    finally:
        if work:
            work.close()


def _work(wanted: Asked, shop: Workshop, timeout: float) -> TreeWork | None:
    if wanted.repository is None:
        return None
    if wanted.base and wanted.head:
        from perfflow.flow.base_and_head import BaseAndHead

        return BaseAndHead(shop, wanted.repository, wanted.base, wanted.head, timeout)
    from perfflow.flow.optimize.optimizer import Optimizer
    from perfflow.flow.optimize.stage import stage_plan

    stage = stage_plan(shop.scene.plan)
    return Optimizer(shop, stage, wanted.repository, wanted.workflow, timeout) if stage else None
