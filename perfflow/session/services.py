"""The services of a run: background processes, whether they still run, and when to stop them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.context import TreeContext
from perfflow.execute.invoke import trim_and_mask
from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.execute.service import Service, cpu_time
from perfflow.model.secrets import Secrets, masked
from perfflow.plan.plan import Plan, Planned, users_of


@dataclass(frozen=True, eq=False)
class StartedService:
    """A background step with its running service, and the folder of its output."""

    run: StepRun
    service: Service
    folder: Path
    secrets: Secrets

    @property
    def planned(self) -> Planned:
        """Its step."""
        return self.run.planned

    @property
    def unexpected_end(self) -> str:
        """How it ended before perfflow stopped it; '' if it did not."""
        how = self.service.unexpected_end
        return f"the service `{self.planned.id}` {how} before it was stopped" if how else ""

    def stop(self) -> None:
        """Stop it, then shorten its output and mask secrets in it."""
        try:
            self.service.stop()
        finally:
            with contextlib.suppress(OSError):
                trim_and_mask(self.folder, self.secrets)

    @property
    def log(self) -> Path:
        """The log that most likely shows why it failed."""
        stderr = self.folder / "stderr"
        return stderr if stderr.exists() and stderr.stat().st_size else self.folder / "stdout"


@dataclass
class Services:
    """All services of a run; used by the threads of its steps."""

    _running: list[StartedService] = field(default_factory=list)
    _dead: list[StartedService] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def add(self, started: StartedService) -> None:
        """Add a service, to be stopped with the others."""
        with self._guard:
            self._running.append(started)

    def remove(self, started: StartedService) -> None:
        """Stop a service whose own step reports its failure."""
        with self._guard:
            self._running.remove(started)
        started.stop()

    def dead_for(self, plan: Plan, planned: Planned) -> StartedService | None:
        """Return a dead service that a step may rely on, None if there is none.

        A step relies on the services that it uses, and on those that no step names in ``needs``, whose users are
        unknown.
        """
        if not self._running and not self._dead:
            return None
        with self._guard:
            dead = [item for item in (*self._dead, *self._running) if item.unexpected_end and _matters(item, planned)]
        return next((item for item in dead if _relies(plan, planned, item.planned)), None)

    def cpu_time(self, context: TreeContext, planned: Planned) -> float:
        """Return the CPU time (s) so far of the services in a tree that a step relies on, 0 without any."""
        pids = [
            int(context.outputs[item.id]["pid"])
            for item in context.plan.steps
            if item.step.background and item.id in context.outputs and _relies(context.plan, planned, item)
        ]
        return cpu_time(pids)

    def stop_unneeded(self, plan: Plan, selected: Collection[str], ended: Collection[str]) -> None:
        """Stop the services that steps name in ``needs``, once the last step that uses them has ended."""
        for item in tuple(self._running):
            if _is_needed_by_name(plan, item.planned) and users_of(plan, item.planned.id) & set(selected) <= set(ended):
                self._stop(item)

    def stop(self) -> None:
        """Stop all running services, the last started first. ^C ends one at once, and interrupts nothing else."""
        for item in tuple(reversed(self._running)):
            with contextlib.suppress(KeyboardInterrupt):
                self._stop(item)

    def _stop(self, item: StartedService) -> None:
        with self._guard:
            self._running.remove(item)
            if item.unexpected_end:
                self._dead.append(item)
        item.stop()

    def unexpected_ends(self) -> Iterator[StepRun]:
        """Yield the steps of dead services as failed, because steps that rely on them may have measured nothing."""
        with self._guard:
            dead = [item for item in (*self._dead, *self._running) if item.unexpected_end]
        for item in dead:
            tail = masked(list(invoke.tail(item.log)), item.secrets)
            ended = replace(item.run, status=StepStatus.FAILED, reason=item.unexpected_end, waited=0.0, tail=tail)
            yield replace(ended, exit_code=item.service.exit_code)


def _matters(item: StartedService, planned: Planned) -> bool:
    return item.planned.id != planned.id and not item.planned.step.continue_on_error


def _relies(plan: Plan, planned: Planned, service: Planned) -> bool:
    return not _is_needed_by_name(plan, service) or planned.id in users_of(plan, service.id)


def _is_needed_by_name(plan: Plan, service: Planned) -> bool:
    return any(service.id in item.needs for item in plan.steps)
