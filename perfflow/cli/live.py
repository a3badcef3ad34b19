"""Live progress on a terminal: lines that scroll up, and below them a block that is redrawn at most once a second.

The cursor is never hidden and no terminal mode is changed, so nothing needs to be restored, however perfflow ends.
Each redraw is one write.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfflow.cli.console import ProgressDisplay
from perfflow.cli.failure_block import failure_block
from perfflow.cli.job import Pauses
from perfflow.cli.live_block import View, block_lines, rows_of
from perfflow.cli.output import tell
from perfflow.cli.pulse import Pulse, is_timed
from perfflow.cli.step_text import Running, ended_lines, in_ascii
from perfflow.cli.style import NO_SIZE, Style
from perfflow.execute.schedule import StepRun
from perfflow.machine.lock import Queue
from perfflow.plan.plan import Planned
from perfflow.report.expected import Expected
from perfflow.report.sanitize import visible
from perfflow.sampling.pairs import SamplingProgress

PERIOD = 1.0
"""Minimum seconds between two redraws, since the terminal uses CPU time on the measured machine."""


@dataclass(frozen=True)
class Screen:
    """Access to the terminal: writing, its current size, whether this job is in the foreground, and two clocks."""

    write: Callable[[str], None] = tell
    size: Callable[[], os.terminal_size] = lambda: NO_SIZE
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], str] = lambda: time.strftime("%H:%M:%S")
    in_front: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class ShownRun:
    """The run to show: the workflow's name, the command line that started it, and estimates of step durations."""

    name: str
    typed: Sequence[str] = ()
    estimates: Callable[[Sequence[Planned]], Mapping[str, Expected | None]] = lambda _: {}
    serial: bool = True


class Live(ProgressDisplay):
    """Redraws at most once a second. Before a timed step it draws once more, then not until its next pause."""

    def __init__(self, style: Style, shown: ShownRun, screen: Screen) -> None:
        self._style, self._shown, self._screen = style, shown, screen
        self._folder, self._steps = Path(), dict[str, Planned]()
        self._estimates: Mapping[str, Expected | None] = {}
        self._running: dict[str, Running] = {}
        self._ended: set[str] = set()
        self._waited = 0.0
        """Seconds that ended steps waited for the machine."""
        self._began = screen.clock()
        self._last = -PERIOD
        self._pending: list[str] = []
        """Lines to print above the block with the next redraw."""
        self._drawn: list[str] = []
        """The block on the terminal, without colours."""
        self._stopping = self._displaced = False
        """^Z is about to stop this process; the cursor may have moved since, so the old block is not overwritten."""
        self._lock = threading.Lock()
        self._pulse = Pulse(self._beat)
        self._pauses = Pauses(self._leaving, self._back)

    def close(self) -> None:
        """Remove the block and print the pending lines."""
        self._pauses.close()
        self._pulse.close()
        with self._lock:
            self._put([])

    def _leaving(self) -> None:
        """Remove the block before the shell writes below it, unless a redraw is in progress."""
        self._stopping = True
        if self._lock.acquire(blocking=False):
            try:
                self._put([])
            finally:
                self._lock.release()

    def _back(self) -> None:
        self._displaced, self._stopping = True, False

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        """Store the folder of the run, its steps and their estimates."""
        self._folder, self._steps = folder, {item.id: item for item in steps}
        self._estimates = self._shown.estimates(steps)

    def started(self, planned: Planned) -> None:
        """Show that a step runs. A timed step is drawn now, because it is not redrawn before its first round ends."""
        with self._lock:
            self._running[planned.id] = Running(planned, self._screen.clock())
        self._pulse.started(planned)
        if is_timed(planned):
            with self._lock:
                self._draw()

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """Show which run a step waits for. Redraw only on these calls, since the other run is measuring."""
        with self._lock:
            self._running[planned.id].wait(queue, self._screen.clock())
            self._draw()

    def granted(self, planned: Planned) -> None:
        """Show that a step stopped waiting."""
        with self._lock:
            if self._running[planned.id].go_on(self._screen.clock()):
                self._draw()

    def sampled(self, planned: Planned, taken: SamplingProgress) -> None:
        """Show progress between two rounds, if a second has passed."""
        with self._lock:
            self._running[planned.id].taken = taken
            self._refresh()

    def ended(self, run: StepRun) -> None:
        """Print the line of an ended step, and the details of a failure."""
        self._pulse.ended(run.planned)
        with self._lock:
            self._running.pop(run.planned.id, None)
            self._ended.add(run.planned.id)
            self._waited += run.waited
            width = self._screen.size().columns
            self._pending += ended_lines(run, width, unicode=self._style.unicode, colored=self._style.color)
            block = failure_block(run, self._folder, self._steps, self._shown.typed, width)
            self._pending += block if self._style.unicode else [in_ascii(line) for line in block]
            # While a timed step shares the machine (`alone: false`), wait for its next pause.
            if not any(is_timed(item.planned) for item in self._running.values()):
                self._refresh()

    def noted(self, text: str) -> None:
        """Print a line above the block."""
        with self._lock:
            self._pending.append(visible(text))
            self._refresh()

    def _beat(self) -> float:
        with self._lock:
            self._refresh()
            return max(0.05, self._last + PERIOD - self._screen.clock())

    def _refresh(self) -> None:
        if self._screen.clock() - self._last >= PERIOD:
            self._draw()

    def _draw(self) -> None:
        clock = self._screen.clock()
        if self._stopping or not self._screen.in_front():
            self._last = clock
            return
        view = View(
            name=self._shown.name,
            running=list(self._running.values()),
            coming=[item for name, item in self._steps.items() if name not in self._ended | self._running.keys()],
            ended=len(self._ended),
            began=self._began,
            waited=self._waited,
            now=clock,
            estimates=self._estimates,
            serial=self._shown.serial,
            wall=self._screen.wall(),
        )
        self._last = clock
        self._put(
            [
                block_lines(view, *self._screen.size(), unicode=self._style.unicode, colored=colored)
                for colored in (False, self._style.color)
            ]
        )

    def _put(self, forms: Sequence[list[str]]) -> None:
        """Replace the block and print the pending lines above it. ``forms``: the block without and with colours."""
        plain, painted = forms or ([], [])
        width = self._screen.size().columns
        rows = 0 if self._displaced else sum(rows_of(line, width) for line in self._drawn)
        lines = [*self._pending, *painted]
        if rows:
            # Clear line by line. Clearing all at once flickers, and at the top of the screen tmux would keep the text.
            # Clear each line before writing it: otherwise tmux remembers that a line wrapped in a narrower terminal,
            # and joins it with the next line when the terminal gets wider.
            over = "".join(f"\x1b[2K{line}\n" for line in lines)
            self._screen.write(f"\r\x1b[{rows}A{over}\x1b[J")
        elif lines:
            self._screen.write("".join(f"{line}\n" for line in lines))
        self._pending, self._drawn, self._displaced = [], plain, False
