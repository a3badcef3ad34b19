"""Numbers and units as Nsight Compute prints them, in whatever locale it ran, as figures in base units.

A table is printed in one notation, so how its groups and decimals are marked is told by all of its cells together:
``4,963,609,951.19``, ``27.595.520`` beside ``65,77``, ``1 024,5``. The spelling of units changed from ``nsecond`` and
``cycle/nsecond`` to ``ns`` and ``hz``; prefixes are decimal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.printed_numbers import decimal_evidence

_GROUPS = re.compile(r"(?<=\d)[ \u00a0\u202f'\u2019](?=\d{3})")
_PLAIN = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
# With --print-metric-instances, the values of every instance follow in brackets.
_INSTANCES = re.compile(r"\s*\([^()]*\)\Z")
_MISSING = {"", "n/a", "-nan", "nan", "+nan", "no data", "<n/a>"}
_DOUBTFUL = "(!)"
_PREFIXES: Mapping[str, int] = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
"""As powers of ten."""
_UNIT = re.compile(r"(?P<prefix>[numkKMGTP]?)(?P<base>seconds?|sec|s|bytes?|B|[hH]z|cycles?)")
_COUNTED = {"", "inst", "inst/cycle", "inst/warp", "warp", "warps", "block", "blocks", "thread", "threads", "cycle"}
_COUNTED |= {"register", "register/thread", "registers/thread", "byte/cycle", "sector", "sectors"}


class Kind(StrEnum):
    """What a metric measures, which its unit must fit."""

    TIME = "s"
    BYTES = "B"
    BANDWIDTH = "B/s"
    FREQUENCY = "1/s"
    SHARE = "%"
    COUNT = "1"


def decimal_mark(cells: Iterable[str]) -> str:
    """Return which of ``.`` and ``,`` marks decimals in a table, ``.`` where nothing tells.

    Raises ToolOutputError where some cells say one and others the other.
    """
    marks = {mark for cell in cells for mark in decimal_evidence(bare(cell))}
    if len(marks) > 1:
        raise ToolOutputError("its numbers are written in two notations: print it with LC_ALL=C")
    return marks.pop() if marks else "."


def bare(cell: str) -> str:
    """A cell without spaces between its groups, the mark of doubt, and the values of single instances."""
    return _GROUPS.sub("", _INSTANCES.sub("", cell.strip().removeprefix(_DOUBTFUL).strip()))


def is_missing(cell: str) -> bool:
    """Whether a cell says that the metric was not collected."""
    return bare(cell).lower() in _MISSING


def figure(cell: str, mark: str, unit: str, kind: Kind, what: str) -> float:
    """Return a cell's figure in the base unit of its kind, shares as 0..1.

    Raises ToolOutputError naming ``what`` for no number, a negative or an endless one, and for a unit of another kind.
    """
    text = bare(cell)
    normal = text.translate({ord(","): ".", ord("."): ","}) if mark == "," else text
    if not _PLAIN.fullmatch(normal):
        raise ToolOutputError(f"{what} is {ascii(cell)[:60]}, not a number")
    value = tool_files.number(float(normal.replace(",", "")), what)
    power = _power(unit.strip(), kind)
    if power is None:
        raise ToolOutputError(f"{what} has the unit {ascii(unit)[:30]}, which perfflow does not know for it")
    # Divided, since 1e-9 is no binary fraction: 239008 ns are 0.000239008 s to the digit.
    return tool_files.number(value * 10.0**power if power >= 0 else value / 10.0**-power, what)


def _power(unit: str, kind: Kind) -> int | None:
    """The power of ten that turns a figure of a unit into one of base units, None for a unit of another kind."""
    top, _, below = unit.partition("/")
    match kind:
        case Kind.SHARE:
            return -2 if unit == "%" else None
        case Kind.COUNT:
            return 0 if unit in _COUNTED else None
        case Kind.TIME:
            return None if below else _prefixed(top, "s")
        case Kind.BYTES:
            return _prefixed(top, "B") if below in ("", "block") else None
        case Kind.BANDWIDTH:
            return _per_second(_prefixed(top, "B"), below)
        case Kind.FREQUENCY:
            return _per_second(_prefixed(top, "cycle"), below) if below else _prefixed(top, "hz")


def _per_second(above: int | None, below: str) -> int | None:
    time = _prefixed(below, "s")
    return None if above is None or time is None else above - time


_BASES: Mapping[str, tuple[str, ...]] = {
    "s": ("second", "seconds", "sec", "s"),
    "B": ("byte", "bytes", "B"),
    "hz": ("hz", "Hz"),
    "cycle": ("cycle", "cycles"),
}


def _prefixed(unit: str, base: str) -> int | None:
    """The prefix of a unit as a power of ten, None where it is not one of ``base``."""
    found = _UNIT.fullmatch(unit)
    return _PREFIXES[found["prefix"]] if found and found["base"] in _BASES[base] else None
