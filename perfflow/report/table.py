"""The one type of table that every format renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

SIDE_NAMES = {"baseline": "baseline", "candidate": "candidate"}
"""The names of both sides in texts, by their names in a result; a gate calls them base and head."""
NOTHING = "–"
"""Text of a cell without a value."""


class TextKind(Enum):
    """The kind of a text. It decides how a format escapes and sets the text."""

    NAME = "name"
    """A name given by a user or a tool: of a benchmark, a file, a function."""
    WORDS = "words"
    """Words that may include text of tools and files."""
    VALUE = "value"
    """A number or a word of perfflow's own."""
    STRONG = "strong"
    """A value that is emphasized."""
    ASIDE = "aside"
    """A value that may be left out for lack of room: the interval after an estimate."""
    DRAWN = "drawn"
    """A drawing that repeats the values beside it."""


class Tone(Enum):
    """Whether something is good news. A format may colour it, but shows nothing by colour alone."""

    GOOD = "good"
    BAD = "bad"
    UNSURE = "unsure"
    STILL = "still"
    """Unchanged."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a cell whose kind differs from its column's; ``to`` is where a page links it, '' for nowhere."""

    text: str
    kind: TextKind
    to: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval on an axis. Places are shares of the axis's length: 0 is its left end, 1 its right end.

    An interval may reach beyond the axis. ``point`` is the estimate, ``bounds`` are the thresholds, ``none`` is the
    place of no change, ``allowed`` is the part of the axis that a requirement allows.
    """

    low: float
    high: float
    tone: Tone
    point: float | None = None
    bounds: tuple[float, ...] = ()
    none: float | None = None
    allowed: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Density:
    """Where single values lie on an axis, as shares of its length, 0 to 1."""

    places: tuple[float, ...]


Text = str | tuple[str | Span, ...]
"""A text; with parts of other kinds, one after the other."""
Cell = Text | Bar | Density
"""The text or the drawing of a cell."""
AXIS = " … "
"""Separator between the end values of an axis in the title of its drawings."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, the kind of its cells, and their alignment.

    A title that comes from a tool is a Span, others are perfflow's own text. If there is no room for all columns, those
    of the highest ``rank`` are left out first; those of rank 0 stay.
    """

    title: str | Span
    kind: TextKind = TextKind.VALUE
    right: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, rows of as many cells, the number of rows left out, and the tone of each row or none.

    A last column of words is a remark on its row, and may be placed below the row.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0
    tones: tuple[Tone, ...] = ()


def table(
    columns: Sequence[Column | None],
    rows: Iterable[Sequence[Cell]],
    left_out: int = 0,
    tones: Iterable[Tone] = (),
) -> Table:
    """Return a table. A column that is None is left out, with its cell in each row."""
    wanted = [number for number, column in enumerate(columns) if column]
    is_whole = len(wanted) == len(columns)
    shown = tuple(tuple(row) if is_whole else tuple(row[number] for number in wanted) for row in rows)
    return Table(tuple(column for column in columns if column), shown, left_out, tuple(tones))


def name(title: str) -> Column:
    """Return a column of names."""
    return Column(title, TextKind.NAME)


def words(title: str) -> Column:
    """Return a column of words."""
    return Column(title, TextKind.WORDS)


def value(title: str, rank: int = 0) -> Column:
    """Return a right-aligned column of numbers."""
    return Column(title, right=True, rank=rank)


def mark(title: str, rank: int = 0) -> Column:
    """Return a column of perfflow's own words, such as a decision or a status."""
    return Column(title, rank=rank)


def drawn(title: str, cells: Iterable[Cell], rank: int = 1) -> Column | None:
    """Return a column of drawings, or None if all its cells are empty."""
    return Column(title, TextKind.DRAWN, rank=rank) if any(cells) else None


def with_aside(text: str) -> Text:
    """Return a text such as ``1.62x [1.55x, 1.70x]`` with the interval marked as an aside."""
    estimate, bracket, rest = text.partition(" [")
    return (estimate, Span(bracket + rest, TextKind.ASIDE)) if bracket else text


def optional(text: str) -> Text:
    """Return a name, or a dash if it is ''."""
    return (Span(text, TextKind.NAME),) if text else (Span(NOTHING, TextKind.VALUE),)
