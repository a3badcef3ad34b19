"""The block at the bottom of a live terminal as lines: what runs, how far it is, and what is to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfflow.cli.pulse import is_timed
from perfflow.cli.step_text import Running, clock_text, expected_text, in_ascii
from perfflow.machine.lock import RECHECK_SECONDS
from perfflow.model.later import dataclass
from perfflow.plan.plan import Planned
from perfflow.report.expected import Expected
from perfflow.report.sanitize import cells, fitted, padded, shortened, visible

MOST_LINES = 12
MOST_COMING = 4
NARROWEST = 20
_STAGE, _ROOM_FOR_NOTE = 9, 30
_BOLD, _MAGENTA, _DIM = "1", "35", "2"
"""Of the colours, this one can be read on a black ground and on a white one; blue and yellow cannot."""


@dataclass(frozen=True)
class View:
    """What is to be seen at one moment; times in seconds, ``now`` by the same clock as ``Running.since``.

    ``waited`` are the seconds for which steps that have ended waited for the machine. ``estimates`` are how long
    steps may take, by id; ``serial`` says that steps run one after the other. ``wall`` is the time of day as text.
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
    """At most 12 lines, none as wide as the terminal, and fewer than it is high; what is to come gives way first."""
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
    """Why little is drawn for now; a step that waits has another run's measurement to keep quiet for."""
    timed = [item for item in view.running if is_timed(item.planned)]
    if not timed:
        return []
    if all(item.queue for item in timed):
        return [f"drawn every {RECHECK_SECONDS:g} s until it has the machine"]
    return ["frozen while it is timed"]


def _first(lines: list[str], room: int, what: str) -> list[str]:
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"  … {len(lines) - room + 1} more {what}"] if room > 0 else []


def _painted(text: str, color: str, width: int, *, unicode: bool) -> str:
    # A line as wide as the terminal leaves the cursor in a place that terminals do not agree on.
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
    """How long it goes on, where that is known of each step that is left and they run one after the other."""
    running = {item.planned.id: _estimate(view, item) for item in view.running}
    known = running | {item.id: view.estimates.get(item.id) for item in view.coming}
    seconds = {name: item.seconds for name, item in known.items() if item and item.seconds is not None}
    if not view.serial or not known or len(seconds) < len(known):
        return []
    # What a step waits for the machine is not its own time, and not known.
    spent = {item.planned.id: item.worked(view.now) for item in view.running}
    left = sum(max(0.0, time - spent.get(name, 0.0)) for name, time in seconds.items())
    about = "at most" if any(item and item.is_limit for item in known.values()) else "about"
    return [f"{about} {clock_text(left)} left"]


def _estimate(view: View, item: Running) -> Expected | None:
    """How long a step that goes on may take; a suite has said how many benchmarks it has."""
    known = view.estimates.get(item.planned.id)
    return known.of(item.taken.turn[1]) if known and item.taken else known


def _expected(view: View, planned: Planned) -> str:
    return expected_text(view.estimates.get(planned.id))


def _column(steps: Sequence[Planned], width: int) -> int:
    """Columns for names: those of the longest, as far as the terminal has room for notes beside them."""
    longest = max((cells(visible(item.id)) for item in steps), default=0)
    return min(max(longest, 24), max(12, min(36, width - _STAGE - 4 - _ROOM_FOR_NOTE)))


def _step(mark: str, planned: Planned, note: str, column: int) -> str:
    name = padded(shortened(planned.id, column), column)
    return f"{mark} {padded(shortened(planned.stage, _STAGE), _STAGE)} {name} {note}".rstrip()


def rows_of(line: str, width: int) -> int:
    """Rows that a line without colours takes on a terminal that was made narrower since it was drawn."""
    return max(1, -(-cells(visible(line)) // max(1, width)))
