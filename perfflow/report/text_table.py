"""Tables as lines of text for a terminal width. Everything but Markdown and HTML uses this layout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfflow.report.drawings import drawn
from perfflow.report.sanitize import MARKS, NO_EDGE, cells, fitted, padded, shortened, visible, wrapped
from perfflow.report.table import AXIS, NOTHING, Bar, Cell, Column, Density, Span, Table, TextKind

LONGEST_NAME = 36
LEAST_NAME, HALF_A_NAME = 12, 18
LONGEST_NOTE = 300
"""Longest remark below its row, in columns."""
LEAST_DRAWN, USUAL_DRAWN, MOST_DRAWN = 11, 21, 31
_GAP, _INDENT, _BELOW = "  ", "  ", "    "
_BESIDE = "   "
_NUMBER = re.compile(r"(?:≤ ?)?[-+]?[\d.]+")


@dataclass(frozen=True)
class TextTable:
    """The title line, and the lines of each row: the row itself, then its remark if that does not fit beside it."""

    head: str
    entries: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Laid:
    """A column as texts. ``short`` are the texts without asides; ``pictures`` are the drawings."""

    column: Column
    title: str
    texts: Sequence[str]
    short: Sequence[str]
    pictures: Sequence[Bar | Density | None]

    @property
    def is_drawn(self) -> bool:
        return self.column.kind is TextKind.DRAWN

    def shorter(self) -> _Laid:
        """Return the column without asides."""
        return _Laid(self.column, self.title, self.short, self.short, self.pictures)

    @property
    def gives_way(self) -> bool:
        """Whether its texts may be cut in the middle."""
        return self.column.kind in (TextKind.NAME, TextKind.WORDS)


def laid_out(table: Table, width: int = NO_EDGE, *, titles: bool = True) -> TextTable:
    """Lay out a table for ``width`` columns; NO_EDGE means no limit.

    If the table is too wide, columns of a high rank are left out, then names are cut in the middle, then intervals
    beside estimates are left out, then drawings. A remark that does not fit beside its row goes below it. A row that
    has only figures may still be wider than a very narrow terminal.

    Without ``titles``, only a table with an axis has titles, if there is room; otherwise only the ends of the axis are
    shown. Columns of rank 3 mean nothing without a title, so they are left out together with the titles.
    """
    columns = [_laid(column, [row[at] for row in table.rows], width) for at, column in enumerate(table.columns)]
    marks = columns.pop(0).texts if len(columns) > 1 and _has_marks(columns[0]) else ()
    notes: Sequence[str] = [""] * len(table.rows)
    if len(columns) > 1 and columns[-1].column.kind is TextKind.WORDS:
        notes = columns.pop().texts
    starts = [f"{mark[:1]:1} " for mark in marks] if marks else [_INDENT] * len(table.rows)
    filled = [item for item in columns if _has_content(item)] or columns[:1]
    head, rows = _lines(filled, width - len(_INDENT), titles=titles)
    entries = (
        tuple(_with_note(start + row, note, width)) for start, row, note in zip(starts, rows, notes, strict=True)
    )
    return TextTable(f"{_INDENT}{head}" if head else "", tuple(entries))


def _lines(filled: Sequence[_Laid], width: int, *, titles: bool) -> tuple[str, list[str]]:
    """Return the title line and one line for each row."""
    shown, widths, titled = _fitting(filled, width, titles=titles)
    padded_columns = [
        _padded(item, size, titled=titled or AXIS in item.title) for item, size in zip(shown, widths, strict=True)
    ]
    head, *lines = (_GAP.join(parts).rstrip() for parts in zip(*padded_columns, strict=True))
    return head, lines


def _with_note(line: str, note: str, width: int) -> Iterator[str]:
    if not note or cells(line) + len(_BESIDE) + cells(note) <= width:
        yield f"{line}{_BESIDE}{note}" if note else line
        return
    yield line
    room = max(1, width - len(_BELOW))
    yield from wrapped(_BELOW + shortened(note, min(LONGEST_NOTE, 3 * room)), width, _BELOW)


def _laid(column: Column, content: Sequence[Cell], width: int) -> _Laid:
    title = column.title.text if isinstance(column.title, Span) else column.title
    pictures = [cell if isinstance(cell, Bar | Density) else None for cell in content]
    texts, short = (
        ["" if isinstance(cell, Bar | Density) else _text(cell, whole=whole) for cell in content]
        for whole in (True, False)
    )
    if column.kind is TextKind.NAME and width != NO_EDGE:
        most = max(LONGEST_NAME, width // 3)
        title = shortened(title, most)
        texts, short = ([shortened(text, most) for text in item] for item in (texts, short))
    if column.right:
        texts, short = by_number(texts), by_number(short)
    return _Laid(column, visible(title), texts, short, pictures)


def _text(cell: str | tuple[str | Span, ...], *, whole: bool) -> str:
    parts = (cell,) if isinstance(cell, str) else cell
    shown = (part if isinstance(part, str) else part.text for part in parts if whole or not _is_aside(part))
    text = visible("".join(shown))
    return MARKS[text[0]][0] + text[1:] if text[:1] in MARKS else text


def _is_aside(part: str | Span) -> bool:
    return isinstance(part, Span) and part.kind is TextKind.ASIDE


def _has_marks(item: _Laid) -> bool:
    """Return whether each cell is a mark, alone or followed by a word."""
    return not item.title and all(cells(text.partition(" ")[0]) <= 1 for text in item.texts)


def _has_content(item: _Laid) -> bool:
    return any(item.pictures) or any(text.strip() not in ("", NOTHING) for text in item.texts)


def by_number(texts: Sequence[str]) -> list[str]:
    """Return the values padded so that all numbers end, and all units begin, in the same column."""
    ends = [cells(found[0]) if (found := _NUMBER.match(text)) else cells(text) for text in texts]
    return [" " * (max(ends) - end) + text for end, text in zip(ends, texts, strict=True)]


def _fitting(columns: Sequence[_Laid], width: int, *, titles: bool) -> tuple[Sequence[_Laid], list[int], bool]:
    """Return the shown columns, their widths, and whether they have titles."""
    shown, titled, widths = columns, titles, [0]
    for shown, least, titled in _choices(columns, titles=titles):
        widths = _widths(shown, width, least, titled=titled)
        if _total(widths) <= width:
            break
    drawings = [at for at, item in enumerate(shown) if item.is_drawn]
    room = width - _total(widths)
    for at in drawings:
        more = (USUAL_DRAWN if width > NO_EDGE // 2 else MOST_DRAWN) - widths[at]
        widths[at] += max(0, min(more, room // len(drawings)))
    return shown, widths, titled


def _choices(columns: Sequence[_Laid], *, titles: bool) -> Iterator[tuple[Sequence[_Laid], int, bool]]:
    """Yield choices that need less and less room: columns, least width of a name, and whether there are titles."""
    may_have = titles or any(AXIS in item.title for item in columns)
    for limit in sorted({item.column.rank for item in columns} | {1, 2}, reverse=True)[:-1]:
        shown = [item for item in columns if item.column.rank <= limit]
        if may_have:
            yield shown, LONGEST_NAME, True
        if limit == 2:
            yield shown, LONGEST_NAME, titles
    shown = [item for item in columns if item.column.rank <= 1]
    # Half a name is more useful than a missing figure.
    yield shown, HALF_A_NAME, titles
    yield [item.shorter() for item in shown], HALF_A_NAME, titles
    few = [item.shorter() for item in columns if not item.column.rank] or columns[:1]
    yield few, LEAST_NAME, titles
    yield few, LEAST_NAME, False


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _widths(shown: Sequence[_Laid], width: int, least: int, *, titled: bool) -> list[int]:
    """Return each column's width. Names are cut, the widest first, and drawings are as narrow as possible.

    With the least width of names, perfflow's own words are cut too.
    """
    widths = [_least_width(item, titled=titled) for item in shown]
    excess = _total(widths) - width
    names = [at for at, item in enumerate(shown) if item.gives_way]
    marks = [at for at, item in enumerate(shown) if item.column.kind is TextKind.VALUE and not item.column.right]
    for columns in (names, marks) if least == LEAST_NAME else (names,):
        while excess > 0 and columns:
            widest = max(columns, key=lambda at: widths[at])
            if widths[widest] <= least:
                break
            widths[widest] -= 1
            excess -= 1
    return widths


def _least_width(item: _Laid, *, titled: bool) -> int:
    if item.is_drawn:
        # The ends of the axis are in the title.
        return max(LEAST_DRAWN, cells(item.title.replace(AXIS, " ")))
    return max(cells(item.title) if titled else 0, *map(cells, item.texts), 0)


def _padded(item: _Laid, width: int, *, titled: bool) -> list[str]:
    """Return the title and the texts of a column, each padded to the column's width."""
    title = item.title if titled else ""
    if item.is_drawn:
        low, _, high = title.partition(AXIS)
        title = low + high.rjust(width - cells(low)) if high else title
        texts = [drawn(picture, width) if picture else "" for picture in item.pictures]
    else:
        texts = [(shortened if item.gives_way else fitted)(text, width) for text in item.texts]
    # Numbers end below the end of a wider title.
    left = width - max(map(cells, texts), default=0) if item.column.right else 0
    return [padded(shortened(title, width), width), *(padded(" " * left + text, width) for text in texts)]
