"""``dhat``: every heap allocation of a program, counted by valgrind, and the places that ask for them.

Counts repeat to the digit, so one run is a measurement. Functions are those of compiled code: a Python program's are
the interpreter's. A Rust program with the crate ``dhat`` counts by itself and writes a file of the same form; with
``report`` that is read, and valgrind is not started.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Hotspot, Parsed, Profile, Reading, Usage
from perfflow.samples.stacks import Frame, costs_of, hotspots_of
from perfflow.tools import python_command, tool_files, tool_json
from perfflow.tools.adapter import Call, CommandOptions, Invocation, Role
from perfflow.tools.tool_json import Json, Whole
from perfflow.tools.valgrind import heap_frames, valgrind_run
from perfflow.tools.valgrind.called_within import Within
from perfflow.tools.valgrind.heap_frames import HeapFrame

NAME = "dhat"

# valgrind's limit; a stack that is cut hides who called.
_DEEPEST = 500
_SYMBOLS = (sys.executable, "-I", "-S", str(Path(__file__).with_name("drivers") / "symbol_names.py"))
_COPIES = (sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "drivers" / "written_files.py"))
_MANY = "[no frame]"
# By the file's mode: the metrics of sizes and blocks, the unit of hotspots, and what one block and one size are called.
_HEAP = (("alloc", "allocs"), "bytes", "B", "allocation")
_UNITS = (("ad_hoc_units", "ad_hoc_events"), "units", "units", "event")
_MODES = {"heap": _HEAP, "rust-heap": _HEAP, "rust-ad-hoc": _UNITS}


class Options(CommandOptions):
    """``with`` keys of ``uses: dhat``."""

    within: str = Field(default="", description="Only count allocations under functions of this name (a glob).")
    report: str = Field(
        default="",
        description="The file that the program writes itself with Rust's crate dhat, such as dhat-heap.json; valgrind "
        "is not started then.",
    )


class _Place(Json):
    """One call path that allocates: its frames, the allocator's first, and bytes and blocks in all and at the peak."""

    size: Whole = Field(alias="tb")
    blocks: Whole = Field(alias="tbk")
    peak: Whole = Field(default=0, alias="gb")
    frames: list[Whole] = Field(alias="fs")


class _File(Json):
    """What one process left."""

    version: Literal[2] = Field(alias="dhatFileVersion")
    mode: Annotated[Any, tool_json.one_of(_MODES)]
    command: str = Field(alias="cmd")
    places: list[_Place] = Field(alias="pps")
    frames: list[str] = Field(alias="ftbl")


@dataclass(frozen=True, slots=True)
class _Point:
    """A call path with its frames, and what it allocated."""

    frames: tuple[HeapFrame, ...]
    size: int
    blocks: int

    @property
    def holder(self) -> Frame:
        """Who asked for the memory."""
        return heap_frames.holder(self.frames) or Frame(_MANY)


@dataclass(frozen=True, slots=True)
class _Process:
    """What one process left, with whole frames."""

    path: Path
    file: _File
    points: tuple[_Point, ...]

    @property
    def peak(self) -> int:
        return sum(place.peak for place in self.file.places)


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind, with whole stacks and paths; or alone, and copy its report."""
    options = cast(Options, call.options)
    if options.report:
        counted = Invocation((*_COPIES, str(call.folder), options.report, "--", *call.command))
    else:
        flags = (f"--num-callers={_DEEPEST}", "--fullpath-after=")
        counted = valgrind_run.invocation(call, NAME, *flags, env=valgrind_run.MALLOC)
    # A function that allocates nothing is on no stack; whether there is one, the program's symbols tell.
    return (counted, Invocation((*_SYMBOLS, str(call.folder)))) if options.within else (counted,)


def outputs(call: Call) -> tuple[Path, ...]:
    """The files that the processes left, or the copies of their reports; ``parse`` misses them if there are none."""
    return (*valgrind_run.files(call, NAME), *sorted(call.folder.glob("written-*.json")))


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``alloc`` (B) and ``allocs`` of all processes, and ``heap_peak`` (B) of the one with the highest.

    Of a report in ad hoc mode it is ``ad_hoc_units`` and ``ad_hoc_events``. Raises ToolOutputError if there is no file,
    if one is cut or nonsense, if no allocation was seen at all, or if no function is called what ``within`` says.
    """
    options = cast(Options, call.options)
    paths = outputs(call) if options.report else valgrind_run.files_of_a_run(call, NAME)
    if not paths:
        raise ToolOutputError(
            f"the program wrote no file {tool_files.clean_name(options.report)[:100]!r}: have main keep a "
            "`dhat::Profiler` until it returns, or say under `report` where it writes"
        )
    found = [_read(path) for path in paths]
    points = [point for process in found for point in process.points]
    if not any(point.size for point in points):
        raise ToolOutputError(
            "dhat saw no allocation at all: the program needs no heap, is linked statically, or has its own allocator"
        )
    largest = max(found, key=lambda process: (process.peak, process.path.name))
    if any(process.file.mode != largest.file.mode for process in found):
        raise ToolOutputError("one file counts the heap and another what the program says: give each a step")
    wanted = _within(call, points)
    (size, blocks), unit, *words = largest.file.mode
    sums = {size: sum(point.size for point in wanted), blocks: sum(point.blocks for point in wanted)}
    if largest.file.mode is _HEAP and not options.within:
        sums["heap_peak"] = largest.peak
    return Parsed(
        tuple(Reading(metric, tool_files.number(value, metric)) for metric, value in sums.items()),
        _hotspots(wanted, unit, *words),
        (Profile(largest.path.name, NAME),),
        tuple(_warnings(call, found, largest, wanted, sums)),
        (
            *costs_of(((point.holder, point.size) for point in wanted), size),
            *costs_of(((point.holder, point.blocks) for point in wanted), blocks),
        ),
    )


