"""StepRun → the event that is stored of it."""

from __future__ import annotations

from typing import Any

from perfflow.flow.moment import now
from perfflow.run.schedule import StepRun
from perfflow.run.secrets import masked

_TELLING = ("reason", "argv", "warnings", "tail", "failing")
"""What may repeat a command line, or what a program printed."""


def step_event(step: StepRun, secrets: tuple[str, ...] = ()) -> dict[str, Any]:
    """What is stored when a step ends, without the secrets."""
    event = {
        "event": "step",
        "id": step.planned.id,
        "time": now(),
        "status": step.status.value,
        "reason": step.reason,
        "seconds": round(step.seconds, 6),
        "argv": step.argv,
        "exit_code": step.exit_code,
        "warnings": step.warnings,
        "log": step.log,
        **step.details,
    }
    return event | {key: masked(event[key], secrets) for key in _TELLING if secrets and key in event}
