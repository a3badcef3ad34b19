"""``same-output``: what a program prints must be what is expected, run after run, on both sides of a comparison."""

from __future__ import annotations

import difflib
import math
from pathlib import Path

from pydantic import Field

from perfflow.samples.readings import Parsed, Usage
from perfflow.tools.protocol import Call, CommandOptions, Invocation, Role

NAME = "same-output"
ROLE = Role.CHECK
DETERMINISTIC = False
PROGRAM = ""
VERSION_ARGV: tuple[str, ...] = ()
INSTALL = ""
METRICS: frozenset[str] = frozenset()
INTERPRETER = ""
STDOUT = "stdout"
BASELINE = "baseline"
_SHOWN = 200


class SameOutputOptions(CommandOptions):
    """``with`` keys of same-output."""

    expected: str = Field(
        BASELINE, description="a file with the expected output, or `baseline`: the other side's output"
    )
    tolerance: float = Field(0.0, ge=0, description="largest absolute or relative difference between numbers")
    runs: int = Field(1, ge=1, le=1000, description="runs of each side; all must agree")


OPTIONS = SameOutputOptions


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command with its output kept."""
    return (Invocation(call.command, {}, STDOUT),)


def outputs(call: Call) -> tuple[Path, ...]:
    """Nothing is required: an empty output is an output."""
    return ()


def parse(call: Call, usage: Usage) -> Parsed:
    """There are no figures in it."""
    return Parsed()


def enumerate(call: Call) -> None:
    """It is no suite."""


def difference(expected: bytes, actual: bytes, tolerance: float = 0.0) -> str:
    """Return the first difference in words, '' when there is none. Numbers may differ by ``tolerance``."""
    if expected == actual:
        return ""
    if not actual:
        return "the output is empty"
    # Replaced bytes would look alike.
    want = expected.decode("utf-8", "surrogateescape").splitlines()
    have = actual.decode("utf-8", "surrogateescape").splitlines()
    for number, (left, right) in enumerate_lines(want, have):
        if left is None or right is None:
            return f"{len(have)} line{'s' if len(have) != 1 else ''} instead of {len(want)}"
        if left != right and not _close(left, right, tolerance):
            apart = _apart(left, right, tolerance)
            return f"line {number}: expected {_brief(left)}, got {_brief(right)}{_where(left, right)}{apart}"
    # Only the line ends differ; with a tolerance that is near enough.
    return "" if tolerance else "the line ends differ"


def enumerate_lines(want: list[str], have: list[str]) -> list[tuple[int, tuple[str | None, str | None]]]:
    """Pair the lines of both texts from line 1 on; None where one text has ended."""
    longest = max(len(want), len(have))
    padded = [lines + [None] * (longest - len(lines)) for lines in (list[str | None](want), list[str | None](have))]
    return list(zip(range(1, longest + 1), zip(*padded, strict=True), strict=True))


def _close(left: str, right: str, tolerance: float) -> bool:
    """Whether two lines are the same words, numbers apart by no more than ``tolerance``."""
    words = left.split(), right.split()
    if not tolerance or len(words[0]) != len(words[1]):
        return False
    return all(a == b or _close_numbers(a, b, tolerance) for a, b in zip(*words, strict=True))


def _close_numbers(a: str, b: str, tolerance: float) -> bool:
    try:
        x, y = _number(a), _number(b)
    except ValueError:
        return False
    return math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance)


def _number(word: str) -> float:
    """Return the number in a word. Raises ValueError where it is none."""
    return float(word.strip(",;()[]"))


def _apart(left: str, right: str, tolerance: float) -> str:
    """Say how far apart the numbers are where a tolerance allows for some and nothing else differs; else ''."""
    pairs = [(a, b) for a, b in zip(left.split(), right.split(), strict=False) if a != b]
    if not tolerance or len(left.split()) != len(right.split()):
        return ""
    try:
        found = [(_number(a), _number(b)) for a, b in pairs]
    except ValueError:
        return ""
    # As ``math.isclose`` does: the absolute or the relative one, whichever is less.
    most = max(abs(x - y) / max(1.0, abs(x), abs(y)) for x, y in found)
    return f"; differs by {most:.2g}, more than the tolerance of {tolerance:g}" if math.isfinite(most) else ""


def _brief(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "...")


def _where(left: str, right: str) -> str:
    """Column of the first difference, which long lines hide."""
    if max(len(left), len(right)) <= 60:
        return ""
    block = difflib.SequenceMatcher(None, left[:2000], right[:2000], autojunk=False).get_matching_blocks()[0]
    return f" (from column {block.size + 1 if block.a == block.b == 0 else 1})"
