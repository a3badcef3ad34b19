"""Two columns for a terminal: names and wrapped texts."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.report.sanitize import NO_EDGE, cells, padded, visible, wrapped

_GAP = "  "
_LEAST = 20
"""Least width of a text beside its name; with less room, it goes below the name."""


def described(rows: Sequence[tuple[str, str]], width: int = NO_EDGE, indent: str = "  ") -> list[str]:
    """Return lines with a name and its wrapped text, which goes below the name if there is no room beside it."""
    pairs = [(visible(name), visible(text)) for name, text in rows]
    column = max((cells(name) for name, _ in pairs), default=0)
    start = len(indent) + column + len(_GAP)
    lines = []
    for name, text in pairs:
        if width - start >= _LEAST:
            lines += wrapped(f"{indent}{padded(name, column)}{_GAP}{text}".rstrip(), width, " " * start)
        else:
            lines += wrapped(f"{indent}{name}", width, indent)
            lines += wrapped(f"{indent}{_GAP}{text}", width, indent + _GAP) if text else []
    return lines
