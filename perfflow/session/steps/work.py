"""Steps that run a command: build, setup, and other steps whose result is an exit status."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.invoke import Failure, require_there
from perfflow.execute.prepare import Ready, ready
from perfflow.execute.schedule import StepRun
from perfflow.execute.states import UNABLE, StepStatus
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.own_code import run_check
from perfflow.session.recorded_links import with_links_recorded
from perfflow.session.session import RunSession
from perfflow.tools.adapter import Role
from perfflow.tools.regular_files import NotRegularError, read
from perfflow.tools.tool_files import last_line
from perfflow.workflow.model import OUTPUT_VARIABLE

MOST_OUTPUTS = 2**20
"""Size limit of that file in bytes."""


def work(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Run a command whose result is its exit status, and retry it up to ``retries`` times. Raises Failure."""
    for attempt in range((planned.step.retries or 0) + 1):
        try:
            command(session, planned, run)
        except Failure as failure:
            if failure.exit_code == UNABLE and planned.stage == "setup":
                _skip(run, failure)
                return
            if attempt == (planned.step.retries or 0):
                raise
            run.warnings.append(f"try {attempt + 1} failed: {failure.reason}")
        else:
            return


def _skip(run: StepRun, failure: Failure) -> None:
    """Mark the step as skipped, which blocks all later steps. The reason is the last line it printed."""
    said = last_line("\n".join(invoke.tail(failure.log)))
    run.status, run.exit_code = StepStatus.SKIPPED, failure.exit_code
    run.reason = said or f"step {run.planned.id} exited with {UNABLE} (unable to run here)"
    run.blocked = True


def command(session: RunSession, planned: Planned, run: StepRun) -> Path:
    """Run a command step, read its outputs, and return the folder with its standard output. Raises Failure."""
    folder = session.folder.step(planned.id)
    outputs = f"{folder}{os.sep}outputs"
    # The command creates this file if it has outputs. Creating it for every step is a quarter of perfflow's overhead.
    if os.access(outputs, os.F_OK):
        os.unlink(outputs)  # noqa: PTH108 (a Path for each step costs more than the call)
    prepared = ready(session.context, planned, Side.BASELINE, folder, variables={OUTPUT_VARIABLE: outputs})
    if planned.role is Role.WORK:
        prepared = with_links_recorded(session.context, prepared)
    run.argv = list(prepared.shown)
    run.log = session.log_in(folder, "stderr" if prepared.tool else "stdout")
    invoked = run_check(prepared, run, partial(invoke.run, session.spawner(), folder=folder))
    run.exit_code = invoked.exit_code
    run.warnings += [text for text in invoked.parsed.warnings if text not in run.warnings]
    found = {**dict(read_outputs(outputs)), **_results(prepared, folder)}
    session.context.outputs[planned.id] = run.outputs = found
    return folder


def _results(prepared: Ready, folder: Path) -> Mapping[str, str]:
    """Return the outputs of a step's tool for later steps. Raises Failure if one of its files is missing."""
    if not prepared.tool or not prepared.call:
        return {}
    with invoke.adapter_failures(prepared.tool, 0, folder / "stderr"):
        for path in prepared.tool.made(prepared.call):
            require_there(path, folder / "stderr", prepared.tool.name)
        return prepared.tool.results(prepared.call)


def read_outputs(path: str) -> Iterator[tuple[str, str]]:
    """Yield the (name, value) pairs that a command wrote to its file of outputs. Raises Failure."""
    if not os.access(path, os.F_OK):
        return
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise NotRegularError(errno.EINVAL, "a link, not a file")
        data = read(Path(path), MOST_OUTPUTS)
    except FileNotFoundError:
        return
    except OSError as error:
        hint = f"append at most {MOST_OUTPUTS >> 20} MiB of name=value lines to the file"
        raise Failure(f"${OUTPUT_VARIABLE}: {error.strerror}; {hint}", exit_code=0) from error
    for line in data.decode("utf-8", "replace").splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip():
            yield name.strip(), value
