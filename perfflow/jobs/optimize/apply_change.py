"""Turn a candidate's change into a tree: a patch, a revision, or the edits of a command or a proposer.

The limits of the stage are checked before anything is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfflow.execute.context import Settings, variables_of
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import PreparationError
from perfflow.execute.schedule import StepRun
from perfflow.model.errors import UserError
from perfflow.model.targets import matches
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession
from perfflow.session.steps.work import command
from perfflow.tools import regular_files
from perfflow.trees import patches
from perfflow.trees.differences import Difference, changed_paths, difference
from perfflow.trees.repository import Repository
from perfflow.trees.slots import Slot
from perfflow.workflow.expression_text import ExpressionError, as_text
from perfflow.workflow.expressions import render
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Stage

_SHOWN = 5
"""The most paths that a message lists."""


class RejectedError(Exception):
    """A candidate was rejected and reverted. The text gives the reason, ``log`` the output of a command that failed."""

    def __init__(self, reason: str, log: Path | None = None) -> None:
        super().__init__(reason)
        self.log = log


@dataclass(frozen=True)
class Change:
    """The tree with the change, its difference from the tree below it, and the candidate's own settings."""

    tree: str
    difference: Difference
    own: Settings


def settings_of(session: RunSession, planned: Planned) -> Settings:
    """Return the candidate's own environment and parameters, rendered. Raises PreparationError."""
    try:
        context = variables_of(session.context, planned)
        env = {name: as_text(render(value, context)) for name, value in planned.step.env.items()}
        params = {name: render(value, context) for name, value in (planned.step.params or {}).items()}
    except ExpressionError as error:
        raise PreparationError(str(error)) from error
    return Settings(env, params)


def patched(session: RunSession, repository: Repository, planned: Planned, base: str, draft: Draft) -> str | None:
    """Return ``base`` with the candidate's ``patch`` or ``ref`` applied; None for a candidate that has neither.

    Raises RejectedError if it does not apply.
    """
    step = planned.step
    try:
        if step.patch:
            file = draft.path.parent / str(render(step.patch, variables_of(session.context, planned)))
            raw = draft.readable.bytes_of(file, regular_files.LARGEST)
            return patches.apply(repository, base, raw, name=file.name)
        if step.ref:
            name = str(render(step.ref, variables_of(session.context, planned)))
            revision, head = repository.revision(name), repository.head()
            start = repository.merge_base(revision, head) if head else base
            return patches.apply(repository, base, difference(repository, start, revision).patch, name=name)
    except UserError as error:
        raise RejectedError(error.in_one_line) from error
    except OSError as error:
        raise RejectedError(f"cannot read {step.patch}: {error.strerror}") from error
    except ExpressionError as error:
        raise PreparationError(str(error)) from error
    return None


def edited(session: RunSession, planned: Planned, run: StepRun, slot: Slot) -> str:
    """Run the candidate's command in the slot, and return the edited tree.

    Raises RejectedError if the command fails, or writes ignored files, which would be measured but not committed.
    """
    before, wrote = slot.ignored_files(), []
    try:
        command(session, planned, run)
    except Failure as failure:
        run.log = str(failure.log.relative_to(session.folder.path)) if failure.log else run.log
        raise RejectedError(f"its command failed: {failure.reason}", failure.log) from failure
    finally:
        # Also after a failure: otherwise the next candidate in this slot would be measured with these files.
        wrote = slot.remove_ignored(before)
    if wrote:
        shown = [*wrote[:_SHOWN], *([f"{len(wrote) - _SHOWN} more"] if len(wrote) > _SHOWN else [])]
        raise RejectedError(f"it wrote ignored files {', '.join(shown)}, which cannot be committed")
    recorded = slot.take()
    if recorded.left_out:
        run.warnings.append(f"left out, since they are separate repositories: {', '.join(recorded.left_out)}")
    return recorded.tree


def change_of(repository: Repository, stage: Stage, base: str, tree: str, own: Settings) -> Change:
    """Return the change that a candidate makes.

    Raises RejectedError if it changes nothing, or ("needs approval") if the change exceeds the limits of the stage.
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
    """Return whether a glob matches a path. The name of a folder matches everything in it."""
    plain = glob.removeprefix("./").lstrip("/").rstrip("/")
    return matches(plain, path) or matches(f"{plain}/**", path)
