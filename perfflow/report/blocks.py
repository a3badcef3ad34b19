"""What a report is made of. Each format renders these types and knows nothing of what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perfflow.model.later import dataclass
from perfflow.report.table import Kind, Span, Table, Text


@dataclass(frozen=True)
class Prose:
    """A paragraph. A part that is not a Span is text of perfflow's own."""

    content: Text


@dataclass(frozen=True)
class Bullets:
    """A list; of ``tasks`` each item has a box to tick."""

    items: tuple[Text, ...]
    tasks: bool = False


@dataclass(frozen=True)
class Code:
    """Lines that are shown as they are, in a language that may be highlighted."""

    lines: tuple[str, ...]
    language: str = "text"


@dataclass(frozen=True)
class Fold:
    """Blocks that are hidden until they are asked for."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """A heading and what is below it; without a title, what a report opens with."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: Text
    sections: tuple[Section, ...]


Block = Prose | Bullets | Code | Fold | Table


def named(text: str) -> Span:
    """A name that somebody gave."""
    return Span(text, Kind.NAME)


def quoted(text: str) -> Span:
    """Words that may hold text of tools and files."""
    return Span(text, Kind.WORDS)


def strong(text: str) -> Span:
    """Words of perfflow's own that stand out."""
    return Span(text, Kind.STRONG)


def quotes(texts: Iterable[str]) -> tuple[Block, ...]:
    """A list of texts of tools and files; nothing of none."""
    items = tuple((quoted(text),) for text in texts)
    return (Bullets(items),) if items else ()


def more(count: int) -> tuple[Block, ...]:
    """How many rows are left out; nothing where there are none."""
    return (Prose((f"{count} more are in ", named("result.json"), ".")),) if count else ()


def code(lines: Sequence[str], language: str = "text") -> tuple[Block, ...]:
    """Lines as they are; nothing of none."""
    return (Code(tuple(lines), language),) if lines else ()
