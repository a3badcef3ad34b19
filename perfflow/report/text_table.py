"""Lay out tables as lines of text for a terminal width. Everything but Markdown and HTML uses this layout.

- ``drawn`` and ``sparkline`` draw bars and distributions with characters, for terminals, logs and Markdown.
- ``laid_out`` lays out one table.
- ``folded`` fits the parts of a page into the rows of a terminal: less important parts are shortened first.
- ``truncated`` shortens long lists: it keeps the most important entries in the list's order, and the number of the
  others.
- ``on_one_axis``, ``requirement_bar`` and ``densities`` place intervals, bounds and samples on the axes of drawings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from perfflow.model.criteria import Criteria
from perfflow.model.result import Benchmark, Bounds, Sample, TargetResult
from perfflow.model.units import Dimension, Relation, Requirement, format_quantity
from perfflow.report.bounds import bound_of
from perfflow.report.sanitize import MARKS, NO_EDGE, cells, fitted, padded, shortened, visible, wrapped
from perfflow.report.table import AXIS, NOTHING, Bar, Cell, Column, Density, Span, Table, TextKind, Tone
from perfflow.stats.paired_test import Interval, quantile

_NONE, _BOUND, _CROSSED = "│", "┊", "┿"
_FIRST, _LINE, _LAST, _POINT = "├", "━", "┤", "●"
_BEFORE, _BEYOND = "◂", "▸"
_HEIGHTS = "▁▂▃▄▅▆▇█"
LETTERS = 21
"""Width of a drawing in a Markdown cell."""
BLANK = "·"
"""Background of a drawing in Markdown, whose renderers may drop blanks."""


def drawn(picture: Bar | Density, width: int, blank: str = " ") -> str:
    """Return the picture as ``width`` characters of one column each."""
    return _bar(picture, width, blank) if isinstance(picture, Bar) else _density(picture, width, blank)


def _bar(bar: Bar, width: int, blank: str) -> str:
    """Return ``├━●━┤`` with ``┊`` at bounds and ``│`` at no change, and an arrow if the interval leaves the axis.

    A bound outside of the interval is drawn outside of it, however close it is.
    """
    letters = [blank] * width
    low, high = _cell(bar.low, width), _cell(bar.high, width)
    for letter, places in ((_NONE, () if bar.none is None else (bar.none,)), (_BOUND, bar.bounds)):
        for place in places:
            cell = _cell(place, width)
            cell = max(cell, high + 1) if place > bar.high else min(cell, low - 1) if place < bar.low else cell
            if 0 <= cell < width:
                letters[cell] = letter
    for cell in range(low, high + 1):
        letters[cell] = _LINE if letters[cell] == blank else _CROSSED
    if low < high:
        letters[low], letters[high] = _FIRST, _LAST
    if bar.point is not None:
        letters[min(max(_cell(bar.point, width), low), high)] = _POINT
    if bar.low < 0:
        letters[low] = _BEFORE
    if bar.high > 1:
        letters[high] = _BEYOND
    return "".join(letters)


def sparkline(values: Sequence[float], width: int) -> str:
    """Return the values as heights of characters, the newest last. If there are too many, a character shows a mean.

    The heights go from the lowest to the highest value, so they do not show how large the differences are.
    """
    groups = [
        values[len(values) * at // width : len(values) * (at + 1) // width] for at in range(min(width, len(values)))
    ]
    if len(values) <= width:
        groups = [[item] for item in values]
    means = [sum(group) / len(group) for group in groups]
    low, high = min(means), max(means)
    if low == high:
        return _HEIGHTS[len(_HEIGHTS) // 2] * len(means)
    return "".join(_HEIGHTS[round((mean - low) / (high - low) * (len(_HEIGHTS) - 1))] for mean in means)


def _cell(place: float, width: int) -> int:
    return round(min(1.0, max(0.0, place)) * (width - 1))


def _density(density: Density, width: int, blank: str) -> str:
    """Return the density of the values as heights of characters. Even a single value is visible."""
    counts = [0] * width
    for place in density.places:
        counts[min(width - 1, int(place * width))] += 1
    most = max(counts)
    return "".join(_HEIGHTS[-(-count * len(_HEIGHTS) // most) - 1] if count else blank for count in counts)


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


def _padded(laid: _Laid, width: int, *, titled: bool) -> list[str]:
    """Return the title and the texts of a column, each padded to the column's width."""
    title = laid.title if titled else ""
    if laid.is_drawn:
        low, _, high = title.partition(AXIS)
        title = low + high.rjust(width - cells(low)) if high else title
        texts = [drawn(picture, width) if picture else "" for picture in laid.pictures]
    else:
        texts = [(shortened if laid.gives_way else fitted)(text, width) for text in laid.texts]
    # Numbers end below the end of a wider title.
    left = width - max(map(cells, texts), default=0) if laid.column.right else 0
    return [padded(shortened(title, width), width), *(padded(" " * left + text, width) for text in texts)]


