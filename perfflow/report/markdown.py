"""The page as GitHub-flavoured Markdown. Names are code spans, other text is escaped: no ping, no broken table."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined

from perfflow.report.page import page_of
from perfflow.report.plain import visible
from perfflow.result import Result

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+!|~$^-])")
_LONGEST_NAME = 120


def render(result: Result) -> str:
    """Return the report of a result."""
    text = _environment().get_template("report.md.j2").render(page=page_of(result))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_template),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 (Markdown has its own escapes, the filters below; HTML ones would show)
    )
    environment.filters |= {"code": code, "cell": cell, "text": text, "shell": shell}
    return environment


def _template(name: str) -> str:
    return resources.files("perfflow.report").joinpath("templates", name).read_text(encoding="utf-8")


def code(name: str) -> str:
    """A name as a code span, with a fence longer than any run of backticks in it."""
    shown = _shortened(visible(name)) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cell(name: str) -> str:
    """A name as a code span in a table, where a bar would end the cell even inside code."""
    return code(name).replace("|", "\\|")


def text(words: str) -> str:
    """Words as plain text: Markdown's and HTML's characters escaped, mentions and references defused."""
    escaped = _SPECIAL.sub(r"\\\1", visible(words).replace("&", "&amp;")).replace("\\<", "&lt;").replace("\\>", "&gt;")
    return escaped.replace("@", "&#64;").replace("\\#", "&#35;").replace("://", ":&#47;&#47;").replace("\\-", "-")


def shell(line: str) -> str:
    """A line inside a fenced block, which no run of backticks can end."""
    return visible(line).replace("```", "` ` `")


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 1) // 2
    return f"{name[:half]}…{name[-half:]}"
