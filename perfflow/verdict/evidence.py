"""Evidence lines: ``perf: <what>: <value unit>; Δ vs baseline: +12%``. One function writes them, one reads them."""

from __future__ import annotations

import re

from perfflow.units import Dimension, format_change, format_quantity

_VALUE = r"(?P<value>[≥≤]?(?:-?\d|-?inf|nan)[^:;]*)"
# With the change first: a name may hold anything that a line holds, and the last of it is what counts.
_LINES = (
    re.compile(rf"perf: (?P<what>.+): {_VALUE}; Δ vs baseline: (?P<change>none|n/a|[+-]?[\d.]+%)"),
    re.compile(rf"perf: (?P<what>.+): {_VALUE}(?P<change>)"),
)


def line(what: str, value: float, dimension: Dimension, change: float | None, *, at_most: bool = False) -> str:
    """Write one line; ``change`` is None on a first run, nan where there was a baseline and no share can be told.

    The sign is of the value, not of its goodness.

    ``at_most``: the value is an upper bound.
    """
    name = "".join(letter if letter.isprintable() else "�" for letter in what)
    delta = "none" if change is None else format_change(change)
    bound = "≤" if at_most else ""
    return f"perf: {name}: {bound}{format_quantity(value, dimension)}; Δ vs baseline: {delta}"


def read(text: str) -> tuple[str, str, str | None]:
    """Return (what, value, change) of a line. Raises ValueError when it is none."""
    match = next(filter(None, (pattern.fullmatch(text) for pattern in _LINES)), None)
    if not match:
        raise ValueError(f"{text!r} is not an evidence line")
    return match["what"], match["value"], match["change"] or None