Line = tuple[str, str]
"""Text and its colour, an SGR code."""


@dataclass
class RowGroup:
    """Entries of one kind, each of one or more rows.

    ``others``: number of entries that the page itself leaves out. ``most``: entries shown at most, with the line that
    counts the others. ``least``: the same if the group is shortened; with 0, left out entries are not counted.
    ``what``: noun for the count. ``head``: titles, shown while an entry is shown. ``last``: entries that always stay.
    """

    entries: list[list[Line]]
    others: int = 0
    most: int | None = None
    least: int = 1
    what: str = "lines"
    last: list[list[Line]] = field(default_factory=list)
    head: list[Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._kept = len(self.entries)
        if self.most is not None and len(self.entries) + self.others > self.most:
            self._kept = min(self._kept, self.most - 1)

    def rows(self) -> list[Line]:
        """Return the lines of the group, and one that counts the entries left out."""
        shown = [line for entry in self.entries[: self._kept] for line in entry]
        shown = [*self.head, *shown] if shown else []
        left = len(self.entries) - self._kept + self.others
        if left and self._kept + self.least > 0:
            where = "result.json" if self.others else "the report"
            what = self.what.removesuffix("s") if left == 1 else self.what
            shown.append((f"  … {left} more {what} in {where}", ""))
        return [*shown, *(line for entry in self.last for line in entry)]

    def give_way(self, rows: int) -> None:
        """Shorten the group by ``rows`` rows, or as far as possible."""
        kept, before = self._kept, len(self.rows())
        while len(self.rows()) > before - rows and self._kept > max(0, self.least - 1):
            self._kept -= 1
        if len(self.rows()) >= before:
            # The line that counts left out entries takes as much room as they did.
            self._kept = kept


def folded(blocks: Sequence[Sequence[RowGroup]], giving_way: Sequence[RowGroup], most: int) -> Iterator[Line]:
    """Yield the lines of all blocks with blank lines between; at most ``most`` if ``giving_way`` groups allow it."""
    for part in giving_way:
        excess = len(_laid_out(blocks)) - most
        if excess <= 0:
            break
        part.give_way(excess)
    yield from _laid_out(blocks)


def _laid_out(blocks: Sequence[Sequence[RowGroup]]) -> list[Line]:
    lines: list[Line] = []
    for block in blocks:
        own = [line for part in block for line in part.rows()]
        lines += [("", ""), *own] if own and lines else own
    return lines


MOST_ROWS = 200
"""Most rows of one table, since GitHub cuts a summary at 1 MB. All rows are in result.json."""

T = TypeVar("T")
U = TypeVar("U")

_TARGETS = ("not met", "not measured", "unproven", "not held by base", "met", "not looked at")
_DECISIONS = ("removed", "not measured", "regressed", "unproven", "improved", "new", "same")


@dataclass(frozen=True)
class Truncated(Generic[T]):
    """The shown entries of a list, and the number of the others."""

    shown: tuple[T, ...]
    others: int

    def each(self, line: Callable[[T], U]) -> Truncated[U]:
        """Return the same with ``line`` applied to each shown entry."""
        return Truncated(tuple(map(line, self.shown)), self.others)


def truncated(values: Sequence[T], rank: Callable[[T], int] = lambda _: 0, most: int = MOST_ROWS) -> Truncated[T]:
    """Keep the ``most`` entries of lowest rank, the first of equals, in the order of the list."""
    if len(values) <= most:
        return Truncated(tuple(values), 0)
    kept = sorted(range(len(values)), key=lambda index: rank(values[index]))[:most]
    return Truncated(tuple(values[index] for index in sorted(kept)), len(values) - most)


def rank_of_row(row: Benchmark) -> int:
    """Return a rank: failures first, unchanged rows last, and rows that do not gate after all others."""
    word = _DECISIONS.index(row.decision) if row.decision else len(_DECISIONS)
    ahead = {"action": -3, "concern": -1}.get(
        row.level or "", -2 if row.decision == "unproven" and not row.level else 0
    )
    return (0 if row.gating else 100) + 10 * (ahead + 3) + word


def rank_of_target(target: TargetResult) -> int:
    """Return a rank by status; met targets come last."""
    return _TARGETS.index(target.status)


LADDER = (1.15, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
"""Ratios at the right end of an axis of changes; its left end is one over that."""
_ROOM = 0.15
"""Margin of a target's axis on each side, as a share of the drawn range."""
_FENCES = 3.0
"""Samples farther from the quartiles than this many interquartile ranges are counted, not drawn."""
TARGET_TONES = {"met": Tone.GOOD, "not met": Tone.BAD, "not held by base": Tone.STILL, "not looked at": Tone.STILL}


@dataclass(frozen=True)
class Ratio:
    """A change to draw: natural logarithms of the ratio, of its interval, and of the threshold of a regression."""

    low: float
    value: float
    high: float
    bound: float | None
    tone: Tone


def ratio_of_change(change: Bounds | None, bound: float | None, tone: Tone) -> Ratio | None:
    """Return a relative change (-0.3 is 30% less) with its interval, or None if it is not known."""
    if change is None or change.value is None:
        return None
    low = -1.0 if change.low is None else change.low
    high = math.inf if change.high is None else change.high
    return _ratio(1 + low, 1 + change.value, 1 + high, None if bound is None else 1 + bound, tone)


def ratio_of_interval(change: Interval | None) -> Ratio | None:
    """Return a relative change without a threshold, or None if it is not known."""
    if change is None or math.isnan(change.estimate):
        return None
    return _ratio(1 + change.low, 1 + change.estimate, 1 + change.high, None, Tone.UNSURE)


def ratio_of_speedup(speedup: Bounds | None, bound: float | None, tone: Tone) -> Ratio | None:
    """Return a speedup (2.0 is twice as fast) with its interval, or None if it is not known."""
    if speedup is None or speedup.value is None:
        return None
    low = 0.0 if speedup.low is None else speedup.low
    return _ratio(low, speedup.value, math.inf if speedup.high is None else speedup.high, bound, tone)


def _ratio(low: float, value: float, high: float, bound: float | None, tone: Tone) -> Ratio:
    return Ratio(_log(low), _log(value), _log(high), None if bound is None else _log(bound), tone)


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def on_one_axis(changes: Sequence[Ratio | None], *, percent: bool) -> tuple[str, list[Cell]]:
    """Return a title with the ends of a logarithmic axis around no change, and a bar for each change.

    ``percent``: the title has relative changes, else speedups.
    """
    ends = [abs(end) for item in changes if item for end in (item.low, item.high) if math.isfinite(end)]
    most = math.exp(min(max(ends, default=0.0), math.log(LADDER[-1])))
    top = next(step for step in LADDER if step >= most * (1 - 1e-9))
    title = AXIS.join(f"{100 * (end - 1):+.3g}%" if percent else f"{end:.3g}x" for end in (1 / top, top))

    def place(logarithm: float) -> float:
        return 0.5 + logarithm / (2 * math.log(top))

    def bar(item: Ratio) -> Bar:
        low, value, high = map(place, (item.low, item.value, item.high))
        bounds = () if item.bound is None else (place(item.bound),)
        return Bar(low, high, item.tone, value, bounds, none=0.5)

    return title, [bar(item) if item else "" for item in changes]


def requirement_bar(target: TargetResult, criteria: Criteria) -> Bar | None:
    """Return the measured interval and the bound on their own axis, or None if there is nothing to draw."""
    required = bound_of(target, criteria)
    values = [value for value in (target.low, target.measured, target.high) if value is not None]
    if required is None or required.growth or not values:
        return None
    bounds = [required.bound, *([required.high] if required.high is not None else [])]
    first, last = min(values + bounds), max(values + bounds)
    room = (last - first) * _ROOM or abs(last) * _ROOM or 1.0

    def place(value: float) -> float:
        return (value - first + room) / (last - first + 2 * room)

    places = tuple(map(place, bounds))
    return Bar(
        low=-math.inf if target.low is None else place(target.low),
        high=math.inf if target.high is None else place(target.high),
        tone=TARGET_TONES.get(target.status, Tone.UNSURE),
        point=None if target.measured is None else place(target.measured),
        bounds=places,
        allowed=_allowed(required, places),
    )


def _allowed(required: Requirement, places: Sequence[float]) -> tuple[float, float] | None:
    match required.relation:
        case Relation.LESS | Relation.AT_MOST:
            return 0.0, places[0]
        case Relation.GREATER | Relation.AT_LEAST:
            return places[0], 1.0
        case Relation.BETWEEN:
            return places[0], places[-1] if len(places) > 1 else 1.0
        case Relation.EQUAL:
            return None


def densities(sides: Sequence[Sample], dimension: Dimension, unit: str) -> tuple[str, list[Density]] | None:
    """Return a title with the ends of a linear axis in ``unit``, and the samples of each side on it.

    Samples far outside of their side's quartiles are left out. None if a side has fewer than two samples, or all
    samples are equal.
    """
    if any(len(side.samples) < 2 for side in sides):
        return None
    inside = [_inside(side.samples) for side in sides]
    low, high = min(map(min, inside)), max(map(max, inside))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return None
    title = AXIS.join(format_quantity(end, dimension, unit=unit) for end in (low, high))
    return title, [Density(tuple((value - low) / (high - low) for value in values)) for values in inside]


def _inside(values: Iterable[float]) -> list[float]:
    """Return the values that are not far outside of the quartiles; at least half of all."""
    ordered = sorted(values)
    first, third = quantile(ordered, 0.25), quantile(ordered, 0.75)
    reach = _FENCES * (third - first)
    return [value for value in ordered if first - reach <= value <= third + reach]
