"""``sql-log``: the SQL statements of a program, how many there are, and how often the most frequent shape of them runs.

A Python program's sqlite3 connections are traced by drivers/sqlite_run.py. Any other program writes its statements
itself: to its output, as SQLAlchemy's ``echo``, Django's ``django.db.backends`` and PostgreSQL's ``log_statement`` do,
or one a line to the file that the variable PERFFLOW_SQL_LOG names.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Hotspot, Parsed, Reading, Usage
from perfflow.tools import tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.python import in_program, sql_shapes
from perfflow.tools.python.sql_shapes import Format
from perfflow.tools.tool_json import Json, Whole

NAME = "sql-log"

_TRACE = "sqlite.jsonl"
_LOG = "sql.log"
_STDOUT = "stdout"
_VARIABLE = "PERFFLOW_SQL_LOG"
_KEPT = 20
_SHOWN = 200
_FIRST = 2000


class Source(StrEnum):
    """Where the statements are found."""

    SQLITE3 = "sqlite3"
    STDOUT = "stdout"
    STDERR = "stderr"
    FILE = "file"


class Options(CommandOptions):
    """``with`` keys of ``uses: sql-log``."""

    log: Source = Field(
        default=Source.SQLITE3,
        description="`sqlite3` (a Python program's own), `stdout`, `stderr`, or `file`, which PERFFLOW_SQL_LOG names.",
    )
    format: Format = Field(default=Format.AUTO, description="How the log is written, where it is not found out.")


class _End(Json):
    statements: Whole


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program, under drivers/sqlite_run.py where that traces its connections.

    Raises ToolOutputError with a remedy where that needs a Python invocation, and the command is none.
    """
    source = cast(Options, call.options).log
    if source is Source.SQLITE3:
        return (in_program.under("sqlite_run.py", call, call.folder / _TRACE),)
    env = {_VARIABLE: str(call.folder / _LOG)} if source is Source.FILE else {}
    return (Invocation(call.command, env, _STDOUT if source is Source.STDOUT else ""),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The file with the statements; of a trace that is not there, ``parse`` says why."""
    file = _file(call)
    return tool_files.left(file) if file.name == _TRACE else (file,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Count statements, and rank their shapes by how often each is run.

    Raises ToolOutputError if there is no statement, if a trace is cut, or if the program failed.
    """
    options = cast(Options, call.options)
    found = _traced(_file(call)) if options.log is Source.SQLITE3 else _logged(_file(call), options.format)
    shape = lru_cache(maxsize=4096)(sql_shapes.shape)
    shapes = Counter(text for statement in found if (text := shape(statement)))
    total = shapes.total()
    if not total:
        where = "through its own sqlite3" if options.log is Source.SQLITE3 else f"that its {options.log.value} tells of"
        raise ToolOutputError(f"the program ran no SQL statement {where}: `log:` says where statements are found")
    asking = {text: count for text, count in shapes.items() if sql_shapes.asks_for_data(text)}
    repeated = max(asking.values(), default=0)
    readings = (Reading("sql_statements", total), Reading("sql_repeated", repeated))
    ranked = sorted(shapes.items(), key=lambda item: (-item[1], item[0]))[:_KEPT]
    return Parsed(readings, tuple(_hotspot(text, count, total) for text, count in ranked))


def _file(call: Call) -> Path:
    source = cast(Options, call.options).log
    return call.folder / {Source.SQLITE3: _TRACE, Source.FILE: _LOG}.get(source, source.value)


def _traced(path: Path) -> Iterator[str]:
    """The statements that the driver wrote down. Raises ToolOutputError unless the last line counts them."""
    count, ended = 0, False
    if not path.is_file():
        raise ToolOutputError(f"{path.name} was not written: {in_program.REMEDY}")
    for line in tool_files.read_lines(path):
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ToolOutputError(f"{path.name} holds a line that is no JSON: {line[:80]!r}") from error
        if ended or item == "":
            raise ToolOutputError(f"{path.name} is damaged: it holds more than statements and an end")
        if isinstance(item, str):
            count += 1
            yield item
            continue
        ended = in_program.ended(item, path.name)
        if tool_json.checked(_End, item, path.name).statements != count:
            raise ToolOutputError(f"{path.name} is damaged: it does not hold as many statements as it says")
    if not ended:
        raise ToolOutputError(f"{path.name} is cut short: {in_program.REMEDY}")


def _logged(path: Path, form: Format) -> Iterator[str]:
    """The statements of a log that the program wrote."""
    if form is Format.AUTO:
        first = [line for line, _ in zip(tool_files.read_lines(path), range(_FIRST), strict=False)]
        form = sql_shapes.format_of(first)
        if form is Format.PLAIN and path.name != _LOG:
            # Whatever a program prints would be taken for SQL.
            raise ToolOutputError(f"{path.name} tells of no SQL statement in a known format: `format:` says in which")
    yield from sql_shapes.statements(tool_files.read_lines(path), form)


def _hotspot(text: str, count: int, total: int) -> Hotspot:
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    times = "once" if count == 1 else f"{count:,} times"
    return Hotspot(tool_files.clean_name(shown), count / total, "statements", NAME, cause=f"measured: run {times}")


ADAPTER = Adapter(
    NAME,
    Role.MEASURE,
    invocations,
    parse,
    options=Options,
    metrics=of_perfflow("sql_statements", "sql_repeated"),
    deterministic=True,
    outputs=outputs,
)
