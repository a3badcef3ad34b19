"""What ``heaptrack_print`` prints: two sections of stacks with counts, the allocator first, and totals below them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.valgrind import heap_frames
from perfflow.tools.valgrind.heap_frames import HeapFrame

_BLOCK = re.compile(
    r"(?P<count>\d{1,18}) (?:calls to allocation functions with \S+ peak consumption"
    r"|temporary allocations of \d+ allocations in total \([\d.]+%\)) from\Z"
)
_SECTIONS = {"MOST CALLS TO ALLOCATION FUNCTIONS": "calls", "MOST TEMPORARY ALLOCATIONS": "temporary"}
_TOTAL = re.compile(
    r"(?P<what>calls to allocation functions|temporary memory allocations|peak heap memory consumption"
    r"|total memory leaked): (?P<value>\d+(?:\.\d+)?)(?P<unit>[BKMGT]?)(?: \(-?\S+/s\))?\Z"
)
_TOTALS = {
    "calls to allocation functions": "calls",
    "temporary memory allocations": "temporary",
    "peak heap memory consumption": "peak",
    "total memory leaked": "leaked",
}
_UNITS = {"": 1.0, "B": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_AT = re.compile(r"    at (?P<file>.*):(?P<line>\d{1,9})\Z")
_IN = re.compile(r"    in (?P<library>.*)\Z")


@dataclass(slots=True)
class Text:
    """Stacks with their counts by section, ``calls`` and ``temporary``, and the totals of ``_TOTALS``."""

    places: dict[str, list[tuple[Sequence[HeapFrame], int]]] = field(
        default_factory=lambda: {"calls": [], "temporary": []}
    )
    totals: dict[str, float] = field(default_factory=dict)


def read(path: Path) -> Text:
    """Read the text. Raises ToolOutputError unless all its totals are there, and every stack is one."""
    text, section, name = Text(), "", ""
    stack: list[HeapFrame] | None = None
    for line in tool_files.read_lines(path):
        if line.startswith("    ") and stack is not None:
            # The source of a frame, or the library; a frame without a name has neither.
            place = _AT.match(line)
            if not place and not _IN.match(line):
                raise ToolOutputError(f"{path.name} holds a line that is no place: {line[:80]!r}")
            if place and name:
                stack[-1] = heap_frames.frame_of(name, place["file"], int(place["line"]))
                name = ""
        elif line.startswith("  ") and stack is not None:
            if name := line.strip():
                stack.append(heap_frames.frame_of(name, "", 0))
        elif line.startswith("  "):
            raise ToolOutputError(f"{path.name} holds a line that is no part of a stack: {line[:80]!r}")
        else:
            section = _SECTIONS.get(line, section)
            stack = _begun(text, section, line, path.name)
    if text.totals.keys() != set(_TOTALS.values()):
        raise ToolOutputError(f"{path.name} is cut short, or not of heaptrack")
    return text


def _begun(text: Text, section: str, line: str, file: str) -> list[HeapFrame] | None:
    """Take a line that starts something: return the stack that it begins; what heaptrack says beside is passed over."""
    stack: list[HeapFrame] = []
    if (block := _BLOCK.match(line)) and section and int(block["count"]):
        text.places[section].append((stack, int(block["count"])))
        return stack
    if total := _TOTAL.match(line):
        name = _TOTALS[total["what"]]
        if name in text.totals:
            raise ToolOutputError(f"{file} is damaged: it holds the total of its {name} twice")
        text.totals[name] = tool_files.number_in(total["value"], name) * _UNITS[total["unit"]]
    return None
