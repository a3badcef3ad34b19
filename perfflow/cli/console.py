"""Decides once how to print: colour, width and characters, from flags, environment and the stream itself."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TextIO

from perfflow.plan.plan import Planned
from perfflow.report.plain import visible
from perfflow.run.schedule import StepRun

ALWAYS, AUTO, NEVER = "always", "auto", "never"


@dataclass(frozen=True, slots=True)
class Style:
    """How one stream is written."""

    color: bool
    unicode: bool
    width: int


def style_of(stream: TextIO | None, color: str = AUTO) -> Style:
    """Flags first, then NO_COLOR, then FORCE_COLOR and CLICOLOR_FORCE, then whether it is a terminal.

    ``stream`` is None where the shell closed it.
    """
    if stream is None:
        return Style(color=False, unicode=False, width=100)
    unicode = "utf" in (stream.encoding or "").lower()
    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size((100, 24)).columns if terminal else 100
    return Style(_colored(terminal, color), unicode, max(40, width))


def _colored(terminal: bool, color: str) -> bool:
    if color != AUTO:
        return color == ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return terminal


class Lines:
    """Progress as appended lines on stderr: one at the start of a step that takes the machine, one at each end."""

    def __init__(self, style: Style) -> None:
        self._style = style

    def started(self, planned: Planned) -> None:
        """Say what is being measured; short commands only show when they end."""
        if planned.alone:
            self._print(">", planned, "")

    def waiting(self, planned: Planned, holder: str) -> None:
        """Say whom we wait for."""
        self._print("…" if self._style.unicode else ".", planned, f"waiting for the machine: held by {visible(holder)}")

    def ended(self, run: StepRun) -> None:
        """Say how it went, and of a failure the last lines of its output."""
        mark, color = {
            "done": ("✓", "32"),
            "failed": ("✗", "31"),
            "timeout": ("✗", "31"),
            "skipped": ("-", "33"),
        }.get(run.status.value, ("?", ""))
        allowed = " (allowed)" if run.planned.step.continue_on_error and run.status.value == "failed" else ""
        note = f"{run.status.value}{allowed}: {visible(run.reason)}" if run.reason else ""
        took = f"{run.seconds:.1f}s" if run.status.value != "skipped" else ""
        self._print(mark, run.planned, f"{took}  {note}".strip(), color)
        for line in run.details.get("tail", []):
            print(f"    | {visible(line)}", file=sys.stderr)
        if run.details.get("tail"):
            print(f"    log: {run.log}", file=sys.stderr)

    def _print(self, mark: str, planned: Planned, note: str, color: str = "") -> None:
        plain = mark if self._style.unicode else {"✓": "+", "✗": "x"}.get(mark, mark)
        shown = f"\x1b[{color}m{plain}\x1b[0m" if self._style.color and color else plain
        tool = planned.step.uses or "run"
        print(f"{shown} {planned.stage:<9} {visible(planned.id):<24} {tool:<12} {note}".rstrip(), file=sys.stderr)


class OnlyWaiting(Lines):
    """Nothing but why nothing happens."""

    def started(self, planned: Planned) -> None:
        """Say nothing."""

    def ended(self, run: StepRun) -> None:
        """Say nothing."""


class Silence:
    """No progress at all."""

    def started(self, planned: Planned) -> None:
        """Say nothing."""

    def waiting(self, planned: Planned, holder: str) -> None:
        """Say nothing."""

    def ended(self, run: StepRun) -> None:
        """Say nothing."""
