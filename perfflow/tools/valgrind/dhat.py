"""``dhat``: every heap allocation of a program, counted by valgrind, and the places that ask for them.

Counts repeat to the digit, so one run is a measurement. Functions are those of compiled code: a Python program's are
the interpreter's.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Cost, Hotspot, Parsed, Profile, Reading, Usage
from perfflow.samples.stacks import Frame, costs_of, hotspots_of
from perfflow.tools import python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.valgrind import heap_frames, valgrind_run
from perfflow.tools.valgrind.called_within import Within
from perfflow.tools.valgrind.heap_frames import HeapFrame

NAME = "dhat"

_VERSION = 2
# valgrind's limit; a stack that is cut hides who called.
_DEEPEST = 500
_SYMBOLS = (sys.executable, "-I", "-S", str(Path(__file__).with_name("drivers") / "symbol_names.py"))
_MANY = "[no frame]"


class Options(CommandOptions):
    """``with`` keys of ``uses: dhat``."""

    within: str = Field(default="", description="Only count allocations under functions of this name (a glob).")


@dataclass(frozen=True, slots=True)
class _Point:
    """One call path that allocates: its frames, the allocator's first, and bytes and blocks in all and at the peak."""

    frames: tuple[HeapFrame, ...]
    size: int
    blocks: int
    peak: int


@dataclass(frozen=True, slots=True)
class _Process:
    """What one process allocated."""

    path: Path
    command: str
    points: tuple[_Point, ...]

    @property
    def peak(self) -> int:
        return sum(point.peak for point in self.points)


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind, with whole stacks and paths."""
    flags = (f"--num-callers={_DEEPEST}", "--fullpath-after=")
    counted = valgrind_run.invocation(call, NAME, *flags, env=valgrind_run.MALLOC)
    # A function that allocates nothing is on no stack; whether there is one, the program's symbols tell.
    return (counted, Invocation((*_SYMBOLS, str(call.folder)))) if _glob(call) else (counted,)


def outputs(call: Call) -> tuple[Path, ...]:
    """The files that the processes left; ``parse`` misses them if there are none."""
    return valgrind_run.files(call, NAME)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``alloc`` (B) and ``allocs`` of all processes, and ``heap_peak`` (B) of the one with the highest.

    Raises ToolOutputError if there is no file, if one is cut or nonsense, if no allocation was seen at all, or if no
    function is called what ``within`` says.
    """
    within = _glob(call)
    found = [_read(path) for path in valgrind_run.files_of_a_run(call, NAME)]
    points = [point for process in found for point in process.points]
    if not any(point.size for point in points):
        raise ToolOutputError(
            "dhat saw no allocation at all: the program needs no heap, is linked statically, or has its own allocator"
        )
    wanted = _within(call, points)
    largest = max(found, key=lambda process: (process.peak, process.path.name))
    readings = [
        Reading("alloc", tool_files.number(sum(point.size for point in wanted), "alloc")),
        Reading("allocs", tool_files.number(sum(point.blocks for point in wanted), "allocs")),
    ]
    if not within:
        readings.append(Reading("heap_peak", tool_files.number(largest.peak, "heap_peak")))
    warnings = (*_summed(found, largest, within), *_unseen(points, wanted, within))
    profiles = (Profile(largest.path.name, NAME),)
    warnings = (*warnings, *python_command.hidden_objects(call.command))
    return Parsed(tuple(readings), _hotspots(wanted), profiles, warnings, _costs(wanted))


def _glob(call: Call) -> str:
    return cast(Options, call.options).within


def _read(path: Path) -> _Process:
    """Read one file. Raises ToolOutputError unless it is one of dhat's, whole, and its figures can be."""
    content = tool_files.read_json(path)
    if not isinstance(content, dict) or content.get("dhatFileVersion") != _VERSION or content.get("mode") != "heap":
        raise ToolOutputError(f"{path.name} is no heap profile of dhat in version {_VERSION}")
    frames = [heap_frames.read(text) for text in _texts(path, content.get("ftbl"))]
    points = content.get("pps")
    if not isinstance(points, list):
        raise ToolOutputError(f"{path.name} lists no places that allocate")
    return _Process(path, str(content.get("cmd")), tuple(_point(path, point, frames) for point in points))


