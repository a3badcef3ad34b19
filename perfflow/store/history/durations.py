"""The durations of a workflow's steps in earlier runs, to predict those of the next run.

They come from the history, which includes runs added from elsewhere. Runs that the history does not store, such as
those that only build, are read from their folders.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.store import result_file, run_folder
from perfflow.store.history.connections import DamagedError
from perfflow.store.history.database import History
from perfflow.store.history.summary import RunKind, RunSummary, StepTime, params_text, summaries_of

__all__ = ["NEWEST", "RunKind", "StepDuration", "step_durations"]
NEWEST = 5
"""Number of runs to use. Older ones measured older code."""
_LOOKED_AT = 20


@dataclass(frozen=True)
class StepDuration:
    """The median duration of a step in earlier runs, in s without waiting for the machine; None if it never finished.

    ``runs`` is the number of runs that finished it, ``names`` the benchmarks that it measured in the newest run.
    ``other_budget``: these runs had another budget, so measuring may take another time.
    """

    seconds: float | None = None
    runs: int = 0
    names: tuple[str, ...] = ()
    other_budget: bool = False

    @property
    def benchmarks(self) -> int:
        """Number of benchmarks that it measured."""
        return len(self.names)


def step_durations(root: Path, kind: RunKind, history: History | None = None) -> dict[str, StepDuration]:
    """Return the durations in the newest runs of this workflow, by step id. Runs that cannot be read are skipped.

    If no run had this budget, those with another one tell how long builds take and which benchmarks there are.
    """
    runs = _newest(root, kind, history)
    other_budget = not runs
    if other_budget:
        runs = _newest(root, replace(kind, any_budget=True), history)
    seconds: dict[str, list[float]] = {}
    benchmarks: dict[str, tuple[str, ...]] = {}
    # Ids of runs start with the time, so they sort by age.
    for name in sorted(runs, reverse=True)[:NEWEST]:
        for step in runs[name]:
            if step.seconds is not None:
                seconds.setdefault(step.id, []).append(step.seconds)
            if step.benchmarks:
                benchmarks.setdefault(step.id, step.benchmarks)
    return {
        name: StepDuration(
            statistics.median(seconds[name]) if name in seconds else None,
            runs=len(seconds.get(name, ())),
            names=benchmarks.get(name, ()),
            other_budget=other_budget,
        )
        for name in {**seconds, **benchmarks}
    }


def _newest(root: Path, kind: RunKind, history: History | None) -> Mapping[str, Sequence[StepTime]]:
    try:
        stored = history.step_times(kind, NEWEST) if history else {}
    except (UserError, DamagedError):
        stored = {}
    return {**stored, **_in_folders(root, kind, stored)}


def _in_folders(root: Path, kind: RunKind, known: Collection[str]) -> dict[str, Sequence[StepTime]]:
    """Return the newest runs of this kind in the project's folders that are not in ``known``."""
    steps: dict[str, Sequence[StepTime]] = {}
    for folder in heapq.nlargest(_LOOKED_AT, (path.parent for path in _runs(root)), key=lambda path: path.name):
        # If machines of several kinds measured a run, the history has one entry per kind.
        if not {folder.name, f"{folder.name}/{kind.machine}"}.isdisjoint(known) or not _is_of(folder, kind.workflow):
            continue
        earlier = next((one for one in _read(folder / run_folder.RESULT) if _is_like(one, kind)), None)
        if earlier:
            steps[folder.name] = earlier.steps
            if len(steps) == NEWEST:
                break
    return steps


def _is_like(earlier: RunSummary, kind: RunKind) -> bool:
    own = (earlier.params, earlier.machine, earlier.in_trees)
    is_own = own == (params_text(kind.params), kind.machine, kind.in_trees)
    return is_own and (kind.any_budget or earlier.budget == kind.budget)


def _runs(root: Path) -> list[Path]:
    # `latest` is a link to one of them.
    found = (root / run_folder.HOME / "runs").glob(f"*/{run_folder.RESULT}")
    return [path for path in found if not path.parent.is_symlink()]


def _is_of(folder: Path, workflow: str) -> bool:
    """Return whether a run's first event names the workflow, which is faster than reading its result."""
    try:
        opening = next(run_folder.events(folder), {})
    except UserError:
        return False
    run = opening.get("run")
    return isinstance(run, dict) and run.get("workflow") == workflow


def _read(path: Path) -> list[RunSummary]:
    try:
        return list(summaries_of(result_file.read(path)))
    except UserError:
        return []
