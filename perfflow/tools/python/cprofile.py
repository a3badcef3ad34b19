"""``cprofile``: every call of a Python program's main thread, counted and timed by the interpreter's own profiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Cost, Hotspot, Parsed, Profile, Usage
from perfflow.samples.stacks import Frame, costs_of
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Role
from perfflow.tools.python import in_program

NAME = "cprofile"

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
    callers: tuple[tuple[Frame, float], ...] = ()
    """Of a function written in C: who called it, and what it spent for them, in s."""


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program under drivers/cprofile_run.py by its own interpreter.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    own = (str(call.folder / _ROWS), str(call.folder / _PROF))
    return (Invocation(in_program.under_driver(call.command, "cprofile_run.py", own)),)


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
    return Parsed(hotspots=hotspots, profiles=(Profile(_PROF, "cprofile"),), costs=_costs(rows))


def _row(row: object) -> _Row:
    if not isinstance(row, dict):
        raise ToolOutputError(f"{_ROWS} holds a row that is no object")
    function, file = row.get("function"), row.get("file")
    if not isinstance(function, str) or not isinstance(file, str):
        raise ToolOutputError(f"{_ROWS} holds a row without function and file")
    frame = _frame(function, file, row.get("line"))
    return _Row(
        frame.name,
        frame.file,
        frame.line,
        tool_files.whole(row.get("calls"), "calls"),
        tool_files.number(row.get("own"), "own time"),
        tool_files.number(row.get("cumulative"), "cumulative time"),
        tuple(_callers(row.get("callers"))),
    )


def _callers(value: object) -> Iterator[tuple[Frame, float]]:
    """Read the callers of a row. Raises ToolOutputError for one that is none."""
    for caller in value if isinstance(value, list) else []:
        if (
            not isinstance(caller, list)
            or len(caller) != 4
            or not all(isinstance(word, str) for word in caller[::2][:2])
        ):
            raise ToolOutputError(f"{_ROWS} holds a caller that is none: {str(caller)[:80]}")
        yield _frame(caller[2], caller[0], caller[1]), tool_files.number(caller[3], "time for a caller")


def _frame(function: str, file: str, line: object) -> Frame:
    # Functions written in C come with the file "~" and line 0.
    place = "" if file in {"~", ""} else tool_files.clean_name(file)
    return Frame(tool_files.clean_name(function), place, tool_files.whole(line, "line"))


def _costs(rows: Sequence[_Row]) -> tuple[Cost, ...]:
    """Every function's own time (s), with that of what it calls which is written in C, such as ``sorted``."""
    leaves: list[tuple[Frame, float]] = []
    for row in rows:
        passed_on = [item for item in row.callers if item[0].file]
        rest = row.own - sum(spent for _, spent in passed_on)
        leaves += [*passed_on, (Frame(row.function, row.file, row.line), max(0.0, rest))]
    return costs_of(leaves, "time")


def _check_total(content: Mapping[str, object], total: float) -> None:
    """Raise ToolOutputError unless the driver's own sum is that of the rows read."""
    stated = tool_files.positive(content.get("total"), "total")
    if abs(stated - total) > 0.001 * max(stated, total):
        raise ToolOutputError(f"{_ROWS} is damaged: its rows add up to {total:.3g} s, not to {stated:.3g} s")


def _hotspot(row: _Row, total: float) -> Hotspot:
    calls = "1 call" if row.calls == 1 else f"{row.calls:,} calls"
    cause = f"measured: {calls}, cumulative {row.cumulative:.3g} s"
    inclusive = min(1.0, max(row.cumulative, row.own) / total)
    return Hotspot(row.function, row.own / total, "time", NAME, row.file, row.line, cause, row.own / total, inclusive)


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    python=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
