"""The lines of the block at the bottom of a live terminal: running steps, their progress, and later steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfflow.cli.pulse import is_timed
from perfflow.cli.step_text import Running, clock_text, expected_text, in_ascii
from perfflow.machine.lock import RECHECK_SECONDS
from perfflow.plan.plan import Planned
from perfflow.report.expected import Expected
from perfflow.report.sanitize import cells, fitted, padded, shortened, visible

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
    estimates: Mapping[str, Expected | None]
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


def _estimate(view: View, item: Running) -> Expected | None:
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
