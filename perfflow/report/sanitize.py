"""Text from tools and files made safe to look at, and cut to a width: control and bidirectional characters show."""

from __future__ import annotations

import sys
import unicodedata

from perfflow.model.later import late_pattern

NO_EDGE = sys.maxsize
"""The width of what is no terminal: a log or a file, where nothing is cut."""
MARKS = {"✅": ("✓", "+"), "❌": ("✗", "x"), "❔": ("?", "?")}
"""Of a symbol on the page, the mark that a terminal shows, and the one that any terminal can show."""
_ASCII = {
    "μ": "u",
    "≤": "<=",
    "≥": ">=",
    "±": "+-",
    "–": "-",
    "→": "->",
    "∞": "inf",
    "Δ": "delta",
    "…": "...",
    "×": "x",
    "·": ".",
    **dict(zip("├┤━●│┊┿◂▸", "||-o!:+<>", strict=True)),
    **dict(zip("▁▂▃▄▅▆▇█", "..:-=+*#", strict=True)),
}
_WORDS = late_pattern(r"\s*\S+")


def visible(text: str) -> str:
    r"""Return one line without characters that act instead of being shown; ``\u202e`` and its like are spelled out."""
    # Not printable are control, format (bidi, zero width), surrogate, unassigned and private characters, and blanks.
    return text if text.isprintable() else "".join(c if c.isprintable() else _spelled(c) for c in text)


def _spelled(letter: str) -> str:
    if letter in "\n\r\t" or unicodedata.category(letter) == "Zs":
        return " "
    number = ord(letter)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def cells(text: str) -> int:
    """Columns a text takes on a terminal: wide letters two, marks that combine with the letter before them none."""
    # Of most texts every letter takes one, and the tables of Unicode need not be asked.
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def padded(text: str, width: int) -> str:
    """The text with blanks up to ``width`` columns."""
    return text + " " * max(0, width - cells(text))


def fitted(text: str, width: int, dots: str = "…") -> str:
    """The beginning of a text that is wider than ``width`` columns, with dots."""
    if cells(text) <= width:
        return text
    return _head(text, width - len(dots)) + dots


def shortened(name: str, width: int) -> str:
    """A visible name of at most ``width`` columns, cut in its middle, where names differ least."""
    name = visible(name)
    if cells(name) <= width:
        return name
    head = _head(name, (width - 1) // 2)
    tail = _head(name[::-1], width - 1 - cells(head))[::-1]
    return f"{head}…{tail}"


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The text as lines of at most ``width`` columns, all but the first after ``indent``; nothing of it is lost.

    It is broken at blanks, and inside a word only where the word is longer than a line, which starts it on this one.
    """
    if cells(text) <= width:
        return [text]
    lines, line = [], ""
    for word in _WORDS.findall(text):
        fits_below = cells(indent + word.lstrip()) <= width
        if line.strip() and cells(line + word) > width and (fits_below or cells(line) >= width - 1):
            lines.append(line)
            line = indent + word.lstrip()
        else:
            line += word
        while cells(line) > width:
            # At least one letter a line, even where a wide one has no room.
            least = len(indent) + 1 if lines else 1
            head = line[: max(least, len(_head(line, width)))]
            lines.append(head)
            line = indent + line[len(head) :]
    return [*lines, line] if line.strip() else lines


def _head(text: str, width: int) -> str:
    used = 0
    for number, letter in enumerate(text):
        used += _cells(letter)
        if used > width:
            return text[:number]
    return text


def ascii_text(line: str) -> str:
    """Text for a terminal that knows no other characters."""
    for symbol, (fancy, plain) in MARKS.items():
        line = line.replace(fancy, plain).replace(symbol, plain)
    for fancy, plain in _ASCII.items():
        line = line.replace(fancy, plain)
    return line.encode("ascii", "replace").decode()
