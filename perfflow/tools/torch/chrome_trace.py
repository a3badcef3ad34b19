"""Chrome traces (``{"traceEvents": [...]}``, plain or gzipped), read event by event: they may not fit into memory.

Format: "Trace Event Format" of Chromium, as PyTorch's Kineto writes it (``output_json.cpp``).
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, cast

from perfflow.errors import ToolOutputError

EVENTS = "traceEvents"
_CHUNK = 1 << 20
_LONGEST = 1 << 24
"""Characters of one event, or of any other value at top level: a larger one is no trace."""
_GZIP = b"\x1f\x8b"
_REMEDY = "the program was killed while it wrote, or the disk was full; trace fewer steps"
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


def read(path: Path, see: Callable[[Mapping[str, object]], None]) -> Mapping[str, object]:
    """Call ``see`` with each event; return what else stands at top level, such as ``distributedInfo``.

    Raises ToolOutputError if the file is missing, empty, cut short or no such trace.
    """
    try:
        with path.open("rb") as stream:
            is_gzip = stream.read(2) == _GZIP
        # By what the file is, not by its name.
        with (gzip.open if is_gzip else open)(path, "rt", encoding="utf-8", errors="replace") as lines:
            return _document(_Text(path.name, cast(IO[str], lines)), see)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ToolOutputError(f"{path.name} is cut short or damaged: {_REMEDY}") from error
    except OSError as error:
        raise ToolOutputError(f"{path.name} was not written, or cannot be read") from error


class _Text:
    """A text that is read in chunks, with values decoded from where it stands."""

    def __init__(self, name: str, stream: IO[str]) -> None:
        self._name, self._stream = name, stream
        self._text, self._at = "", 0

    def peek(self) -> str:
        """The next character that is no space, '' at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def take(self, wanted: str) -> str:
        """Pass over one of the characters ``wanted`` and return it. Raises ToolOutputError for any other."""
        found = self.peek()
        if not found or found not in wanted:
            raise self.trouble(found)
        self._at += 1
        return found

    def value(self) -> object:
        """Decode the next value. Raises ToolOutputError where there is none."""
        first = self.peek()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except ValueError as error:
                if not self._more():
                    raise self.trouble(first) from error
                continue
            except RecursionError as error:
                raise ToolOutputError(f"{self._name} is nested too deeply for a trace") from error
            # A number at the end of a chunk may go on in the next one.
            if end < len(self._text) or not self._more():
                self._at = end
                return cast(object, found)

    def trouble(self, found: str) -> ToolOutputError:
        """What to say of a character that should not be there, or of an end that came too early."""
        if self._more() or found:
            return ToolOutputError(f"{self._name} is damaged, cut short or no JSON: {_REMEDY}")
        return ToolOutputError(f"{self._name} is empty or cut short: {_REMEDY}")

    def _more(self) -> bool:
        """Read on; False at the end. Raises ToolOutputError where one value has grown beyond all bounds."""
        if len(self._text) - self._at > _LONGEST:
            raise ToolOutputError(f"{self._name} is no trace: one value in it is longer than {_LONGEST >> 20} MiB")
        chunk = self._stream.read(_CHUNK)
        self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)


def _document(text: _Text, see: Callable[[Mapping[str, object]], None]) -> Mapping[str, object]:
    others: dict[str, object] = {}
    events = 0
    for _ in _parts(text, "{", "}"):
        key = text.value()
        text.take(":")
        if not isinstance(key, str):
            raise text.trouble('"')
        if key != EVENTS:
            others[key] = text.value()
            continue
        if events:
            raise ToolOutputError(f"the trace holds {EVENTS} twice")
        for events, _ in enumerate(_parts(text, "[", "]"), 1):  # noqa: B007 (how many these were)
            event = text.value()
            if not isinstance(event, dict):
                raise ToolOutputError("the trace holds an event that is no object")
            see(event)
    if text.peek():
        raise text.trouble(text.peek())
    if not events:
        raise ToolOutputError(f"the trace holds no {EVENTS}: it is empty, or another program's JSON")
    return others


def _parts(text: _Text, opening: str, closing: str) -> Iterator[None]:
    """Stand before each member of an object or item of an array; the caller reads it."""
    text.take(opening)
    if text.peek() == closing:
        text.take(closing)
        return
    yield
    while text.take("," + closing) == ",":
        yield
