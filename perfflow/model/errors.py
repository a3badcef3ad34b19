"""Errors for users, and the exit codes that scripts may rely on.

Every package may raise these errors; only ``cli`` turns them into text and an exit status.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Exit(IntEnum):
    """Exit statuses of the ``perfflow`` command."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    UNMEASURED = 3
    UNPROVEN = 4
    DEFECT = 70
    INTERRUPTED = 130


class Severity(StrEnum):
    """Whether a problem stops the run."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class SourcePosition:
    """A position in a text file: 1-based ``line`` and ``column``, and the line's own ``text`` for the caret."""

    file: str
    line: int
    column: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Problem:
    """One problem: what is wrong, where it is, and what to do about it."""

    message: str
    hint: str = ""
    place: SourcePosition | None = None
    severity: Severity = Severity.ERROR
    rule: str = ""

    def render(self) -> str:
        """Return ``FILE:LINE:COL: error: message``, the source line with a caret, and the hint."""
        where = f"{self.place}: " if self.place else ""
        rule = f" [{self.rule}]" if self.rule else ""
        lines = [_printable(f"{where}{self.severity}: {self.message}{rule}")]
        if self.place and self.place.text:
            lines += _caret(self.place)
        if self.hint:
            lines.append(_printable(f"  hint: {self.hint}"))
        return "\n".join(lines)


def _printable(text: str) -> str:
    """Escape unprintable characters except newlines, so that text quoted from a file cannot control the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape", "replace").decode() for c in text)


_CARET_WINDOW = 100


def _caret(place: SourcePosition) -> list[str]:
    """Return the source line and a caret under the column; long lines are cut around the caret."""
    start = max(0, place.column - 1 - _CARET_WINDOW // 2)
    shown = "".join(c if c.isprintable() else " " for c in place.text[start : start + _CARET_WINDOW])
    number = f"{place.line:>5} | "
    return [number + shown, " " * (len(number) + place.column - 1 - start) + "^"]


@dataclasses.dataclass(eq=False)
class UserError(Exception):
    """Bad usage or a bad file, with all problems found. The run stops before anything is executed."""

    problems: tuple[Problem, ...]
    exit: Exit = dataclasses.field(default=Exit.USAGE)

    @classmethod
    def of(cls, message: str, hint: str = "", exit: Exit = Exit.USAGE) -> UserError:
        """Return an error with one problem that has no place in a file."""
        return cls((Problem(message, hint),), exit)

    def __str__(self) -> str:
        return "\n".join(problem.render() for problem in self.problems)

    @property
    def in_one_line(self) -> str:
        """The first problem with its hint, for a message about something else."""
        first = self.problems[0]
        return "; ".join(filter(None, (first.message, first.hint)))


def in_file_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Sort problems by their position in the file, and drop exact repetitions."""

    def key(problem: Problem) -> tuple[str, int, int]:
        place = problem.place
        return (place.file, place.line, place.column) if place else ("", 0, 0)

    return tuple(sorted(dict.fromkeys(problems), key=key))


class DetachedError(Exception):
    """The jobs continue without the process that submitted them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder


class StepError(Exception):
    """A step failed; the text says why.

    Every error that belongs to one step is a subclass, so that ``perform`` ends the step with it, the run continues,
    and result.json is written. All other exceptions are defects in perfflow.
    """


class AdapterError(StepError):
    """A function of an adapter raised an exception that its interface does not allow: a mistake in the adapter."""


class ToolOutputError(StepError):
    """A tool's output is missing, empty or truncated, or reports that the measured program failed.

    The text describes the problem; the runner adds the step, the tool and the path of the log. Always exit 3.
    """
