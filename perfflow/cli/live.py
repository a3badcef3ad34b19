"""Progress on a terminal: lines that scroll up, and below them a block that is drawn again, at most once a second.

The cursor is never hidden and no mode of the terminal is changed, so there is nothing to put back, however perfflow
ends. Each drawing is one write.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
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
from perfflow.model.later import dataclass
from perfflow.plan.plan import Planned
from perfflow.report.expected import Expected
from perfflow.report.sanitize import visible
from perfflow.sampling.pairs import Sampled

PERIOD = 1.0
"""Seconds between two drawings: each costs the terminal a redraw, on the machine that is measured."""


@dataclass(frozen=True)
class Screen:
    """The terminal as the live view sees it: how to write on it, its size now, whether it is ours, and two clocks."""

    write: Callable[[str], None] = tell
    size: Callable[[], os.terminal_size] = lambda: NO_SIZE
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], str] = lambda: time.strftime("%H:%M:%S")
    in_front: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class Shown:
    """What the live view is about: the workflow's name, the words that started the run, and how long steps may take."""

    name: str
    typed: Sequence[str] = ()
    estimates: Callable[[Sequence[Planned]], Mapping[str, Expected | None]] = lambda _: {}
    serial: bool = True


class Live(ProgressDisplay):
    """Draws when a second has passed since the last time, or before something is timed, and then not until it ends."""

    def __init__(self, style: Style, shown: Shown, screen: Screen) -> None:
        self._style, self._shown, self._screen = style, shown, screen
        self._folder, self._steps = Path(), dict[str, Planned]()
        self._estimates: Mapping[str, Expected | None] = {}
        self._running: dict[str, Running] = {}
        self._ended: set[str] = set()
        self._waited = 0.0
        """Seconds that steps which have ended waited for the machine."""
        self._began = screen.clock()
        self._last = -PERIOD
        self._pending: list[str] = []
        """Lines that scroll up with the next drawing."""
        self._drawn: list[str] = []
        """The block that is on the terminal, without colours."""
        self._stopping = self._displaced = False
        """^Z is about to stop us; the cursor may be elsewhere since, so the block is left where it stands."""
        self._lock = threading.Lock()
        self._pulse = Pulse(self._beat)
        self._pauses = Pauses(self._leaving, self._back)

    def close(self) -> None:
        """Leave nothing of the block, and the lines that are still to be seen."""
        self._pauses.close()
        self._pulse.close()
        with self._lock:
            self._put([])

    def _leaving(self) -> None:
        """Take the block away before the shell writes below it, unless something is just being drawn."""
        self._stopping = True
        if self._lock.acquire(blocking=False):
            try:
                self._put([])
            finally:
                self._lock.release()

    def _back(self) -> None:
        self._displaced, self._stopping = True, False

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        """Learn what is to come."""
        self._folder, self._steps = folder, {item.id: item for item in steps}
        self._estimates = self._shown.estimates(steps)

    def started(self, planned: Planned) -> None:
        """Show what runs now; what is timed is not seen again before its first round is over."""
        with self._lock:
            self._running[planned.id] = Running(planned, self._screen.clock())
        self._pulse.started(planned)
        if is_timed(planned):
            with self._lock:
                self._draw()

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """Show whom a step waits for; as seldom as this is told, since the holder measures."""
        with self._lock:
            self._running[planned.id].wait(queue, self._screen.clock())
            self._draw()

    def granted(self, planned: Planned) -> None:
        """After a wait show that it is over."""
        with self._lock:
            if self._running[planned.id].go_on(self._screen.clock()):
                self._draw()

    def sampled(self, planned: Planned, taken: Sampled) -> None:
        """Between two rounds show how far it is, where a second has passed."""
        with self._lock:
            self._running[planned.id].taken = taken
            self._refresh()

    def ended(self, run: StepRun) -> None:
        """Add a line that scrolls up, and of a failure all that helps."""
        self._pulse.ended(run.planned)
        with self._lock:
            self._running.pop(run.planned.id, None)
            self._ended.add(run.planned.id)
            self._waited += run.waited
            width = self._screen.size().columns
            self._pending += ended_lines(run, width, unicode=self._style.unicode, colored=self._style.color)
            block = failure_block(run, self._folder, self._steps, self._shown.typed, width)
            self._pending += block if self._style.unicode else [in_ascii(line) for line in block]
            # Beside a timed step that shares the machine (`alone: false`) its next pause is waited for.
            if not any(is_timed(item.planned) for item in self._running.values()):
                self._refresh()

    def placed(self, text: str) -> None:
        """Add a line that scrolls up."""
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
        """Replace the block, given as it counts and as it looks, by another one, with what scrolls up above it."""
        plain, painted = forms or ([], [])
        width = self._screen.size().columns
        rows = 0 if self._displaced else sum(rows_of(line, width) for line in self._drawn)
        lines = [*self._pending, *painted]
        if rows:
            # Line by line, not all at once: that would flicker, and at the top of the screen tmux would keep it. And
            # each line as a whole before it is written: of one that wrapped in a narrower terminal, tmux would
            # otherwise remember that it goes on, and join it with the next one when there is room again.
            over = "".join(f"\x1b[2K{line}\n" for line in lines)
            self._screen.write(f"\r\x1b[{rows}A{over}\x1b[J")
        elif lines:
            self._screen.write("".join(f"{line}\n" for line in lines))
        self._pending, self._drawn, self._displaced = [], plain, False
