"""The page as GitHub-flavoured Markdown. Names are code spans, other text is escaped: no mentions, no broken tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfflow.model.result import Result
from perfflow.report.page import Page, page_of
from perfflow.report.sanitize import shortened, visible
from perfflow.report.table import Bar, Cell, Column, Density, Span, Table, TextKind
from perfflow.report.template import TEMPLATES, Writer
from perfflow.report.text_table import BLANK, LETTERS, drawn

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+!|~$^])")
_LINKED = re.compile(r"\b(www(?=\.)|gh(?=-\d))", re.IGNORECASE)
_LIST_MARK = re.compile(r"^(\d*)([-=.)])(?=[-=\s]|$)")
_GAP = "\u200b"
_LONGEST_NAME = 120


def render(result: Result) -> str:
    """Return the report of a result as Markdown."""
    page = page_of(result)
    return document(template_of(page), page)


def template_of(page: Page) -> str:
    """Return the name of perfflow's template for a page, also if the user has one."""
    return f"{page.template if page.template in TEMPLATES else TEMPLATES[0]}.md.j2"


def render_own(result: Result, path: Path, name: str = "", link: str = "") -> str:
    """Return a result by the user's template, called ``name`` in messages. Raises UserError if it fails."""
    return MarkdownWriter(page_of(result), result=result, link=link).render_own(path, name) + "\n"


def document(template: str, page: Page | None, **variables: Any) -> str:
    """Return a template of this package as Markdown."""
    return MarkdownWriter(page, **variables).render(template) + "\n"


class MarkdownWriter(Writer):
    """Writes the parts of a report as Markdown."""

    between = "\n\n"

    def _part(self, title: str, body: str) -> str:
        return f"### {title}\n\n{body}" if title else body

    def _paragraph(self, text: str) -> str:
        return text

    def _bullets(self, items: Sequence[str], *, tasks: bool) -> str:
        return "\n".join(f"- {'[ ] ' if tasks else ''}{item}" for item in items)

    def _code(self, lines: Sequence[str], language: str) -> str:
        show = verbatim if language == "diff" else visible
        mark = fence(lines)
        return "\n".join([f"{mark}{language}", *map(show, lines), mark])

    def _fold(self, title: str, body: str) -> str:
        return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"

    def _table(self, table: Table, what: object) -> str:  # noqa: ARG002 (Markdown draws no bars)
        return table_text(table)

    def name(self, text: str) -> str:
        """Set a name as a code span."""
        return code(text)

    def words(self, text: str) -> str:
        """Set words with the characters of Markdown escaped."""
        return escaped(text)

    def strong(self, text: str) -> str:
        """Set words in bold."""
        return _strong(text)


def table_text(table: Table) -> str:
    """Return a table, followed by the number of rows that are left out."""
    titles = (_cell((column.title,), Column("")) for column in table.columns)
    head = "".join(f" {title} |" if title else " |" for title in titles)
    line = "".join("--:|" if column.right else "---|" for column in table.columns)
    rows = (
        "".join(f" {_cell(content, column)} |" for content, column in zip(row, table.columns, strict=True))
        for row in table.rows
    )
    lines = [f"|{line}" for line in (head, line, *rows)]
    left_out = [f"\n{table.left_out} more are in `result.json`."] if table.left_out else []
    return "\n".join([*lines, *left_out])


def _cell(content: Cell, column: Column) -> str:
    if isinstance(content, Bar | Density):
        return f"`{drawn(content, LETTERS, BLANK)}`"
    parts = (content,) if isinstance(content, str) else content
    spans = (Span(part, column.kind) if isinstance(part, str) else part for part in parts)
    return "".join(_IN_CELL[span.kind](span.text) for span in spans)


def fence(lines: Sequence[str]) -> str:
    """Return a fence that is longer than any run of backticks in the lines, so that none can end it."""
    return "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))


def verbatim(line: str) -> str:
    """Return a line of a diff with its tabs, and with control characters spelled out."""
    return "\t".join(visible(part) for part in line.removesuffix("\r").split("\t"))


def code(name: str) -> str:
    """Return a name as a code span whose fence is longer than any run of backticks in it."""
    shown = shortened(name, _LONGEST_NAME) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cell(name: str) -> str:
    r"""Return a name as a code span in a table, where a bar would end the cell even inside code.

    Markdown readers treat a backslash before ``\|`` differently, so the two are kept apart.
    """
    return re.sub(r"\\(?=\|)", r"\\ ", code(name)).replace("|", "\\|")


def escaped(words: str) -> str:
    """Return plain text with the characters of Markdown and HTML escaped, and mentions, references and links broken up.

    GitHub finds mentions in the rendered text, where an entity alone does not help, so a zero-width space splits them.
    """
    shown = _SPECIAL.sub(r"\\\1", visible(words).strip().replace("&", "&amp;"))
    shown = shown.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\#", f"&#35;{_GAP}")
    shown = shown.replace("@", f"&#64;{_GAP}").replace("://", f":/{_GAP}/")
    shown = _LINKED.sub(rf"\g<0>{_GAP}", shown)
    return _LIST_MARK.sub(r"\1\\\2", shown)


def _strong(words: str) -> str:
    return f"**{words}**"


_IN_CELL: Mapping[TextKind, Callable[[str], str]] = {
    TextKind.NAME: cell,
    TextKind.WORDS: escaped,
    TextKind.VALUE: str,
    TextKind.STRONG: _strong,
    TextKind.ASIDE: str,
    TextKind.DRAWN: str,
}
"""How text of each kind is written in a cell."""
