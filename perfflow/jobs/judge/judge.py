"""Judge a batch of patches: each against the same original, which is built and checked once.

A patch that does not apply, or changes what it must not change, is answered before anything is built. The others are
the candidates of one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfflow.execute.context import Settings
from perfflow.jobs.judge.submit import Patch, Submitted, submit
from perfflow.jobs.optimize.apply_change import change_of
from perfflow.jobs.optimize.protect import Opened as OpenedFiles
from perfflow.jobs.optimize.protect import Protection, is_protected
from perfflow.jobs.run.run import RunRequest, run
from perfflow.library.pinned import PROJECT
from perfflow.model.errors import UserError
from perfflow.model.judging import Code, RejectedError
from perfflow.model.result import Optimization
from perfflow.plan.plan import stage_plan
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.session.progress import Began, Progress, ProgressEvent, StepEnded
from perfflow.trees import patches as tree_patches
from perfflow.trees.repository import CodeState, Repository, open_repository
from perfflow.trees.snapshots import snapshot
from perfflow.workflow.model import Stage
from perfflow.workflow.roles import CANDIDATES_STAGE

_SETUP = "setup"


@dataclass(frozen=True)
class Judged:
    """What became of a patch. ``run``: the id of its run, '' if it needed none. ``seconds``: time that it took."""

    patch: Patch
    found: Optimization
    run: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class JudgeRequest:
    """How to judge patches.

    budget: longest time of one patch in s, without the build of the original; None for no limit. isolate: as the key of
    the stage; '' for the workflow's own.
    """

    settings: Sequence[str] = ()
    budget: float | None = None
    isolate: str = ""
    out: Path | None = None
    seed: int | None = None
    lock_timeout: float = 1800.0
    trust: bool = False
    command: Sequence[str] = ()
    """The command line that judges the patches again."""
    attempts: int = 0
    """As that of ``RunRequest``: the patches are a part of so many."""


@dataclass(frozen=True)
class Batch:
    """Patches that are to be measured, as the candidates of the workflow ``opened``, on top of ``original``."""

    opened: Opened
    submitted: Submitted
    original: CodeState

    @property
    def patches(self) -> Sequence[Patch]:
        """The patches."""
        return list(self.submitted.patches.values())


def judge(
    opened: Opened, patches: Sequence[Patch], request: JudgeRequest, progress: Progress, tell: Callable[[Judged], None]
) -> bool:
    """Judge patches, and call ``tell`` with each as soon as it is known. Return whether ^C interrupted the run.

    Raises UserError as ``run`` and ``batch_of`` do.
    """
    batch = batch_of(opened, patches, request, tell)
    if batch is None:
        return False
    inner = batch.opened
    listener = _Listener(batch.submitted, progress, tell)
    # The original is built, checked and compared in a tree of its own. Only what it shares is made in the user's.
    stages = [name for name in (_SETUP, CANDIDATES_STAGE) if any(item.stage == name for item in inner.plan.steps)]
    asked = RunRequest(
        stages=stages,
        keep_going=True,
        out=request.out,
        seed=request.seed,
        lock_timeout=request.lock_timeout,
        command=request.command,
        independent=True,
        each=request.budget,
        attempts=request.attempts,
    )
    finished = run(inner, asked, listener)
    if not finished.interrupted:
        listener.tell_rest(finished.result.optimizations)
    return finished.interrupted


def batch_of(
    opened: Opened, patches: Sequence[Patch], request: JudgeRequest, tell: Callable[[Judged], None]
) -> Batch | None:
    """Call ``tell`` with each patch that is not tried; return the others, None if there are none.

    Raises UserError for a workflow without an optimize stage, or with commands that were never shown.
    """
    stage = _stage(opened)
    repository = open_repository(opened.root, with_submodules=opened.plan.workflow.worktree.submodules)
    original, left = snapshot(repository), list[Patch]()
    inner, submitted = _submitted(opened, stage, patches, request)
    protection = _protection(inner, repository)
    for patch in patches:
        began = time.monotonic()
        refused = _refused(repository, stage, original.tree, patch, protection)
        if refused:
            tell(Judged(patch, refused, seconds=time.monotonic() - began))
        else:
            left.append(patch)
    if not left:
        return None
    if len(left) < len(patches):
        inner, submitted = _submitted(opened, stage, left, request)
    inner.require_usable(to_run=True, trust=request.trust)
    return Batch(inner, submitted, original)


def _stage(opened: Opened) -> Stage:
    if CANDIDATES_STAGE not in opened.plan.workflow.stages:
        text = (
            f"{opened.plan.workflow.name} has no stage {CANDIDATES_STAGE!r}, so it does not define when to keep a patch"
        )
        raise UserError.of(text, "add `optimize: []` to its stages, and to `verify` the tests that a patch must pass")
    return opened.plan.stage(CANDIDATES_STAGE)


def _keys(stage: Stage, isolate: str) -> Iterator[tuple[str, Any]]:
    """Yield the keys that the stage has for patches of others."""
    if isolate or stage.isolate is None:
        yield "isolate", isolate or "strict"
    if stage.protect is None:
        yield "protect", "tests"


def _submitted(
    opened: Opened, stage: Stage, patches: Sequence[Patch], request: JudgeRequest
) -> tuple[Opened, Submitted]:
    """Write the patches as the candidates of a workflow, and return it."""
    steps = {(item.step.id, item.role.value) for item in opened.plan.steps}
    extends = opened.path if opened.origin == PROJECT else opened.origin
    submitted = submit(opened.root, extends, steps, patches, dict(_keys(stage, request.isolate)))
    return open_workflow(str(submitted.workflow), request.settings), submitted


def _protection(inner: Opened, repository: Repository) -> Protection | None:
    """Return the rules for what patches must not touch, as far as they need no measuring; None without any."""
    stage = stage_plan(inner.plan)
    if stage is None or not is_protected(stage.own, stage.candidates[0]):
        return None
    return Protection(repository, inner.draft, inner.plan, stage, OpenedFiles)


def _refused(
    repository: Repository, stage: Stage, original: str, patch: Patch, protection: Protection | None
) -> Optimization | None:
    """Return the entry of a patch that is not tried; None for one that is."""
    try:
        tree = tree_patches.apply(repository, original, patch.data, name=patch.name)
        change_of(repository, stage, original, tree, Settings(), protection)
    except UserError as error:
        code, reason = Code.MALFORMED, error.in_one_line
    except RejectedError as error:
        code, reason = error.code, str(error)
    else:
        return None
    return Optimization(
        id=patch.name,
        technique=patch.technique,
        why=patch.why,
        decision="rejected",
        outcome=code.outcome,
        code=code,
        reason=reason,
    )


class _Listener:
    """Passes on the progress of the run, and tells what became of each patch."""

    def __init__(self, submitted: Submitted, progress: Progress, tell: Callable[[Judged], None]) -> None:
        self._progress, self._tell = progress, tell
        self._left = dict(submitted.patches)
        self._run = ""

    def __call__(self, event: ProgressEvent) -> None:
        self._progress(event)
        if isinstance(event, Began):
            self._run = event.folder.name
        elif isinstance(event, StepEnded) and event.run.planned.id in self._left:
            for found in event.run.found.optimizations:
                self._tell(Judged(self._left.pop(event.run.planned.id), found, self._run, event.run.seconds))

    def tell_rest(self, found: Sequence[Optimization]) -> None:
        """Tell what became of the patches that were not tried."""
        for item in found:
            if item.id in self._left:
                self._tell(Judged(self._left.pop(item.id), item, self._run))
