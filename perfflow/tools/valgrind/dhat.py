"""``dhat``: every heap allocation of a program, counted by valgrind, and the places that ask for them.

Counts repeat to the digit, so one run is a measurement. Functions are those of compiled code: a Python program's are
the interpreter's. A Rust program with the crate ``dhat`` counts by itself and writes a file of the same form; with
``report`` that is read, and valgrind is not started.

Functions that ``within`` names are a glob over names as they are written, in one form or another: ``submit``,
``Conductor::submit``, ``conductor::submit`` and ``demo::conductor::Conductor::submit`` name one function. Debug
information gives no more of an inlined one than ``submit`` and its source file; which functions that may be, the
program's symbols tell (drivers/symbol_names.py). What cannot be told apart is an error, never a figure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import filterfalse
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import Parsed, Profile, Reading, Usage
from perfflow.model.stacks import Frame, costs_of
from perfflow.tools import own_code, python_command, rust_names, tool_files, tool_json
from perfflow.tools.adapter import Call, CommandOptions, Invocation, Profiler, Role, Way
from perfflow.tools.tool_json import Json, Whole
from perfflow.tools.valgrind import heap_frames, valgrind_run
from perfflow.tools.valgrind.heap_frames import HeapFrame

NAME = "dhat"

# valgrind's limit; a stack that is cut hides who called.
_DEEPEST = 500
_SYMBOLS = python_command.bare("symbol_names.py", __file__)
_COPIES = python_command.bare("written_files.py")
# By the file's mode: the metrics of sizes and blocks, the unit of hotspots, and what one block and one size are called.
_HEAP = (("alloc", "allocs"), "bytes", "B", "allocation")
_UNITS = (("ad_hoc_units", "ad_hoc_events"), "units", "units", "event")
_MODES = {"heap": _HEAP, "rust-heap": _HEAP, "rust-ad-hoc": _UNITS}

# What compilers and demanglers put behind a function's name.
_AFTER_NAME = r"(?:\(.*\))?(?: const)?(?:\.(?:part|constprop|isra|cold|llvm)(?:\.\d+)?)*(?: \[clone [^]]*\])*"
_AFTER = re.compile(rf"(?<=[^(]){_AFTER_NAME}\Z", re.DOTALL)
_UNKNOWN = "? "
_CLOSURE = re.compile(r"\{closure#\d+\}|\{closure_env#\d+\}|\{\{closure\}\}")
_FOREIGN_CRATES = ("std::", "core::", "alloc::", "<std::", "<core::", "<alloc::")


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


class _Point(NamedTuple):
    """A call path with its frames, who asked for the memory there, and how much it was in how many blocks."""

    frames: tuple[HeapFrame, ...]
    holder: Frame
    size: int
    blocks: int


class _Process(NamedTuple):
    """What one process left: bytes at its peak, the file's name, and what that holds, with whole frames."""

    peak: int
    name: str
    file: _File
    points: tuple[_Point, ...]


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind, with whole stacks and paths; or alone, and copy its report."""
    if call.options.report:
        counted = Invocation((*_COPIES, str(call.folder), call.options.report, "--", *call.command))
    else:
        flags = (f"--num-callers={_DEEPEST}", "--fullpath-after=")
        counted = valgrind_run.invocation(call, NAME, *flags, env=valgrind_run.MALLOC)
    # A function that allocates nothing is on no stack; whether there is one, the program's symbols tell.
    return (counted, Invocation((*_SYMBOLS, str(call.folder)))) if call.options.within else (counted,)


def outputs(call: Call) -> tuple[Path, ...]:
    """The files that the processes left, or the copies of their reports; ``parse`` misses them if there are none."""
    return (*valgrind_run.files(call, NAME), *sorted(call.folder.glob("written-*.json")))


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Read ``alloc`` (B) and ``allocs`` of all processes, and ``heap_peak`` (B) of the one with the highest.

    Of a report in ad hoc mode it is ``ad_hoc_units`` and ``ad_hoc_events``. Raises ToolOutputError if there is no file,
    if one is cut or nonsense, if no allocation was seen at all, or if no function is called what ``within`` says.
    """
    paths = outputs(call) if call.options.report else valgrind_run.files_of_a_run(call, NAME)
    if not paths:
        raise ToolOutputError(
            f"the program wrote no file {tool_files.clean_name(call.options.report)[:100]!r}: have main keep a "
            "`dhat::Profiler` until it returns, or say under `report` where it writes"
        )
    found = [_read(path) for path in paths]
    points = [point for process in found for point in process.points]
    if not any(point.size for point in points):
        raise ToolOutputError(f"{NAME} {heap_frames.NO_ALLOCATION}")
    largest = max(found, key=lambda process: process[:2])
    mode = largest.file.mode
    if any(process.file.mode != mode for process in found):
        raise ToolOutputError("one file counts the heap and another what the program says: give each a step")
    wanted = _within(call.options.within, call.folder, points)
    (size, blocks), unit, *words = mode
    sums = {size: sum(point.size for point in wanted), blocks: sum(point.blocks for point in wanted)}
    if mode is _HEAP and not call.options.within:
        sums["heap_peak"] = largest.peak
    sizes = [(point.holder, point.size) for point in wanted]
    counts = [(point.holder, point.blocks) for point in wanted]

    def cause(bytes_: int, number: int) -> str:
        return f"{bytes_:,} {words[0]} in {number:,} {words[1]}{'s' if number != 1 else ''}"

    readings = tuple(Reading(metric, tool_files.number(value, metric)) for metric, value in sums.items())
    spots = heap_frames.ranked(sizes, NAME, unit, cause, counts)
    warnings = tuple(_warnings(call, found, largest, wanted, sums))
    costs = (*costs_of(sizes, size), *costs_of(counts, blocks))
    return Parsed(readings, spots, (Profile(largest.name, NAME),), warnings, costs)


