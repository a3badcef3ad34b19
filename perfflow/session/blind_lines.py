"""Find the changed lines of code that no benchmark of a gate executes, from what was recorded of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import groupby

from perfflow.model.plain_data import to_json
from perfflow.model.result import Blind
from perfflow.session.session import RunSession
from perfflow.store import run_folder
from perfflow.store.record import record_of
from perfflow.store.run_facts import ExecutedLines
from perfflow.trees.patches import added_lines
from perfflow.trees.repository import CodeState, Repository

_MOST_FILES = 50


def note_executed(
    session: RunSession, step_id: str, executed: Mapping[str, AbstractSet[int]], known: Mapping[str, AbstractSet[int]]
) -> None:
    """Store the lines of the changed files that the benchmarks of a step execute, and those that contain code."""
    ran, code = (
        {file: tuple(sorted(lines)) for file, lines in found.items() if file in session.changed}
        for found in (executed, known)
    )
    session.folder.append({"event": "executed", "step": step_id, **to_json(ExecutedLines(ran, code))})


def note_blind(session: RunSession, repository: Repository, base: CodeState, head: CodeState) -> None:
    """Store which changed lines no benchmark executes, unless a step measured something of which this is not known."""
    record = record_of(run_folder.events(session.folder.path))
    measured = {series.step for series in record.series.values()} | {step for step, _ in record.unchanged}
    if not measured or not measured <= set(record.executed):
        return
    changed, missed = 0, {}
    for file, lines in added_lines(repository, base.tree, head.tree).items():
        known = {line for step in record.executed.values() for line in step.known.get(file, ())}
        executed = {line for step in record.executed.values() for line in step.executed.get(file, ())}
        changed += len(lines & known)
        missed[file] = (lines & known) - executed
    shown = {file: tuple(_ranges(lines)) for file, lines in sorted(missed.items()) if lines}
    shown = dict(list(shown.items())[:_MOST_FILES])
    blind = Blind(changed=changed, missed=sum(map(len, missed.values())), lines=shown)
    session.folder.append({"event": "blind", **blind.model_dump()})


def _ranges(lines: AbstractSet[int]) -> Iterator[str]:
    """Yield ``10-12`` for lines that follow one another, and single lines as they are."""
    for _, group in groupby(enumerate(sorted(lines)), lambda item: item[1] - item[0]):
        found = [line for _, line in group]
        yield f"{found[0]}-{found[-1]}" if len(found) > 1 else str(found[0])
