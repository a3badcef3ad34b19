"""``sql-log``: the SQL statements of a program: how many run, and how often the most frequent shape runs.

drivers/sqlite_run.py traces the sqlite3 connections of a Python program. Any other program logs its statements itself:
to its output, as SQLAlchemy's ``echo``, Django's ``django.db.backends`` and PostgreSQL's ``log_statement`` do, or one
per line to the file that the environment variable PERFFLOW_SQL_LOG names.

The shape of a statement is its text without the values. A shape that runs once for each row of another query's result
is the N+1 pattern.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import MOST_HOTSPOTS, Hotspot, Parsed, Reading, Usage
from perfflow.tools import parsed_output, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.parsed_output import Json, Whole
from perfflow.tools.python import in_program

NAME = "sql-log"

_TRACE = "sqlite.jsonl"
_LOG = "sql.log"
_SHOWN = 200
_FIRST = 2000
_LONGEST = 20_000
"""Characters of a statement from which its shape is made."""


Format = Literal["auto", "plain", "sqlalchemy", "django", "postgres"]
"""Format of a log."""
# The start of a statement. Its further lines have no prefix.
_BEGINS: Mapping[Format, re.Pattern[str]] = {
    # 2026-01-31 12:00:00,123 INFO sqlalchemy.engine.Engine SELECT ...
    "sqlalchemy": re.compile(r".*?\bsqlalchemy\.engine\.(?:base\.)?Engine(?:\.\S+)?[: ]+(?!\[)(?P<sql>.*)"),
    # (0.001) SELECT ...; args=(1,); alias=default
    "django": re.compile(r"(?:.*?[\s:])?\(\d+\.\d+\) (?P<sql>.*)"),
    # 2026-01-31 12:00:00 UTC [17] LOG:  execute <unnamed>: SELECT ...
    "postgres": re.compile(r".*?\bLOG: +(?:duration: [\d.]+ ms +)?(?:statement|execute [^:]*): (?P<sql>.*)"),
}
_ENDS: Mapping[Format, re.Pattern[str]] = {
    "sqlalchemy": re.compile(r"\d{4}-\d\d-\d\d |.*\bsqlalchemy\.engine\.|(?:DEBUG|INFO|WARNING|ERROR)\b"),
    "django": re.compile(r".*\(\d+\.\d+\) |(?:DEBUG|INFO|WARNING|ERROR)\b"),
    "postgres": re.compile(r"\S"),
}
_DJANGO_ARGUMENTS = re.compile(r"; args=.*\Z", re.DOTALL)
_IMPLICIT = re.compile(r"(?P<word>BEGIN|COMMIT|ROLLBACK)\b.*", re.IGNORECASE)
# Comments and strings come first, because they can contain what looks like numbers and placeholders. Two quotes are an
# escaped quote. Quoted names stay.
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


class SqlLogOptions(CommandOptions):
    """``with`` keys of ``uses: sql-log``."""

    log: Literal["sqlite3", "stdout", "stderr", "file"] = Field(
        default="sqlite3",
        description="Where to read statements: `sqlite3` (connections of a Python program), `stdout`, `stderr` or "
        "`file` (the path in the variable PERFFLOW_SQL_LOG).",
    )
    format: Format = Field(default="auto", description="Format of the log. `auto` detects it.")


class _SqlLogEnd(Json):
    statements: Whole


def invocations(call: Call[SqlLogOptions]) -> tuple[Invocation, ...]:
    """Run the program; for ``log: sqlite3`` under drivers/sqlite_run.py, which traces its connections.

    Raises ToolOutputError with a remedy if that needs a Python invocation and the command is not one.
    """
    source = call.options.log
    if source == "sqlite3":
        return (in_program.under("sqlite_run.py", call, call.folder / _TRACE),)
    env = {"PERFFLOW_SQL_LOG": str(call.folder / _LOG)} if source == "file" else {}
    return (Invocation(call.command, env, "stdout" if source == "stdout" else ""),)


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the file with the statements. If the driver wrote no trace, ``parse`` reports why."""
    file = _file(call)
    return tool_files.left(file) if file.name == _TRACE else (file,)


def parse(call: Call[SqlLogOptions], usage: Usage) -> Parsed:
    """Count statements, and rank their shapes by how often each runs.

    Raises ToolOutputError if there is no statement, if a trace is truncated, or if the program failed.
    """
    logged = _traced(_file(call)) if call.options.log == "sqlite3" else _logged(_file(call), call.options.format)
    shapes = Counter(filter(None, map(lru_cache(maxsize=4096)(shape), logged)))
    total = shapes.total()
    if not total:
        where = "on connections of Python's sqlite3" if call.options.log == "sqlite3" else f"in its {call.options.log}"
        raise ToolOutputError(f"found no SQL statement {where}: set `log` to where the program's statements are")
    asking = {text: count for text, count in shapes.items() if asks_for_data(text)}
    repeated = max(asking.values(), default=0)
    readings = (Reading("sql_statements", total), Reading("sql_repeated", repeated))
    ranked = sorted(shapes.items(), key=lambda item: (-item[1], item[0]))[:MOST_HOTSPOTS]
    return Parsed(readings, tuple(_hotspot(text, count, total) for text, count in ranked))


