"""``same-output``: what a program prints must be what is expected, run after run, on both sides of a comparison."""

from __future__ import annotations

import difflib
import math
import re
from itertools import zip_longest
from typing import Annotated, Self

from pydantic import AliasChoices, Field, model_validator

from perfflow.model.readings import Parsed, Usage
from perfflow.tools.adapter import INSTEAD, Adapter, Call, CommandOptions, Invocation, Role

STDOUT = "stdout"
BASELINE = "baseline"
RUNS = 3
"""Runs of what is judged. An output that is wrong in a quarter of the runs is found in 58% of the checks."""
_SHOWN = 200
_PUNCTUATED = re.compile(r"([,;()\[\]]*)(.*?)([,;()\[\]]*)", re.DOTALL)


Allowed = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SameOutputOptions(CommandOptions):
    """``with`` keys of same-output."""

    expected: str = Field(
        BASELINE, description="a file with the expected output, or `baseline`: the other side's output"
    )
    relative: Allowed = Field(0.0, description="allowed difference between numbers, as a share of the expected one")
    absolute: Allowed = Field(0.0, description="allowed difference between numbers, added")
    files: list[str] | str = Field(
        default_factory=list, description="files that the program writes, to compare as well"
    )
    runs: int | None = Field(
        None, ge=1, le=1000, description=f"runs of each side; default: {RUNS} of what is judged, 1 of a baseline"
    )
    allow_empty: bool = Field(
        default=False,
        validation_alias=AliasChoices("allow-empty", "allow_empty"),
        description="allow empty output to equal empty output",
    )
    tolerance: Allowed | None = Field(
        None,
        description="sets `relative` and `absolute`",
        json_schema_extra={"deprecated": True, INSTEAD: "`relative` and `absolute`, which are added up"},
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.tolerance is not None and (self.relative or self.absolute):
            raise ValueError("`tolerance` is deprecated and sets `relative` and `absolute`: leave it out")
        return self

    @property
    def allowed(self) -> tuple[float, float]:
        """The relative and the absolute tolerance."""
        return (self.relative, self.absolute) if self.tolerance is None else (self.tolerance, self.tolerance)

    @property
    def named_files(self) -> list[str]:
        """The files to compare."""
        return [self.files] if isinstance(self.files, str) else self.files


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command with its output kept."""
    return (Invocation(call.command, {}, STDOUT),)


def parse(call: Call, usage: Usage) -> Parsed:
    """There are no figures in it."""
    return Parsed()


Tolerance = tuple[float, float]
"""Relative and absolute."""


def difference(expected: bytes, actual: bytes, relative: float = 0.0, absolute: float = 0.0) -> str:
    """Return the first difference in words, '' when there is none.

    Numbers may differ by ``absolute`` + ``relative`` * |expected|; where both are 0, texts are compared.
    """
    tolerance = relative, absolute
    if expected == actual:
        return ""
    if not actual:
        return "the output is empty"
    # Replaced bytes would look alike.
    want, have = (text.decode("utf-8", "surrogateescape").splitlines() for text in (expected, actual))
    for number, (left, right) in enumerate(zip_longest(want, have), 1):
        if left == right:
            continue
        if left is None or right is None:
            return f"{len(have)} line{'s' if len(have) != 1 else ''} instead of {len(want)}"
        excess, apart, allowed = _line_excess(left, right, tolerance)
        if excess > 0:
            far = f"; differs by {apart:.3g}, more than the allowed {allowed:.3g}" if math.isfinite(excess) else ""
            return f"line {number}: expected {_brief(left)}, got {_brief(right)}{_where(left, right)}{far}"
    # Only the line ends differ; with a tolerance that is near enough.
    return "" if any(tolerance) else "the line ends differ"


def _line_excess(left: str, right: str, tolerance: Tolerance) -> tuple[float, float, float]:
    """Return the ``_excess`` of the words that are furthest apart, 0 where the lines differ in their spaces alone."""
    words = left.split(), right.split()
    if not any(tolerance) or len(words[0]) != len(words[1]):
        return math.inf, math.inf, 0.0
    pairs = zip(*words, strict=True)
    return max((_excess(a, b, tolerance) for a, b in pairs if a != b), default=(0.0, 0.0, 0.0))


def _excess(expected: str, actual: str, tolerance: Tolerance) -> tuple[float, float, float]:
    """Return by how much two numbers are too far apart, how far apart they are, and how far they may be.

    Infinite where one of the words is not a number, or only one is finite. nan equals nan, and inf equals inf.
    """
    parts = [match.groups() for word in (expected, actual) if (match := _PUNCTUATED.fullmatch(word))]
    try:
        x, y = (_value(text) for _, text, _ in parts)
        if len({(before, after) for before, _, after in parts}) == 1:
            if x == y or (math.isnan(x) and math.isnan(y)):
                return 0.0, 0.0, 0.0
            if math.isfinite(x) and math.isfinite(y):
                apart, allowed = abs(x - y), tolerance[1] + tolerance[0] * abs(x)
                # Whole numbers are exact, whatever their size.
                return (float(apart - allowed) if apart > allowed else 0.0), float(apart), allowed
    except (ValueError, OverflowError):
        pass
    return math.inf, math.inf, 0.0


def _value(text: str) -> float:
    """Return the number that a text is. Raises ValueError."""
    if "_" in text:
        raise ValueError("a name, though not to Python")
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if math.isinf(number) and "inf" not in text.lower():
        raise ValueError("too large to be compared")
    return number


def _brief(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "...")


def _where(left: str, right: str) -> str:
    """Column of the first difference, which long lines hide."""
    if max(len(left), len(right)) <= 60:
        return ""
    block = difflib.SequenceMatcher(None, left[:2000], right[:2000], autojunk=False).get_matching_blocks()[0]
    return f" (from column {block.size + 1 if block.a == block.b == 0 else 1})"


ADAPTER = Adapter("same-output", Role.CHECK, invocations, parse, options=SameOutputOptions)
