"""Evidence lines: ``perf: <what>: <value unit>; Δ vs baseline: +12%``. One function writes them, one reads them."""

from __future__ import annotations

import re

from perfflow.units import Dimension, format_change, format_quantity

_LINE = re.compile(r"^perf: (?P<what>.+): (?P<value>[^:;]+)(?:; Δ vs baseline: (?P<change>none|n/a|[+-]?[\d.]+%))?$")


def line(what: str, value: float, dimension: Dimension, change: float | None) -> str:
    """Write one line; ``change`` is None on a first run. The sign is of the value, not of its goodness."""
    name = "".join(letter if letter.isprintable() else "�" for letter in what)
    delta = "none" if change is None else format_change(change)
    return f"perf: {name}: {format_quantity(value, dimension)}; Δ vs baseline: {delta}"


def read(text: str) -> tuple[str, str, str | None]:
    """Return (what, value, change) of a line. Raises ValueError when it is none."""
    match = _LINE.match(text)
    if not match:
        raise ValueError(f"{text!r} is not an evidence line")
    return match["what"], match["value"], match["change"]