def _read(path: Path) -> _Process:
    """Read one file. Raises ToolOutputError unless it is one of dhat's, whole, and its figures can be."""
    file = tool_json.read(_File, path)
    frames = [heap_frames.read(text) for text in file.frames]
    for place in file.places:
        if file.mode is _HEAP and "peak" not in place.model_fields_set:
            raise ToolOutputError(f"{path.name}: a place lacks gb, its bytes at the peak")
        if place.peak > place.size or (place.size and not place.blocks):
            figures = f"{place.peak} B of {place.size} B in {place.blocks} blocks"
            raise ToolOutputError(f"{path.name} is damaged: {figures} cannot be")
        if any(index >= len(frames) for index in place.frames):
            raise ToolOutputError(f"{path.name} is damaged: a stack holds a frame that is not in its table")
    stacks = [tuple(frame for index in place.frames if (frame := frames[index])) for place in file.places]
    points = (_Point(stack, place.size, place.blocks) for stack, place in zip(stacks, file.places, strict=True))
    return _Process(path, file, tuple(points))


def _within(call: Call, points: Sequence[_Point]) -> list[_Point]:
    """Return the points under the functions that ``within`` names, or all. Raises ToolOutputError if there is none."""
    glob = cast(Options, call.options).within
    if not glob:
        return list(points)
    within = Within(glob, tool_files.read_lines(call.folder / "symbols"))
    found = [point for point in points if any(within.names(frame.name, frame.frame.file) for frame in point.frames)]
    if not found:
        within.require()
        if not any(frame.own for point in points for frame in point.frames):
            raise ToolOutputError(
                f"nothing was allocated under {glob!r}, but the program has no debug information, without which what "
                "was inlined is not seen: build it with -g (in Rust `debug = 1`)"
            )
    return found


def _hotspots(points: Sequence[_Point], unit: str, size: str, block: str) -> tuple[Hotspot, ...]:
    """Rank the functions that ask for memory, by bytes over the whole run."""
    whole = sum(point.size for point in points)
    if not whole:
        return ()
    blocks: Counter[tuple[str, str]] = Counter()
    for point in points:
        blocks[point.holder.name, point.holder.file] += point.blocks
    ranked = hotspots_of(((point.holder, point.size) for point in points), source=NAME, unit=unit)
    return tuple(replace(spot, cause=_cause(spot, whole, size, blocks, block)) for spot in ranked)


def _cause(spot: Hotspot, whole: int, size: str, blocks: Mapping[tuple[str, str], int], block: str) -> str:
    count = blocks[spot.location, spot.file]
    return f"measured: {round(spot.share * whole):,} {size} in {count:,} {block}{'s' if count != 1 else ''}"


def _warnings(
    call: Call, found: Sequence[_Process], largest: _Process, wanted: Sequence[_Point], metrics: Collection[str]
) -> Iterator[str]:
    """Say what is summed, and why what ``within`` asks for may have escaped: no such name, or stacks that were cut."""
    options = cast(Options, call.options)
    summed, counted, *_ = metrics
    yield from valgrind_run.sums_of([process.file.command for process in found], f"{summed} and {counted} are")
    if len(found) > 1 and "heap_peak" in metrics:
        yield f"heap_peak is that of {tool_files.clean_name(largest.file.command)[:80]!r} alone"
    within = options.within
    if within and not any(point.size for point in wanted):
        yield f"nothing was allocated under {within!r}, which the program has; one that was never called looks the same"
    if within and any(len(point.frames) >= _DEEPEST for process in found for point in process.points):
        yield f"stacks of more than {_DEEPEST} frames are cut, so an allocation under {within!r} may be missed"
    if not options.report:
        yield from python_command.hidden_objects(call.command)


ADAPTER = replace(
    valgrind_run.adapter(NAME, Role.MEASURE, (*_HEAP[0], "heap_peak", *_UNITS[0]), Options, invocations, parse),
    outputs=outputs,
    needs_program=lambda values: not values.get("report"),
)
