"""The page as GitHub-flavoured Markdown. Names are code spans, other text is escaped: no mentions, no broken tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from perfflow.model.result import Result
from perfflow.report.page import page_of
from perfflow.report.sanitize import shortened, visible
from perfflow.report.sections import Block, Bullets, CodeBlock, Fold, Prose, ReportDocument, report_of
from perfflow.report.table import Bar, Cell, Column, Density, Span, Table, Text, TextKind
from perfflow.report.text_table import BLANK, LETTERS, drawn

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+!|~$^])")
_LINKED = re.compile(r"\b(www(?=\.)|gh(?=-\d))", re.IGNORECASE)
_LIST_MARK = re.compile(r"^(\d*)([-=.)])(?=[-=\s]|$)")
_GAP = "\u200b"
_LONGEST_NAME = 120


def render(result: Result) -> str:
    """Return the report of a result as Markdown."""
    return document_text(report_of(page_of(result)))


def document_text(document: ReportDocument) -> str:
    """Return a document as Markdown."""
    parts = [f"## {_prose(document.title)}"]
    for section in document.sections:
        parts += [f"### {section.title}"] if section.title else []
        parts += map(_block, section.blocks)
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Prose():
            return _prose(block.content)
        case Bullets():
            return "\n".join(f"- {'[ ] ' if block.tasks else ''}{_prose(item)}" for item in block.items)
        case CodeBlock():
            show = verbatim if block.language == "diff" else visible
            mark = fence(block.lines)
            return "\n".join([f"{mark}{block.language}", *map(show, block.lines), mark])
        case Fold():
            inner = "\n\n".join(map(_block, block.blocks))
            return f"<details><summary>{block.title}</summary>\n\n{inner}\n\n</details>"
        case Table():
            return table_text(block)


def _prose(content: Text) -> str:
    parts = (content,) if isinstance(content, str) else content
    return "".join(part if isinstance(part, str) else _IN_PROSE[part.kind](part.text) for part in parts)


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


def text(words: str) -> str:
    """Return plain text with the characters of Markdown and HTML escaped, and mentions, references and links broken up.

    GitHub finds mentions in the rendered text, where an entity alone does not help, so a zero-width space splits them.
    """
    escaped = _SPECIAL.sub(r"\\\1", visible(words).strip().replace("&", "&amp;"))
    escaped = escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\#", f"&#35;{_GAP}")
    escaped = escaped.replace("@", f"&#64;{_GAP}").replace("://", f":/{_GAP}/")
    escaped = _LINKED.sub(rf"\g<0>{_GAP}", escaped)
    return _LIST_MARK.sub(r"\1\\\2", escaped)


def _strong(words: str) -> str:
    return f"**{words}**"


_IN_PROSE: Mapping[TextKind, Callable[[str], str]] = {
    TextKind.NAME: code,
    TextKind.WORDS: text,
    TextKind.VALUE: str,
    TextKind.STRONG: _strong,
    TextKind.ASIDE: str,
    TextKind.DRAWN: str,
}
"""How text of each kind is written."""
_IN_CELL: Mapping[TextKind, Callable[[str], str]] = {**_IN_PROSE, TextKind.NAME: cell}
"""The same inside a table cell."""
