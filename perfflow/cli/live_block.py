"""The block at the bottom of a live terminal as lines: what runs, how far it is, and what is to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfflow.cli.pulse import is_timed
from perfflow.cli.step_text import Running, clock_text, in_ascii
from perfflow.plan.plan import Planned
from perfflow.report.plain import cells, fitted, padded, shortened, visible

MOST_LINES = 12
MOST_COMING = 4
NARROWEST = 20
_STAGE, _ROOM_FOR_NOTE = 9, 30
_BOLD, _MAGENTA, _DIM = "1", "35", "2"
"""Of the colours, this one can be read on a black ground and on a white one; blue and yellow cannot."""


@dataclass(frozen=True, slots=True)
class View:
    """What is to be seen at one moment; times in seconds, ``now`` by the same clock as ``Running.since``.

    ``estimates`` are what steps took before, by id; ``serial`` says that steps run one after the other. ``wall`` is the
    time of day as text.
    """

    name: str
    running: Sequence[Running]
    coming: Sequence[Planned]
    ended: int
    began: float
    now: float
    estimates: Mapping[str, float]
    serial: bool
    wall: str


def block_lines(view: View, width: int, height: int, *, unicode: bool, colored: bool) -> list[str]:
    """At most 12 lines, none as wide as the terminal, and fewer than it is high; what is to come gives way first."""
    room = max(1, min(MOST_LINES, height - 1))
    foot = [(f"  frozen {why}; as of {view.wall}", _DIM) for why in _frozen(view)]
    column = _column([item.planned for item in view.running] + list(view.coming[:MOST_COMING]), width)
    active = [_step("▶", item.planned, item.note(view.now, _estimate(view, item)), column) for item in view.running]
    rest = room - 1 - len(foot)
    shown = _first(active, rest, "running")
    coming = [_step("·", item, _expected(view, item), column) for item in view.coming]
    shown += _first(coming, min(MOST_COMING, rest - len(shown)), "to come")
    lines = [(_header(view), _BOLD), *((text, _MAGENTA if text.startswith("▶") else "") for text in shown), *foot]
    return [_painted(text, color if colored else "", width, unicode=unicode) for text, color in lines[:room]]


def _frozen(view: View) -> list[str]:
    """Why nothing is drawn for now; a step that waits has another run's measurement to keep quiet for."""
    timed = [item for item in view.running if is_timed(item.planned)]
    if not timed:
        return []
    return ["until it has the machine" if all(item.waits_for for item in timed) else "while it is timed"]


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
    parts.append(f"elapsed {clock_text(view.now - view.began)}")
    left = _left(view)
    return "  ".join([*parts, f"about {clock_text(left)} left"] if left is not None else parts)


def _left(view: View) -> float | None:
    """Seconds to go, where each step that is left has been seen before and they run one after the other."""
    ids = [item.planned.id for item in view.running] + [item.id for item in view.coming]
    if not view.serial or not ids or any(name not in view.estimates for name in ids):
        return None
    # What a step waits for the machine is not its own time, and not known.
    spent = {item.planned.id: view.now - item.since for item in view.running if not item.waits_for}
    return sum(max(0.0, view.estimates[name] - spent.get(name, 0.0)) for name in ids)


def _estimate(view: View, item: Running) -> float | None:
    return view.estimates.get(item.planned.id)


def _expected(view: View, planned: Planned) -> str:
    known = view.estimates.get(planned.id)
    return "" if known is None else f"~{clock_text(known)}"


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
