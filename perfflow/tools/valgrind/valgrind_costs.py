"""The file format of callgrind and cachegrind: cost lines under ``fl=``, ``fn=`` and ``ob=``, checked by their sums.

Names may be compressed to ``(id) name`` and then ``(id)``, positions to ``+n``, ``-n`` and ``*``. The line after
``calls=`` is the callee's cost and not added. ``fi=`` and ``fe=`` switch to and from inlined source; a function belongs
to the file that ``fl=`` named before it. Every part of a file ends with ``totals:`` (cachegrind: ``summary:``), which
must be the sum of its cost lines, so a file that was cut or misread is never taken for a small figure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import NoReturn

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files

_COMPRESSED = re.compile(r"\((\d{1,9})\)(?: (.*))?\Z")
# Which names share one list of compressed ids.
_LISTS = {
    **dict.fromkeys(("ob", "cob"), "ob"),
    **dict.fromkeys(("fl", "fi", "fe", "cfi", "cfl", "jfi"), "fl"),
    **dict.fromkeys(("fn", "cfn", "jfn"), "fn"),
}
_POSITION = re.compile(r"(?P<sign>[+-]?)(?P<number>0[xX][0-9A-Fa-f]{1,16}|\d{1,12})\Z", re.ASCII)
# One of these ends the command line, which older versions write with the line ends that are in it.
_AFTER_COMMAND = ("part: ", "events: ")
# The second and deeper levels of a recursion are functions of their own to callgrind.
_RECURSION = re.compile(r"'\d+\Z")

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Function:
    """A function by name, the object (program or library) that holds it, and its own source file."""

    name: str
    object: str
    file: str


@dataclass(slots=True)
class Costs:
    """What one file says: totals by event, and of every function all its events, and the first one by source line.

    ``triggers`` says why parts were written.
    """

    path: Path
    command: str = ""
    events: tuple[str, ...] = ()
    totals: Counter[str] = field(default_factory=Counter)
    functions: dict[Function, Counter[Place]] = field(default_factory=dict)
    of_function: dict[Function, list[int]] = field(default_factory=dict)
    triggers: list[str] = field(default_factory=list)

    def total(self, *events: str) -> float:
        """Return the sum of events. Raises ToolOutputError if the file lacks one."""
        if missing := [event for event in events if event not in self.events]:
            raise ToolOutputError(f"{self.path.name} lacks {', '.join(missing)}")
        return tool_files.number(sum(self.totals[event] for event in events), "+".join(events))


def read(path: Path) -> Costs:
    """Read one file. Raises ToolOutputError unless it is whole and its sums are right."""
    return _Reader(path).read()


class _Reader:
    """The state that lines of the format rely on."""

    def __init__(self, path: Path) -> None:
        self.costs = Costs(path)
        self.names: dict[tuple[str, str], str] = {}
        self.object = self.file = self.own_file = ""
        self.line_index, self.positions = 0, [0]
        self.part: list[int] | None = None
        self.zeros: list[int] = []
        self.parts = 0
        self.in_command = self.callee = self.is_ended = False
        self.places: Counter[Place] | None = None
        self.own: list[int] = []

    def read(self) -> Costs:
        for line in tool_files.read_lines(self.costs.path):
            self._line(line)
        if not self.parts or self.part is not None:
            self._refuse("is cut short, or not of valgrind")
        return self.costs

    def _line(self, line: str) -> None:
        if self.in_command and not line.startswith(_AFTER_COMMAND):
            return
        self.in_command = False
        if line[:1] in "+-*0123456789" and line:
            self._cost(line.split())
        elif line and line[0] != "#":
            self._key(line)

    def _key(self, line: str) -> None:
        """Take ``key=value`` or ``key: value``; a header that is not known is passed over."""
        key, equals, value = line.partition("=")
        if equals and key in _LISTS:
            self._name(key, self._uncompressed(_LISTS[key], value))
        elif equals and key in {"calls", "jump", "jcnd"}:
            self.callee = key == "calls"
        elif ":" in line:
            key, _, value = line.partition(":")
            self._header(key, value.strip())
        else:
            self._refuse(f"holds a line that perfflow does not know: {line[:80]!r}")

    def _header(self, key: str, text: str) -> None:
        words = tuple(text.split())
        if key == "cmd":
            self.costs.command, self.in_command = text, True
        elif key == "desc" and text.startswith("Trigger: "):
            self.costs.triggers.append(text.removeprefix("Trigger: "))
        elif key == "events":
            if self.part is not None or not words or self.costs.events not in {(), words}:
                self._refuse("is damaged: its events change")
            self.costs.events, self.zeros, self.is_ended = words, [0] * len(words), False
        elif key == "positions":
            if "line" not in words or len(words) > 3:
                self._refuse("gives no source lines")
            self.line_index, self.positions = words.index("line"), [0] * len(words)
        # cachegrind ends with its summary; callgrind writes one first, and totals at the end.
        elif key == "totals" or (key == "summary" and self.part is not None):
            self._end_part(words)
        elif key == "summary" and self.is_ended:
            self._refuse("is damaged: it holds a summary twice")

    def _end_part(self, words: Sequence[str]) -> None:
        sums = self.part or self.zeros
        if not sums or not _are_counts(words) or list(map(int, words)) != sums:
            self._refuse("is damaged: its costs do not add up to its totals")
        self.costs.totals.update(dict(zip(self.costs.events, sums, strict=True)))
        self.part, self.parts, self.is_ended = None, self.parts + 1, True

    def _uncompressed(self, names: str, text: str) -> str:
        match = _COMPRESSED.match(text)
        if not match:
            return text
        key = (names, match[1])
        if match[2] is not None:
            self.names[key] = match[2]
        elif key not in self.names:
            self._refuse(f"is damaged: it names {text} without saying what that is")
        return self.names[key]

    def _name(self, key: str, name: str) -> None:
        if key == "ob":
            self.object = name
        elif key == "fl":
            self.file = self.own_file = name
        elif key in {"fi", "fe"}:
            self.file = name
        elif key == "fn":
            self.file, self.positions = self.own_file, [0] * len(self.positions)
            function = Function(_RECURSION.sub("", name), self.object, self.own_file)
            self.places = self.costs.functions.setdefault(function, Counter())
            self.own = self.costs.of_function.setdefault(function, [0] * len(self.zeros))

    def _cost(self, words: list[str]) -> None:
        """Add a cost line to its function; that of a callee only moves the position."""
        width = len(self.positions)
        self.positions = [self._position(old, word) for old, word in zip(self.positions, words[:width], strict=False)]
        counts = words[width:]
        if len(self.positions) < width or not _are_counts(counts) or len(counts) > len(self.costs.events):
            self._refuse(f"holds a line that is no cost: {' '.join(words)[:80]!r}")
        callee, self.callee = self.callee, False
        if callee or not counts:
            return
        if self.places is None:
            self._refuse("is damaged: it holds costs of no function")
        numbers = list(map(int, counts))
        self.places[self.file, self.positions[self.line_index]] += numbers[0]
        for at, number in enumerate(numbers):
            self.own[at] += number
        self.part = [old + new for old, new in zip_longest(self.part or self.zeros, numbers, fillvalue=0)]

    def _position(self, old: int, word: str) -> int:
        if word == "*":
            return old
        match = _POSITION.match(word)
        if not match:
            self._refuse(f"holds a position that is none: {word[:40]!r}")
        number = int(match["number"], 16 if match["number"][1:2] in {"x", "X"} else 10)
        new = {"": number, "+": old + number, "-": old - number}[match["sign"]]
        if new < 0:
            self._refuse(f"is damaged: it counts back to line {new}")
        return new

    def _refuse(self, reason: str) -> NoReturn:
        raise ToolOutputError(f"{self.costs.path.name} {reason}")


def _are_counts(words: Sequence[str]) -> bool:
    digits = "".join(words)
    return not words or (digits.isascii() and digits.isdecimal() and max(map(len, words)) <= 18)
