"""One step of a run as a line of text: how it went, or how far it is."""

from __future__ import annotations

from perfflow.execute.schedule import StepRun
from perfflow.execute.states import StepStatus
from perfflow.machine.lock import Queue
from perfflow.model.later import dataclass
from perfflow.plan.plan import Planned
from perfflow.report.expected import Expected
from perfflow.report.sanitize import padded, shortened, visible, wrapped
from perfflow.sampling.pairs import Sampled

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
    """A step that goes on: since when by the clock, where it stands in line for the machine, what it has sampled.

    ``waited`` are the seconds of earlier waits, ``waits_since`` is when the present one began, ``said`` when the user
    last heard of it.
    """

    planned: Planned
    since: float
    queue: Queue | None = None
    waited: float = 0.0
    waits_since: float = 0.0
    said: float = 0.0
    taken: Sampled | None = None
    next_beat: float = FIRST_BEAT

    def wait(self, queue: Queue, now: float) -> bool:
        """Take in where it stands in line; whether that is news.

        News are the first word of it, another place, and now and then another holder, or that nothing has changed.
        """
        before, self.queue = self.queue, queue
        if before is None:
            self.waits_since = now
        due = self.is_due(now) or (queue != before and now - self.said >= FIRST_BEAT)
        if before is not None and queue.place == before.place and not due:
            return False
        self.said = now
        return True

    def go_on(self, now: float) -> float:
        """It has the machine; returns the seconds that it waited just now."""
        seconds = now - self.waits_since if self.queue else 0.0
        self.queue, self.waited = None, self.waited + seconds
        return seconds

    def waiting(self, now: float) -> float:
        """Seconds that it has waited for the machine in all."""
        return self.waited + (now - self.waits_since if self.queue else 0.0)

    def worked(self, now: float) -> float:
        """Seconds that it has gone on, without waiting."""
        return now - self.since - self.waiting(now)

    def is_due(self, now: float) -> bool:
        """Whether it has gone on for long without a word; each time for twice as long."""
        elapsed = now - self.since
        if elapsed < self.next_beat:
            return False
        while self.next_beat <= elapsed:
            self.next_beat += min(self.next_beat, LONGEST_PAUSE)
        return True

    def note(self, now: float, expected: Expected | None = None) -> str:
        """How long it has been going on, of how long it may take where that is known, and what it has sampled."""
        if self.queue:
            return waiting_text(self.queue, now - self.waits_since)
        elapsed = self.worked(now)
        parts = [clock_text(elapsed)]
        if expected is not None and expected.seconds is not None:
            late = elapsed - expected.seconds
            parts[0] += f" of {expected_text(expected)}" + (f", {clock_text(late)} late" if late >= 1 else "")
        if self.taken:
            number, of = self.taken.turn
            parts += [f"{number} of {of}"] if of > 1 else []
            name = visible(self.taken.benchmark)
            whose = f"{name}: " if name and name != visible(self.planned.id) else ""
            parts.append(f"{whose}{taken_text(self.taken, expected)}")
        return ", ".join(parts)


def taken_text(taken: Sampled, expected: Expected | None = None) -> str:
    """``34 pairs``, or ``34 of about 40 pairs`` where the history knows; before the first, what is done instead."""
    if not taken.count:
        return "warmed up"
    if taken.unit == "pair" and expected is not None and expected.noise:
        return f"{taken.count} of about {max(taken.count, expected.noise.pairs)} pairs"
    return f"{taken.count} {taken.unit}{'s' if taken.count != 1 else ''}"


def expected_text(expected: Expected | None) -> str:
    """``~40s`` from earlier runs, ``at most 12m00s`` by a limit, '' where nothing is known."""
    if expected is None or expected.seconds is None:
        return ""
    return f"{'at most ' if expected.is_limit else '~'}{clock_text(expected.seconds)}"


def waiting_text(queue: Queue, seconds: float = 0.0) -> str:
    """Where a run stands in line for the machine, for how long, and who has it."""
    place = "next in line" if queue.place == 1 else f"number {queue.place} in line"
    since = f" {clock_text(seconds)}" if seconds >= 1 else ""
    return f"waiting{since} for the machine, {place}: held by {visible(queue.holder)}"


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
        took += f" (waited {clock_text(run.waited)} for the machine)" if run.waited >= 1 else ""
        note = f"{took}  {note}".rstrip()
    return note
