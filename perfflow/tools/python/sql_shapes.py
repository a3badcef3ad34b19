"""SQL statements out of logs, and the shape of a statement: what is left when its values are taken out.

A shape that is run once for each row of another query's result is the N+1 pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

LONGEST = 20_000
"""Characters of a statement that its shape is made of."""


class Format(StrEnum):
    """How a log tells of statements."""

    AUTO = "auto"
    PLAIN = "plain"
    SQLALCHEMY = "sqlalchemy"
    DJANGO = "django"
    POSTGRES = "postgres"


# What begins a statement; `end` is whatever follows it in the same record. Continuing lines bear no mark of their own.
_BEGINS: Mapping[Format, re.Pattern[str]] = {
    # 2026-01-31 12:00:00,123 INFO sqlalchemy.engine.Engine SELECT ...
    Format.SQLALCHEMY: re.compile(r".*?\bsqlalchemy\.engine\.(?:base\.)?Engine(?:\.\S+)?[: ]+(?!\[)(?P<sql>.*)"),
    # (0.001) SELECT ...; args=(1,); alias=default
    Format.DJANGO: re.compile(r"(?:.*?[\s:])?\(\d+\.\d+\) (?P<sql>.*)"),
    # 2026-01-31 12:00:00 UTC [17] LOG:  execute <unnamed>: SELECT ...
    Format.POSTGRES: re.compile(r".*?\bLOG: +(?:duration: [\d.]+ ms +)?(?:statement|execute [^:]*): (?P<sql>.*)"),
}
_ENDS: Mapping[Format, re.Pattern[str]] = {
    Format.SQLALCHEMY: re.compile(r"\d{4}-\d\d-\d\d |.*\bsqlalchemy\.engine\.|(?:DEBUG|INFO|WARNING|ERROR)\b"),
    Format.DJANGO: re.compile(r".*\(\d+\.\d+\) |(?:DEBUG|INFO|WARNING|ERROR)\b"),
    Format.POSTGRES: re.compile(r"\S"),
}
_DJANGO_ARGUMENTS = re.compile(r"; args=.*\Z", re.DOTALL)
_IMPLICIT = re.compile(r"(?P<word>BEGIN|COMMIT|ROLLBACK)\b.*", re.IGNORECASE)
# In this order: comments, texts, then numbers and placeholders, which may stand within neither. An escaped quote is two
# quotes; a name in double quotes stays.
_VALUES = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)"
    r"|(?P<name>\"(?:[^\"]|\"\")*\"|`[^`]*`)"
    r"|(?P<value>[xXbBeENn]?'(?:[^']|'')*'"
    r"|\$\w+|%\(\w+\)s|%s|(?<![:\w]):\w+|\?\d*|(?<![\w.$])[-+]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)(?!\w))",
    re.DOTALL,
)
_SIGNED = re.compile(r"(?<=[\w)?])\s*[-+]\Z")
_SPACE = re.compile(r"\s+")
_LIST = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")
_ROWS = re.compile(r"(\((?:\?|\?…)\))(?:\s*,\s*\((?:\?|\?…)\))+")
_QUERY = re.compile(r"\(*\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|MERGE|WITH|VALUES|CALL|EXEC\w*)\b", re.IGNORECASE)


def shape(statement: str) -> str:
    """Return a statement without comments, with ``?`` for each value and ``(?…)`` for a list of them."""
    text = _VALUES.sub(_taken_out, statement[:LONGEST])
    text = _SPACE.sub(" ", text).strip().rstrip(";").rstrip()
    return _ROWS.sub(r"\1…", _LIST.sub("(?…)", text))


def _taken_out(match: re.Match[str]) -> str:
    if match["comment"]:
        return " "
    if match["name"]:
        return match["name"]
    # The sign of `a -1` is an operator's; with or without it the shape is one.
    sign = (
        match["value"][0] if match["value"][0] in "+-" and _SIGNED.search(match.string[: match.start()] + "-") else ""
    )
    return f"{sign}?"


def asks_for_data(statement: str) -> bool:
    """Whether a statement reads or changes rows, other than what begins and ends transactions or sets something."""
    return bool(_QUERY.match(statement))


def format_of(lines: Iterable[str]) -> Format:
    """The format whose marks most lines bear; plain where none does."""
    counts = dict.fromkeys(_BEGINS, 0)
    for line in lines:
        for name, begins in _BEGINS.items():
            counts[name] += bool(begins.match(line[:400]))
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else Format.PLAIN


def statements(lines: Iterable[str], form: Format) -> Iterator[str]:
    """The statements of a log. Of a plain one, each line that is not blank or a comment is a statement."""
    if form is Format.PLAIN:
        yield from (line for line in (line.strip() for line in lines) if line and not line.startswith("--"))
        return
    begins, ends = _BEGINS[form], _ENDS[form]
    found: list[str] = []
    for line in lines:
        match = begins.match(line)
        if match or ends.match(line):
            yield from _whole(found, form)
            found = [match["sql"]] if match else []
        elif found:
            found.append(line)
    yield from _whole(found, form)


def _whole(found: list[str], form: Format) -> Iterator[str]:
    text = "\n".join(found).strip()
    if form is Format.DJANGO:
        text = _DJANGO_ARGUMENTS.sub("", text)
    if form is Format.SQLALCHEMY and (match := _IMPLICIT.fullmatch(text)):
        text = match["word"]
    if text:
        yield text
