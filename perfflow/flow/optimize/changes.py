"""A candidate's change → a tree: a patch, a revision, or what a command or a proposer did to the files.

What the stage forbids is looked at before anything is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfflow.errors import UserError
from perfflow.flow.working import command
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run.context import Settings, context_of
from perfflow.run.invoke import Failure
from perfflow.run.prepare import PreparationError
from perfflow.run.schedule import StepRun
from perfflow.samples.targets import matches
from perfflow.trees import patches
from perfflow.trees.differences import Difference, changed_paths, difference
from perfflow.trees.repository import Repository
from perfflow.trees.slots import Slot
from perfflow.workflow.expressions import ExpressionError, as_text, render
from perfflow.workflow.model import Stage

_SHOWN = 5
"""Paths that are named where there are many."""


class RejectedError(Exception):
    """A candidate of which nothing remains; the text says why, and ``log`` is that of the command that failed."""

    def __init__(self, reason: str, log: Path | None = None) -> None:
        super().__init__(reason)
        self.log = log


@dataclass(frozen=True, slots=True)
class Change:
    """The tree with the change, what differs from the tree it builds on, and what the candidate sets beside it."""

    tree: str
    difference: Difference
    own: Settings


def settings_of(shop: Workshop, planned: Planned) -> Settings:
    """The candidate's own environment and parameters, rendered. Raises PreparationError."""
    try:
        context = context_of(shop.scene, planned)
        env = {name: as_text(render(value, context)) for name, value in planned.step.env.items()}
        params = {name: render(value, context) for name, value in (planned.step.params or {}).items()}
    except ExpressionError as error:
        raise PreparationError(str(error)) from error
    return Settings(env, params)


def patched(shop: Workshop, repository: Repository, planned: Planned, base: str, workflow: Path) -> str | None:
    """The tree that a ``patch`` or ``ref`` makes of ``base``; None for a candidate that has neither.

    Raises RejectedError where it does not apply.
    """
    step = planned.step
    try:
        if step.patch:
            file = workflow.parent / str(render(step.patch, context_of(shop.scene, planned)))
            return patches.apply(repository, base, file.read_bytes(), name=file.name)
        if step.ref:
            name = str(render(step.ref, context_of(shop.scene, planned)))
            revision, head = repository.revision(name), repository.head()
            start = repository.merge_base(revision, head) if head else base
            return patches.apply(repository, base, difference(repository, start, revision).patch, name=name)
    except UserError as error:
        problem = error.problems[0]
        raise RejectedError("; ".join(filter(None, (problem.message, problem.hint)))) from error
    except OSError as error:
        raise RejectedError(f"cannot read {step.patch}: {error.strerror}") from error
    except ExpressionError as error:
        raise PreparationError(str(error)) from error
    return None


def edited(shop: Workshop, planned: Planned, run: StepRun, slot: Slot) -> str:
    """The tree that the candidate's command leaves in the slot.

    Raises RejectedError where it fails, or writes what would be measured and be on no branch.
    """
    before, wrote = slot.ignored_files(), []
    try:
        command(shop, planned, run)
    except Failure as failure:
        run.log = str(failure.log.relative_to(shop.folder.path)) if failure.log else run.log
        raise RejectedError(f"its command failed: {failure.reason}", failure.log) from failure
    finally:
        # Also after a failure: what comes next in this slot would be measured with it.
        wrote = slot.remove_ignored(before)
    if wrote:
        shown = [*wrote[:_SHOWN], *([f"{len(wrote) - _SHOWN} more"] if len(wrote) > _SHOWN else [])]
        raise RejectedError(f"it wrote ignored files {', '.join(shown)}, which no branch can hold")
    recorded = slot.take()
    if recorded.left_out:
        run.warnings.append(f"left out, since they are repositories of their own: {', '.join(recorded.left_out)}")
    return recorded.tree


def change_of(repository: Repository, stage: Stage, base: str, tree: str, own: Settings) -> Change:
    """What a candidate is about to change.

    Raises RejectedError for no change at all, and "needs approval" for one that the stage does not allow on its own.
    """
    found = difference(repository, base, tree)
    if base == tree and not own.env and not own.params:
        raise RejectedError("it changes nothing")
    for path in changed_paths(repository, base, tree):
        glob = next((glob for glob in stage.forbid or () if _covers(glob, path)), None)
        if glob is not None:
            raise RejectedError(f"needs approval: it touches {path}, which `forbid: {glob}` protects")
    if stage.max_diff is not None and found.lines > stage.max_diff:
        raise RejectedError(f"needs approval: it changes {found.lines} lines, `max-diff` is {stage.max_diff}")
    return Change(tree, found, own)


def _covers(glob: str, path: str) -> bool:
    """Whether a glob of paths means a path; the name of a folder means all that is in it."""
    plain = glob.removeprefix("./").lstrip("/").rstrip("/")
    return matches(plain, path) or matches(f"{plain}/**", path)
