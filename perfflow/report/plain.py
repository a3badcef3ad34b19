"""Text from tools and files made safe to look at: control and bidirectional characters become visible."""

from __future__ import annotations

import unicodedata


# Cc control, Cf format (bidi, zero width), Cs surrogates, Zl and Zp line and paragraph separators.
_ACTING = ("Cc", "Cf", "Cs", "Zl", "Zp")


def visible(text: str) -> str:
    r"""Return one line without characters that act instead of being shown; ``\u202e`` and its like are spelled out."""
    return "".join(letter if _shows(letter) else _spelled(letter) for letter in text)


def _shows(letter: str) -> bool:
    return (letter.isascii() and letter.isprintable()) or unicodedata.category(letter) not in _ACTING


def _spelled(letter: str) -> str:
    if letter in "\n\r\t":
        return " "
    number = ord(letter)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
