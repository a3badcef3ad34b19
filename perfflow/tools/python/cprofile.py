"""``cprofile``: every call of a Python program's main thread, counted and timed by the interpreter's own profiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, Strict

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Cost, Hotspot, Parsed, Profile, Usage
from perfflow.samples.stacks import Frame, costs_of
from perfflow.tools.adapter import Adapter, Call, Invocation, Role, leaves
from perfflow.tools.python import in_program
from perfflow.tools.tool_json import Figure, Json, Whole

NAME = "cprofile"

_ROWS = "cprofile.json"
_PROF = "cprofile.prof"


class _Row(in_program.Row):
    """One function: its calls, and its own and cumulative time in s.

    Of a function written in C also who called it, by file, line and name, and what it spent for them (s).
    """

    calls: Whole
    own: Figure
    cumulative: Figure
    callers: list[Annotated[tuple[str, Whole, str, Figure], Strict(strict=False)]] = Field(default=[])


class _Rows(Json):
    """``total`` is the driver's own sum of what the functions spent themselves (s)."""

    total: Figure
    rows: list[_Row]


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program under drivers/cprofile_run.py by its own interpreter.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    return (in_program.under("cprofile_run.py", call, call.folder / _ROWS, call.folder / _PROF),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Rank functions by their own time. Raises ToolOutputError if the rows are nonsense or the program failed."""
    found = in_program.read(_Rows, call.folder / _ROWS)
    total = sum(row.own for row in found.rows)
    if not total:
        raise ToolOutputError(f"{_ROWS} holds no time: the program did nothing in its main thread")
    if abs(found.total - total) > 0.001 * max(found.total, total):
        raise ToolOutputError(f"{_ROWS} is damaged: its rows add up to {total:.3g} s, not to {found.total:.3g} s")
    hotspots = tuple(_hotspot(row, total) for row in in_program.ranked(found.rows, lambda row: row.own))
    return Parsed(hotspots=hotspots, profiles=(Profile(_PROF, "cprofile"),), costs=_costs(found.rows))


def _costs(rows: Sequence[_Row]) -> tuple[Cost, ...]:
    """Every function's own time (s), with that of what it calls which is written in C, such as ``sorted``."""
    leaves: list[tuple[Frame, float]] = []
    for row in rows:
        named = (
            (in_program.Row(function=name, file=file, line=line), spent) for file, line, name, spent in row.callers
        )
        passed_on = [(Frame(place.function, place.file, place.line), spent) for place, spent in named if place.file]
        rest = row.own - sum(spent for _, spent in passed_on)
        leaves += [*passed_on, (Frame(row.function, row.file, row.line), max(0.0, rest))]
    return costs_of(leaves, "time")


def _hotspot(row: _Row, total: float) -> Hotspot:
    cause = f"measured: {in_program.counted(row.calls, 'call')}, cumulative {row.cumulative:.3g} s"
    inclusive = min(1.0, max(row.cumulative, row.own) / total)
    return Hotspot(row.function, row.own / total, "time", NAME, row.file, row.line, cause, row.own / total, inclusive)


ADAPTER = Adapter(NAME, Role.PROFILE, invocations, parse, python=True, outputs=leaves(_ROWS, _PROF))
