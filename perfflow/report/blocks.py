"""The building blocks of a report. Each format renders these types and does not depend on their content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfflow.report.table import Span, Table, Text, TextKind


@dataclass(frozen=True)
class Prose:
    """A paragraph. A part that is not a Span is perfflow's own text."""

    content: Text


@dataclass(frozen=True)
class Bullets:
    """A list; with ``tasks``, each item has a checkbox."""

    items: tuple[Text, ...]
    tasks: bool = False


@dataclass(frozen=True)
class Code:
    """Verbatim lines, with the language for syntax highlighting."""

    lines: tuple[str, ...]
    language: str = "text"


@dataclass(frozen=True)
class Fold:
    """Blocks that are collapsed until the reader opens them."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """A heading and its blocks. A section without a title has no heading."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: Text
    sections: tuple[Section, ...]


Block = Prose | Bullets | Code | Fold | Table


def named(text: str) -> Span:
    """Return a name given by a user or a tool."""
    return Span(text, TextKind.NAME)


def quoted(text: str) -> Span:
    """Return words that may include text of tools and files."""
    return Span(text, TextKind.WORDS)


def strong(text: str) -> Span:
    """Return emphasized words of perfflow's own."""
    return Span(text, TextKind.STRONG)


def quotes(texts: Iterable[str]) -> tuple[Block, ...]:
    """Return a list of texts that may come from tools and files; () for no texts."""
    items = tuple((quoted(text),) for text in texts)
    return (Bullets(items),) if items else ()


def more(count: int) -> tuple[Block, ...]:
    """Return a paragraph with the number of rows left out; () for 0."""
    return (Prose((f"{count} more are in ", named("result.json"), ".")),) if count else ()


def code(lines: Sequence[str], language: str = "text") -> tuple[Block, ...]:
    """Return verbatim lines; () for no lines."""
    return (Code(tuple(lines), language),) if lines else ()
