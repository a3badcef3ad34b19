"""``cprofile``: every call of a Python program's main thread, counted and timed by the interpreter's own profiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Hotspot, Parsed, Profile, Usage
from perfflow.tools import python_command, tool_files
from perfflow.tools.protocol import Call, CommandOptions, Invocation, Role

NAME = "cprofile"
ROLE = Role.PROFILE
DETERMINISTIC = False
PROGRAM = ""
VERSION_ARGV: tuple[str, ...] = ()
INSTALL = ""
METRICS: frozenset[str] = frozenset()
INTERPRETER = "python"
OPTIONS = CommandOptions

_ROWS = "cprofile.json"
_PROF = "cprofile.prof"
_KEPT = 20
_REMEDY = "the program ended by os._exit, exec or a signal, or it never started"


@dataclass(frozen=True, slots=True)
class _Row:
    """One function: its place, calls, and its own and cumulative time in s."""

    function: str
    file: str
    line: int
    calls: int
    own: float
    cumulative: float


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program under drivers/cprofile_run.py by its own interpreter.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    own = (str(call.folder / _ROWS), str(call.folder / _PROF))
    return (Invocation(python_command.under_driver(call.command, "cprofile_run.py", own)),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The rows as JSON, and the same as marshal for other viewers."""
    return (call.folder / _ROWS, call.folder / _PROF)


def parse(call: Call, usage: Usage) -> Parsed:
    """Rank functions by their own time. Raises ToolOutputError if the rows are nonsense or the program failed."""
    content = tool_files.read_json(call.folder / _ROWS, _REMEDY)
    if not isinstance(content, dict) or not isinstance(content.get("rows"), list):
        raise ToolOutputError(f"{_ROWS} holds no rows")
    if status := tool_files.whole(content.get("status"), "exit status"):
        raise ToolOutputError(f"the program exited with status {status}")
    rows = [_row(row) for row in content["rows"]]
    total = sum(row.own for row in rows)
    if not total:
        raise ToolOutputError(f"{_ROWS} holds no time: the program did nothing in its main thread")
    _check_total(content, total)
    ranked = sorted(rows, key=lambda row: (-row.own, row.function, row.file, row.line))[:_KEPT]
    hotspots = tuple(_hotspot(row, total) for row in ranked if row.own)
    return Parsed(hotspots=hotspots, profiles=(Profile(_PROF, "cprofile"),))


def enumerate(call: Call) -> None:
    """One command is one benchmark."""


def _row(row: object) -> _Row:
    if not isinstance(row, dict):
        raise ToolOutputError(f"{_ROWS} holds a row that is no object")
    function, file = row.get("function"), row.get("file")
    if not isinstance(function, str) or not isinstance(file, str):
        raise ToolOutputError(f"{_ROWS} holds a row without function and file")
    return _Row(
        tool_files.clean_name(function),
        # Functions written in C come with the file "~" and line 0.
        "" if file in {"~", ""} else tool_files.clean_name(file),
        tool_files.whole(row.get("line"), "line"),
        tool_files.whole(row.get("calls"), "calls"),
        tool_files.number(row.get("own"), "own time"),
        tool_files.number(row.get("cumulative"), "cumulative time"),
    )


def _check_total(content: Mapping[str, object], total: float) -> None:
    """Raise ToolOutputError unless the driver's own sum is that of the rows read."""
    stated = tool_files.positive(content.get("total"), "total")
    if abs(stated - total) > 0.001 * max(stated, total):
        raise ToolOutputError(f"{_ROWS} is damaged: its rows add up to {total:.3g} s, not to {stated:.3g} s")


def _hotspot(row: _Row, total: float) -> Hotspot:
    calls = "1 call" if row.calls == 1 else f"{row.calls:,} calls"
    cause = f"measured: {calls}, cumulative {row.cumulative:.3g} s"
    return Hotspot(row.function, row.own / total, "time", NAME, row.file, row.line, cause)
