"""Progress of a run on stderr, and its verdict on stdout.

Progress is lines with a heartbeat, or a live block at the bottom of the terminal that is redrawn at most once a second,
or nothing; ``mode_of`` chooses. While a step is timed, nothing is drawn and no thread runs. The cursor is never hidden
and no terminal mode is changed, so nothing needs to be restored, however perfflow ends; ^Z removes the block first.

The parts in order: when to draw (``Pauses``, ``Pulse``), the displays without a block, the text of the block, the block
on the terminal (``Live``), the choice of the display, and the verdict with the exit status.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self, TextIO

from perfflow.cli.ci import Bare, Dressing, dressing, in_ci, in_github, without_commands
from perfflow.cli.failure_block import failure_block
from perfflow.cli.output import say, tell
from perfflow.cli.step_text import (
    FIRST_BEAT,
    FIRST_SIGN,
    Running,
    clock_text,
    ended_line,
    ended_lines,
    expected_text,
    in_ascii,
    mark_text,
    step_line,
    taken_text,
    waiting_text,
)
from perfflow.cli.style import AUTO, NO_SIZE, Style, size_of, style_of
from perfflow.execute.schedule import StepRun
from perfflow.machine.lock import RECHECK_SECONDS, LockQueue
from perfflow.model.errors import Exit
from perfflow.model.result import Result
from perfflow.model.secrets import masked, secrets_in
from perfflow.plan.plan import Planned
from perfflow.report import terminal
from perfflow.report.expected import ExpectedTime
from perfflow.report.sanitize import cells, fitted, padded, shortened, visible
from perfflow.sampling.pairs import SamplingProgress
from perfflow.session.open_workflow import Opened
from perfflow.session.progress import Began, Granted, Noted, ProgressEvent, Sampled, Started, StepEnded, Waiting
from perfflow.store.result_file import to_text
from perfflow.tools.adapter import Role


def in_front(stream: TextIO) -> bool:
    """Return whether this job is in the foreground. In the background it must not move the cursor."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True


class Pauses:
    """Calls ``leaving`` before ^Z stops this process, and ``back`` when it continues.

    After ``kill -STOP`` only ``back`` is called. Both run in signal handlers, so they must not wait for a lock.
    """

    def __init__(self, leaving: Callable[[], None], back: Callable[[], None]) -> None:
        self._leaving, self._back = leaving, back
        # Only the main thread can set handlers. Shells without job control, and nohup, ignore ^Z.
        self._usable = threading.current_thread() is threading.main_thread()
        self._stops = self._usable and signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL
        if self._stops:
            signal.signal(signal.SIGTSTP, self._stop)
        if self._usable:
            signal.signal(signal.SIGCONT, self._go_on)

    def close(self) -> None:
        """Restore the default handlers."""
        if self._stops:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        if self._usable:
            signal.signal(signal.SIGCONT, signal.SIG_DFL)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._leaving()
        # The handler that pauses the children of a run calls this handler, and must be restored.
        installed = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # Stop by SIGTSTP, not SIGSTOP, so that the shell reports the signal that was sent.
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, installed)
        self._back()

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        self._back()


def is_timed(planned: Planned) -> bool:
    """Return whether a wake-up of perfflow or of the terminal could disturb the measurement of this step."""
    return planned.alone or planned.role in (Role.MEASURE, Role.PROFILE)


class Pulse:
    """Calls ``beat`` repeatedly. ``beat`` returns the seconds until its next call.

    The methods wait for ``beat`` to return, so their callers must not hold a lock that ``beat`` takes.
    """

    def __init__(self, beat: Callable[[], float]) -> None:
        self._beat = beat
        self._running: dict[str, Planned] = {}
        self._gate = threading.Lock()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def started(self, planned: Planned) -> None:
        """Register a step that starts. If it is timed, the thread has ended when this returns."""
        with self._gate:
            self._running[planned.id] = planned
            self._settle()

    def ended(self, planned: Planned) -> None:
        """Remove a step that ended."""
        with self._gate:
            self._running.pop(planned.id, None)
            self._settle()

    def close(self) -> None:
        """End the thread for good."""
        with self._gate:
            self._running.clear()
            self._settle()

    def _settle(self) -> None:
        wanted = bool(self._running) and not any(map(is_timed, self._running.values()))
        if wanted and self._thread is None:
            self._over = threading.Event()
            self._thread = threading.Thread(target=self._go_on, args=(self._over,), name="progress", daemon=True)
            self._thread.start()
        elif not wanted and self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _go_on(self, over: threading.Event) -> None:
        while not over.wait(self._beat()):
            pass


QUIET = 9.5
"""Seconds of waiting after which even a silent run prints a line. Just below the polling period of 10 s."""


