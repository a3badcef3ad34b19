"""Progress as appended lines with a heartbeat, or no progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from perfflow.cli.ci import Bare, Dressing
from perfflow.cli.failure_block import failure_block
from perfflow.cli.output import tell
from perfflow.cli.pulse import Pulse
from perfflow.cli.step_text import (
    FIRST_BEAT,
    FIRST_SIGN,
    Running,
    clock_text,
    ended_line,
    in_ascii,
    mark_text,
    step_line,
    taken_text,
    waiting_text,
)
from perfflow.cli.style import Style
from perfflow.execute.schedule import StepRun
from perfflow.machine.lock import Queue
from perfflow.plan.plan import Planned
from perfflow.report.sanitize import visible
from perfflow.sampling.pairs import SamplingProgress
from perfflow.session.progress import NoProgress

QUIET = 9.5
"""Seconds of waiting after which even a silent run prints a line. Just below the polling period of 10 s."""


class ProgressDisplay:
    """A display that is open during a run and closed however the run ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the display."""


class Lines(ProgressDisplay):
    """Progress as lines: at the start of a step that takes the machine, at the end of each step, and as a heartbeat."""

    def __init__(
        self,
        style: Style,
        typed: Sequence[str] = (),
        dressing: Dressing | None = None,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[[str], None] = tell,
    ) -> None:
        """``typed``: the command line that started the run, printed to repeat a failed step."""
        self._style, self._typed, self._clock, self._write = style, typed, clock, write
        self._dressing = dressing or Bare()
        self._folder, self._steps = Path(), dict[str, Planned]()
        self._running: dict[str, Running] = {}
        self._lock = threading.Lock()
        self._pulse = Pulse(self._beat)

    def close(self) -> None:
        """End the heartbeat."""
        self._pulse.close()

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        """Store the folder of the run and its steps."""
        self._folder, self._steps = folder, {item.id: item for item in steps}

    def started(self, planned: Planned) -> None:
        """Print the start of a step that takes the machine. Other steps appear when they end."""
        with self._lock:
            self._running[planned.id] = Running(planned, self._clock())
            if planned.alone:
                self._print([step_line(planned, ">", "")])
        self._pulse.started(planned)

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """Print which run the step waits for, and changes of that."""
        with self._lock:
            item, now = self._running[planned.id], self._clock()
            if item.wait(queue, now):
                self._print_running(planned, item.note(now))

    def granted(self, planned: Planned) -> None:
        """Print that a wait of at least 1 s is over. After a shorter wait, the next line shows it."""
        with self._lock:
            waited = self._running[planned.id].go_on(self._clock())
            if waited >= 1:
                self._print_running(planned, f"has the machine, after {clock_text(waited)}")

    def sampled(self, planned: Planned, taken: SamplingProgress) -> None:
        """Print progress at growing intervals."""
        with self._lock:
            item = self._running[planned.id]
            item.taken = taken
            self._print_if_due(item)

    def noted(self, text: str) -> None:
        """Print a sentence on a line."""
        with self._lock:
            self._print([text])

    def ended(self, run: StepRun) -> None:
        """Print the outcome of a step, and the details of a failure."""
        self._pulse.ended(run.planned)
        with self._lock:
            self._running.pop(run.planned.id, None)
            self._print([ended_line(run, unicode=self._style.unicode, colored=self._style.color)])
            block = failure_block(run, self._folder, self._steps, self._typed)
            title = visible(f"{run.planned.stage} {run.planned.id}: {run.reason}")
            self._write_lines([self._readable(line) for line in self._dressing.block(title, block)])

    def _beat(self) -> float:
        with self._lock:
            for item in self._running.values():
                self._print_if_due(item)
            now = self._clock()
            return min((item.since + item.next_beat - now for item in self._running.values()), default=FIRST_BEAT)

    def _print_if_due(self, item: Running) -> None:
        now = self._clock()
        if item.is_due(now):
            self._print_running(item.planned, item.note(now))

    def _print_running(self, planned: Planned, note: str) -> None:
        mark = mark_text("…", "", unicode=self._style.unicode, colored=False)
        self._print([step_line(planned, mark, note)])

    def _print(self, lines: Sequence[str]) -> None:
        self._write_lines([self._readable(line) for line in self._dressing.lines(lines)])

    def _readable(self, line: str) -> str:
        return line if self._style.unicode else in_ascii(line)

    def _write_lines(self, lines: Sequence[str]) -> None:
        if lines:
            self._write("".join(f"{line}\n" for line in lines))


class Silence(ProgressDisplay, NoProgress):
    """No progress, except one line if a run waits for the machine and would seem to hang."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, write: Callable[[str], None] = tell) -> None:
        """``clock`` returns seconds."""
        self._clock, self._write = clock, write
        self._running: dict[str, Running] = {}
        self._has_printed = False

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """Print once which run the step waits for, when the wait lasts 10 s."""
        now = self._clock()
        item = self._running.setdefault(planned.id, Running(planned, now))
        item.wait(queue, now)
        if not self._has_printed and item.waiting(now) >= QUIET:
            self._has_printed = True
            self._write(f"{waiting_text(queue, item.waiting(now))}\n")

    def granted(self, planned: Planned) -> None:
        """Forget the step, and print nothing."""
        self._running.pop(planned.id, None)


class SignsOfLife(Silence):
    """Progress for `perfflow compare`: prints nothing at first, then why it waits and how far it is.

    Lines are written only between two rounds, when nothing is timed.
    """

    def __init__(
        self, style: Style, clock: Callable[[], float] = time.monotonic, write: Callable[[str], None] = tell
    ) -> None:
        """``clock`` returns seconds."""
        super().__init__(clock, write)
        self._style = style

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """Print which run the step waits for, and changes of that."""
        now = self._clock()
        item = self._running.setdefault(planned.id, Running(planned, now))
        if item.wait(queue, now):
            self._write(f"{waiting_text(queue, item.waiting(now))}\n")

    def granted(self, planned: Planned) -> None:
        """Start to count the time."""
        self._running[planned.id] = Running(planned, self._clock(), next_beat=FIRST_SIGN)

    def sampled(self, planned: Planned, taken: SamplingProgress) -> None:
        """Print progress after 2 s, 4 s, 8 s and so on."""
        now = self._clock()
        item = self._running.setdefault(planned.id, Running(planned, now, next_beat=FIRST_SIGN))
        if item.is_due(now):
            mark = mark_text("…", "", unicode=self._style.unicode, colored=False)
            self._write(f"{mark} measuring: {clock_text(now - item.since)}, {taken_text(taken)}\n")
