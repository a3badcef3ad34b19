"""Chooses the progress of a run on stderr: live on a terminal, lines elsewhere, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from perfflow.cli import job, live
from perfflow.cli.ci import dressing, in_ci
from perfflow.cli.console import Lines, Silence
from perfflow.cli.live import Live
from perfflow.cli.style import AUTO, size_of, style_of
from perfflow.jobs.catalog.duration_estimate import expected
from perfflow.model.secrets import masked, secrets_in
from perfflow.plan.plan import Planned
from perfflow.report.expected import Expected
from perfflow.session.open_workflow import Opened

LIVE, PLAIN, OFF = "live", "plain", "off"


class _Stream(Protocol):
    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""


def mode_of(asked: str | None, stream: _Stream | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return the kind of progress. It is never live on a stream without cursor movement, whatever was asked.

    NO_COLOR and CI select lines. Forced colour does not select live progress. ``stream`` is None if the shell closed
    it; then there is no progress.
    """
    if asked == OFF or stream is None:
        return OFF
    if asked == PLAIN or not stream.isatty() or environ.get("TERM", "dumb") == "dumb":
        return PLAIN
    lines_wanted = in_ci(environ) or bool(environ.get("NO_COLOR"))
    return PLAIN if lines_wanted and asked != LIVE else LIVE


def shown(
    asked: str | None,
    opened: Opened,
    typed: Sequence[str],
    *,
    color: str = AUTO,
    jobs: int = 1,
    budget: float | None = None,
) -> Lines | Live | Silence:
    """Return the progress display of a run.

    ``typed``: the command line that started it. ``budget``: seconds for the whole command.
    """
    typed = masked(typed, secrets_in(os.environ, opened.plan.params))
    mode, style = mode_of(asked, sys.stderr), style_of(sys.stderr, color)
    if mode == OFF:
        return Silence()
    if mode == PLAIN:
        return Lines(style, typed, dressing())

    def estimates(steps: Sequence[Planned]) -> Mapping[str, Expected | None]:
        in_trees = list(typed[1:2]) == ["gate"] and not any(word.startswith("--base-results") for word in typed)
        ids = [item.id for item in steps]
        return expected(opened, ids, in_trees=in_trees, budget=budget, ask_server=True)

    about = live.ShownRun(opened.plan.workflow.name, typed, estimates, serial=jobs == 1)
    screen = live.Screen(size=lambda: size_of(sys.stderr), in_front=lambda: job.in_front(sys.stderr))
    return live.Live(style, about, screen)
