"""Check that an interrupted bisection can be resumed: same options, same workflow, same machine."""

from __future__ import annotations

from pathlib import Path

from perfflow.jobs.bisect.endpoints import BisectRequest, Endpoints
from perfflow.jobs.bisect.trials import TRIED
from perfflow.machine.facts import IDENTITY, facts
from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.model.tree_facts import tree_of
from perfflow.session.first_event import digest
from perfflow.session.open_workflow import Opened
from perfflow.store import run_folder
from perfflow.store.record import Record, record_of
from perfflow.store.run_facts import BisectQuestion

AGAIN = "start a new one without --resume"


def require_same(path: Path, opened: Opened, ends: Endpoints, asked: BisectRequest) -> None:
    """Raise UserError if the bisection in a folder had other revisions, options, workflow or machine."""
    record = _opened(path)
    before = [tree_of(record.trees, side).revision for side in Side]
    if before != [ends.good.revision, ends.bad.revision]:
        raise UserError.of(f"{path}: this run is not a bisection of these two revisions", AGAIN)
    if record.run.digest != digest(opened) or record.run.bisect != question(asked):
        raise UserError.of(f"{path}: the workflow or the options differ from those of this run", AGAIN)
    if not were_compared(path):
        raise UserError.of(f"{path}: it was interrupted before good was compared with bad", AGAIN)
    here = facts()
    differing = [name for name in IDENTITY if record.machine.get(name) != here[name]]
    if differing:
        text = f"{path}: this run was started on another machine (other {', '.join(differing)})"
        raise UserError.of(text, f"samples of two machines are not mixed; {AGAIN}")


def were_compared(path: Path) -> bool:
    """Return whether good and bad were compared. A bisection that ended before that cannot be resumed."""
    bad = tree_of(_opened(path).trees, Side.CANDIDATE).revision
    return any(event.get("event") == TRIED and event.get("revision") == bad for event in run_folder.events(path))


def seed(path: Path) -> int:
    """Return the seed of the run in a folder."""
    return _opened(path).run.seed


def question(asked: BisectRequest) -> BisectQuestion:
    """Return the options that the answer depends on, beside the revisions, as the run's first event stores them."""
    return BisectQuestion(tuple(asked.only), tuple(asked.benchmarks), asked.metric, asked.first_parent)


def _opened(path: Path) -> Record:
    with run_folder.explaining_damage(path / run_folder.EVENTS):
        return record_of(event for event in run_folder.events(path) if event.get("event") == "run")
