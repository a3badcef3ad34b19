"""Blocks as HTML. Everything that is filled in is escaped by markupsafe, so no text can be more than text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from perfflow.model.later import dataclass
from perfflow.report.blocks import Block, Bullets, Code, Fold, Prose
from perfflow.report.drawings import BLANK, LETTERS, drawn
from perfflow.report.html import charts
from perfflow.report.sanitize import MARKS, shortened, visible
from perfflow.report.table import Bar, Cell, Column, Density, Kind, Span, Table, Text

LONGEST_NAME = 120
_NO_BREAK = "&nbsp;"
_SHORT, _SHORTEST = 24, 12
"""Letters of a status or an interval up to which it stays in one line, and of what is never broken."""
MOST_UNFILTERED = 200
"""Rows of a table that has a filter, above which it is on from the beginning where scripts run."""
_REPEATED = 4096
"""Texts of cells that are kept as HTML: many pages of a site have the same dates, revisions and branches."""
_OWN_WORDS = Kind.VALUE


@dataclass(frozen=True)
class Drawings:
    """A column of pictures beside a table: a title, and a picture for each row, of which some may be empty."""

    title: str
    cells: Sequence[Markup]
    after: int
    """The number of columns to its left."""


@dataclass(frozen=True)
class Filter:
    """What most readers want of a long table: what it is called, and of each row whether it stays."""

    title: str
    stays: Sequence[bool]


@dataclass(frozen=True)
class Drawn:
    """A table with a column of pictures of its own, or a filter."""

    table: Table
    drawings: Drawings | None = None
    filter: Filter | None = None


def joined(parts: Sequence[Markup]) -> Markup:
    """Pieces of HTML one after the other."""
    return Markup("\n").join(parts)


def block_html(block: Block | Drawn | Markup) -> Markup:
    """One block."""
    match block:
        case Markup():
            return block
        case Drawn():
            return table_html(block.table, block.drawings, block.filter)
        case Prose():
            return Markup("<p>{}</p>").format(prose_html(block.content))
        case Bullets():
            mark = Markup('<li class="task">{}</li>') if block.tasks else Markup("<li>{}</li>")
            return Markup("<ul>{}</ul>").format(joined([mark.format(prose_html(item)) for item in block.items]))
        case Code():
            lines = "\n".join("\t".join(map(visible, line.split("\t"))) for line in block.lines)
            return Markup('<pre tabindex="0"><code class="{}">{}</code></pre>').format(block.language, lines)
        case Fold():
            inner = joined([block_html(each) for each in block.blocks])
            return Markup("<details><summary>{}</summary>\n{}\n</details>").format(block.title, inner)
        case Table():
            return table_html(block)


def prose_html(content: Text, kind: Kind = _OWN_WORDS) -> Markup:
    """A text with its parts. A part that is not a Span is of ``kind``."""
    parts = (content,) if isinstance(content, str) else content
    spans = (Span(part, kind) if isinstance(part, str) else part for part in parts)
    return Markup("").join(map(_span_html, spans))


def _span_html(span: Span) -> Markup:
    """One part of a text. In words, what stands between backticks is code."""
    shown = _shown(span)
    pieces = shown.split("`") if span.kind is Kind.WORDS else [shown]
    if len(pieces) % 2 == 0:
        return _SET[span.kind].format(shown)
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if number % 2 else _SET[span.kind].format(piece)
        for number, piece in enumerate(pieces)
    )


_SET: Mapping[Kind, Markup] = {
    Kind.NAME: Markup("<code>{}</code>"),
    Kind.WORDS: Markup("{}"),
    Kind.VALUE: Markup("{}"),
    Kind.STRONG: Markup("<strong>{}</strong>"),
    Kind.ASIDE: Markup("{}"),
    Kind.DRAWN: Markup("{}"),
}


def _shown(span: Span) -> str:
    """A text as it is shown; a symbol of the page as the mark that any font has."""
    if span.kind is Kind.NAME:
        return shortened(span.text, LONGEST_NAME)
    shown = visible(span.text)
    return MARKS[shown[0]][0] + shown[1:] if shown[:1] in MARKS else shown


def table_html(table: Table, drawings: Drawings | None = None, wanted: Filter | None = None) -> Markup:
    """A table that scrolls by itself where it is wider than the page, and how many rows are left out."""
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
    """The head of a column. Many pages of a site have the same tables."""
    if not column.title:
        # A heading without words is none to a screen reader.
        return Markup("<td></td>")
    return Markup('<th scope="col"{}>{}</th>').format(_class_of(column), prose_html((column.title,)))


def _rows(table: Table, drawings: Drawings | None, wanted: Filter | None) -> Markup:
    """The rows. They are put together as plain text, of cells that are escaped: a long table has thousands."""
    # Most cells hold one text, and are written with one call.
    writers = [(column, _PLAIN.get((column.kind, column.right))) for column in table.columns]
    rows = []
    for number, row in enumerate(table.rows):
        cells = [
            write(content) if write and isinstance(content, str) else _cell(column, content)
            for content, (column, write) in zip(row, writers, strict=True)
        ]
        if drawings:
            cells.insert(drawings.after, f'<td class="drawn">{escape(drawings.cells[number])}</td>')
        rest = ' class="rest"' if wanted and not wanted.stays[number] else ""
        rows.append(f"<tr{rest}>{''.join(cells)}</tr>")
    return Markup("\n".join(rows))  # noqa: S704 (each cell is escaped by its writer)


@lru_cache(_REPEATED)
def _name_cell(content: str) -> str:
    """What is a name as a whole is set as one by its class."""
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
    # What stands between backticks is code.
    shown = prose_html(content, Kind.WORDS) if "`" in content else _escaped(content)
    return f'<td class="words">{shown}</td>'


def _escaped(content: str) -> str:
    """Escape a text for HTML. Returns str, not Markup: adding a str to Markup would escape that str again."""
    return str(escape(_shown(Span(content, Kind.VALUE))))


_PLAIN: Mapping[tuple[Kind, bool], Callable[[str], str]] = {
    (Kind.NAME, False): _name_cell,
    (Kind.VALUE, True): _number_cell,
    (Kind.VALUE, False): _value_cell,
    (Kind.WORDS, False): _words_cell,
}


def _cell(column: Column, content: Cell) -> Markup:
    """One cell of any kind."""
    if isinstance(content, Bar):
        return Markup('<td class="drawn">{}</td>').format(charts.bar_picture(content))
    if isinstance(content, Density):
        return Markup("<td><code>{}</code></td>").format(drawn(content, LETTERS, BLANK))
    return Markup("<td{}>{}</td>").format(_class_of(column), prose_html(content, column.kind))


def _in_few_lines(value: str) -> str:
    """An escaped value that may be broken before its interval and after an arrow, and nowhere else."""
    return value.replace(" ", _NO_BREAK).replace(f"{_NO_BREAK}[", " [").replace(f"→{_NO_BREAK}", "→ ")


def _class_of(column: Column) -> Markup:
    if column.right:
        return Markup(' class="number"')
    kind = {Kind.WORDS: "words", Kind.DRAWN: "drawn"}.get(column.kind)
    return Markup(' class="{}"').format(kind) if kind else Markup("")


def anchor(title: str) -> str:
    """What a heading is linked to by."""
    return "-".join(escape(title).lower().split())
