"""One planned step -> StepRun: what it needs, the machine to itself where it measures, and its role's work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perfflow.flow.waiting import machine_for
from perfflow.flow.workshop import TreeWork, Workshop
from perfflow.machine.lock import LockError
from perfflow.plan.plan import Planned
from perfflow.plan.requirements import requires_of
from perfflow.receipt.files import sha256
from perfflow.run import invoke, programs
from perfflow.run.context import context_of, search_path
from perfflow.run.invoke import Failure
from perfflow.run.kept_output import keep
from perfflow.run.prepare import PreparationError, missing_program
from perfflow.run.schedule import StepRun
from perfflow.run.secrets import Secrets, masked
from perfflow.run.states import StepStatus
from perfflow.tools.adapter import LOOKING_ON, Role
from perfflow.workflow.expressions import ExpressionError, condition

Perform = Callable[[Workshop, Planned, StepRun], None]
"""Does a step's work; what it finds is in the StepRun. Raises Failure, PreparationError and ExpressionError."""


def _work(shop: Workshop, planned: Planned, run: StepRun) -> None:
    if planned.step.background:
        from perfflow.flow.serving import serve

        serve(shop, planned, run)
        return
    from perfflow.flow.working import work

    work(shop, planned, run)


def _measure(shop: Workshop, planned: Planned, run: StepRun) -> None:
    from perfflow.flow.measuring import measure_step

    measure_step(shop, planned, run)


def _profile(shop: Workshop, planned: Planned, run: StepRun) -> None:
    from perfflow.flow.profiling import profile

    profile(shop, planned, run)


def _survey(shop: Workshop, planned: Planned, run: StepRun) -> None:
    from perfflow.flow.surveying import survey

    survey(shop, planned, run)


def _check(shop: Workshop, planned: Planned, run: StepRun) -> None:
    from perfflow.flow.checking import check

    check(shop, planned, run)


def _candidate(shop: Workshop, planned: Planned, run: StepRun) -> None:
    _optimizer(shop).try_candidate(planned, run)


def _compare(shop: Workshop, planned: Planned, run: StepRun) -> None:
    if shop.trees is None:
        run.reason = "no optimize stage, so there is nothing to compare with the baseline"
        return
    shop.trees.compare_with_original(planned, run)


def _keep_artifacts(shop: Workshop, planned: Planned, run: StepRun) -> None:
    if planned.step.artifacts:
        from perfflow.flow.artifacts import keep

        keep(shop, planned, run)


def _optimizer(shop: Workshop) -> TreeWork:
    if shop.trees is None:
        raise Failure("candidates are tried by `perfflow run` alone")
    return shop.trees


# A role's module is imported with the first step that has it: few workflows use all of them.
BY_ROLE: Mapping[Role, Perform] = {
    Role.WORK: _work,
    Role.MEASURE: _measure,
    Role.PROFILE: _profile,
    Role.MACHINE: _survey,
    Role.CHECK: _check,
    Role.CANDIDATE: _candidate,
    Role.COMPARE: _compare,
}
_LOCKING_INSIDE = (Role.CANDIDATE, Role.COMPARE)
"""What consists of steps that each take the machine for themselves: others may measure while they build."""


