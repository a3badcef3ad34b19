"""What ``--executor`` and ``--detach`` mean, and what is said where jobs go on alone."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfflow.model.errors import Exit, UserError

if TYPE_CHECKING:
    from perfflow.jobs.cluster.placed_run import Placement


def placed(name: str | None, resume: Path | None, settings: Sequence[str], *, detach: bool) -> Placement | None:
    """Where a run is performed; None for this machine. A run that is resumed stays where it was.

    Raises UserError for an unknown executor.
    """
    if name is None and resume is None and not detach:
        return None
    from perfflow.jobs.cluster import placing, site
    from perfflow.jobs.cluster.placed_run import Placement

    earlier = placing.partition(resume) if resume else None
    if earlier and name not in (None, earlier.executor):
        text = f"the run goes to {earlier.executor}, not to {name}"
        raise UserError.of(text, "leave out --executor, or start a new run without --resume")
    name = earlier.executor if earlier else name
    if resume and name and not earlier and name != site.LOCAL:
        raise UserError.of("the run was begun on this machine", "leave out --executor, or start a new run")
    where = site.site_of(name) if name else None
    if where is None:
        if detach:
            raise UserError.of("--detach leaves jobs to an executor, and none is named", "--executor NAME")
        return None
    return Placement(str(name), where, tuple(settings), detach, _leaves_jobs)


def _leaves_jobs() -> bool:
    """Ask after ^C what becomes of the jobs; where nobody can be asked they are cancelled."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    from perfflow.cli.output import tell

    tell("the jobs are still there: [c]ancel them, or [d]etach and let them go on? ")
    try:
        return sys.stdin.readline().strip().lower().startswith("d")
    except KeyboardInterrupt:
        return False


@contextmanager
def detached(words: Sequence[str], *, detach: bool) -> Iterator[None]:
    """Say how to come back to jobs that go on alone, and end: with 0 where that was asked for, else as interrupted."""
    if not _loaded():
        yield
        return
    from perfflow.jobs.cluster.placed_run import DetachedError

    try:
        yield
    except DetachedError as error:
        from perfflow.cli.output import tell
        from perfflow.cli.verdict import shown_path

        again = shlex.join([*words, f"--resume={shown_path(error.folder)}"])
        tell(f"the jobs go on; to wait for them and see the result: {again}\n")
        raise click.exceptions.Exit(int(Exit.PASS if detach else Exit.INTERRUPTED)) from None


def _loaded() -> bool:
    """Whether anything is placed: then what does so is imported already."""
    return "perfflow.jobs.cluster.placed_run" in sys.modules