class ProgressDisplay:
    """A display that is open during a run and closed however the run ends. Displays show the events that they have."""

    def __call__(self, event: ProgressEvent) -> None:
        """Show the progress of a run."""
        match event:
            case Began():
                self.began(event.folder, event.steps)
            case Started():
                self.started(event.planned)
            case Waiting():
                self.waiting(event.planned, event.queue)
            case Granted():
                self.granted(event.planned)
            case Sampled():
                self.sampled(event.planned, event.taken)
            case StepEnded():
                self.ended(event.run)
            case Noted():
                self.noted(event.text)

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        """Show the beginning of a run."""

    def started(self, planned: Planned) -> None:
        """Show that a step starts."""

    def waiting(self, planned: Planned, queue: LockQueue) -> None:
        """Show that a step waits for the machine."""

    def granted(self, planned: Planned) -> None:
        """Show that a step has the machine."""

    def sampled(self, planned: Planned, taken: SamplingProgress) -> None:
        """Show how far a step is."""

    def ended(self, run: StepRun) -> None:
        """Show the outcome of a step."""

    def noted(self, text: str) -> None:
        """Show a sentence for the user."""

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

    def waiting(self, planned: Planned, queue: LockQueue) -> None:
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


class Silence(ProgressDisplay):
    """No progress, except one line if a run waits for the machine and would seem to hang."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, write: Callable[[str], None] = tell) -> None:
        """``clock`` returns seconds."""
        self._clock, self._write = clock, write
        self._running: dict[str, Running] = {}
        self._has_printed = False

    def waiting(self, planned: Planned, queue: LockQueue) -> None:
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

    def waiting(self, planned: Planned, queue: LockQueue) -> None:
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


MOST_LINES = 12
MOST_COMING = 4
NARROWEST = 20
_STAGE, _ROOM_FOR_NOTE = 9, 30
_BOLD, _MAGENTA, _DIM = "1", "35", "2"
"""Magenta is readable on black and on white backgrounds; blue and yellow are not."""


@dataclass(frozen=True)
class View:
    """The state to draw. Times are in seconds; ``now`` is from the same clock as ``Running.since``.

    ``waited``: how long ended steps waited for the machine. ``estimates``: expected durations by step id. ``serial``:
    steps run one after the other. ``wall``: the time of day as text.
    """

    name: str
    running: Sequence[Running]
    coming: Sequence[Planned]
    ended: int
    began: float
    waited: float
    now: float
    estimates: Mapping[str, ExpectedTime | None]
    serial: bool
    wall: str


def block_lines(view: View, width: int, height: int, *, unicode: bool, colored: bool) -> list[str]:
    """Return at most 12 lines, fewer than ``height`` and narrower than ``width``. Later steps are cut first."""
    room = max(1, min(MOST_LINES, height - 1))
    foot = [(f"  {why}; as of {view.wall}", _DIM) for why in _frozen(view)]
    column = _column([item.planned for item in view.running] + list(view.coming[:MOST_COMING]), width)
    active = [_step("▶", item.planned, item.note(view.now, _estimate(view, item)), column) for item in view.running]
    rest = room - 1 - len(foot)
    shown = _first(active, rest, "running")
    coming = [_step("·", item, _expected(view, item), column) for item in view.coming]
    shown += _first(coming, min(MOST_COMING, rest - len(shown)), "to come")
    lines = [(_header(view), _BOLD), *((text, _MAGENTA if text.startswith("▶") else "") for text in shown), *foot]
    return [_painted(text, color if colored else "", width, unicode=unicode) for text, color in lines[:room]]


def _frozen(view: View) -> list[str]:
    """Return why the block is redrawn rarely. While a step waits for the machine, another run is measuring."""
    timed = [item for item in view.running if is_timed(item.planned)]
    if not timed:
        return []
    if all(item.queue for item in timed):
        return [f"updated every {RECHECK_SECONDS:g} s until it has the machine"]
    return ["not updated while it is measured"]


def _first(lines: list[str], room: int, what: str) -> list[str]:
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"  … {len(lines) - room + 1} more {what}"] if room > 0 else []


def _painted(text: str, color: str, width: int, *, unicode: bool) -> str:
    # After a line that is exactly as wide as the terminal, terminals place the cursor differently.
    if unicode:
        text = fitted(text, max(NARROWEST, width) - 1)
    else:
        text = fitted(in_ascii(text), max(NARROWEST, width) - 1, "...")
    return f"\x1b[{color}m{text}\x1b[0m" if color else text


def _header(view: View) -> str:
    total = view.ended + len(view.running) + len(view.coming)
    parts = [f"perfflow {shortened(view.name, 30)}", f"{view.ended}/{total} steps"]
    waited = view.waited + sum(item.waiting(view.now) for item in view.running)
    parts.append(f"elapsed {clock_text(view.now - view.began - waited)}")
    parts += [f"waited {clock_text(waited)}"] if waited >= 1 else []
    return "  ".join([*parts, *_left(view)])


def _left(view: View) -> list[str]:
    """Return the remaining time, if steps run one after the other and the duration of each is known."""
    running = {item.planned.id: _estimate(view, item) for item in view.running}
    known = running | {item.id: view.estimates.get(item.id) for item in view.coming}
    seconds = {name: item.seconds for name, item in known.items() if item and item.seconds is not None}
    if not view.serial or not known or len(seconds) < len(known):
        return []
    # The time that a step waits for the machine is unknown and not part of its duration.
    spent = {item.planned.id: item.worked(view.now) for item in view.running}
    left = sum(max(0.0, time - spent.get(name, 0.0)) for name, time in seconds.items())
    about = "at most" if any(item and item.is_limit for item in known.values()) else "about"
    return [f"{about} {clock_text(left)} left"]


def _estimate(view: View, item: Running) -> ExpectedTime | None:
    """Return the expected duration of a running step. A suite has reported its number of benchmarks by then."""
    known = view.estimates.get(item.planned.id)
    return known.of(item.taken.turn[1]) if known and item.taken else known


def _expected(view: View, planned: Planned) -> str:
    return expected_text(view.estimates.get(planned.id))


def _column(steps: Sequence[Planned], width: int) -> int:
    """Return the width of the name column: the longest name, limited so that notes fit beside it."""
    longest = max((cells(visible(item.id)) for item in steps), default=0)
    return min(max(longest, 24), max(12, min(36, width - _STAGE - 4 - _ROOM_FOR_NOTE)))


def _step(mark: str, planned: Planned, note: str, column: int) -> str:
    name = padded(shortened(planned.id, column), column)
    return f"{mark} {padded(shortened(planned.stage, _STAGE), _STAGE)} {name} {note}".rstrip()


def rows_of(line: str, width: int) -> int:
    """Return how many rows a line without colours takes on a terminal that may be narrower than before."""
    return max(1, -(-cells(visible(line)) // max(1, width)))


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
    estimates: Callable[[Sequence[Planned]], Mapping[str, ExpectedTime | None]] = lambda _: {}
    serial: bool = True


class Live(ProgressDisplay):
    """Redraws at most once a second. Before a timed step it draws once more, then not until its next pause."""

    def __init__(self, style: Style, shown: ShownRun, screen: Screen) -> None:
        self._style, self._shown, self._screen = style, shown, screen
        self._folder, self._steps = Path(), dict[str, Planned]()
        self._estimates: Mapping[str, ExpectedTime | None] = {}
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

    def waiting(self, planned: Planned, queue: LockQueue) -> None:
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


LIVE, PLAIN, OFF = "live", "plain", "off"


class _Stream(Protocol):
    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""


def mode_of(asked: str | None, stream: _Stream | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return the kind of progress. It is never live on a stream without cursor movement, whatever was asked.

    NO_COLOR and CI select lines. Forced colour does not select live progress. ``stream`` is None if the shell closed
    it; then there is no progress.
    """
    if asked == OFF or stream is None:
        return OFF
    if asked == PLAIN or not stream.isatty() or environ.get("TERM", "dumb") == "dumb":
        return PLAIN
    lines_wanted = in_ci(environ) or bool(environ.get("NO_COLOR"))
    return PLAIN if lines_wanted and asked != LIVE else LIVE


def shown(
    asked: str | None,
    opened: Opened,
    typed: Sequence[str],
    *,
    color: str = AUTO,
    jobs: int = 1,
    budget: float | None = None,
) -> Lines | Live | Silence:
    """Return the progress display of a run.

    ``typed``: the command line that started it. ``budget``: seconds for the whole command.
    """
    typed = masked(typed, secrets_in(os.environ, opened.plan.params))
    mode, style = mode_of(asked, sys.stderr), style_of(sys.stderr, color)
    if mode == OFF:
        return Silence()
    if mode == PLAIN:
        return Lines(style, typed, dressing())

    def estimates(steps: Sequence[Planned]) -> Mapping[str, ExpectedTime | None]:
        from perfflow.jobs.catalog.descriptions import expected_durations

        in_trees = list(typed[1:2]) == ["gate"] and not any(word.startswith("--base-results") for word in typed)
        ids = [item.id for item in steps]
        return expected_durations(opened, ids, in_trees=in_trees, budget=budget, ask_server=True)

    about = ShownRun(opened.plan.workflow.name, typed, estimates, serial=jobs == 1)
    screen = Screen(size=lambda: size_of(sys.stderr), in_front=lambda: in_front(sys.stderr))
    return Live(style, about, screen)


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
