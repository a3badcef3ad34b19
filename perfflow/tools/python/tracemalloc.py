"""``tracemalloc``: what a Python program's own objects take at their fullest moment, and the lines that made them.

It comes with Python and sees what goes through Python's allocators, NumPy's arrays included, and no other library's
memory. Since it knows the peak but not whose it was, drivers/tracemalloc_run.py looks while the program runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import Hotspot, Parsed, Reading, Usage
from perfflow.tools.adapter import Call, CommandOptions
from perfflow.tools.python import in_program
from perfflow.tools.tool_json import Json, Whole

NAME = "tracemalloc"
# Its peak varies by what the interpreter happens to keep: memray's counts repeat.

_ROWS = "tracemalloc.json"
_NEARLY = 0.8


class Options(CommandOptions):
    """``with`` keys of ``uses: tracemalloc``."""

    nframe: int = Field(
        default=1, ge=1, le=100, description="Frames to keep of each block. More are slower and need more memory."
    )


class _Row(in_program.Row):
    """One line, and the bytes and number of the blocks alive that it had asked for."""

    size: Whole
    count: Whole


class _Rows(Json):
    """Bytes at the peak, at the fullest moment seen, there in lines that are not among the rows, and its own."""

    peak: Whole
    seen: Whole
    other: Whole
    own_memory: Whole
    rows: list[_Row]


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``heap_peak`` (B) and rank lines by what they held at the fullest moment that was seen.

    Raises ToolOutputError if the rows are nonsense, the program failed, or nothing was allocated.
    """
    found = in_program.read(_Rows, call.folder / _ROWS)
    peak, seen = found.peak, found.seen
    if sum(row.size for row in found.rows) + found.other != seen or seen > peak:
        raise ToolOutputError(f"{_ROWS} is damaged: its rows do not add up to {seen} B of {peak} B")
    if empty := next((row.size for row in found.rows if row.size and not row.count), 0):
        raise ToolOutputError(f"{_ROWS} is damaged: {empty} B in no block")
    if not peak:
        raise ToolOutputError("tracemalloc saw no block: the program turned it off, or allocated nothing")
    hotspots = tuple(_hotspot(row, seen) for row in in_program.ranked(found.rows, lambda row: row.size))
    return Parsed((Reading("heap_peak", peak),), hotspots, warnings=tuple(_warnings(peak, seen, found.own_memory)))


def _hotspot(row: _Row, whole: int) -> Hotspot:
    cause = f"measured: {row.size:,} B in {in_program.counted(row.count, 'block')} at the fullest moment seen"
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


ADAPTER = in_program.adapter(NAME, parse, (_ROWS,), "nframe", options=Options, metrics=of_perfflow("heap_peak"))
