"""How long the steps of a workflow took in its earlier runs, for saying how long they may take now."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfflow import result_file
from perfflow.errors import UserError
from perfflow.result import Result
from perfflow.rundir import folder as rundir

NEWEST = 5
"""Runs that are looked at: older ones are of other code."""
_LOOKED_AT = 20


def durations(root: Path, workflow: str, params: Mapping[str, Any], machine: str) -> dict[str, float]:
    """Median seconds of each step that was done in the newest runs of the workflow, by the step's id.

    Runs with other parameters or on a machine of another identity tell nothing about this one; what cannot be read is
    passed over.
    """
    seconds: dict[str, list[float]] = {}
    found = 0
    # Ids of runs start with the time.
    names = heapq.nlargest(_LOOKED_AT, (path.parent for path in _runs(root)), key=lambda path: path.name)
    for folder in names:
        earlier = _read(folder / rundir.RESULT) if _is_of(folder, workflow) else None
        if earlier is None or earlier.run.params != dict(params) or earlier.machine.get("identity") != machine:
            continue
        for step in earlier.steps:
            if step.status == "done":
                seconds.setdefault(step.id, []).append(step.seconds)
        found += 1
        if found == NEWEST:
            break
    return {name: statistics.median(values) for name, values in seconds.items()}


def _runs(root: Path) -> list[Path]:
    # `latest` is a link to one of them.
    found = (root / rundir.HOME / "runs").glob(f"*/{rundir.RESULT}")
    return [path for path in found if not path.parent.is_symlink()]


def _is_of(folder: Path, workflow: str) -> bool:
    """Whether a run's first event names the workflow; its result, which is long, need not be read for that."""
    try:
        opening = next(rundir.events(folder), {})
    except UserError:
        return False
    run = opening.get("run")
    return isinstance(run, dict) and run.get("workflow") == workflow


def _read(path: Path) -> Result | None:
    try:
        return result_file.read(path)
    except UserError:
        return None
