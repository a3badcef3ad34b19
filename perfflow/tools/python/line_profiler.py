"""``line-profiler``: how often each line of a Python program's own modules ran, and how long it took.

``kernprof`` does not see the top level of modules, imports the profiled modules before the program does, and writes a
pickle. So drivers/line_profiler_run.py runs line_profiler itself inside the program, and writes JSON.
"""

from __future__ import annotations

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Hotspot, Parsed, Usage
from perfflow.tools.adapter import Call, CommandOptions, Profiler, ProfilingMethod
from perfflow.tools.parsed_output import Counted, Figure
from perfflow.tools.python import in_program

NAME = "line-profiler"

_ROWS = "lines.json"


class LineProfilerOptions(CommandOptions):
    """``with`` keys of ``uses: line-profiler``."""

    profile: in_program.Modules = Field(
        default=[], description=f"{in_program.WATCHED} Default: the program's own modules, without installed ones."
    )


class _LineProfilerRow(in_program.ProgramPlace):
    """One line: its hits, its time including calls, the time of its function's lines, and its own time, in s."""

    hits: Counted
    time: Figure
    of: Figure
    own: Figure


class _LineProfilerRows(in_program.Watched):
    total: Figure
    rows: list[_LineProfilerRow]


def parse(call: Call[LineProfilerOptions], usage: Usage) -> Parsed:
    """Rank lines by their own time, an estimate: line_profiler's times include the functions that a line calls.

    Raises ToolOutputError if the rows are invalid, the program failed, or no line of it was profiled.
    """
    profile, names = in_program.read(_LineProfilerRows, call.folder / _ROWS), call.options.profile
    for row in profile.rows:
        if row.own > row.time or row.time > row.of * 1.001:
            times = f"{row.own:.3g} of {row.time:.3g} s of {row.of:.3g} s"
            raise ToolOutputError(f"{_ROWS} is damaged: a line of {row.hits} hits with {times}")
    if not any(row.time for row in profile.rows):
        raise ToolOutputError(f"no line was profiled: {in_program.reason_without_rows(names)}")
    if (sum_of_rows := sum(row.own for row in profile.rows)) > profile.total * 1.001:
        raise ToolOutputError(
            f"{_ROWS} is damaged: its rows add up to {sum_of_rows:.3g} s, more than {profile.total:.3g} s"
        )
    hotspots = tuple(_hotspot(row, profile.total) for row in in_program.ranked(profile.rows, lambda row: row.own))
    return Parsed(hotspots=hotspots, warnings=in_program.not_imported(names, profile.modules))


def _hotspot(row: _LineProfilerRow, total: float) -> Hotspot:
    hits = in_program.counted(row.hits, "hit")
    cause = f"measured: {hits}, {row.time / row.of:.0%} of the function's time, {row.time / row.hits:.3g} s a hit"
    inclusive = min(1.0, max(row.time, row.own) / total)
    return Hotspot(row.function, row.own / total, "time", NAME, row.file, row.line, cause, inclusive_share=inclusive)


ADAPTER = in_program.adapter(
    NAME, parse, (_ROWS,), "profile", options=LineProfilerOptions, profiler=Profiler(method=ProfilingMethod.LINES)
)