def _read(path: Path) -> _Process:
    """Read one file. Raises ToolOutputError unless it is one of dhat's, whole, and its figures can be."""
    file = tool_json.read(_File, path)
    frames = [heap_frames.read(text) for text in file.frames]
    points: list[_Point] = []
    for place in file.places:
        if file.mode is _HEAP and "peak" not in place.model_fields_set:
            raise ToolOutputError(f"{path.name}: a place lacks gb, its bytes at the peak")
        if place.peak > place.size or (place.size and not place.blocks):
            figures = f"{place.peak} B of {place.size} B in {place.blocks} blocks"
            raise ToolOutputError(f"{path.name} is damaged: {figures} cannot be")
        if any(index >= len(frames) for index in place.frames):
            raise ToolOutputError(f"{path.name} is damaged: a stack holds a frame that is not in its table")
        stack = tuple(frame for index in place.frames if (frame := frames[index]))
        points.append(_Point(stack, heap_frames.holder(stack), place.size, place.blocks))
    return _Process(sum(place.peak for place in file.places), path.name, file, tuple(points))


def _within(glob: str, folder: Path, points: Sequence[_Point]) -> Sequence[_Point]:
    """Return the points under the functions that ``glob`` names, or all. Raises ToolOutputError if there is none."""
    if not glob:
        return points
    within = Within(glob, tool_files.read_lines(folder / "symbols"))
    found = [point for point in points if any(within.names(frame.name, frame.frame.file) for frame in point.frames)]
    if not found:
        within.require()
        if not any(frame.own for point in points for frame in point.frames):
            raise ToolOutputError(
                f"nothing was allocated under {glob!r}, but the program has no debug information, without which what "
                "was inlined is not seen: build it with -g (in Rust `debug = 1`)"
            )
    return found


def _warnings(
    call: Call[Options],
    found: Sequence[_Process],
    largest: _Process,
    wanted: Sequence[_Point],
    metrics: Collection[str],
) -> Iterator[str]:
    """Say what is summed, and why what ``within`` asks for may have escaped: no such name, or stacks that were cut."""
    summed, counted, *_ = metrics
    yield from valgrind_run.sums_of([process.file.command for process in found], f"{summed} and {counted} are")
    if len(found) > 1 and "heap_peak" in metrics:
        yield f"heap_peak is that of {tool_files.clean_name(largest.file.command)[:80]!r} alone"
    within = call.options.within
    if within and not any(point.size for point in wanted):
        yield f"nothing was allocated under {within!r}, which the program has; one that was never called looks the same"
    if within and any(len(point.frames) >= _DEEPEST for process in found for point in process.points):
        yield f"stacks of more than {_DEEPEST} frames are cut, so an allocation under {within!r} may be missed"
    if not call.options.report:
        yield from python_command.hidden_objects(call.command)


