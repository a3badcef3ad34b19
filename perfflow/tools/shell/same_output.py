"""``same-output``: check that a program prints the expected output in every run, on both sides of a comparison."""

from __future__ import annotations

import difflib
import math
import re
from itertools import zip_longest
from typing import Annotated

from pydantic import Field

from perfflow.model.readings import Parsed, Usage
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role

STDOUT = "stdout"
BASELINE = "baseline"
RUNS = 3
"""Runs of the side under test. An output that is wrong in a quarter of the runs is found in 58% of the checks."""
_SHOWN = 200
_PUNCTUATED = re.compile(r"([,;()\[\]]*)(.*?)([,;()\[\]]*)", re.DOTALL)


Allowed = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SameOutputOptions(CommandOptions):
    """``with`` keys of same-output."""

    expected: str = Field(
        BASELINE, description="A file with the expected output, or `baseline` for the output of the baseline."
    )
    relative: Allowed = Field(
        0.0, description="Allowed difference of numbers, as a share of the expected number. Adds to `absolute`."
    )
    absolute: Allowed = Field(0.0, description="Allowed absolute difference of numbers. Adds to `relative`.")
    files: list[str] | str = Field(
        default_factory=list, description="Files that the program writes, which are compared as well."
    )
    runs: int | None = Field(
        None,
        ge=1,
        le=1000,
        description=f"Number of runs of each side (default: {RUNS} of the side under test, 1 of a baseline).",
    )
    allow_empty: bool = Field(
        default=False,
        description="Allow empty output on both sides.",
    )
    check: str = Field(
        "",
        description="A command that exits with 0 if the output on its standard input is right. It runs in the tree of "
        "the baseline. The output must then equal the expected one only if `expected` is set.",
    )

    @property
    def allowed(self) -> tuple[float, float]:
        """The relative and the absolute tolerance."""
        return self.relative, self.absolute

    @property
    def compares(self) -> bool:
        """Whether the output must equal the expected one, because no other rule decides or both are asked for."""
        return not self.check or "expected" in self.model_fields_set

    @property
    def named_files(self) -> list[str]:
        """The files to compare."""
        return [self.files] if isinstance(self.files, str) else self.files


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command and keep its output."""
    return (Invocation(call.command, {}, STDOUT),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Return no figures; the caller compares the outputs."""
    return Parsed()


Tolerance = tuple[float, float]
"""Relative and absolute tolerance."""


def difference(expected: bytes, actual: bytes, relative: float = 0.0, absolute: float = 0.0) -> str:
    """Describe the first difference; '' if there is none.

    Numbers may differ by ``absolute`` + ``relative`` * |expected|. If both are 0, texts are compared.
    """
    tolerance = relative, absolute
    if expected == actual:
        return ""
    if not actual:
        return "the output is empty"
    # With replacement characters, different bytes would be equal.
    want, have = (text.decode("utf-8", "surrogateescape").splitlines() for text in (expected, actual))
    for number, (left, right) in enumerate(zip_longest(want, have), 1):
        if left == right:
            continue
        if left is None or right is None:
            return f"{len(have)} line{'s' if len(have) != 1 else ''} instead of {len(want)}"
        excess, apart, allowed = _line_excess(left, right, tolerance)
        if excess > 0:
            far = f"; differs by {apart:.3g}, more than the allowed {allowed:.3g}" if math.isfinite(excess) else ""
            return (
                f"line {number}: expected {_shortened(left)}, got {_shortened(right)}{_column_note(left, right)}{far}"
            )
    # Only the line ends differ, which a tolerance allows.
    return "" if any(tolerance) else "the line ends differ"


def _line_excess(left: str, right: str, tolerance: Tolerance) -> tuple[float, float, float]:
    """Return the largest ``_excess`` of two lines' words, 0 if the lines differ only in spaces."""
    words = left.split(), right.split()
    if not any(tolerance) or len(words[0]) != len(words[1]):
        return math.inf, math.inf, 0.0
    pairs = zip(*words, strict=True)
    return max((_excess(a, b, tolerance) for a, b in pairs if a != b), default=(0.0, 0.0, 0.0))


def _excess(expected: str, actual: str, tolerance: Tolerance) -> tuple[float, float, float]:
    """Return by how much the difference of two numbers exceeds the tolerance, the difference, and the tolerance.

    Infinite if a word is not a number, or only one is finite. nan equals nan, and inf equals inf.
    """
    parts = [match.groups() for word in (expected, actual) if (match := _PUNCTUATED.fullmatch(word))]
    try:
        x, y = (_value(text) for _, text, _ in parts)
        if len({(before, after) for before, _, after in parts}) == 1:
            if x == y or (math.isnan(x) and math.isnan(y)):
                return 0.0, 0.0, 0.0
            if math.isfinite(x) and math.isfinite(y):
                apart, allowed = abs(x - y), tolerance[1] + tolerance[0] * abs(x)
                # Python's integers are exact for any size.
                return (float(apart - allowed) if apart > allowed else 0.0), float(apart), allowed
    except (ValueError, OverflowError):
        pass
    return math.inf, math.inf, 0.0


def _value(text: str) -> float:
    """Return the number in a text. Raises ValueError."""
    if "_" in text:
        raise ValueError("a name, although Python reads it as a number")
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if math.isinf(number) and "inf" not in text.lower():
        raise ValueError("too large to be compared")
    return number


def _shortened(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "...")


def _column_note(left: str, right: str) -> str:
    """Return the column of the first difference in long lines, else ''."""
    if max(len(left), len(right)) <= 60:
        return ""
    block = difflib.SequenceMatcher(None, left[:2000], right[:2000], autojunk=False).get_matching_blocks()[0]
    return f" (from column {block.size + 1 if block.a == block.b == 0 else 1})"


ADAPTER = Adapter("same-output", Role.CHECK, invocations, parse, options=SameOutputOptions)
