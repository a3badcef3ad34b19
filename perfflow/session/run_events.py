"""StepRun → the event that is stored of it."""

from __future__ import annotations

from typing import Any

from perfflow.execute.schedule import StepRun
from perfflow.execute.states import StepStatus
from perfflow.session.clock import now


def step_event(step: StepRun) -> dict[str, Any]:
    """What is stored when a step ends; of one that was done before the run was resumed, that it was not repeated."""
    if step.status is StepStatus.CACHED:
        return {"event": "cached", "id": step.planned.id}
    return {
        "event": "step",
        "id": step.planned.id,
        "time": now(),
        "status": step.status.value,
        "reason": step.reason,
        "seconds": round(step.seconds, 6),
        "waited": round(step.waited, 6),
        "argv": step.argv,
        "exit_code": step.exit_code,
        "warnings": step.warnings,
        "log": step.log,
        **step.details,
    }
