"""Read output of tools: files may be missing, empty or cut, numbers and names may be invalid.

All functions report problems as ToolOutputError with a one-line reason, so that no parser shows a traceback or returns
0 for a missing figure.
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
"""Longest name of a function or file in characters; names of C++ templates reach tens of thousands."""

_START = 250
_LARGEST_FILE = 512 * 2**20
"""Largest file in bytes that is read into memory."""
_STDERR_HEAD, _STDERR_TAIL = 2**20, 4096
_LONGEST_LINE = 200


def read_text(path: Path, remedy: str = "") -> str:
    """Return a file's text (UTF-8, invalid bytes replaced). Raises ToolOutputError if it is missing or blank."""
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
    """Yield the lines of a file without their ends. The file may be larger than the memory.

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
    """Return a file's text as ``read_text``. Raises ToolOutputError also if the last line has no end."""
    text = read_text(path, remedy)
    if not text.endswith("\n"):
        raise ToolOutputError(f"{path.name} is cut short")
    return text


def read_json(path: Path, remedy: str = "") -> object:
    """Return a file's decoded JSON. Raises ToolOutputError if it is missing, empty, cut or not valid JSON."""
    return decoded(read_text(path, remedy), path.name)


def decoded(text: str, what: str) -> object:
    """Decode a JSON text. Raises ToolOutputError, which names ``what``, if it is not valid JSON."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"{what} is cut short or not valid JSON") from error
    return value


def matched(pattern: re.Pattern[str], text: str, otherwise: str) -> re.Match[str]:
    """Return the match at the start of a line. Raises ToolOutputError with the line if it does not match."""
    match = pattern.match(text)
    if not match:
        raise ToolOutputError(f"{otherwise}: {clean_name(text)[:80]!r}")
    return match


def left(path: Path) -> tuple[Path, ...]:
    """Return a file if it exists and is not empty, for ``outputs`` of tools whose ``parse`` reports missing files."""
    return (path,) if path.is_file() and path.stat().st_size else ()


def number(value: object, what: str) -> float:
    """Return a finite figure >= 0. Raises ToolOutputError, which names ``what``, for all else, also bool and text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolOutputError(f"{what} is {shown(value)}, not a number")
    # An int too large for a float is compared as an int.
    if not (0 <= value < LARGEST):
        raise ToolOutputError(f"{what} is {shown(value)}, which is not valid")
    return float(value)


def positive(value: object, what: str) -> float:
    """Return a finite figure > 0, for figures that cannot be zero, such as the time of a process."""
    figure = number(value, what)
    if figure == 0:
        raise ToolOutputError(f"{what} is 0, which is not valid")
    return figure


def whole(value: object, what: str) -> int:
    """Return a whole number >= 0. Raises ToolOutputError for anything else."""
    figure = number(value, what)
    if not figure.is_integer():
        raise ToolOutputError(f"{what} is {shown(value)}, not a whole number")
    return int(figure)


def scale_of(unit: str, units: Mapping[str, S], what: str) -> S:
    """Return the entry of a unit in ``units``. Raises ToolOutputError, which names ``what``, for an unknown unit."""
    if unit not in units:
        raise ToolOutputError(f"{what} has the unknown unit {shown(unit)}")
    return units[unit]


_TWO_NUMBERS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*", re.ASCII)


def number_in(text: str, what: str) -> float:
    """Read a finite figure >= 0 with a decimal point or comma.

    Raises ToolOutputError, also for ``1,234``, whose value depends on the locale.
    """
    if _TWO_NUMBERS.fullmatch(text):
        raise ToolOutputError(f"{what} is {shown(text)}, whose comma may mark decimals or thousands: use LC_ALL=C")
    try:
        figure = float(text.strip().replace(",", "."))
    except ValueError as error:
        raise ToolOutputError(f"{what} is {shown(text)}, not a number") from error
    return number(figure, what)


def clean_name(name: str) -> str:
    """Return a printable name in valid UTF-8 of at most LONGEST_NAME characters.

    Long names get a hash, so that costs of different functions are not added up.
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
    line = last_line(last_bytes(folder))
    return clean_name(line)[:_LONGEST_LINE] if line else ""


def last_line(text: str) -> str:
    """Return the last line that is not blank, stripped; '' if there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def why(said: str, known: Mapping[str, str], flags: re.RegexFlag = re.MULTILINE, **names: str) -> str:
    """Return the explanation of the first of the ``known`` patterns that the text contains; '' if there is none.

    Explanations refer to groups and ``names`` in braces; at most 200 characters of each are inserted.
    """
    for pattern, meaning in known.items():
        if match := re.search(pattern, said, flags):
            found = {name: clean_name(text)[:_LONGEST_LINE] for name, text in {**names, **match.groupdict()}.items()}
            return meaning.format(**found)
    return ""


def shown(value: object) -> str:
    """Return a short form of any value. Python refuses to print huge integers."""
    if isinstance(value, int) and not isinstance(value, bool) and not -LARGEST < value < LARGEST:
        return "too large"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return "null" if value is None else ascii(value)[:60]
