"""``line-profiler``: every line of a Python program's own modules, with how often it ran and how long it took.

``kernprof`` cannot see what a module does at its top level, imports what it profiles before the program does, and
leaves a pickle; so drivers/line_profiler_run.py drives line_profiler itself, inside the program, and writes JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Hotspot, Parsed, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.python import in_program

NAME = "line-profiler"

_ROWS = "lines.json"
_DRIVER = "line_profiler_run.py"
_KEPT = 20


class Options(CommandOptions):
    """``with`` keys of ``uses: line-profiler``."""

    profile: in_program.Modules = Field(
        default=[], description=f"{in_program.WATCHED} Default: the program and the modules of the tree."
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One line: its hits, its time with all it calls, that of its function's lines, and its own, in s."""

    function: str
    file: str
    line: int
    hits: int
    time: float
    of: float
    own: float


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program under line_profiler by its own interpreter.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    own = (str(call.folder / _ROWS), ",".join(cast(Options, call.options).profile))
    return (Invocation(in_program.under_driver(call.command, _DRIVER, own)),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The rows as JSON."""
    return (call.folder / _ROWS,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Rank lines by their own time, an estimate: line_profiler's is with all that a line calls.

    Raises ToolOutputError if the rows are nonsense, the program failed, or no line of it was profiled.
    """
    content = in_program.read(call.folder / _ROWS)
    rows = [_row(row) for row in in_program.rows(content, _ROWS)]
    loaded = in_program.modules(content, _ROWS)
    names = cast(Options, call.options).profile
    if not any(row.time for row in rows):
        raise ToolOutputError(f"no line was profiled: {in_program.why_nothing(names)}")
    total = tool_files.positive(content.get("total"), "total")
    if (own := sum(row.own for row in rows)) > total * 1.001:
        raise ToolOutputError(f"{_ROWS} is damaged: its rows add up to {own:.3g} s, more than {total:.3g} s")
    ranked = sorted(rows, key=lambda row: (-row.own, row.function, row.file, row.line))[:_KEPT]
    hotspots = tuple(_hotspot(row, total) for row in ranked if row.own)
    return Parsed(hotspots=hotspots, warnings=in_program.not_imported(names, loaded))


def _row(row: object) -> _Row:
    function, file, line = in_program.place(row, _ROWS)
    figures = cast(dict[str, object], row)
    time, of, own = (tool_files.number(figures.get(key), key) for key in ("time", "of", "own"))
    hits = tool_files.whole(figures.get("hits"), "hits")
    if own > time or time > of * 1.001 or not hits:
        raise ToolOutputError(f"{_ROWS} is damaged: a line of {hits} hits with {own:.3g} of {time:.3g} s of {of:.3g} s")
    return _Row(function, file, line, hits, time, of, own)


def _hotspot(row: _Row, total: float) -> Hotspot:
    hits = "1 hit" if row.hits == 1 else f"{row.hits:,} hits"
    cause = f"measured: {hits}, {row.time / row.of:.0%} of the function's time, {row.time / row.hits:.3g} s a hit"
    inclusive = min(1.0, max(row.time, row.own) / total)
    return Hotspot(row.function, row.own / total, "time", NAME, row.file, row.line, cause, inclusive_share=inclusive)


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    options=Options,
    python=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
