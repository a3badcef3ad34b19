"""Tables of text that fit a terminal: aligned columns, of which the last goes on in next lines, or a block a row."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.report.plain import NO_EDGE, cells, padded, shortened, visible, wrapped

_GAP = "  "
_LEAST = 20
"""Columns that a text needs beside a name; with less it stands below it."""


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, two blanks apart; cells are made visible."""
    shown = [[visible(cell) for cell in row] for row in rows]
    widths = [max(cells(cell) for cell in column) for column in zip(*shown, strict=True)]
    return [_GAP.join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]


def narrowed(rows: Sequence[Sequence[str]], width: int, least: int = 12) -> list[str]:
    """Aligned columns of which the first, a name, loses as much of its middle as the others need to be seen."""
    lines = aligned(rows) if rows else []
    excess = max(map(cells, lines), default=0) - width
    if excess <= 0:
        return lines
    room = max(least, max(cells(visible(row[0])) for row in rows) - excess)
    return aligned([[shortened(row[0], room), *row[1:]] for row in rows])


def described(rows: Sequence[tuple[str, str]], width: int = NO_EDGE, indent: str = "  ") -> list[str]:
    """Names with a text each, which goes on below itself, or below its name where beside it there is no room."""
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


def fitting(head: Sequence[str], rows: Sequence[Sequence[str]], width: int = NO_EDGE) -> list[str]:
    """A table under its head; where it is too wide, each row as its first cell with the others named below it."""
    lines = aligned([head, *rows])
    if max(map(cells, lines)) <= width:
        return lines
    lines = []
    for first, *others in rows:
        said = ", ".join(f"{name} {visible(cell)}" for name, cell in zip(head[1:], others, strict=True) if cell)
        lines += [*wrapped(visible(first), width), *wrapped(f"{_GAP}{said}", width, _GAP)]
    return lines
