"""What ``heaptrack_print`` prints: two sections of stacks with counts, the allocator first, and totals below them."""

from __future__ import annotations

import re
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
    """Places with their counts by section, ``calls`` and ``temporary``, and the totals of ``_TOTALS``."""

    places: dict[str, list[tuple[tuple[HeapFrame, ...], int]]] = field(
        default_factory=lambda: {"calls": [], "temporary": []}
    )
    totals: dict[str, float] = field(default_factory=dict)


def read(path: Path) -> Text:
    """Read the text. Raises ToolOutputError unless all its totals are there, and every stack is one."""
    return _Reader(path).read()


class _Reader:
    """The state that lines rely on: the section, the open stack with its count, and the frame without a place yet."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = path, Text()
        self.section = self.name = ""
        self.count = 0
        self.stack: list[HeapFrame] = []

    def read(self) -> Text:
        for line in tool_files.read_lines(self.path):
            self._line(line)
        self._end_stack()
        if self.text.totals.keys() != set(_TOTALS.values()):
            self._refuse("is cut short, or not of heaptrack")
        return self.text

    def _line(self, line: str) -> None:
        if line.startswith("    ") and self.count:
            self._place(line)
        elif line.startswith("  ") and self.count:
            self._end_frame()
            self.name = line.strip()
        elif line.startswith("  "):
            self._refuse(f"holds a line that is no part of a stack: {line[:80]!r}")
        else:
            self._end_stack()
            self._head(line)

    def _head(self, line: str) -> None:
        """Take a line that starts something; what heaptrack says beside is passed over."""
        if line in _SECTIONS:
            self.section = _SECTIONS[line]
        elif (block := _BLOCK.match(line)) and self.section:
            self.count = int(block["count"])
        elif total := _TOTAL.match(line):
            name = _TOTALS[total["what"]]
            if name in self.text.totals:
                self._refuse(f"is damaged: it holds the total of its {name} twice")
            self.text.totals[name] = tool_files.number_in(total["value"], name) * _UNITS[total["unit"]]

    def _place(self, line: str) -> None:
        """Take the source or the library of a frame; a frame without a name has neither."""
        if found := _AT.match(line):
            self._end_frame(found["file"], int(found["line"]))
        elif not _IN.match(line):
            self._refuse(f"holds a line that is no place: {line[:80]!r}")

    def _end_frame(self, file: str = "", line: int = 0) -> None:
        if self.name:
            self.stack.append(heap_frames.frame_of(self.name, file, line))
        self.name = ""

    def _end_stack(self) -> None:
        self._end_frame()
        if self.count:
            self.text.places[self.section].append((tuple(self.stack), self.count))
        self.count, self.stack = 0, []

    def _refuse(self, reason: str) -> None:
        raise ToolOutputError(f"{self.path.name} {reason}")
