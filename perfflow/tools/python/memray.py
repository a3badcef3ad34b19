"""``memray``: every block that a Python program asks its allocators for, and the lines that ask.

Blocks are those of malloc, mmap and their kin, native extensions included; Python's own small objects share arenas, of
which ``trace_python_allocators`` counts each one. With PYTHONHASHSEED=0, and the program's own modules compiled in
every run, the counts of a program of one thread repeat to the digit, so one run is a measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Hotspot, Parsed, Profile, Reading, Usage
from perfflow.tools import python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.python import in_program

NAME = "memray"

_STATUS = "status.json"
_RECORDING = "memray.bin"
_STATS = "stats.json"
_CHILDREN = "stats.*.json"
_DRIVERS = Path(__file__).with_name("drivers")
_DRIVER = "memray_run.py"
_ASKED = 60
_KEPT = 20
_PLACE = re.compile(r"(?P<name>.+?):(?P<file>.+):(?P<line>\d{1,9})\Z")
_OF_DRIVERS = re.compile(r"/drivers/(?:memray_run|python_run|own_modules)\.py\Z")


class Options(CommandOptions):
    """``with`` keys of ``uses: memray``."""

    native: bool = Field(
        default=False, description="Also record C, C++ and Rust frames, for memray's own views of memray.bin."
    )
    follow_fork: bool = Field(default=False, description="Also count what forked children allocate.")
    trace_python_allocators: bool = Field(
        default=False, description="Count every small object of Python; several times slower, and large recordings."
    )
    hash_seed: bool = Field(default=True, description="Run Python with PYTHONHASHSEED=0, so that its counts repeat.")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where memory is asked for, and how many bytes in all."""

    function: str
    file: str
    line: int
    size: int


@dataclass(frozen=True, slots=True)
class _Process:
    """What one process asked for: blocks, bytes, the most bytes at one time, and the places with the most bytes."""

    blocks: int
    size: int
    peak: int
    places: tuple[_Place, ...]


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Record the program by its own interpreter's memray, then let that tell what is in the recording.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    options = cast(Options, call.options)
    named = {"native_traces": options.native, "follow_fork": options.follow_fork}
    named["trace_python_allocators"] = options.trace_python_allocators
    own = (str(call.folder / _STATUS), str(call.folder / _RECORDING), ",".join(key for key in named if named[key]))
    interpreter = python_command.split(call.command).interpreter
    return (
        Invocation(
            in_program.under_driver(call.command, _DRIVER, own),
            env={"PYTHONHASHSEED": "0"} if options.hash_seed else {},
        ),
        Invocation((interpreter, str(_DRIVERS / "memray_stats.py"), str(call.folder), str(_ASKED))),
    )


def outputs(call: Call) -> tuple[Path, ...]:
    """The program's exit status, the recording and its statistics, with those of children."""
    children = sorted([*call.folder.glob(f"{_RECORDING}.*"), *call.folder.glob(_CHILDREN)])
    return (call.folder / _STATUS, call.folder / _RECORDING, call.folder / _STATS, *children)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``alloc`` (B) and ``allocs`` of all processes, ``heap_peak`` (B) of the highest, and rank lines by bytes.

    Raises ToolOutputError if the program failed, if a file is missing, cut or nonsense, or if nothing was allocated.
    """
    in_program.read(call.folder / _STATUS)
    found = [_read(call.folder / _STATS), *(_read(path) for path in sorted(call.folder.glob(_CHILDREN)))]
    size = sum(process.size for process in found)
    if not size:
        raise ToolOutputError(
            "memray saw no allocation: the program needs no more than Python's own arenas already had"
        )
    readings = (
        Reading("alloc", tool_files.number(size, "alloc")),
        Reading("allocs", tool_files.number(sum(process.blocks for process in found), "allocs")),
        Reading("heap_peak", tool_files.number(max(process.peak for process in found), "heap_peak")),
    )
    profiles = (Profile(_RECORDING, NAME),)
    return Parsed(readings, _hotspots(found, size), profiles, tuple(_warnings(call, found)))


def _read(path: Path) -> _Process:
    content = tool_files.read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        raise ToolOutputError(f"{path.name} holds no statistics of memray")
    blocks, size = (
        tool_files.whole(content.get(key), f"{path.name}: {key}")
        for key in ("total_num_allocations", "total_bytes_allocated")
    )
    peak = tool_files.whole(content["metadata"].get("peak_memory"), f"{path.name}: peak_memory")
    steps = [
        tool_files.whole(step.get("count"), f"{path.name}: count")
        for step in _objects(path, content, "allocation_size_histogram")
    ]
    places = tuple(_place(path, row) for row in _objects(path, content, "top_allocations_by_size"))
    if sum(steps) != blocks or sum(place.size for place in places) > size or peak > size or (size and not places):
        raise ToolOutputError(f"{path.name} is damaged: its parts do not add up to its totals")
    return _Process(blocks, size, peak, places)


def _objects(path: Path, content: Mapping[str, object], key: str) -> Sequence[Mapping[str, object]]:
    found = content.get(key)
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise ToolOutputError(f"{path.name} has no {key}")
    return found


def _place(path: Path, row: Mapping[str, object]) -> _Place:
    text, size = row.get("location"), tool_files.whole(row.get("size"), f"{path.name}: size")
    if not isinstance(text, str) or not text.strip():
        raise ToolOutputError(f"{path.name} holds an allocation without a place")
    if not (match := _PLACE.match(text)):
        return _Place(tool_files.clean_name(text), "", 0, size)
    return _Place(tool_files.clean_name(match["name"]), tool_files.clean_name(match["file"]), int(match["line"]), size)


def _hotspots(found: Sequence[_Process], whole: int) -> tuple[Hotspot, ...]:
    """Rank the lines that ask for memory by bytes over the whole run; perfflow's own are left out."""
    sizes: dict[tuple[str, str, int], int] = {}
    for place in (place for process in found for place in process.places if not _OF_DRIVERS.search(place.file)):
        key = (place.function, place.file, place.line)
        sizes[key] = sizes.get(key, 0) + place.size
    ranked = sorted(((size, key) for key, size in sizes.items() if size), key=lambda item: (-item[0], item[1]))
    return tuple(
        Hotspot(name, size / whole, "bytes", NAME, file, line, f"measured: {size:,} B asked for over the whole run")
        for size, (name, file, line) in ranked[:_KEPT]
    )


def _warnings(call: Call, found: Sequence[_Process]) -> Iterator[str]:
    if len(found) > 1:
        yield f"alloc and allocs are those of {len(found)} processes together, heap_peak that of the highest"
    if cast(Options, call.options).hash_seed:
        yield from python_command.random_hashes(call.command)


ADAPTER = Adapter(
    name=NAME,
    role=Role.MEASURE,
    options=Options,
    metrics=of_perfflow("alloc", "allocs", "heap_peak"),
    deterministic=True,
    python=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
