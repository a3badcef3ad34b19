"""Which files of its tree a step opens, as strace shows it: what its result depends on besides the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import first_count, ready
from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.model.readings import PREPARED, Side
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession
from perfflow.tools.adapter import FEWEST
from perfflow.tools.linux.strace import opened_paths, watching_opens
from perfflow.tools.regular_files import read
from perfflow.unchanged.native import under

_RECORDS = "opened-"
_BYTECODE = re.compile(r"__pycache__/([^/]+)\.cpython-\w+(?:\.opt-\d)?\.pyc$")
_MOST_READ = 256 * 2**20
_PATIENCE = 120.0
"""Most seconds for one step."""


def opened_files(session: RunSession, planned: Planned, folder: Path) -> frozenset[str]:
    """Run a step once under strace, and return the paths that it opened, relative to the root of its tree.

    A suite runs as briefly as it can. folder: new and empty; for the files of the call.

    Raises Failure if the step fails, or if it cannot be traced, and PreparationError.
    """
    context, tool = session.context, planned.tool
    session.build_first(planned, StepRun(planned, StepStatus.DONE), (Side.BASELINE,))
    ids = session.list_ids(planned, Side.BASELINE) if tool and tool.is_suite else ()
    prepared = ready(context, planned, Side.BASELINE, folder, first_count(context, planned), ids)
    if prepared.call:
        # A build lies where `build_first` left it.
        kept = session.folder.step(planned.id) / PREPARED / Side.BASELINE.value
        prepared = replace(prepared, call=replace(prepared.call, pace=FEWEST, kept=kept))
    limit = min(prepared.timeout or _PATIENCE, _PATIENCE, max(1.0, session.deadline.left / 4))

    def words(number: int, argv: tuple[str, ...]) -> tuple[str, ...]:
        return (*watching_opens(folder / f"{_RECORDS}{number}"), *argv)

    invoke.run(session.spawner(), under(replace(prepared, timeout=limit), words), folder)
    return frozenset(_inside(folder, context.root.resolve()))


def _inside(folder: Path, root: Path) -> Iterator[str]:
    for record in folder.glob(f"{_RECORDS}*"):
        try:
            found = opened_paths(read(record, _MOST_READ))
        except OSError as error:
            raise Failure(f"what strace wrote cannot be read: {error.strerror}") from error
        for path in map(Path, found):
            if path.is_relative_to(root):
                # Python reads its own copy of a module, which stands for the module.
                yield _BYTECODE.sub(r"\1.py", str(path.relative_to(root)))
