"""The page as GitHub-flavoured Markdown. Names are code spans, other text is escaped: no ping, no broken table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined

from perfflow.report.page import page_of
from perfflow.report.plain import shortened, visible
from perfflow.result import Result

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+!|~$^])")
_LINKED = re.compile(r"\b(www(?=\.)|gh(?=-\d))", re.IGNORECASE)
_LIST_MARK = re.compile(r"^(\d*)([-=.)])(?=[-=\s]|$)")
_GAP = "\u200b"
_LONGEST_NAME = 120


def render(result: Result) -> str:
    """Return the report of a result."""
    page = page_of(result)
    return filled(f"{page.template}.md.j2", page=page)


def filled(template: str, **parts: object) -> str:
    """A template's text, with at most one blank line between its parts."""
    text = _environment().get_template(template).render(**parts)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_template),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # of a template that another one includes
        autoescape=False,  # noqa: S701 (Markdown has its own escapes, the filters below; HTML ones would show)
    )
    environment.filters |= {
        "code": code,
        "cell": cell,
        "text": text,
        "line": visible,
        "fence": fence,
        "verbatim": verbatim,
    }
    return environment


def _template(name: str) -> str:
    return resources.files("perfflow.report").joinpath("templates", name).read_text(encoding="utf-8")


def fence(lines: Sequence[str]) -> str:
    """A fence that none of the lines can end: longer than any run of backticks in them."""
    return "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))


def verbatim(line: str) -> str:
    """A line of a diff: as it is, tabs included, less what acts instead of being shown."""
    return "\t".join(visible(part) for part in line.removesuffix("\r").split("\t"))


def code(name: str) -> str:
    """A name as a code span, with a fence longer than any run of backticks in it."""
    shown = shortened(name, _LONGEST_NAME) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cell(name: str) -> str:
    r"""A name as a code span in a table, where a bar would end the cell even inside code.

    Readers differ on what a backslash before ``\|`` does, so the two are kept apart.
    """
    return re.sub(r"\\(?=\|)", r"\\ ", code(name)).replace("|", "\\|")


def text(words: str) -> str:
    """Words as plain text: Markdown's and HTML's characters escaped, mentions, references and links defused.

    An entity alone would not do: GitHub looks for them in the rendered text, so a zero-width space breaks them up.
    """
    escaped = _SPECIAL.sub(r"\\\1", visible(words).strip().replace("&", "&amp;"))
    escaped = escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\#", f"&#35;{_GAP}")
    escaped = escaped.replace("@", f"&#64;{_GAP}").replace("://", f":/{_GAP}/")
    escaped = _LINKED.sub(rf"\g<0>{_GAP}", escaped)
    return _LIST_MARK.sub(r"\1\\\2", escaped)
