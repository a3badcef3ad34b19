"""``tracemalloc``: the memory that a Python program's objects hold at the peak, and the lines that allocated it.

tracemalloc comes with Python. It sees memory of Python's allocators, including NumPy arrays, but not memory of other
libraries. It records the size of the peak but not its owners, so drivers/tracemalloc_run.py takes snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Hotspot, Parsed, Reading, Usage
from perfflow.tools.adapter import Call, CommandOptions
from perfflow.tools.parsed_output import Json, Whole
from perfflow.tools.python import in_program

NAME = "tracemalloc"
# Not deterministic: the peak depends on what the interpreter happens to keep. memray's counts repeat.

_ROWS = "tracemalloc.json"
_NEARLY = 0.8


class TracemallocOptions(CommandOptions):
    """``with`` keys of ``uses: tracemalloc``."""

    nframe: int = Field(
        default=1,
        ge=1,
        le=100,
        description="Frames to keep for each block. More frames are slower and need more memory.",
    )


class _TracemallocRow(in_program.ProgramPlace):
    """One line, and the bytes and number of the live blocks that it allocated."""

    size: Whole
    count: Whole


class _TracemallocRows(Json):
    """Bytes at the peak, in the largest snapshot, in its lines that are not in ``rows``, and of tracemalloc itself."""

    peak: Whole
    seen: Whole
    other: Whole
    own_memory: Whole
    rows: list[_TracemallocRow]


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``heap_peak`` (B), and rank lines by their bytes in the largest snapshot.

    Raises ToolOutputError if the rows are invalid, if the program failed, or if nothing was allocated.
    """
    traced = in_program.read(_TracemallocRows, call.folder / _ROWS)
    peak, seen = traced.peak, traced.seen
    if sum(row.size for row in traced.rows) + traced.other != seen or seen > peak:
        raise ToolOutputError(f"{_ROWS} is damaged: its rows do not add up to {seen} B of {peak} B")
    if empty := next((row.size for row in traced.rows if row.size and not row.count), 0):
        raise ToolOutputError(f"{_ROWS} is damaged: a row has {empty} B in 0 blocks")
    if not peak:
        raise ToolOutputError("tracemalloc recorded no allocation: the program turned it off, or allocated nothing")
    hotspots = tuple(_hotspot(row, seen) for row in in_program.ranked(traced.rows, lambda row: row.size))
    return Parsed((Reading("heap_peak", peak),), hotspots, warnings=tuple(_warnings(peak, seen, traced.own_memory)))


def _hotspot(row: _TracemallocRow, whole: int) -> Hotspot:
    cause = f"measured: {row.size:,} B in {in_program.counted(row.count, 'block')} at the time of the largest snapshot"
    return Hotspot(row.function, row.size / whole, "bytes", NAME, row.file, row.line, cause)


def _warnings(peak: int, seen: int, own: int) -> Iterator[str]:
    """Warn if the largest snapshot is far below the peak, and if tracemalloc itself used more memory than the peak."""
    if seen < _NEARLY * peak:
        yield (
            f"the largest snapshot contains {seen:,} B, since the peak of {peak:,} B was too short: "
            "use memray to find what allocates"
        )
    if own > peak:
        yield f"tracemalloc itself used {own:,} B, which count in the rss of the process but in no figure here"


ADAPTER = in_program.adapter(
    NAME, parse, (_ROWS,), "nframe", options=TracemallocOptions, metrics=builtin_metrics("heap_peak")
)
