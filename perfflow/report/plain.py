"""Text from tools and files made safe to look at, and cut to a width: control and bidirectional characters show."""

from __future__ import annotations

import unicodedata


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
    return sum(_cells(letter) for letter in text)


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


def _head(text: str, width: int) -> str:
    used = 0
    for number, letter in enumerate(text):
        used += _cells(letter)
        if used > width:
            return text[:number]
    return text