def _texts(path: Path, value: object) -> Sequence[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ToolOutputError(f"{path.name} has no table of frames")
    return value


def _point(path: Path, point: object, frames: Sequence[HeapFrame | None]) -> _Point:
    if not isinstance(point, dict) or not isinstance(point.get("fs"), list):
        raise ToolOutputError(f"{path.name} holds a place without a stack")
    size, blocks, peak = (tool_files.whole(point.get(key), f"{path.name}: {key}") for key in ("tb", "tbk", "gb"))
    if peak > size or (size and not blocks):
        raise ToolOutputError(f"{path.name} is damaged: {peak} B of {size} B in {blocks} blocks cannot be")
    indexes = [tool_files.whole(index, f"{path.name}: frame") for index in point["fs"]]
    if any(index >= len(frames) for index in indexes):
        raise ToolOutputError(f"{path.name} is damaged: a stack holds a frame that is not in its table")
    stack = tuple(frame for index in indexes if (frame := frames[index]))
    return _Point(stack, size, blocks, peak)


def _within(call: Call, points: Sequence[_Point]) -> list[_Point]:
    """Return the points under the functions that ``within`` names, or all. Raises ToolOutputError if there is none."""
    glob = _glob(call)
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


def _hotspots(points: Sequence[_Point]) -> tuple[Hotspot, ...]:
    """Rank the functions that ask for memory, by bytes over the whole run."""
    whole = sum(point.size for point in points)
    if not whole:
        return ()
    blocks: Counter[tuple[str, str]] = Counter()
    for point in points:
        holder = _holder(point)
        blocks[holder.name, holder.file] += point.blocks
    ranked = hotspots_of(((_holder(point), point.size) for point in points), source=NAME, unit="bytes")
    return tuple(replace(spot, cause=_cause(spot, whole, blocks)) for spot in ranked)


def _costs(points: Sequence[_Point]) -> tuple[Cost, ...]:
    """What each function that asks for memory got, in bytes and in blocks."""
    held = [(_holder(point), point) for point in points]
    size = costs_of(((holder, point.size) for holder, point in held), "alloc")
    return (*size, *costs_of(((holder, point.blocks) for holder, point in held), "allocs"))


def _cause(spot: Hotspot, whole: int, blocks: Mapping[tuple[str, str], int]) -> str:
    count = blocks[spot.location, spot.file]
    return f"measured: {round(spot.share * whole):,} B in {count:,} allocation{'s' if count != 1 else ''}"


def _holder(point: _Point) -> Frame:
    return heap_frames.holder(point.frames) or Frame(_MANY)


def _summed(found: Sequence[_Process], largest: _Process, within: str) -> Iterator[str]:
    yield from valgrind_run.sums_of([process.command for process in found], "alloc and allocs are")
    if len(found) > 1 and not within:
        yield f"heap_peak is that of {tool_files.clean_name(largest.command)[:80]!r} alone"


def _unseen(points: Sequence[_Point], wanted: Sequence[_Point], within: str) -> Iterator[str]:
    """Say why what ``within`` asks for may have escaped: no such name, or stacks that were cut."""
    if not within:
        return
    if not any(point.size for point in wanted):
        yield f"nothing was allocated under {within!r}, which the program has; one that was never called looks the same"
    if any(len(point.frames) >= _DEEPEST for point in points):
        yield f"stacks of more than {_DEEPEST} frames are cut, so an allocation under {within!r} may be missed"


ADAPTER = Adapter(
    name=NAME,
    role=Role.MEASURE,
    options=Options,
    program=valgrind_run.VALGRIND,
    metrics=of_perfflow("alloc", "allocs", "heap_peak"),
    deterministic=True,
    passes_stdout=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
