"""Steps that failed, with the last words of their programs and where the rest of it is."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.later import dataclass
from perfflow.model.result import Result
from perfflow.report.sanitize import visible

MOST_LINES = 20
FEW_LINES = 4
"""Lines of one program where there is little room."""
_LONGEST = 400
"""Letters of one line."""


@dataclass(frozen=True)
class FailedStep:
    """A step that failed; ``said`` are the last lines of its log, which is ``log`` in the run's folder.

    ``told`` says that the reasons of the verdict name it already.
    """

    name: str
    reason: str
    said: tuple[str, ...]
    log: str
    told: bool

    @property
    def last(self) -> tuple[str, ...]:
        """The last of the lines, for where there is little room."""
        return self.said[-FEW_LINES:]


def failed_steps(result: Result) -> Iterator[FailedStep]:
    """Every step that failed or ran into its time limit, also one that the verdict does not rest on."""
    for step in result.steps:
        if step.status in ("failed", "timeout"):
            told = any(step.reason in text for text in result.reasons)
            yield FailedStep(step.id, step.reason, last_words(step.tail), step.log if step.tail else "", told)


def last_words(tail: list[str]) -> tuple[str, ...]:
    """The last lines of a log as they can be shown, without blank ones at their end."""
    lines = [visible(line)[:_LONGEST].rstrip() for line in tail[-MOST_LINES:]]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)
