"""Text from tools and files made safe for display: control and bidirectional characters are spelled out, lines cut."""

from __future__ import annotations

import re
import sys
import unicodedata

NO_EDGE = sys.maxsize
"""The width of a log or a file, where nothing is cut."""


MARKS = {"✅": ("✓", "+"), "❌": ("✗", "x"), "❔": ("?", "?")}
"""For each symbol of the page: the mark on a terminal, and the mark in ASCII."""


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


_WORDS = re.compile(r"\s*\S+")


def visible(text: str) -> str:
    r"""Return one line in which characters that are not printable are spelled out, such as ``\u202e``."""
    # Not printable: control, format (bidi, zero width), surrogate, unassigned, private characters, and other blanks.
    return text if text.isprintable() else "".join(c if c.isprintable() else _spelled(c) for c in text)


def _spelled(letter: str) -> str:
    if letter in "\n\r\t" or unicodedata.category(letter) == "Zs":
        return " "
    number = ord(letter)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def csv_cell(text: str) -> str:
    """Return a text for a cell of CSV, visible, and with ``'`` before what a spreadsheet would run as a formula."""
    shown = visible(text)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def cells(text: str) -> int:
    """Return the columns of a text on a terminal: wide letters take two, combining marks none."""
    # Most texts are ASCII, which needs no Unicode tables.
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def padded(text: str, width: int) -> str:
    """Return the text padded with blanks to ``width`` columns."""
    return text + " " * max(0, width - cells(text))


def fitted(text: str, width: int, dots: str = "…") -> str:
    """Return the text, cut at its end with dots if it is wider than ``width`` columns."""
    if cells(text) <= width:
        return text
    return _head(text, width - len(dots)) + dots


def shortened(name: str, width: int) -> str:
    """Return a visible name of at most ``width`` columns, cut in its middle, where names differ least."""
    name = visible(name)
    if cells(name) <= width:
        return name
    head = _head(name, (width - 1) // 2)
    tail = _head(name[::-1], width - 1 - cells(head))[::-1]
    return f"{head}…{tail}"


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Return the whole text as lines of at most ``width`` columns, all but the first indented by ``indent``.

    Lines break at blanks. A word that is longer than a line starts on the current line and is broken inside.
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
            # Put at least one letter on each line, even if a wide letter does not fit.
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
    """Return a line in ASCII."""
    for symbol, (fancy, plain) in MARKS.items():
        line = line.replace(fancy, plain).replace(symbol, plain)
    for fancy, plain in _ASCII.items():
        line = line.replace(fancy, plain)
    return line.encode("ascii", "replace").decode()
