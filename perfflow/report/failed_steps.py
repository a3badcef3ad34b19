"""Failed steps with the last lines of their logs, and the paths of the logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfflow.model.result import Result
from perfflow.report.sanitize import visible

MOST_LINES = 20
FEW_LINES = 4
"""Lines of one log on a short page."""
_LONGEST = 400
"""Characters of one line."""


@dataclass(frozen=True)
class FailedStep:
    """A failed step; ``log_tail`` are the last lines of its log, ``log`` is the log's path in the run folder.

    ``in_reasons``: the reasons of the verdict name the step.
    """

    name: str
    reason: str
    log_tail: tuple[str, ...]
    log: str
    in_reasons: bool

    @property
    def last(self) -> tuple[str, ...]:
        """The last few lines, for a short page."""
        return self.log_tail[-FEW_LINES:]


def failed_steps(result: Result) -> Iterator[FailedStep]:
    """Yield every step that failed or timed out, including steps that do not affect the verdict."""
    for step in result.steps:
        if step.status in ("failed", "timeout"):
            in_reasons = any(step.reason in text for text in result.reasons)
            yield FailedStep(step.id, step.reason, last_words(step.tail), step.log if step.tail else "", in_reasons)


def last_words(tail: list[str]) -> tuple[str, ...]:
    """Return the last lines of a log, safe for display and without blank lines at the end."""
    lines = [visible(line)[:_LONGEST].rstrip() for line in tail[-MOST_LINES:]]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)
