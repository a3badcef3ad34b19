"""One step of a run as a line of text: its outcome or its progress."""

from __future__ import annotations

from dataclasses import dataclass

from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.machine.lock import LockQueue
from perfflow.plan.plan import Planned
from perfflow.report.expected import ExpectedTime
from perfflow.report.sanitize import padded, shortened, visible, wrapped
from perfflow.sampling.pairs import SamplingProgress

ASCII = {"✓": "+", "✗": "x", "…": ".", "▶": ">", "·": "."}
_MARKS = {
    StepStatus.DONE: ("✓", "32"),
    StepStatus.CACHED: ("✓", "32"),
    StepStatus.FAILED: ("✗", "31"),
    StepStatus.TIMEOUT: ("✗", "31"),
    StepStatus.SKIPPED: ("-", "33"),
}
_NAME, _LONGEST, _BESIDE_NAME = 24, 48, 44
"""Fewest and most columns for the name of an ended step, and columns for the rest of its line."""
FIRST_BEAT, LONGEST_PAUSE = 30.0, 480.0
"""Seconds before the first line about a long step, and at most between two. CI may kill a job silent for 10 min."""

FIRST_SIGN = 2.0
"""The same for `perfflow compare`, which is expected to end soon."""


@dataclass
class Running:
    """A running step. Times are in seconds of one clock.

    ``since``: start of the step. ``queue``: its place in line for the machine, if it waits. ``waited``: total duration
    of earlier waits. ``waits_since``: start of the current wait. ``said``: time of the last message about the wait.
    ``taken``: what it has sampled.
    """

    planned: Planned
    since: float
    queue: LockQueue | None = None
    waited: float = 0.0
    waits_since: float = 0.0
    said: float = 0.0
    taken: SamplingProgress | None = None
    next_beat: float = FIRST_BEAT

    def wait(self, queue: LockQueue, now: float) -> bool:
        """Store the place in line. Return whether to print it.

        The first place and every change of it are printed. Other holders, or no change, are printed from time to time.
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
        """End the current wait, because the step has the machine. Return how many seconds it lasted."""
        seconds = now - self.waits_since if self.queue else 0.0
        self.queue, self.waited = None, self.waited + seconds
        return seconds

    def waiting(self, now: float) -> float:
        """Return the total seconds that the step has waited for the machine."""
        return self.waited + (now - self.waits_since if self.queue else 0.0)

    def worked(self, now: float) -> float:
        """Return the seconds that the step has run, without waits."""
        return now - self.since - self.waiting(now)

    def is_due(self, now: float) -> bool:
        """Return whether a line about the step is due. The intervals double up to 480 s."""
        elapsed = now - self.since
        if elapsed < self.next_beat:
            return False
        while self.next_beat <= elapsed:
            self.next_beat += min(self.next_beat, LONGEST_PAUSE)
        return True

    def note(self, now: float, expected: ExpectedTime | None = None) -> str:
        """Return elapsed time, expected duration if known, and the samples taken, or the place in line."""
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


def taken_text(taken: SamplingProgress, expected: ExpectedTime | None = None) -> str:
    """Return ``34 pairs``, or ``34 of about 40 pairs`` with an estimate, or ``warmed up`` before the first pair."""
    if not taken.count:
        return "warmed up"
    if taken.unit == "pair" and expected is not None and expected.noise and expected.noise.is_affordable:
        return f"{taken.count} of about {max(taken.count, expected.noise.pairs)} pairs"
    return f"{taken.count} {taken.unit}{'s' if taken.count != 1 else ''}"


def expected_text(expected: ExpectedTime | None) -> str:
    """Return ``~40s`` from earlier runs, ``at most 12m00s`` from a limit, or '' if nothing is known."""
    if expected is None or expected.seconds is None:
        return ""
    return f"{'at most ' if expected.is_limit else '~'}{clock_text(expected.seconds)}"


def waiting_text(queue: LockQueue, seconds: float = 0.0) -> str:
    """Return a line about a run that waits for the machine: how long, its place, and the holder."""
    place = "next in line" if queue.place == 1 else f"number {queue.place} in line"
    since = f" {clock_text(seconds)}" if seconds >= 1 else ""
    return f"waiting{since} for the machine, {place}: held by {visible(queue.holder)}"


def clock_text(seconds: float) -> str:
    """Return a duration such as ``8s``, ``2m05s`` or ``1h02m``."""
    whole = round(max(0.0, seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def mark_text(mark: str, color: str, *, unicode: bool, colored: bool) -> str:
    """Return a mark in characters and colours that the stream can show."""
    plain = mark if unicode else ASCII.get(mark, mark)
    return f"\x1b[{color}m{plain}\x1b[0m" if colored and color else plain


def step_line(planned: Planned, mark: str, note: str, name: str = "") -> str:
    """Return a line in columns. ``mark``: one column wide without its colour. ``name``: replaces the id of the step."""
    stage, name, tool = visible(planned.stage), name or visible(planned.id), planned.step.tool_name
    return f"{mark} {padded(stage, 9)} {padded(name, _NAME)} {padded(tool, 12)} {note}".rstrip()


def ended_line(run: StepRun, *, unicode: bool, colored: bool) -> str:
    """Return the outcome of a step in one line."""
    mark, color = _MARKS[run.status]
    return step_line(run.planned, mark_text(mark, color, unicode=unicode, colored=colored), _note(run))


def ended_lines(run: StepRun, width: int, *, unicode: bool, colored: bool) -> list[str]:
    """Return the outcome of a step for a terminal. A long name is shortened in the middle, long lines are wrapped."""
    mark, color = _MARKS[run.status]
    name = shortened(run.planned.id, max(_NAME, min(_LONGEST, width - _BESIDE_NAME)))
    text = step_line(run.planned, mark_text(mark, "", unicode=unicode, colored=False), _note(run), name)
    first, *others = wrapped(text if unicode else in_ascii(text), width, "    ")
    painted = mark_text(mark, color, unicode=unicode, colored=colored)
    return [painted + first[1:], *others]


def in_ascii(text: str) -> str:
    """Return text in ASCII. Marks stay one column wide."""
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