@dataclass
class Performer:
    """Performs the steps of one run, from one thread or several."""

    shop: Workshop
    lock_timeout: float
    by_role: Mapping[Role, Perform] = field(default_factory=lambda: BY_ROLE)

    def __call__(self, planned: Planned) -> StepRun:
        """Run one step to its end. What can go wrong with it is in the StepRun; ^C and defects are raised."""
        outputs = self.shop.earlier.done.get(planned.id)
        if outputs is not None and not planned.step.background:
            self.shop.scene.outputs[planned.id] = dict(outputs)
            return StepRun(planned, StepStatus.CACHED)
        unmet = self._unmet(planned) or (self.shop.trees.why_not(planned) if self.shop.trees else "")
        if unmet:
            return StepRun(planned, StepStatus.SKIPPED, unmet)
        self.shop.progress.started(planned)
        run = StepRun(planned, StepStatus.DONE)
        worked, before = self.shop.waits.stopwatch(), self.shop.waits.seconds
        try:
            if planned.step.if_ is None:  # what asks for `always()` may be there to tidy up
                self._require_services(planned)
            shop = self.shop.trees.shop_for(planned) if self.shop.trees else self.shop
            with self._machine(shop, planned, run):
                self._do(shop, planned, run)
            self._require_services(planned)
        except Failure as failure:
            self._blame_service(planned, failure)
            _fail(run, failure, self.shop.folder.path)
        except (PreparationError, LockError, ExpressionError) as error:
            run.status, run.reason = StepStatus.FAILED, str(error)
            run.details["not_started"] = True
        except OSError as error:
            # A file of this step: a full disk, a folder that was removed. What the run itself writes is a FolderError.
            where = error.filename or self.shop.folder.path
            _fail(run, Failure(f"{where}: {error.strerror or error}"), self.shop.folder.path)
        run.seconds, run.waited = worked(), self.shop.waits.seconds - before
        return _without_secrets(run, self.shop.scene.secrets)

    def _do(self, shop: Workshop, planned: Planned, run: StepRun) -> None:
        """The role's work, then the step's files; those of one that failed may say why."""
        try:
            self.by_role[planned.role](shop, planned, run)
        except Failure:
            with contextlib.suppress(Failure, PreparationError, ExpressionError, OSError):
                _keep_artifacts(shop, planned, run)
            raise
        finally:
            if not planned.step.background:  # a service still writes its own
                _keep_files(shop, planned, run)
        _keep_artifacts(shop, planned, run)

    def _require_services(self, planned: Planned) -> None:
        """Nothing is measured against a service that is gone. Raises Failure."""
        dead = self.shop.services.dead_for(self.shop.scene.plan, planned)
        if dead:
            raise Failure(dead.death, exit_code=dead.service.exit_code, log=dead.log)

    def _blame_service(self, planned: Planned, failure: Failure) -> None:
        """A step that fails when its service is gone most likely fails for that."""
        dead = self.shop.services.dead_for(self.shop.scene.plan, planned)
        if dead and dead.death not in failure.reason:
            failure.reason = f"{failure.reason}; {dead.death}"

    def _unmet(self, planned: Planned) -> str:
        """What the step needs and is not here; '' where nothing is missing or nothing is asked for."""
        if planned.role not in LOOKING_ON and planned.step.requires is None:
            return ""
        path = search_path(self.shop.scene, planned) or os.environ.get("PATH", os.defpath)
        unmet = programs.unmet(requires_of(planned, self.shop.scene.plan.params), path)
        return unmet or (missing_program(planned, path) if planned.role in LOOKING_ON else "")

    def allows(self, planned: Planned, blocked: bool) -> bool:
        """Whether a step's ``if`` (its own, else its stage's) lets it run."""
        own = planned.step.if_
        text = own if own is not None else self.shop.scene.plan.stage(planned.stage).if_
        if text is None or isinstance(text, bool):
            return not blocked and text is not False
        context = context_of(self.shop.scene, planned)
        context |= {"success": lambda: not blocked, "failure": lambda: blocked, "always": lambda: True}
        asks = any(f"{name}(" in text for name in ("success", "failure", "always"))
        return (asks or not blocked) and condition(text, context)

    @contextmanager
    def _machine(self, shop: Workshop, planned: Planned, run: StepRun) -> Iterator[None]:
        if not planned.alone or planned.role in _LOCKING_INSIDE:
            yield
            return
        # Imported where it is needed: with the role's module it comes anyway.
        from perfflow.flow.startable import require_startable

        # Looked for now: an hour in line for a program that is not there would be an hour lost.
        require_startable(shop, planned, run)
        with machine_for(self.shop, planned, self.lock_timeout):
            yield


def _keep_files(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """Cut and mask what the step left, and hash profiles again that this changed."""
    changed = keep(shop.folder.step(planned.id), shop.scene.secrets)
    for profile in run.details.get("profiles", ()) if changed else ():
        path = shop.folder.path / profile["path"]
        if path in changed:
            profile["sha256"] = sha256(path)


def _without_secrets(run: StepRun, secrets: Secrets) -> StepRun:
    """The same outcome as everybody may see it."""
    run.reason, run.argv, run.warnings, run.details = masked((run.reason, run.argv, run.warnings, run.details), secrets)
    return run


def _fail(run: StepRun, failure: Failure, folder: Path) -> None:
    run.status = StepStatus.TIMEOUT if failure.timeout else StepStatus.FAILED
    run.reason, run.exit_code = failure.reason, failure.exit_code
    run.details["tail"] = list(invoke.tail(failure.log))
    if failure.argv:
        run.details["failing"] = list(failure.argv)
    if failure.log:
        run.log = str(failure.log.relative_to(folder))
    if failure.exit_code is None:
        run.details["not_started"] = True