class Within:
    """The functions that a glob names, among those of the programs that ran.

    In a glob ``*`` and ``?`` stand for any characters, ``/`` and ``:`` included. ``symbols`` are the driver's lines.
    """

    def __init__(self, glob: str, symbols: Iterable[str]) -> None:
        name = "".join({"*": ".*", "?": "."}.get(letter) or re.escape(letter) for letter in glob)
        self._shown = tool_files.clean_name(glob)
        self._pattern = re.compile(f"(?:{name})(?:{_AFTER_NAME})", re.DOTALL)
        self._fits = cache(lambda name: any(map(self._pattern.fullmatch, _forms(name))))
        self.names = cache(self._names)
        lines = list(symbols)
        self._unknown = any(line.startswith(_UNKNOWN) for line in lines)
        self._named: defaultdict[str, list[str]] = defaultdict(list)
        for plain in (rust_names.plain(line) for line in lines if line and not line.startswith(_UNKNOWN)):
            self._named[_last(plain)].append(plain)

    def _names(self, name: str, file: str) -> bool:
        """Whether the glob names the function of a frame. Raises ToolOutputError where that cannot be told."""
        name = rust_names.plain(name)
        if self._fits(name):
            return True
        # Or its name behind the module that its file is, whatever type is between them.
        in_module = rust_names.in_module(_last(name), file)
        if PurePosixPath(file).suffix == ".rs" and self._pattern.fullmatch(in_module):
            return True
        if "::" in _without_arguments(name) or not own_code.is_own(file):
            return False
        meant = _of_file(self._named.get(_last(name), []), file)
        wanted, others = list(filter(self._fits, meant)), list(filterfalse(self._fits, meant))
        if wanted and others:
            raise ToolOutputError(
                f"`within: {self._shown}`: an inlined {tool_files.clean_name(name)} allocates, which is "
                f"{tool_files.clean_name(wanted[0])} or {tool_files.clean_name(others[0])}: write `within: "
                f"{tool_files.clean_name(rust_names.in_module(name, file))}` for both"
            )
        return bool(wanted)

    def require(self) -> None:
        """Raise ToolOutputError where no program has such a function, so that 0 would mean nothing."""
        if any(self._fits(symbol) for symbols in self._named.values() for symbol in symbols):
            return
        if self._unknown:
            raise ToolOutputError(
                f"no function on a stack that allocates matches `within: {self._shown}`, and the program does not tell "
                "the names of its functions: build it with debug information, or without stripping it"
            )
        raise ToolOutputError(
            f"no function of the program matches `within: {self._shown}`: write its name, or a glob such as *::name"
        )


def _forms(name: str) -> Iterator[str]:
    """The ways to write a function's name: with its path or the end of it, and without types and type arguments."""
    for plain in {name: None, _without_arguments(name): None}:
        parts = plain.split("::")
        modules = [part for part in parts[:-1] if not part[:1].isupper() and part[:1] != "<"] + parts[-1:]
        for words in (parts, modules):
            yield from ("::".join(words[at:]) for at in range(len(words)))


def _of_file(symbols: Sequence[str], file: str) -> Sequence[str]:
    """Of symbols with one last name, return those that may be in a file: of Rust, whose modules are in the path."""
    own = [symbol for symbol in symbols if not symbol.startswith(_FOREIGN_CRATES)]
    module = rust_names.in_module("x", file).rpartition("::")[0]
    return [symbol for symbol in own if module and module in re.split(r"\W+", symbol)] or own


@cache
def _last(name: str) -> str:
    """Return ``submit`` for ``demo::Queue<a::B>::submit(int)``, and one name for all closures."""
    bare = _without_arguments(_AFTER.sub("", name, count=1))
    depth, start = 0, 0
    for at, letter in enumerate(bare):
        depth += {"<": 1, ">": -1, "(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and bare.startswith("::", at):
            start = at + 2
    return _CLOSURE.sub("{closure}", bare[start:])


def _without_arguments(name: str) -> str:
    """Return ``new`` for ``new<demo::Task>``; a name that does not end so, or is all in brackets, stays."""
    if not name.endswith(">") or name.endswith(("->", "operator>", "operator>>")):
        return name
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += {">": 1, "<": -1}.get(name[at], 0)
        if not depth:
            return name[:at].removesuffix("::") if name[at - 1] != " " else name
    return name


ADAPTER = valgrind_run.valgrind_tool(
    name=NAME,
    role=Role.MEASURE,
    profiler=Profiler(
        way=Way.COUNTS, follows={"alloc": 0, "allocs": 0, "heap_peak": 1, "rss": 1}, sees="bytes asked for"
    ),
    options=Options,
    metrics=of_perfflow(*_HEAP[0], "heap_peak", *_UNITS[0]),
    needs_program=lambda values: not values.get("report"),
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
