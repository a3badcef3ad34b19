"""Prints the verdict of a run, or only result.json, to stdout, and returns the exit status."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from perfflow.cli.ci import in_ci, in_github, without_commands
from perfflow.cli.output import say
from perfflow.cli.style import style_of
from perfflow.model.errors import Exit
from perfflow.model.result import Result
from perfflow.report import terminal
from perfflow.store.result_file import to_text

EXITS = {"pass": Exit.PASS, "fail": Exit.FAIL, "error": Exit.UNMEASURED, "unproven": Exit.UNPROVEN}
"""Exit status of each verdict."""


def print_verdict(
    result: Result, report: Path | None, *, as_json: bool, color: str, unproven: str, asked: bool = False
) -> int:
    """Print a result and return its exit status. ``report`` is the path of its report, None if none was written.

    ``asked``: whether the user asked for the report of a stored run.
    """
    if as_json:
        say(to_text(result), end="")
    else:
        style = style_of(sys.stdout, color)
        where = shown_path(report) if report else ""
        how: Any = {"width": style.width, "color": style.color, "unicode": style.unicode, "where": where}
        text = terminal.render(result, evidence=_for_programs(asked=asked), **how)
        say(without_commands(text) if in_github() else text, end="")
    return int(exit_of(result, unproven=unproven))


def _for_programs(*, asked: bool) -> bool:
    """Return whether to print the lines that other systems read: the gate line and the evidence lines.

    A person needs a legend for them. So a terminal never gets them; the log of a CI job always does, and a program that
    reads the report of a stored run (``asked``).
    """
    return not (sys.stdout and sys.stdout.isatty()) and (asked or in_ci())


def exit_of(result: Result, *, unproven: str = "fail") -> Exit:
    """Return the exit status of a result, with the value of ``--unproven``.

    Without a verdict it is an error only if something was not measured.
    """
    if result.verdict is None:
        return Exit.UNMEASURED if result.unmeasured else Exit.PASS
    return Exit.PASS if result.verdict == "unproven" and unproven == "pass" else EXITS[result.verdict]


def shown_path(path: Path) -> str:
    """Return a path as text, relative to the current folder if it is inside it."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the folder was removed during the run
        return str(path)
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
