"""The one type of table that every format renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

NOTHING = "–"
"""What stands in a cell that has no value."""


class Kind(Enum):
    """What a text is, by which each format escapes and sets it."""

    NAME = "name"
    """A name that somebody gave: of a benchmark, a file, a function."""
    WORDS = "words"
    """Words that may hold text of tools and files."""
    VALUE = "value"
    """A number or a word of perfflow's own."""
    STRONG = "strong"
    """The same where it stands out."""
    ASIDE = "aside"
    """A value that may be left out where there is no room for it: the interval behind an estimate."""
    DRAWN = "drawn"
    """A drawing that says no more than the values beside it."""


class Tone(Enum):
    """Whether something is good news. A format may colour it, and says nothing by colour alone."""

    GOOD = "good"
    BAD = "bad"
    UNSURE = "unsure"
    STILL = "still"
    """It is as it was."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a cell that is of another kind than its column."""

    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval on an axis. Places are shares of the axis's length: 0 is its left end, 1 its right end.

    An interval may reach beyond the axis. ``bounds`` are what it is held against, ``none`` is where no change is,
    ``allowed`` is the part of the axis that a requirement allows. ``point`` is the estimate.
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
"""The text of a cell, or what is drawn in it."""
AXIS = " … "
"""In the title of drawings that share an axis, what stands between the values at its ends."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, with the unit where all its values share one, what its cells are, and their alignment.

    A title that is a text of perfflow's own is of kind VALUE; one that a tool gave is a Span. Where there is no room
    for all columns, those of the highest ``rank`` are left out first; those of rank 0 stay.
    """

    title: str | Span
    kind: Kind = Kind.VALUE
    right: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, rows of as many cells, how many further rows are left out, and of each row its tone, where it has any.

    The last column, if its cells are words, is a remark on its row, and may stand below it.
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
    """Make a table. A column that is None is left out, and so is its cell in each row."""
    wanted = [number for number, column in enumerate(columns) if column]
    is_whole = len(wanted) == len(columns)
    shown = tuple(tuple(row) if is_whole else tuple(row[number] for number in wanted) for row in rows)
    return Table(tuple(column for column in columns if column), shown, left_out, tuple(tones))


def name(title: str) -> Column:
    """A column of names."""
    return Column(title, Kind.NAME)


def words(title: str) -> Column:
    """A column of words."""
    return Column(title, Kind.WORDS)


def value(title: str, rank: int = 0) -> Column:
    """A column of numbers, which end below each other."""
    return Column(title, right=True, rank=rank)


def mark(title: str, rank: int = 0) -> Column:
    """A column of words of perfflow's own: a decision, a status."""
    return Column(title, rank=rank)


def drawn(title: str, cells: Iterable[Cell], rank: int = 1) -> Column | None:
    """A column of drawings; None where all of its cells are empty."""
    return Column(title, Kind.DRAWN, rank=rank) if any(cells) else None


def with_aside(text: str) -> Text:
    """``1.62x [1.55x, 1.70x]``, of which the interval may be left out."""
    estimate, bracket, rest = text.partition(" [")
    return (estimate, Span(bracket + rest, Kind.ASIDE)) if bracket else text


def optional(text: str, kind: Kind = Kind.NAME) -> Text:
    """A name that may be missing: a dash stands for it."""
    return (Span(text, kind),) if text else (Span(NOTHING, Kind.VALUE),)
