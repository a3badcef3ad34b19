"""Blocks as HTML. markupsafe escapes every inserted text, so no text can become markup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from markupsafe import Markup, escape

from perfflow.report.html import charts
from perfflow.report.sanitize import MARKS, shortened, visible
from perfflow.report.table import Bar, Cell, Column, Density, Span, Table, Text, TextKind
from perfflow.report.text_table import BLANK, LETTERS, drawn

LONGEST_NAME = 120
_NO_BREAK = "&nbsp;"
_SHORT, _SHORTEST = 24, 12
"""Longest status or interval that stays on one line, and longest number that is never broken, in characters."""
MOST_UNFILTERED = 200
"""Rows of a table above which its filter is on from the start, if scripts run."""
_REPEATED = 4096
"""Cells whose HTML is cached, since the pages of a site share many dates, revisions and branches."""
_OWN_WORDS = TextKind.VALUE


@dataclass(frozen=True)
class Drawings:
    """A column of pictures for a table: its title, and a picture for each row, which may be empty."""

    title: str
    cells: Sequence[Markup]
    after: int
    """The number of columns to its left."""


@dataclass(frozen=True)
class Filter:
    """A filter of a long table: its title, and for each row whether it stays."""

    title: str
    stays: Sequence[bool]


def joined(parts: Sequence[Markup]) -> Markup:
    """Return pieces of HTML, one per line."""
    return Markup("\n").join(parts)


def paragraph(text: str) -> Markup:
    """Return a paragraph."""
    return Markup("<p>{}</p>").format(text)


def prose_html(content: Text, kind: TextKind = _OWN_WORDS) -> Markup:
    """Return a text as HTML. A part that is not a Span is of ``kind``."""
    parts = (content,) if isinstance(content, str) else content
    spans = (Span(part, kind) if isinstance(part, str) else part for part in parts)
    return Markup("").join(map(span_html, spans))


def span_html(span: Span) -> Markup:
    """Return one part of a text. In words, text between backticks is code."""
    if span.to:
        return Markup('<a href="{}">{}</a>').format(span.to, span_html(replace(span, to="")))
    shown = _shown(span)
    pieces = shown.split("`") if span.kind is TextKind.WORDS else [shown]
    if len(pieces) % 2 == 0:
        return _SET[span.kind].format(shown)
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if number % 2 else _SET[span.kind].format(piece)
        for number, piece in enumerate(pieces)
    )


_SET: Mapping[TextKind, Markup] = {
    TextKind.NAME: Markup("<code>{}</code>"),
    TextKind.WORDS: Markup("{}"),
    TextKind.VALUE: Markup("{}"),
    TextKind.STRONG: Markup("<strong>{}</strong>"),
    TextKind.ASIDE: Markup("{}"),
    TextKind.DRAWN: Markup("{}"),
}


def _shown(span: Span) -> str:
    """Return a text for display; a symbol of the page becomes a mark that any font has."""
    if span.kind is TextKind.NAME:
        return shortened(span.text, LONGEST_NAME)
    shown = visible(span.text)
    return MARKS[shown[0]][0] + shown[1:] if shown[:1] in MARKS else shown


def table_html(table: Table, drawings: Drawings | None = None, wanted: Filter | None = None) -> Markup:
    """Return a table that scrolls if it is wider than the page, and the number of rows left out."""
    heads = list(map(_heading, table.columns))
    rows = _rows(table, drawings, wanted)
    if drawings:
        heads.insert(drawings.after, Markup('<th scope="col">{}</th>').format(drawings.title))
    classes = ["sortable"] if len(table.rows) > 1 else []
    attributes = Markup("")
    if wanted:
        attributes = Markup(' data-filter="{}"').format(wanted.title)
        classes += ["filtered"] if len(table.rows) > MOST_UNFILTERED else []
    if classes:
        attributes += Markup(' class="{}"').format(" ".join(classes))
    html = Markup(
        '<div class="scroll" tabindex="0" role="group" aria-label="table"><table{}><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(attributes, Markup("").join(heads), rows)
    if not table.left_out:
        return html
    return html + Markup("<p>{} more are in <code>result.json</code>.</p>").format(table.left_out)


@lru_cache(_REPEATED)
def _heading(column: Column) -> Markup:
    """Return the head of a column. It is cached, since many pages of a site have the same tables."""
    if not column.title:
        # Screen readers do not accept a heading without words.
        return Markup("<td></td>")
    return Markup('<th scope="col"{}>{}</th>').format(_class_of(column), prose_html((column.title,)))


def _rows(table: Table, drawings: Drawings | None, row_filter: Filter | None) -> Markup:
    """Return the rows. They are joined as plain strings of escaped cells, for speed: a long table has thousands."""
    # Most cells hold one text, and need only one call.
    writers = [(column, _PLAIN.get((column.kind, column.right))) for column in table.columns]
    rows = []
    for number, row in enumerate(table.rows):
        cells = [
            write(content) if write and isinstance(content, str) else _cell(column, content)
            for content, (column, write) in zip(row, writers, strict=True)
        ]
        if drawings:
            cells.insert(drawings.after, f'<td class="drawn">{escape(drawings.cells[number])}</td>')
        rest = ' class="rest"' if row_filter and not row_filter.stays[number] else ""
        rows.append(f"<tr{rest}>{''.join(cells)}</tr>")
    return Markup("\n".join(rows))  # noqa: S704 (each cell is escaped by its writer)


@lru_cache(_REPEATED)
def _name_cell(content: str) -> str:
    """Return a cell that is one name. Its class sets it in the font of code."""
    return f'<td class="name">{escape(shortened(content, LONGEST_NAME))}</td>'


@lru_cache(_REPEATED)
def _number_cell(content: str) -> str:
    shown = _escaped(content)
    kept = shown.replace(" ", _NO_BREAK) if len(content) <= _SHORTEST else _in_few_lines(shown)
    return f'<td class="number">{kept}</td>'


@lru_cache(_REPEATED)
def _value_cell(content: str) -> str:
    shown = _escaped(content)
    return f"<td>{_in_few_lines(shown) if len(content) <= _SHORT else shown}</td>"


@lru_cache(_REPEATED)
def _words_cell(content: str) -> str:
    # Text between backticks is code.
    shown = prose_html(content, TextKind.WORDS) if "`" in content else _escaped(content)
    return f'<td class="words">{shown}</td>'


def _escaped(content: str) -> str:
    """Return a text escaped for HTML, as str: adding a str to Markup would escape that str again."""
    return str(escape(_shown(Span(content, TextKind.VALUE))))


_PLAIN: Mapping[tuple[TextKind, bool], Callable[[str], str]] = {
    (TextKind.NAME, False): _name_cell,
    (TextKind.VALUE, True): _number_cell,
    (TextKind.VALUE, False): _value_cell,
    (TextKind.WORDS, False): _words_cell,
}


def _cell(column: Column, content: Cell) -> Markup:
    """Return a cell of any kind."""
    if isinstance(content, Bar):
        return Markup('<td class="drawn">{}</td>').format(charts.bar_picture(content))
    if isinstance(content, Density):
        return Markup("<td><code>{}</code></td>").format(drawn(content, LETTERS, BLANK))
    return Markup("<td{}>{}</td>").format(_class_of(column), prose_html(content, column.kind))


def _in_few_lines(value: str) -> str:
    """Return an escaped value that may break only before its interval and after an arrow."""
    return value.replace(" ", _NO_BREAK).replace(f"{_NO_BREAK}[", " [").replace(f"→{_NO_BREAK}", "→ ")


def _class_of(column: Column) -> Markup:
    if column.right:
        return Markup(' class="number"')
    kind = {TextKind.WORDS: "words", TextKind.DRAWN: "drawn"}.get(column.kind)
    return Markup(' class="{}"').format(kind) if kind else Markup("")


def anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return "-".join(escape(title).lower().split())