def _file(call: Call[SqlLogOptions]) -> Path:
    source = call.options.log
    return call.folder / {"sqlite3": _TRACE, "file": _LOG}.get(source, source)


def _traced(path: Path) -> Iterator[str]:
    """Yield the statements that the driver recorded. Raises ToolOutputError unless the last line counts them."""
    count, ended = 0, False
    for line in tool_files.read_lines(path, in_program.REMEDY):
        entry = tool_files.decoded(line, f"a line of {path.name}")
        if ended or entry == "":
            raise ToolOutputError(
                f"{path.name} is damaged: it contains more than statements and a last line with their number"
            )
        if isinstance(entry, str):
            count += 1
            yield entry
            continue
        ended = in_program.require_success(entry, path.name)
        if parsed_output.checked_json(_SqlLogEnd, entry, path.name).statements != count:
            raise ToolOutputError(
                f"{path.name} is damaged: it contains {count:,} statements, but its last line has another number"
            )
    if not ended:
        raise ToolOutputError(f"{path.name} is cut short: {in_program.REMEDY}")


def _logged(path: Path, form: Format) -> Iterator[str]:
    """Yield the statements of a log that the program wrote."""
    if form == "auto":
        form = format_of(islice(tool_files.read_lines(path), _FIRST))
        if form == "plain" and path.name != _LOG:
            # In the plain format, every printed line would count as SQL.
            raise ToolOutputError(f"{path.name} contains no SQL statement in a known format: set `format`")
    yield from statements(tool_files.read_lines(path), form)


def shape(statement: str) -> str:
    """Return a statement without comments, with ``?`` for each value and ``(?…)`` for a list of them."""
    text = _VALUES.sub(_placeholder, statement[:_LONGEST])
    text = _SPACE.sub(" ", text).strip().rstrip(";").rstrip()
    return _ROWS.sub(r"\1…", _LIST.sub("(?…)", text))


def _placeholder(match: re.Match[str]) -> str:
    if match["comment"]:
        return " "
    if match["name"]:
        return match["name"]
    # The sign in `a -1` is an operator and stays. A sign that belongs to the value does not change the shape.
    sign = match["value"][0]
    return f"{sign}?" if sign in "+-" and _SIGNED.search(match.string[: match.start()] + "-") else "?"


def asks_for_data(statement: str) -> bool:
    """Return whether a statement reads or changes rows, unlike statements for transactions and settings."""
    return bool(_QUERY.match(statement))


def format_of(lines: Iterable[str]) -> Format:
    """Return the format whose prefixes match most lines, ``plain`` if none matches."""
    counts = Counter(name for line in lines for name, begins in _BEGINS.items() if begins.match(line[:400]))
    # In a tie, the first format of ``_BEGINS`` wins.
    return max(_BEGINS, key=counts.__getitem__) if counts else "plain"


def statements(lines: Iterable[str], form: Format) -> Iterator[str]:
    """Yield the statements of a log. In a plain log, each line that is not blank or a comment is a statement."""
    if form == "plain":
        yield from (line for line in (line.strip() for line in lines) if line and not line.startswith("--"))
        return
    begins, ends = _BEGINS[form], _ENDS[form]
    parts: list[str] = []
    for line in lines:
        match = begins.match(line)
        if match or ends.match(line):
            yield from _statement(parts, form)
            parts = [match["sql"]] if match else []
        elif parts:
            parts.append(line)
    yield from _statement(parts, form)


def _statement(found: list[str], form: Format) -> Iterator[str]:
    text = "\n".join(found).strip()
    if form == "django":
        text = _DJANGO_ARGUMENTS.sub("", text)
    if form == "sqlalchemy" and (match := _IMPLICIT.fullmatch(text)):
        text = match["word"]
    if text:
        yield text


def _hotspot(text: str, count: int, total: int) -> Hotspot:
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    times = "once" if count == 1 else f"{count:,} times"
    return Hotspot(tool_files.clean_name(shown), count / total, "statements", NAME, cause=f"measured: run {times}")


ADAPTER = Adapter(
    NAME,
    Role.MEASURE,
    invocations,
    parse,
    options=SqlLogOptions,
    metrics=builtin_metrics("sql_statements", "sql_repeated"),
    deterministic=True,
    outputs=outputs,
)
