"""StepRun → the event that is stored of it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from perfflow.run.schedule import StepRun


def step_event(step: StepRun) -> dict[str, Any]:
    """What is stored when a step ends."""
    return {
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


def now() -> str:
    """The moment, UTC, to the millisecond."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
