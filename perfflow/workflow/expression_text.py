"""What the text of a ``${{ }}`` is made of, and how its value is written."""

from __future__ import annotations

import re
from typing import Any

OPEN, CLOSE = "${{", "}}"
LONGEST_EXPRESSION = 4000
QUOTED = re.compile(r"""("(?:\\.|[^"\\])*+(?:"|\\?\Z)|'(?:\\.|[^'\\])*+(?:'|\\?\Z))""", re.DOTALL)
"""A text in quotes; one that does not end goes on to the end, so that no quote is looked at twice."""


class ExpressionError(ValueError):
    """An expression that does not parse, names something unknown, or fails when it is rendered.

    ``near`` is the text of it, to find it in the file.
    """

    def __init__(self, message: str, near: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.near = near
        self.hint = hint


class Raw(str):
    """A value that ``| raw`` exempts from shell quoting."""

    __slots__ = ()


def as_text(value: Any) -> str:
    """The text of a value: booleans as YAML writes them, lists as words, nothing for None."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " ".join(as_text(item) for item in value)
    return "" if value is None else str(value)
