"""``tracemalloc``: what a Python program's own objects take at their fullest moment, and the lines that made them.

It comes with Python and sees what goes through Python's allocators, NumPy's arrays included, and no other library's
memory. Since it knows the peak but not whose it was, drivers/tracemalloc_run.py looks while the program runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Hotspot, Parsed, Reading, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.python import in_program

NAME = "tracemalloc"
# Its peak varies by what the interpreter happens to keep: memray's counts repeat.

_ROWS = "tracemalloc.json"
_DRIVER = "tracemalloc_run.py"
_KEPT = 20
_NEARLY = 0.8


class Options(CommandOptions):
    """``with`` keys of ``uses: tracemalloc``."""

    nframe: int = Field(default=1, ge=1, le=100, description="Frames kept of each block; more are slower and larger.")


@dataclass(frozen=True, slots=True)
class _Row:
    """One line, and the bytes and number of the blocks alive that it had asked for."""

    function: str
    file: str
    line: int
    size: int
    count: int


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program under tracemalloc by its own interpreter.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    own = (str(call.folder / _ROWS), str(cast(Options, call.options).nframe))
    return (Invocation(in_program.under_driver(call.command, _DRIVER, own)),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The rows as JSON."""
    return (call.folder / _ROWS,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``heap_peak`` (B) and rank lines by what they held at the fullest moment that was seen.

    Raises ToolOutputError if the rows are nonsense, the program failed, or nothing was allocated.
    """
    content = in_program.read(call.folder / _ROWS)
    peak, seen, other, own = (
        tool_files.whole(content.get(key), key) for key in ("peak", "seen", "other", "own_memory")
    )
    rows = [_row(row) for row in in_program.rows(content, _ROWS)]
    if sum(row.size for row in rows) + other != seen or seen > peak:
        raise ToolOutputError(f"{_ROWS} is damaged: its rows do not add up to {seen} B of {peak} B")
    if not peak:
        raise ToolOutputError("tracemalloc saw no block: the program turned it off, or allocated nothing")
    ranked = sorted(rows, key=lambda row: (-row.size, row.function, row.file, row.line))[:_KEPT]
    hotspots = tuple(_hotspot(row, seen) for row in ranked if row.size)
    return Parsed((Reading("heap_peak", peak),), hotspots, warnings=tuple(_warnings(peak, seen, own)))


def _row(row: object) -> _Row:
    function, file, line = in_program.place(row, _ROWS)
    size, count = (tool_files.whole(cast(dict[str, object], row).get(key), key) for key in ("size", "count"))
    if size and not count:
        raise ToolOutputError(f"{_ROWS} is damaged: {size} B in no block")
    return _Row(function, file, line, size, count)


def _hotspot(row: _Row, whole: int) -> Hotspot:
    blocks = "1 block" if row.count == 1 else f"{row.count:,} blocks"
    cause = f"measured: {row.size:,} B in {blocks} at the fullest moment seen"
    return Hotspot(row.function, row.size / whole, "bytes", NAME, row.file, row.line, cause)


def _warnings(peak: int, seen: int, own: int) -> Iterator[str]:
    """Say where the moment that was seen is not that of the peak, and what watching it took."""
    if seen < _NEARLY * peak:
        yield (
            f"the fullest moment seen held {seen:,} B, the peak of {peak:,} B was over too soon: "
            "memray tells who allocates"
        )
    if own > peak:
        yield f"tracemalloc itself took {own:,} B to trace them, which is in no figure here but in the process's rss"


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    options=Options,
    metrics=of_perfflow("heap_peak"),
    python=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
