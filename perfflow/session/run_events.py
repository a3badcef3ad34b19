"""Convert a StepRun to the event that is stored when the step ends."""

from __future__ import annotations

from typing import Any

from perfflow.execute.schedule import StepRun
from perfflow.execute.states import StepStatus
from perfflow.model.plain_data import to_json
from perfflow.session.clock import now
from perfflow.store.record import reading_to_json
from perfflow.store.run_facts import NOTHING


def step_event(step: StepRun) -> dict[str, Any]:
    """Return the event of a step that ended; a step that ended before the run was resumed gets a `cached` event."""
    if step.status is StepStatus.CACHED and not step.reason:
        return {"event": "cached", "id": step.planned.id}
    sparse = {
        "blocked": step.blocked,
        "not_started": step.not_started,
        "out_of_time": step.out_of_time,
        "failing": step.failing,
        "failing_side": step.failing_side and step.failing_side.value,
        "tail": step.tail,
        "detail": step.detail,
        "outputs": step.outputs,
        "identical": step.identical,
        "rebuilt": step.rebuilt,
        "readings": {side.value: [*map(reading_to_json, items)] for side, items in step.readings.items()},
    }
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
        **{name: value for name, value in sparse.items() if value},
        **(to_json(step.found) if step.found is not NOTHING else {}),
    }
