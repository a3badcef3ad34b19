"""Delimiters and limits of ``${{ }}``, its errors, and the conversion of values to text."""

from __future__ import annotations

import re
from typing import Any

from perfflow.model.errors import StepError

OPEN, CLOSE = "${{", "}}"
LONGEST_EXPRESSION = 4000
QUOTED = re.compile(r"""("(?:\\.|[^"\\])*+(?:"|\\?\Z)|'(?:\\.|[^'\\])*+(?:'|\\?\Z))""", re.DOTALL)
"""A quoted string; an unclosed one extends to the end of the text, so that matching takes linear time."""


class ExpressionError(StepError, ValueError):
    """An expression that does not parse, uses an unknown name, or fails when it is rendered.

    ``near`` is the part of its text that is searched in the file to show its place.
    """

    def __init__(self, message: str, near: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.near = near
        self.hint = hint


class Raw(str):
    """A value that ``| raw`` excludes from shell quoting."""

    __slots__ = ()


def as_text(value: Any) -> str:
    """Return a value as text: booleans as in YAML, the items of a list separated by spaces, '' for None."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " ".join(as_text(item) for item in value)
    return "" if value is None else str(value)
