"""``memray``: every memory block that a Python program allocates, and the lines that allocate.

Blocks are those of malloc, mmap and similar calls, including native extensions. Python's small objects share arenas;
``trace-python-allocators`` counts each object. With PYTHONHASHSEED=0, and the program's own modules compiled in every
run, the counts of a single-threaded program repeat exactly, so one run is a measurement.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, Strict

from perfflow.model.errors import ToolOutputError
from perfflow.model.memory_curve import memory_curve
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Hotspot, Parsed, Profile, Reading, StackCounts, Usage
from perfflow.model.stacks import Stack, summed, write_folded
from perfflow.tools import parsed_output, python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.parsed_output import Json, Whole
from perfflow.tools.python import in_program

NAME = "memray"

_STATUS = "status.json"
_RECORDING = "memray.bin"
_STATS = "stats.json"
_CHILDREN = "stats.*.json"
_HELD, _FOLDED = "peak*.json", "peak.folded"
_DRIVERS = Path(__file__).with_name("drivers")
_ASKED = 60
_PLACE = re.compile(r"(?P<name>.+?):(?P<file>.+):(?P<line>\d{1,9})\Z")
_OF_DRIVERS = re.compile(r"/drivers/(?:memray_run|python_run|own_modules)\.py\Z")


class MemrayOptions(CommandOptions):
    """``with`` keys of ``uses: memray``."""

    native: bool = Field(
        default=False, description="Also record C, C++ and Rust frames, for memray's own reports on memray.bin."
    )
    follow_fork: bool = Field(default=False, description="Also count allocations of forked child processes.")
    trace_python_allocators: bool = Field(
        default=False,
        description="Count every small Python object. This is several times slower and makes large recordings.",
    )
    hash_seed: bool = Field(default=True, description="Run Python with PYTHONHASHSEED=0, so that its counts repeat.")


class _Top(Json):
    """A place that allocates memory, and its bytes in total."""

    location: Annotated[str, Field(min_length=1)]
    size: Whole

    @property
    def row(self) -> in_program.ProgramPlace:
        """Return the parts of ``work:/srv/a.py:12``. Native code only has a name."""
        found = _PLACE.match(self.location)
        name, file, line = found.groups() if found else (self.location, "", 0)
        return in_program.ProgramPlace(function=name, file=file, line=int(line))


class _Step(Json):
    count: Whole


class _Most(Json):
    peak_memory: Whole


class _Moment(Json):
    """Bytes held at a time, in ms."""

    ms: Whole
    heap: Whole


class _MemrayProcess(Json):
    """The allocations of one process: blocks, bytes, the peak in bytes, and the places with the most bytes."""

    total_num_allocations: Whole
    total_bytes_allocated: Whole
    metadata: _Most
    allocation_size_histogram: list[_Step]
    top_allocations_by_size: list[_Top]
    perfflow_heap: list[_Moment] = Field(default_factory=list)
    """The bytes held every 10 ms, added by perfflow's driver."""


_Frame = Annotated[tuple[str, str, int], Strict(strict=False)]
"""Function, file and line."""


class _Held(Json):
    """The memory held at the peak: thread, bytes, and frames, the allocating one first."""

    rows: list[Annotated[tuple[str, Whole, list[_Frame]], Strict(strict=False)]]


