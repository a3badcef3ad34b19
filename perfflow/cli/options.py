"""Options that several commands share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfflow.cli.console import shown_path
from perfflow.cli.output import tell
from perfflow.library import search_path
from perfflow.model.errors import DetachedError, Exit, UserError
from perfflow.model.units import UnitError, duration
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.trees import repository

if TYPE_CHECKING:
    from perfflow.jobs.cluster.placed_run import Placement

NO_LIMIT = "off"
"""The value of ``--budget`` for no limit."""


def _named_or_only(_context: click.Context, _argument: click.Parameter, name: str | None) -> str:
    """Return the workflow that is named, or the only one of the project. Raises UserError if it has none or several."""
    if name is not None:
        return name
    own = [path.stem for path in search_path.project_workflows(repository.project_here())]
    if len(own) == 1:
        return own[0]
    if own:
        raise UserError.of("several workflows are in workflows/, and none is named", f"name one: {', '.join(own)}")
    hint = "`perfflow init` writes one, and `perfflow list` shows those of the library"
    raise UserError.of("no workflow is named, and none is in workflows/", hint)


THE_WORKFLOW = click.argument("workflow", required=False, callback=_named_or_only)
"""The argument of every command that reads one workflow; a project's only workflow need not be named."""

UNPROVEN = click.option(
    "--unproven",
    type=click.Choice(["fail", "pass"]),
    default="fail",
    show_default=True,
    help="Whether an unproven result fails (exit 4) or passes (exit 0).",
)
"""The option of every command that judges."""


SEED = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Seed of the random order of the pairs."
)
"""The option of every command that measures pairs."""

BENCHMARKS = click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    metavar="GLOB",
    help="Measure and judge only the benchmarks of this name or glob; may be repeated.",
)
"""The option of every command that measures a workflow."""


def seconds(option: str, text: str, hint: str = "write 90s, 10m or 1h 30m") -> float:
    """Return the value of an option in seconds. Raises UserError for a text that is not a duration."""
    try:
        return duration(text)
    except UnitError as error:
        raise UserError.of(f"{option}: {error}", hint) from error


def limit(_context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Callback of an option: return its value in seconds, None for no limit. Raises UserError as ``seconds``."""
    hint = f"write 90s, 10m, 1h 30m or {NO_LIMIT}"
    return None if text in (None, NO_LIMIT) else seconds(option.opts[0], str(text), hint)


LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    default="30m",
    show_default=True,
    metavar="TIME",
    callback=lambda _context, option, text: seconds(option.opts[0], text),
    help="Longest time to wait while other runs measure on this machine.",
)
"""The option of every command that measures, in seconds. Waiting time is not part of any measurement."""


def placed(name: str | None, resume: Path | None, settings: Sequence[str], *, detach: bool) -> Placement | None:
    """Return where a run is performed, or None for this machine. A resumed run stays where it was.

    Raises UserError for an unknown executor.
    """
    if name is None and resume is None and not detach:
        return None

    from perfflow.jobs.cluster import placed_run, slurm

    earlier = placed_run.partition(resume) if resume else None
    if earlier and name not in (None, earlier.executor):
        text = f"the run was started on executor {earlier.executor}, not on {name}"
        raise UserError.of(text, "leave out --executor, or start a new run without --resume")
    name = earlier.executor if earlier else name
    if resume and name and not earlier and name != slurm.LOCAL:
        raise UserError.of("the run was started on this machine", "leave out --executor, or leave out --resume")
    where = slurm.site_of(name) if name else None
    if where is None:
        if detach:
            raise UserError.of("--detach needs an executor", "add --executor NAME")
        return None
    return placed_run.Placement(str(name), where, tuple(settings), detach, _leaves_jobs)


def _leaves_jobs() -> bool:
    """Ask after ^C whether to keep the jobs. Return False, to cancel them, if stdin or stderr is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False

    tell("the jobs are still running: [c]ancel them, or [d]etach and let them continue? ")
    try:
        return sys.stdin.readline().strip().lower().startswith("d")
    except KeyboardInterrupt:
        return False


@contextmanager
def detached(words: Sequence[str], *, asked: bool) -> Iterator[None]:
    """Print how to resume detached jobs, and exit: with 0 if --detach was given (``asked``), else as interrupted."""
    try:
        yield
    except DetachedError as error:
        again = shlex.join([*words, f"--resume={shown_path(error.folder)}"])
        tell(f"the jobs continue; to wait for them and see the result: {again}\n")
        raise click.exceptions.Exit(int(Exit.PASS if asked else Exit.INTERRUPTED)) from None


TRUST = click.option(
    "--trust", is_flag=True, help="Also run commands of pinned workflows that were never shown on this machine."
)


def usable(workflow: str, settings: Sequence[str], *, to_run: bool, trust: bool) -> Opened:
    """Return a workflow without errors. Raises UserError with all errors of the workflow."""
    opened = open_workflow(workflow, settings)
    opened.require_usable(to_run=to_run, trust=trust)
    return opened
