"""Find the commits between base and head that touched each function that got slower, and store them as events.

They are stored during the run, so that rejudging it does not need the repository.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from perfflow.model.errors import UserError
from perfflow.model.plain_data import to_json
from perfflow.model.result import Attribution
from perfflow.session.session import RunSession
from perfflow.store import run_folder
from perfflow.store.record import record_of
from perfflow.store.run_facts import Blame, Touching
from perfflow.trees import line_history
from perfflow.trees.definitions import definition
from perfflow.trees.function_lines import lines_of
from perfflow.trees.line_history import Touched
from perfflow.trees.repository import Repository, State
from perfflow.trees.snapshots import MESSAGE
from perfflow.verdict.judge import judge

UNCOMMITTED = "uncommitted changes"


def blame(session: RunSession, repository: Repository, base: State, head: State) -> None:
    """Store the commits that touched each function that the run found slower."""
    record = record_of(run_folder.events(session.folder.path))
    if not any(step.costs for step in record.steps.values()):
        return
    for item in judge(record, session.context.plan.criteria).attributions:
        place = None
        try:
            if not item.file:
                place = definition(repository, base.commit, head.commit, item.function.partition(" (")[0])
            where = item if place is None else item.model_copy(update=place._asdict())
            commits, note = _touched(repository, base, head, where)
        except UserError as error:
            commits, note = [], f"its commits cannot be listed: {error.problems[0].message}"
        touching = tuple(_touching(each, head) for each in commits)
        found = Blame(item.benchmark, item.function, item.file, touching, note)
        found = found if place is None else replace(found, defined_in=place.file, defined_at=place.line)
        session.folder.append({"event": "blamed", **to_json(found)})


def _touched(repository: Repository, base: State, head: State, item: Attribution) -> tuple[list[Touched], str]:
    """Return the commits that touched a function, or else its file, and a note about them."""
    path = PurePosixPath(item.file)
    if not item.file or path.is_absolute() or ".." in path.parts:
        return [], "its source is not in the repository"
    text = line_history.content(repository, head.commit, item.file)
    if text is None:
        return [], "its source is not in the repository"
    lines = lines_of(text, item.file, item.function, item.line)
    if lines and (found := line_history.of_lines(repository, base.commit, head.commit, item.file, lines)):
        return found, ""
    whole = line_history.of_file(repository, base.commit, head.commit, item.file)
    if not whole:
        return [], "no commit between base and head touched its file: its callers may have changed"
    if lines:
        return whole, "no commit touched its lines; these commits touched its file"
    return whole, "its lines cannot be determined; these commits touched its file"


def _touching(touched: Touched, head: State) -> Touching:
    """Return the commit to store. perfflow's own commit of uncommitted changes gets no revision."""
    if touched.commit == head.commit and touched.subject == MESSAGE:
        return Touching("", UNCOMMITTED)
    return Touching(touched.commit, touched.subject, touched.author)
