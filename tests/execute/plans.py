"""Hand-written plans, and a fake performer that only records calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from perfflow.execute.schedule import Schedule, StepRun, StepStatus
from perfflow.model.criteria import Criteria
from perfflow.plan.plan import Plan, Planned
from perfflow.tools.adapter import Role
from perfflow.workflow.model import Stage, Step, Workflow


def item(
    name: str,
    *after: str,
    needs: tuple[str, ...] = (),
    role: Role = Role.WORK,
    alone: bool = False,
    watches: str = "",
    step: Mapping[str, Any] | None = None,
) -> Planned:
    made = Step.model_validate({"id": name, **(step or {})})
    return Planned(name, made, "build", {}, role, None, alone, needs, after, watches=watches)


def plan(*items: Planned) -> Plan:
    workflow = Workflow(perfflow=1, stages={"build": Stage()})
    return Plan(workflow, {}, Criteria(), items, {found.id: found for found in items})


class Fake:
    """A performer that records the order of steps and ends them as the test specifies."""

    def __init__(self, **ends: StepStatus | BaseException | Callable[[], None]) -> None:
        self.ends = ends
        self.order: list[str] = []
        self.most = 0
        self.running: set[str] = set()
        self.beside: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    def __call__(self, planned: Planned) -> StepRun:
        with self._lock:
            self.order.append(planned.id)
            self.running.add(planned.id)
            self.most = max(self.most, len(self.running))
            for name in self.running:
                self.beside.setdefault(name, set()).update(self.running - {name})
        try:
            end = self.ends.get(planned.id, StepStatus.DONE)
            if isinstance(end, BaseException):
                raise end
            if isinstance(end, StepStatus):
                return StepRun(planned, end, "as told" if end is not StepStatus.DONE else "")
            end()
            return StepRun(planned, StepStatus.DONE)
        finally:
            with self._lock:
                self.running.discard(planned.id)


def allows(planned: Planned, blocked: bool) -> bool:
    """Evaluate the conditions ``always()``, ``failure()`` and ``false``."""
    text = planned.step.if_
    return {"always()": True, "failure()": blocked, "false": False}.get(str(text), not blocked)


def walk(
    fake: Fake,
    *items: Planned,
    jobs: int = 1,
    keep_going: bool = False,
    selected: Collection[str] | None = None,
    stop: Callable[[], None] = lambda: None,
) -> dict[str, StepRun]:
    names = [found.id for found in items] if selected is None else selected
    schedule = Schedule(plan(*items), fake, allows, selected=names, jobs=jobs, keep_going=keep_going, stop=stop)
    return {run.planned.id: run for run in schedule}


def statuses(runs: Mapping[str, StepRun]) -> dict[str, str]:
    return {name: run.status.value for name, run in runs.items()}
