"""What ``--executor`` and ``--detach`` mean, and what is said where jobs go on alone."""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfflow.model.errors import Exit, UserError
from perfflow.model.later import dataclass

if TYPE_CHECKING:
    from perfflow.jobs.cluster.placed_run import Placement


@dataclass(frozen=True)
class Asked:
    """Where a run is to be measured, as it was typed."""

    executor: str | None
    detach: bool
    allow_skipped: bool

    def chosen(self, resume: Path | None, settings: Sequence[str]) -> dict[str, Any]:
        """What a request for a run says of it. Raises UserError as ``placed`` does."""
        where = placed(self.executor, resume, settings, detach=self.detach)
        return {"allow_skipped": self.allow_skipped, "placement": where}


def PLACE(command: Callable[..., int]) -> Callable[..., int]:  # noqa: N802 (beside LOCK_TIMEOUT and TRUST)
    """Give a command the options that say where it measures, and itself what they say, as ``place``."""

    @click.option("--executor", metavar="NAME", help="Where to measure: an executor of executors.yaml, or `local`.")
    @click.option("--detach", is_flag=True, help="With --executor: submit the jobs and go. --resume waits for them.")
    @click.option(
        "--allow-skipped", is_flag=True, help="Leave out steps whose `runs-on` means other machines than this."
    )
    @functools.wraps(command)
    def with_place(*, executor: str | None, detach: bool, allow_skipped: bool, **options: object) -> int:
        return command(place=Asked(executor, detach, allow_skipped), **options)

    return with_place


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
def detached(words: Sequence[str], place: Asked) -> Iterator[None]:
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
        raise click.exceptions.Exit(int(Exit.PASS if place.detach else Exit.INTERRUPTED)) from None


def _loaded() -> bool:
    """Whether anything is placed: then what does so is imported already."""
    return "perfflow.jobs.cluster.placed_run" in sys.modules
