"""Reading what a tool left: files that may be missing, empty or cut, numbers and names that may be nonsense.

Everything here turns trouble into ToolOutputError with a reason of one line, since a parser never passes on a
traceback or a silent zero.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import LARGEST
from perfflow.tools import regular_files

S = TypeVar("S", int, float)
LONGEST_NAME = 400
"""Characters kept of a function's or file's name; C++ templates reach tens of thousands."""

_START = 250
_LARGEST_FILE = 512 * 2**20
"""Bytes of a file that is read at once."""
_STDERR_HEAD, _STDERR_TAIL = 2**20, 4096
_LONGEST_LINE = 200


def read_text(path: Path, remedy: str = "") -> str:
    """Return the file's text (UTF-8, bad bytes replaced). Raises ToolOutputError if it is missing or blank."""
    hint = f": {remedy}" if remedy else ""
    try:
        text = regular_files.read(path, _LARGEST_FILE).decode("utf-8", errors="replace")
    except regular_files.TooLargeError as error:
        raise ToolOutputError(f"{path.name} is larger than {_LARGEST_FILE >> 20} MiB") from error
    except OSError as error:
        raise ToolOutputError(f"{path.name} was not written{hint}") from error
    if not text.strip():
        raise ToolOutputError(f"{path.name} is empty{hint}")
    return text


def read_lines(path: Path, remedy: str = "") -> Iterator[str]:
    """Yield the lines of a file that may be too large to hold, without their ends.

    Raises ToolOutputError if the file is missing, or cut inside its last line.
    """
    hint = f": {remedy}" if remedy else ""
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as stream:
            for line in stream:
                if not line.endswith("\n"):
                    raise ToolOutputError(f"{path.name} is cut short")
                yield line.rstrip("\r\n")
    except OSError as error:
        raise ToolOutputError(f"{path.name} was not written{hint}") from error


def read_whole(path: Path, remedy: str = "") -> str:
    """Return the text of a file of lines, as ``read_text``; one cut inside its last line is an error, too."""
    text = read_text(path, remedy)
    if not text.endswith("\n"):
        raise ToolOutputError(f"{path.name} is cut short")
    return text


def read_json(path: Path, remedy: str = "") -> object:
    """Return the decoded JSON. Raises ToolOutputError if the file is missing, empty, cut or no JSON."""
    return decoded(read_text(path, remedy), path.name)


def decoded(text: str, what: str) -> object:
    """Return what a JSON text holds. Raises ToolOutputError naming ``what`` for what is none."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"{what} is cut short or no JSON") from error
    return value


def matched(pattern: re.Pattern[str], text: str, otherwise: str) -> re.Match[str]:
    """Return the match at the start of a line. Raises ToolOutputError, which shows the line, where there is none."""
    match = pattern.match(text)
    if not match:
        raise ToolOutputError(f"{otherwise}: {clean_name(text)[:80]!r}")
    return match


def left(path: Path) -> tuple[Path, ...]:
    """Return a file that is there and holds something, for ``outputs`` of a tool whose ``parse`` says why it is not."""
    return (path,) if path.is_file() and path.stat().st_size else ()


def number(value: object, what: str) -> float:
    """Return a finite figure >= 0. Raises ToolOutputError naming ``what`` for anything else, bool and text included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolOutputError(f"{what} is {shown(value)}, not a number")
    # An int too large for a float is compared as an int.
    if not (0 <= value < LARGEST):
        raise ToolOutputError(f"{what} is {shown(value)}, which cannot be")
    return float(value)


def positive(value: object, what: str) -> float:
    """Return a finite figure > 0: for what cannot truly be zero, such as the time of a whole process."""
    figure = number(value, what)
    if figure == 0:
        raise ToolOutputError(f"{what} is 0, which cannot be")
    return figure


def whole(value: object, what: str) -> int:
    """Return a count >= 0. Raises ToolOutputError for fractions and anything else."""
    figure = number(value, what)
    if not figure.is_integer():
        raise ToolOutputError(f"{what} is {shown(value)}, not a whole number")
    return int(figure)


def scale_of(unit: str, units: Mapping[str, S], what: str) -> S:
    """Return what ``units`` say of a unit. Raises ToolOutputError naming ``what``, which has the unit."""
    if unit not in units:
        raise ToolOutputError(f"{what} has the unit {shown(unit)}, which perfflow does not know for it")
    return units[unit]


_TWO_NUMBERS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*", re.ASCII)


def number_in(text: str, what: str) -> float:
    """Return the finite figure >= 0 that ``text`` spells, with a decimal point or comma.

    Raises ToolOutputError, also for ``1,234``, which is one number in one locale and another in the next.
    """
    if _TWO_NUMBERS.fullmatch(text):
        raise ToolOutputError(f"{what} is {shown(text)}, which may be a thousand times as much: use LC_ALL=C")
    try:
        figure = float(text.strip().replace(",", "."))
    except ValueError as error:
        raise ToolOutputError(f"{what} is {shown(text)}, not a number") from error
    return number(figure, what)


def clean_name(name: str) -> str:
    """Return a name fit for files and pages: printable, valid UTF-8, at most LONGEST_NAME characters.

    Different names stay different, so that what is added up by a name is of one function.
    """
    if len(name) > LONGEST_NAME:
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        end = LONGEST_NAME - _START - len(digest) - 2
        name = f"{name[:_START]}…{name[-end:]}#{digest}"
    return "".join(c if c.isprintable() else "?" for c in name).strip() or "?"


def last_bytes(folder: Path, file: str = "stderr") -> str:
    """Return the last 4 KiB of the run's stderr, or of another file, or ''."""
    return _excerpt(folder / file, _STDERR_TAIL, last=True)


def first_text(folder: Path, file: str = "stderr") -> str:
    """Return the first MiB of the run's stderr, or of another file, or ''."""
    return _excerpt(folder / file, _STDERR_HEAD, last=False)


def _excerpt(path: Path, size: int, *, last: bool) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - size) if last else 0)
            return stream.read(size).decode("utf-8", errors="replace")
    except OSError:
        return ""


def last_words(folder: Path) -> str:
    """Return the last line of the run's stderr that is not blank, at most 200 characters, or ''."""
    lines = [line.strip() for line in last_bytes(folder).splitlines() if line.strip()]
    return clean_name(lines[-1])[:_LONGEST_LINE] if lines else ""


def why(said: str, known: Mapping[str, str], flags: re.RegexFlag = re.MULTILINE, **names: str) -> str:
    """Return what the first of the ``known`` patterns that is in the text means; '' where none is.

    Groups and ``names`` stand in the meanings in braces, at most 200 characters of each.
    """
    for pattern, meaning in known.items():
        if match := re.search(pattern, said, flags):
            found = {name: clean_name(text)[:_LONGEST_LINE] for name, text in {**names, **match.groupdict()}.items()}
            return meaning.format(**found)
    return ""


def shown(value: object) -> str:
    """Return a short form of any value; a huge int has no decimal form that Python would print."""
    if isinstance(value, int) and not isinstance(value, bool) and not -LARGEST < value < LARGEST:
        return "too large"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return "null" if value is None else ascii(value)[:60]
