"""One step of a run as a line of text: how it went, or how far it is."""

from __future__ import annotations

from dataclasses import dataclass

from perfflow.flow.progress import Taken
from perfflow.plan.plan import Planned
from perfflow.report.plain import padded, shortened, visible, wrapped
from perfflow.run.schedule import StepRun
from perfflow.run.states import StepStatus

ASCII = {"✓": "+", "✗": "x", "…": ".", "▶": ">", "·": "."}
_MARKS = {
    StepStatus.DONE: ("✓", "32"),
    StepStatus.CACHED: ("✓", "32"),
    StepStatus.FAILED: ("✗", "31"),
    StepStatus.TIMEOUT: ("✗", "31"),
    StepStatus.SKIPPED: ("-", "33"),
}
_NAME, _LONGEST, _BESIDE_NAME = 24, 48, 44
"""Columns for the name of a step that ended, at most, and those for all else in its line."""
FIRST_BEAT, LONGEST_PAUSE = 30.0, 480.0
"""Seconds until a long step is mentioned, and at most between two mentions: CI may end a job silent for 10 minutes."""

FIRST_SIGN = 2.0
"""The same where a command of one step is expected to be over at once."""


@dataclass
class Running:
    """A step that goes on: since when by the clock, what it waits for ('' nothing), and what it has sampled."""

    planned: Planned
    since: float
    waits_for: str = ""
    taken: Taken | None = None
    next_beat: float = FIRST_BEAT

    def is_due(self, now: float) -> bool:
        """Whether it has gone on for long without a word; each time for twice as long."""
        elapsed = now - self.since
        if elapsed < self.next_beat:
            return False
        while self.next_beat <= elapsed:
            self.next_beat += min(self.next_beat, LONGEST_PAUSE)
        return True

    def note(self, now: float, expected: float | None = None) -> str:
        """How long it has been going on, of how long it took before where that is known, and what it has sampled."""
        if self.waits_for:
            return f"waiting for the machine: held by {visible(self.waits_for)}"
        elapsed = now - self.since
        parts = [clock_text(elapsed)]
        if expected is not None:
            late = elapsed - expected
            parts[0] += f" of ~{clock_text(expected)}" + (f", {clock_text(late)} late" if late >= 1 else "")
        if self.taken:
            plural = "s" if self.taken.count != 1 else ""
            name = visible(self.taken.benchmark)
            whose = f"{name}: " if name and name != visible(self.planned.id) else ""
            parts.append(f"{whose}{self.taken.count} {self.taken.unit}{plural}")
        return ", ".join(parts)


def clock_text(seconds: float) -> str:
    """``8s``, ``2m05s``, ``1h02m``."""
    whole = round(max(0.0, seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def mark_text(mark: str, color: str, *, unicode: bool, colored: bool) -> str:
    """A mark as the stream can show it."""
    plain = mark if unicode else ASCII.get(mark, mark)
    return f"\x1b[{color}m{plain}\x1b[0m" if colored and color else plain


def step_line(planned: Planned, mark: str, note: str, name: str = "") -> str:
    """A line in columns; ``mark`` is one column wide, whatever colours it. ``name`` is a shorter form of its name."""
    stage, name, tool = visible(planned.stage), name or visible(planned.id), planned.step.uses or "run"
    return f"{mark} {padded(stage, 9)} {padded(name, _NAME)} {padded(tool, 12)} {note}".rstrip()


def ended_line(run: StepRun, *, unicode: bool, colored: bool) -> str:
    """How a step went, in one line."""
    mark, color = _MARKS[run.status]
    return step_line(run.planned, mark_text(mark, color, unicode=unicode, colored=colored), _note(run))


def ended_lines(run: StepRun, width: int, *, unicode: bool, colored: bool) -> list[str]:
    """The same on a terminal: a long name loses its middle, and what does not fit goes on below."""
    mark, color = _MARKS[run.status]
    name = shortened(run.planned.id, max(_NAME, min(_LONGEST, width - _BESIDE_NAME)))
    text = step_line(run.planned, mark_text(mark, "", unicode=unicode, colored=False), _note(run), name)
    first, *others = wrapped(text if unicode else in_ascii(text), width, "    ")
    painted = mark_text(mark, color, unicode=unicode, colored=colored)
    return [painted + first[1:], *others]


def in_ascii(text: str) -> str:
    """Text for a terminal that knows no other characters; marks stay one column wide."""
    text = text.replace("…", "...")
    return "".join(ASCII.get(letter, letter) for letter in text).encode("ascii", "replace").decode()


def _note(run: StepRun) -> str:
    allowed = " (allowed)" if run.planned.step.continue_on_error and run.status is StepStatus.FAILED else ""
    note = f"{run.status.value}{allowed}: {visible(run.reason)}" if run.reason else ""
    if run.status is StepStatus.CACHED:
        note = "done before the interruption"
    elif run.status is not StepStatus.SKIPPED:
        took = f"{run.seconds:.1f}s" if run.seconds < 60 else clock_text(run.seconds)
        note = f"{took}  {note}".rstrip()
    return note
