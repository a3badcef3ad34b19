"""How long the steps of a workflow took in its earlier runs, for saying how long they may take now."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfflow.model.errors import UserError
from perfflow.model.later import dataclass
from perfflow.model.result import Result
from perfflow.store import folder as rundir
from perfflow.store import result_file

NEWEST = 5
"""Runs that are looked at: older ones are of other code."""
_LOOKED_AT = 20


@dataclass(frozen=True)
class RunKind:
    """What two runs must share for one to tell how long the other takes.

    ``in_trees``: whether base and head are compared. ``budget``: seconds for all measuring, None without a limit.
    """

    workflow: str
    params: Mapping[str, Any]
    machine: str
    in_trees: bool = False
    budget: float | None = None


@dataclass(frozen=True)
class StepDuration:
    """The median duration of a step in earlier runs, in s without waiting for the machine; None if it never finished.

    ``runs`` is how many of them did it, ``names`` the benchmarks that it measured in the newest.
    """

    seconds: float | None = None
    runs: int = 0
    names: tuple[str, ...] = ()

    @property
    def benchmarks(self) -> int:
        """How many it measured, 0 where it measured none."""
        return len(self.names)


def seen(root: Path, kind: RunKind) -> dict[str, StepDuration]:
    """Return the durations in the newest runs of this workflow, by step id. Runs that cannot be read are skipped."""
    seconds: dict[str, list[float]] = {}
    benchmarks: dict[str, tuple[str, ...]] = {}
    found = 0
    # Ids of runs start with the time.
    names = heapq.nlargest(_LOOKED_AT, (path.parent for path in _runs(root)), key=lambda path: path.name)
    for folder in names:
        earlier = _read(folder / rundir.RESULT) if _is_of(folder, kind.workflow) else None
        if earlier is None or not _is_like(earlier, kind):
            continue
        for name, measured in _measured(earlier).items():
            benchmarks.setdefault(name, measured)
        for step in earlier.steps:
            if step.status == "done":
                seconds.setdefault(step.id, []).append(step.seconds)
        found += 1
        if found == NEWEST:
            break
    return {
        name: StepDuration(
            statistics.median(seconds[name]) if name in seconds else None,
            runs=len(seconds.get(name, ())),
            names=benchmarks.get(name, ()),
        )
        for name in {**seconds, **benchmarks}
    }


def _is_like(earlier: Result, kind: RunKind) -> bool:
    run = earlier.run
    alike = (run.params, earlier.machine.get("identity"), run.budget) == (dict(kind.params), kind.machine, kind.budget)
    return alike and (run.command[1:2] == ["gate"]) is kind.in_trees


def _measured(earlier: Result) -> dict[str, tuple[str, ...]]:
    """The benchmarks that each step measured."""
    names: dict[str, set[str]] = {}
    for row in earlier.benchmarks:
        names.setdefault(row.step, set()).add(row.name)
    return {step: tuple(sorted(found)) for step, found in names.items()}


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
