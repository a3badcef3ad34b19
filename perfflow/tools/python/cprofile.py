"""``cprofile``: every call in a Python program's main thread, counted and timed by the interpreter's own profiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Cost, Hotspot, Parsed, Profile, StackCounts, Usage
from perfflow.model.stacks import Frame, Stack, costs_of, leads_to_a_part, write_folded
from perfflow.tools.adapter import Call, Profiler, ProfilingMethod
from perfflow.tools.parsed_output import Figure, Json, Whole
from perfflow.tools.python import in_program

NAME = "cprofile"

_ROWS = "cprofile.json"
_PROF, _FOLDED = "cprofile.prof", "stacks.folded"
_NANO = 1e9


class _Caller(in_program.ProgramPlace):
    """A caller of a function, and the function's own time in these calls (s)."""

    spent: Figure


def _keyed(row: object) -> object:
    """Turn a list into a dictionary. Raises ValueError for too many or too few items."""
    return dict(zip(("file", "line", "function", "spent"), row, strict=True)) if isinstance(row, list) else row


class _CprofileRow(in_program.ProgramPlace):
    """One function: its calls, its own and cumulative time in s, and its callers."""

    calls: Whole
    own: Figure
    cumulative: Figure
    callers: list[Annotated[_Caller, BeforeValidator(_keyed)]] = Field(default=[])


class _CprofileRows(Json):
    """All functions; ``total`` is the driver's own sum of their own times (s)."""

    total: Figure
    rows: list[_CprofileRow]


def parse(call: Call, usage: Usage) -> Parsed:
    """Rank functions by their own time. Raises ToolOutputError if the rows are invalid or the program failed."""
    profile = in_program.read(_CprofileRows, call.folder / _ROWS)
    total = sum(row.own for row in profile.rows)
    if not total:
        raise ToolOutputError(f"{_ROWS} contains no time: the program did nothing in its main thread")
    if abs(profile.total - total) > 0.001 * max(profile.total, total):
        raise ToolOutputError(f"{_ROWS} is damaged: its rows add up to {total:.3g} s, not to {profile.total:.3g} s")
    ranked = in_program.ranked(profile.rows, lambda row: row.own)
    callers = in_program.ranked(profile.rows, lambda row: row.cumulative)
    ranked += [row for row in callers if leads_to_a_part(row.file, row.cumulative / total) and row not in ranked]
    hotspots = tuple(_hotspot(row, total) for row in ranked)
    (call.folder / _FOLDED).write_text(write_folded(_pairs(profile.rows)), encoding="utf-8")
    pairs = Profile(_FOLDED, "folded", StackCounts("ns", "time", is_call_pairs=True))
    return Parsed(hotspots=hotspots, profiles=(Profile(_PROF, "cprofile"), pairs), costs=_costs(profile.rows))


def _pairs(rows: Sequence[_CprofileRow]) -> Counter[Stack]:
    """Return every function's own time (ns) below each of its callers: cProfile records no longer stacks."""
    files = in_program.short_paths(each.file for row in rows for each in (row, *row.callers))

    def shown(row: in_program.ProgramPlace) -> str:
        return f"{row.function} ({files[row.file]})" if row.file else row.function

    stacks = Counter[Stack]()
    for row in rows:
        for caller in row.callers:
            stacks[shown(caller), shown(row)] += round(caller.spent * _NANO)
        left = row.own - sum(caller.spent for caller in row.callers)
        stacks[(shown(row),)] += round(max(0.0, left) * _NANO)
    return Counter({stack: count for stack, count in stacks.items() if count})


def _costs(rows: Sequence[_CprofileRow]) -> tuple[Cost, ...]:
    """Return every function's own time (s), including the time of C functions that it calls, such as ``sorted``."""
    leaves: list[tuple[Frame, float]] = []
    for row in rows:
        # Only the time of C functions is passed on to their callers.
        callers = [caller for caller in row.callers if caller.file and not row.file]
        passed_on = [(Frame(caller.function, caller.file, caller.line), caller.spent) for caller in callers]
        rest = row.own - sum(spent for _, spent in passed_on)
        leaves += [*passed_on, (Frame(row.function, row.file, row.line), max(0.0, rest))]
    return costs_of(leaves, "time")


def _hotspot(row: _CprofileRow, total: float) -> Hotspot:
    cause = f"measured: {in_program.counted(row.calls, 'call')}, cumulative {row.cumulative:.3g} s"
    inclusive = min(1.0, max(row.cumulative, row.own) / total)
    return Hotspot(row.function, row.own / total, "time", NAME, row.file, row.line, cause, row.own / total, inclusive)


ADAPTER = in_program.adapter(NAME, parse, (_ROWS, _PROF), profiler=Profiler(method=ProfilingMethod.CALLS, python=0))
