"""Whether an interrupted bisection can be resumed: the same question, the same workflow, the same machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfflow.errors import UserError
from perfflow.flow.bisect.endpoints import Asked, Endpoints
from perfflow.flow.bisect.trying import TRIED
from perfflow.flow.opening import Opened
from perfflow.flow.run_once import digest
from perfflow.machine.facts import IDENTITY, facts
from perfflow.rundir import folder as rundir
from perfflow.rundir.record import Record, record_of

AGAIN = "start a new one without --resume"


def require_same(path: Path, opened: Opened, ends: Endpoints, asked: Asked) -> None:
    """Raise UserError where what was found in a folder is no answer to what is asked now."""
    record = _opened(path)
    before = {name: (record.trees.get(name) or {}).get("revision") for name in ("baseline", "candidate")}
    if before != {"baseline": ends.good.revision, "candidate": ends.bad.revision}:
        raise UserError.of(f"{path}: this run is no bisection of these two revisions", AGAIN)
    if record.run.get("digest") != digest(opened) or _options(record.run) != question(asked):
        raise UserError.of(f"{path}: the workflow or what is asked for is not that of this run", AGAIN)
    if not were_compared(path):
        raise UserError.of(f"{path}: it was interrupted before good was compared with bad", AGAIN)
    here = facts()
    differing = [name for name in IDENTITY if record.machine.get(name) != here[name]]
    if differing:
        text = f"{path}: this run was started on another machine (other {', '.join(differing)})"
        raise UserError.of(text, f"samples of two machines are not mixed; {AGAIN}")


def were_compared(path: Path) -> bool:
    """Whether good and bad of a bisection were compared: one that was ended before cannot be resumed."""
    bad = (_opened(path).trees.get("candidate") or {}).get("revision")
    return any(event.get("event") == TRIED and event.get("revision") == bad for event in rundir.events(path))


def seed(path: Path) -> int:
    """The seed of the run in a folder."""
    return int(_opened(path).run["seed"])


def question(asked: Asked) -> dict[str, Any]:
    """What the answer depends on beside the revisions, as the run's first event keeps it."""
    return {
        "only": list(asked.only),
        "benchmark": asked.benchmark,
        "metric": asked.metric,
        "first_parent": asked.first_parent,
    }


def _options(run: Mapping[str, Any]) -> Any:
    return run.get("bisect")


def _opened(path: Path) -> Record:
    return record_of(event for event in rundir.events(path) if event.get("event") == "run")