def invocations(call: Call[MemrayOptions]) -> tuple[Invocation, ...]:
    """Record the program with its own interpreter's memray, then export the recording with it.

    Raises ToolOutputError with a remedy if the command is not a Python invocation.
    """
    named = {"native_traces": call.options.native, "follow_fork": call.options.follow_fork}
    named["trace_python_allocators"] = call.options.trace_python_allocators
    flags = ",".join(key for key in named if named[key])
    interpreter = python_command.split(call.command).interpreter
    env = {"PYTHONHASHSEED": "0"} if call.options.hash_seed else {}
    return (
        in_program.under("memray_run.py", call, call.folder / _STATUS, call.folder / _RECORDING, flags, env=env),
        Invocation((interpreter, str(_DRIVERS / "memray_stats.py"), str(call.folder), str(_ASKED))),
    )


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the files with the exit status, the recording and its statistics, including those of child processes."""
    children = sorted(path for name in (f"{_RECORDING}.*", _CHILDREN, _HELD) for path in call.folder.glob(name))
    return (call.folder / _STATUS, call.folder / _RECORDING, call.folder / _STATS, *children)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``alloc`` (B) and ``allocs`` of all processes and the highest ``heap_peak`` (B), and rank lines by bytes.

    Raises ToolOutputError if the program failed, if a file is missing or invalid, or if nothing was allocated.
    """
    in_program.read(Json, call.folder / _STATUS)
    processes = [_read(path) for path in (call.folder / _STATS, *sorted(call.folder.glob(_CHILDREN)))]
    size = sum(process.total_bytes_allocated for process in processes)
    if not size:
        raise ToolOutputError(
            "memray recorded no allocation: the program needed no more memory than Python's arenas already had"
        )
    readings = (
        Reading("alloc", float(size)),
        Reading("allocs", float(sum(process.total_num_allocations for process in processes))),
        Reading("heap_peak", float(max(process.metadata.peak_memory for process in processes))),
    )
    profiles = (Profile(_RECORDING, NAME), *_held(call.folder))
    highest = max(processes, key=lambda process: process.metadata.peak_memory)
    start = min((moment.ms for moment in highest.perfflow_heap), default=0)
    points = (((moment.ms - start) / 1000, float(moment.heap)) for moment in highest.perfflow_heap)
    spots, warnings = tuple(_hotspots(processes, size)), tuple(_warnings(call, processes))
    return Parsed(readings, spots, profiles, warnings, memory=memory_curve("time", points))


def _held(folder: Path) -> Iterator[Profile]:
    """Fold the memory held at the peak, for the process with the highest peak."""
    peaks = [parsed_output.read_json(_Held, path).rows for path in sorted(folder.glob(_HELD))]
    rows = max(peaks, key=lambda rows: sum(size for _, size, _ in rows), default=[])
    files = in_program.short_paths(tool_files.clean_name(file) for _, _, frames in rows for _, file, _ in frames)
    stacks = Counter[Stack]()
    for thread, size, frames in rows:
        # perfflow's own frames are above those of the program.
        of_program = [frame for frame in reversed(frames) if not _OF_DRIVERS.search(frame[1])]
        stacks[(tool_files.clean_name(thread), *(_shown(frame, files) for frame in of_program))] += size
    if stacks.total():
        (folder / _FOLDED).write_text(write_folded(stacks), encoding="utf-8")
        yield Profile(_FOLDED, "folded", StackCounts("bytes", "heap_peak", by_thread=True))


def _shown(frame: tuple[str, str, int], files: Mapping[str, str]) -> str:
    return f"{tool_files.clean_name(frame[0])} ({files[tool_files.clean_name(frame[1])]})"


def _read(path: Path) -> _MemrayProcess:
    found = parsed_output.read_json(_MemrayProcess, path)
    blocks, size = found.total_num_allocations, found.total_bytes_allocated
    steps = sum(step.count for step in found.allocation_size_histogram)
    placed = sum(place.size for place in found.top_allocations_by_size)
    if steps != blocks or not placed <= size or found.metadata.peak_memory > size or (size and not placed):
        raise ToolOutputError(f"{path.name} is damaged: its parts do not add up to its totals")
    return found


def _hotspots(found: Sequence[_MemrayProcess], whole: int) -> Iterator[Hotspot]:
    """Rank the allocating lines by bytes over the whole run, without perfflow's own."""
    places = [(place.row, place.size) for process in found for place in process.top_allocations_by_size]
    sizes = summed((row, size) for row, size in places if not _OF_DRIVERS.search(row.file))
    for row in in_program.ranked(sizes, lambda row: sizes[row]):
        cause = f"measured: {sizes[row]:,} B allocated over the whole run"
        yield Hotspot(row.function, sizes[row] / whole, "bytes", NAME, row.file, row.line, cause)


def _warnings(call: Call[MemrayOptions], found: Sequence[_MemrayProcess]) -> Iterator[str]:
    if len(found) > 1:
        yield f"alloc and allocs are sums over {len(found)} processes; heap_peak is the highest of one process"
    if call.options.hash_seed:
        yield from python_command.random_hashes(call.command)


ADAPTER = Adapter(
    NAME,
    Role.MEASURE,
    invocations,
    parse,
    options=MemrayOptions,
    metrics=builtin_metrics("alloc", "allocs", "heap_peak"),
    deterministic=True,
    python=True,
    outputs=outputs,
)
