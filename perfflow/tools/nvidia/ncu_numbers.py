"""Numbers and units as Nsight Compute prints them, in whatever locale it ran, as figures in base units.

A table is printed in one notation, so how its groups and decimals are marked is told by all of its cells together:
``4,963,609,951.19``, ``27.595.520`` beside ``65,77``, ``1 024,5``. Where only ``117.344`` tells, its unit may: there is
no part of a nanosecond, and a unit with a prefix is chosen so that its figure is below 1000. The spelling of units
changed from ``nsecond`` and ``cycle/nsecond`` to ``ns`` and ``hz``; prefixes are decimal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from perfflow.errors import ToolOutputError
from perfflow.tools import printed_numbers, tool_files

_GROUPS = re.compile(r"(?<=\d)[ \u00a0\u202f'\u2019](?=\d{3})")
# With --print-metric-instances, the values of every instance follow in brackets.
_INSTANCES = re.compile(r"\s*\([^()]*\)\Z")
_MISSING = {"", "n/a", "-nan", "nan", "+nan", "no data", "<n/a>"}
_DOUBTFUL = "(!)"
# A lone mark before three digits.
_EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_WHOLE = {"ns", "nsecond", "byte", "byte/block", "block", "thread", "register/thread"}
_SCALED = re.compile(r"(?:[umkKMGT](?:second|s|byte|B|[hH]z)\b|cycle/[num]second).*")


class Kind(StrEnum):
    """What a metric measures, which its unit must fit."""

    TIME = "s"
    BYTES = "B"
    BANDWIDTH = "B/s"
    FREQUENCY = "1/s"
    SHARE = "%"
    COUNT = "1"


def _prefixed(*names: str) -> dict[str, int]:
    """Units with every prefix, and their powers of ten."""
    prefixes = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
    return {prefix + name: power for prefix, power in prefixes.items() for name in names}


def _rates(amounts: Mapping[str, int]) -> dict[str, int]:
    return {f"{above}/{below}": up - down for above, up in amounts.items() for below, down in _TIMES.items()}


_TIMES, _SIZES = _prefixed("second", "seconds", "sec", "s"), _prefixed("byte", "bytes", "B")
_COUNTED = (
    "", "inst", "inst/cycle", "inst/warp", "warp", "warps", "block", "blocks", "thread", "threads", "cycle",
    "register", "register/thread", "registers/thread", "byte/cycle", "sector", "sectors",
)  # fmt: skip
_POWERS: Mapping[Kind, Mapping[str, int]] = {
    Kind.TIME: _TIMES,
    Kind.BYTES: _SIZES | {f"{unit}/block": power for unit, power in _SIZES.items()},
    Kind.BANDWIDTH: _rates(_SIZES),
    Kind.FREQUENCY: _prefixed("hz", "Hz") | _rates(_prefixed("cycle", "cycles")),
    Kind.SHARE: {"%": -2},
    Kind.COUNT: dict.fromkeys(_COUNTED, 0),
}
"""The power of ten that turns a figure of a unit into one of base units."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric of one launch as it was printed."""

    text: str
    unit: str = ""


def decimal_mark(cells: Iterable[Cell]) -> str:
    """Return which of ``.`` and ``,`` marks decimals in a table, '' where nothing tells.

    Raises ToolOutputError where some cells say one and others the other.
    """
    marks = {mark for cell in cells for mark in _evidence(cell)}
    if len(marks) > 1:
        raise ToolOutputError("its numbers are written in two notations: print it with LC_ALL=C")
    return marks.pop() if marks else ""


def _evidence(cell: Cell) -> Iterator[str]:
    for text in (bare(cell.text), *re.split(r"[;()\s]+", cell.text)):
        yield from printed_numbers.decimal_evidence(text)
    if _EITHER.fullmatch(text := bare(cell.text)):
        seen, other = (".", ",") if "." in text else (",", ".")
        if cell.unit in _WHOLE:
            yield other
        elif _SCALED.fullmatch(cell.unit):
            yield seen


def bare(cell: str) -> str:
    """A cell without spaces between its groups, the mark of doubt, and the values of single instances."""
    return _GROUPS.sub("", _INSTANCES.sub("", cell.strip().removeprefix(_DOUBTFUL).strip()))


def is_missing(cell: str) -> bool:
    """Whether a cell says that the metric was not collected."""
    return bare(cell).lower() in _MISSING


def figure(cell: Cell, mark: str, kind: Kind, what: str) -> float:
    """Return a cell's figure in the base unit of its kind, shares as 0..1.

    Raises ToolOutputError naming ``what`` for no number, a negative or an endless one, one that may be two where no
    ``mark`` is known, and for a unit of another kind.
    """
    text = bare(cell.text)
    if not mark and _EITHER.fullmatch(text):
        raise ToolOutputError(f"{what} is {text}, which may be a thousand times as much or as little: use LC_ALL=C")
    found = printed_numbers.plain(text, "comma" if mark == "," else "point")
    if found is None:
        raise ToolOutputError(f"{what} is {ascii(cell.text)[:60]}, not a number")
    value, power = tool_files.number(found.value, what), _POWERS[kind].get(cell.unit.strip())
    if power is None:
        raise ToolOutputError(f"{what} has the unit {ascii(cell.unit)[:30]}, which perfflow does not know for it")
    # Divided, since 1e-9 is no binary fraction: 239008 ns are 0.000239008 s to the digit.
    return tool_files.number(value * 10.0**power if power >= 0 else value / 10.0**-power, what)
