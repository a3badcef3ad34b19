"""The durations of the steps of runs, as the history stores them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.store.history.connections import Connection
from perfflow.store.history.summary import StepTime, params_text


@dataclass(frozen=True)
class RunKind:
    """The properties that two runs must share for one to predict the duration of the other.

    ``in_trees``: base and head are compared. ``budget``: seconds for the whole command, None without a limit.
    ``any_budget``: the budget may differ, which changes how long measuring steps take.
    """

    workflow: str
    params: Mapping[str, Any]
    machine: str
    in_trees: bool = False
    budget: float | None = None
    any_budget: bool = False


def keep(connection: Connection, run: int, steps: Sequence[StepTime]) -> None:
    """Store the steps of a run."""
    values = [
        {"run": run, "id": item.id, "seconds": item.seconds, "benchmarks": json.dumps(item.benchmarks)}
        for item in steps
    ]
    if values:
        connection.many(
            "INSERT INTO step (run, id, seconds, benchmarks) VALUES (:run, :id, :seconds, :benchmarks)", values
        )


def of_kind(connection: Connection, kind: RunKind, newest: int) -> dict[str, list[StepTime]]:
    """Return the steps of the newest runs of a kind that have any, by the name of the run, the newest first."""
    wanted = {
        "workflow": kind.workflow,
        "params": params_text(kind.params),
        "machine": kind.machine,
        "in_trees": int(kind.in_trees),
        # -1 stands for no budget, because SQL comparisons with NULL are never true.
        "budget": -1.0 if kind.budget is None else kind.budget,
        "any": int(kind.any_budget),
        "newest": newest,
    }
    runs = connection.rows(
        "SELECT run.id, run.name FROM run JOIN machine ON machine.id = run.machine WHERE run.workflow = :workflow "
        "AND run.params = :params AND machine.identity = :machine AND run.in_trees = :in_trees "
        "AND (:any = 1 OR COALESCE(run.budget, -1) = :budget) AND EXISTS (SELECT 1 FROM step WHERE step.run = run.id) "
        "ORDER BY run.name DESC LIMIT :newest",
        wanted,
    )
    return {str(name): _of_run(connection, int(run)) for run, name in runs}


def _of_run(connection: Connection, run: int) -> list[StepTime]:
    rows = connection.rows("SELECT id, seconds, benchmarks FROM step WHERE run = :run", {"run": run})
    return [StepTime(name, seconds, tuple(json.loads(benchmarks))) for name, seconds, benchmarks in rows]
