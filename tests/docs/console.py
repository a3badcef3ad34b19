"""Runs what the documents show. ``console`` blocks hold ``$ command`` lines and their output.

A line ``...`` stands for any lines; numbers, run ids, column widths, bars and the column of values that a histogram
does not draw may differ, words and exit statuses may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_STATUS = re.compile(r"exit status \d+")
_DRAWN = re.compile(r"[├┤━●│┊┿◂▸▁-█](?:[├┤━●│┊┿◂▸▁-█ ]*[├┤━●│┊┿◂▸▁-█])?")
_NOT_DRAWN = re.compile(r"(?<= Samples) Not drawn$|(?<= N unit N unit N unit N) [N–]$")
_UNIT = re.compile(r"N (?:ps|ns|μs|ms|s|B|[KMGT]iB)\b")


@dataclass(frozen=True)
class Example:
    command: str
    output: tuple[str, ...]


def blocks(document: Path, kind: str) -> list[str]:
    return [match["text"] for match in _BLOCK.finditer(document.read_text()) if match["kind"] == kind]


def examples(document: Path) -> Iterator[Example]:
    for text in blocks(document, "console"):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *output = part.rstrip("\n").split("\n")
            yield Example(command, tuple(output))


def normal(line: str) -> str:
    """A line with what may differ between machines and runs made equal."""
    if _STATUS.fullmatch(line):
        return line
    line = _NUMBER.sub("N", _RUN_ID.sub("RUN", _DRAWN.sub("DRAWN", line)))
    return _NOT_DRAWN.sub("", " ".join(_UNIT.sub("N unit", line).split()))


def first_mismatch(expected: tuple[str, ...], actual: list[str]) -> str:
    """The first expected line that the output does not have in its place, '' when all are there."""
    position = 0
    anywhere = False
    for line in expected:
        if line.strip() == "...":
            anywhere = True
            continue
        wanted = normal(line)
        found = [number for number, text in enumerate(actual) if number >= position and normal(text) == wanted]
        if not found or (found[0] != position and not anywhere):
            return line
        position, anywhere = found[0] + 1, False
    return "" if anywhere or position == len(actual) else f"(more output: {actual[position]!r})"
