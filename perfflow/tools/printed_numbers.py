"""Read numbers as programs print them: with a decimal point or comma, and separators between groups of three digits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from perfflow.model.errors import ToolOutputError
from perfflow.tools import tool_files

Decimal = Literal["point", "comma"]
_SHAPE = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d{1,3})?", re.ASCII)
_PLAIN = re.compile(r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
# Separators that no locale uses as a decimal mark.
_GROUPS = re.compile(r"(?<=\d)['\u2019_\u00a0\u202f](?=\d{3}(?!\d))")
_SWAPPED = str.maketrans(",.", ".,")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number and the step of its last digit: 0.01 of ``9.95``, 1 of ``12``."""

    value: float
    step: float


def decimal_evidence(text: str) -> Iterator[str]:
    """Yield the decimal mark that follows from one number; nothing for ``1,024``, which is ambiguous."""
    if not _SHAPE.fullmatch(text):
        return
    mantissa = re.split("[eE]", text.lstrip("+-"))[0]
    marks = re.findall("[,.]", mantissa)
    if len(set(marks)) == 2:
        yield marks[-1]
    elif len(marks) > 1:
        yield "." if marks[0] == "," else ","
    elif marks:
        whole, _, rest = mantissa.partition(marks[0])
        if len(rest) != 3 or len(whole) > 3 or whole.startswith("0"):
            yield marks[0]


def evident_marks(texts: Iterable[str]) -> frozenset[str]:
    """Return the decimal marks that follow from the numbers of one output, which share one notation."""
    return frozenset(mark for text in texts for mark in decimal_evidence(text.strip()))


def read(text: str, what: str, decimal: Decimal | None, evident: frozenset[str]) -> Printed:
    """Read one number. ``evident`` are the decimal marks of the whole output, used if no ``decimal`` is declared.

    Raises ToolOutputError, starting with ``what``, for a text that is not a number or is ambiguous.
    """
    shown = f"{what} is {tool_files.shown(text)}"
    bare = _GROUPS.sub("", text.strip())
    found = plain(bare, decimal or "point")
    if decimal:
        if found is None:
            raise ToolOutputError(f"{shown}, not a number with a decimal {decimal} (`parse: {{decimal: {decimal}}}`)")
        return found
    # With a comma or several points, the German notation is possible as well.
    german = plain(bare, "comma") if "," in bare or bare.count(".") > 1 else None
    if german and (found is None or evident == {","}):
        raise ToolOutputError(
            f"{shown}, which has a decimal comma: write `decimal: comma` under `parse`, or print it with a point"
        )
    if german and found and evident != {"."}:
        both = f"{found.value:.15g} or {german.value:.15g}"
        raise ToolOutputError(f"{shown}, which may be {both}: write `decimal: point` or `decimal: comma` under `parse`")
    if found is None:
        raise ToolOutputError(f"{shown}, not a number")
    return found


def plain(bare: str, decimal: Decimal) -> Printed | None:
    """Return the number in one notation, None if it is not a number in it."""
    normal = bare.translate(_SWAPPED) if decimal == "comma" else bare
    return Printed(float(normal.replace(",", "")), last_digit(normal)) if _PLAIN.fullmatch(normal) else None


def last_digit(text: str) -> float:
    """Return the step of the last digit of a number with a decimal point."""
    mantissa, _, power = text.lower().partition("e")
    return 10.0 ** min(300, int(power or 0) - len(mantissa.partition(".")[2]))
