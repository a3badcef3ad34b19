"""``dhat``: count every heap allocation of a program with valgrind, and the functions that allocate.

Counts are exactly repeatable, so one run is enough. Functions are those of compiled code; for a Python program they are
the interpreter's. A Rust program with the crate ``dhat`` counts its allocations itself and writes a file in the same
format. With ``report`` that file is read, and valgrind is not started.

``within`` is a glob that is matched against several forms of a function's name: ``submit``, ``Conductor::submit``,
``conductor::submit`` and ``demo::conductor::Conductor::submit`` name one function. For an inlined function, debug
information has only ``submit`` and its source file; the program's symbols show the functions that this may be
(drivers/symbol_names.py). If the name is ambiguous, that is an error.
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
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Profile, Reading, Usage
from perfflow.model.stacks import Frame, costs_of, is_own
from perfflow.tools import parsed_output, python_command, symbol_names, tool_files
from perfflow.tools.adapter import Call, CommandOptions, Invocation, Profiler, ProfilingMethod, Role
from perfflow.tools.parsed_output import Json, Whole
from perfflow.tools.valgrind import callgrind, massif
from perfflow.tools.valgrind.massif import HeapFrame, program_of

NAME = "dhat"

# valgrind's limit. A truncated stack lacks callers.
_DEEPEST = 500
# Of a suite in Python all stacks are those of the interpreter, and deep ones take ten times as long.
_OF_INTERPRETER = 12
_SYMBOLS = python_command.driver_command("symbol_names.py", __file__)
_COPIES = python_command.driver_command("written_files.py")
# By the file's mode: the metrics of sizes and blocks, the unit of hotspots, and the names of the unit and of a block.
_HEAP = (("alloc", "allocs"), "bytes", "B", "allocation")
_UNITS = (("ad_hoc_units", "ad_hoc_events"), "units", "units", "event")
_MODES = {"heap": _HEAP, "rust-heap": _HEAP, "rust-ad-hoc": _UNITS}

# Suffixes that compilers and demanglers append to a function's name.
_AFTER_NAME = r"(?:\(.*\))?(?: const)?(?:\.(?:part|constprop|isra|cold|llvm)(?:\.\d+)?)*(?: \[clone [^]]*\])*"
_AFTER = re.compile(rf"(?<=[^(]){_AFTER_NAME}\Z", re.DOTALL)
_UNKNOWN = "? "
_CLOSURE = re.compile(r"\{closure#\d+\}|\{closure_env#\d+\}|\{\{closure\}\}")
_FOREIGN_CRATES = ("std::", "core::", "alloc::", "<std::", "<core::", "<alloc::")


class DhatOptions(CommandOptions):
    """``with`` keys of ``uses: dhat``."""

    within: str = Field(default="", description="Only count allocations in and below functions of this name (a glob).")
    report: str = Field(
        default="",
        description="A file that the program itself writes with Rust's crate dhat, such as dhat-heap.json. With it, "
        "valgrind is not started.",
    )


class _DhatPlace(Json):
    """One call path that allocates: its frames, the allocator first, total bytes and blocks, and bytes at the peak."""

    size: Whole = Field(alias="tb")
    blocks: Whole = Field(alias="tbk")
    peak: Whole = Field(default=0, alias="gb")
    frames: list[Whole] = Field(alias="fs")


class _DhatFile(Json):
    """The file of one process."""

    version: Literal[2] = Field(alias="dhatFileVersion")
    mode: Annotated[Any, parsed_output.one_of_keys(_MODES)]
    command: str = Field(alias="cmd")
    places: list[_DhatPlace] = Field(alias="pps")
    frames: list[str] = Field(alias="ftbl")


class _Point(NamedTuple):
    """A call path: its frames, the function that allocated, bytes and blocks."""

    frames: tuple[HeapFrame, ...]
    holder: Frame
    size: int
    blocks: int


class _DhatProcess(NamedTuple):
    """One process: bytes at its peak, the name and contents of its file, and its call paths with resolved frames."""

    peak: int
    name: str
    file: _DhatFile
    points: tuple[_Point, ...]


def invocations(call: Call[DhatOptions]) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind with full stacks and paths, or alone and copy its report."""
    if call.options.report:
        counted = Invocation((*_COPIES, str(call.folder), call.options.report, "--", *call.command))
    else:
        shallow = call.harness and not call.options.within and python_command.is_interpreter(call.command[0])
        flags = (f"--num-callers={_OF_INTERPRETER if shallow else _DEEPEST}", "--fullpath-after=")
        counted = callgrind.valgrind_invocation(call, NAME, *flags, env=callgrind.MALLOC)
    # A function that allocates nothing is on no stack, so the program's symbols are needed to know that it exists.
    return (counted, Invocation((*_SYMBOLS, str(call.folder)))) if call.options.within else (counted,)


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the files of the processes, or the copies of their reports; ``parse`` raises if there are none."""
    return (*callgrind.valgrind_files(call, NAME), *sorted(call.folder.glob("written-*.json")))


def parse(call: Call[DhatOptions], usage: Usage) -> Parsed:
    """Read ``alloc`` (B) and ``allocs`` of all processes, and ``heap_peak`` (B) of the process with the highest peak.

    Allocations of a harness do not count, except for the peak. For a report in ad hoc mode, read ``ad_hoc_units`` and
    ``ad_hoc_events`` instead. Raises ToolOutputError if there is no file, if a file is cut or invalid, if there was no
    allocation, or if no function matches ``within``.
    """
    paths = outputs(call) if call.options.report else callgrind.files_of_a_run(call, NAME)
    if not paths:
        raise ToolOutputError(
            f"the program did not write {tool_files.clean_name(call.options.report)[:100]!r}: keep a `dhat::Profiler` "
            "in main until it returns, or set `report` to the file that the program writes"
        )
    processes = [_read(path) for path in paths]
    points = [point for process in processes for point in process.points]
    if not any(point.size for point in points):
        raise ToolOutputError(f"{NAME} {massif.NO_ALLOCATION}")
    largest = max(processes, key=lambda process: process[:2])
    mode = largest.file.mode
    if any(process.file.mode != mode for process in processes):
        raise ToolOutputError("one file counts the heap and another ad-hoc units: use a separate step for each")
    harness = call.harness
    points = [point for point in points if not massif.is_of_harness(point.frames, harness)] if harness else points
    chosen = _within(call.options.within, call.folder, points)
    (size, blocks), unit, *words = mode
    sums = {size: sum(point.size for point in chosen), blocks: sum(point.blocks for point in chosen)}
    if mode is _HEAP and not call.options.within:
        sums["heap_peak"] = largest.peak
    sizes = [(point.holder, point.size) for point in chosen]
    counts = [(point.holder, point.blocks) for point in chosen]

    def cause(bytes_: int, number: int) -> str:
        return f"{bytes_:,} {words[0]} in {number:,} {words[1]}{'s' if number != 1 else ''}"

    readings = tuple(Reading(metric, tool_files.number(value, metric)) for metric, value in sums.items())
    spots = massif.ranked_frames(sizes, NAME, unit, cause, counts)
    warnings = tuple(_warnings(call, processes, largest, chosen, sums))
    costs = (*costs_of(sizes, size), *costs_of(counts, blocks))
    return Parsed(readings, spots, (Profile(largest.name, NAME),), warnings, costs)


def _read(path: Path) -> _DhatProcess:
    """Read one file. Raises ToolOutputError if it is not a complete file of dhat with valid figures."""
    file = parsed_output.read_json(_DhatFile, path)
    frames = [massif.read_frames(text) for text in file.frames]
    points: list[_Point] = []
    for place in file.places:
        if file.mode is _HEAP and "peak" not in place.model_fields_set:
            raise ToolOutputError(f"{path.name}: a place lacks gb, its bytes at the peak")
        if place.peak > place.size or (place.size and not place.blocks):
            figures = f"{place.peak} B of {place.size} B in {place.blocks} blocks"
            raise ToolOutputError(f"{path.name} is damaged: {figures} is not possible")
        if any(index >= len(frames) for index in place.frames):
            raise ToolOutputError(f"{path.name} is damaged: a stack has a frame that is not in the table of frames")
        stack = tuple(frame for index in place.frames if (frame := frames[index]))
        points.append(_Point(stack, massif.holder_of(stack), place.size, place.blocks))
    return _DhatProcess(sum(place.peak for place in file.places), path.name, file, tuple(points))


def _within(glob: str, folder: Path, points: Sequence[_Point]) -> Sequence[_Point]:
    """Return the points below functions that match ``glob``, or all. Raises ToolOutputError if no function matches."""
    if not glob:
        return points
    within = Within(glob, tool_files.read_lines(folder / "symbols"))
    below = [point for point in points if any(within.names(frame.name, frame.frame.file) for frame in point.frames)]
    if not below:
        within.require()
        if not any(frame.own for point in points for frame in point.frames):
            raise ToolOutputError(
                f"nothing was allocated under {glob!r}, but without debug information inlined functions are not "
                "visible: build the program with -g (in Rust `debug = 1`)"
            )
    return below


def _warnings(
    call: Call[DhatOptions],
    processes: Sequence[_DhatProcess],
    largest: _DhatProcess,
    chosen: Sequence[_Point],
    metrics: Collection[str],
) -> Iterator[str]:
    """Yield warnings about summed processes, and about allocations that ``within`` may have missed."""
    summed, counted, *_ = metrics
    yield from callgrind.sum_warnings([process.file.command for process in processes], f"{summed} and {counted} are")
    if len(processes) > 1 and "heap_peak" in metrics:
        yield f"heap_peak is that of {program_of(largest.file.command)!r} alone"
    within = call.options.within
    if within and not any(point.size for point in chosen):
        yield f"nothing was allocated under {within!r}, or it was never called; the program has such a function"
    if within and any(len(point.frames) >= _DEEPEST for process in processes for point in process.points):
        yield f"stacks of more than {_DEEPEST} frames are cut, so an allocation under {within!r} may be missed"
    if not call.options.report:
        yield from python_command.hidden_objects(call.command)


class Within:
    """The functions of the programs that match a glob.

    In a glob, ``*`` and ``?`` match any characters, also ``/`` and ``:``. ``symbols`` are the lines of the driver.
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
        for plain in (symbol_names.plain_rust(line) for line in lines if line and not line.startswith(_UNKNOWN)):
            self._named[_last_part(plain)].append(plain)

    def _names(self, name: str, file: str) -> bool:
        """Whether the function of a frame matches the glob. Raises ToolOutputError if that is ambiguous."""
        name = symbol_names.plain_rust(name)
        if self._fits(name):
            return True
        # Its name with the module of its file, without the type between them.
        in_module = symbol_names.in_module(_last_part(name), file)
        if PurePosixPath(file).suffix == ".rs" and self._pattern.fullmatch(in_module):
            return True
        if "::" in _without_arguments(name) or not is_own(file):
            return False
        meant = _of_file(self._named.get(_last_part(name), []), file)
        fitting, others = list(filter(self._fits, meant)), list(filterfalse(self._fits, meant))
        if fitting and others:
            raise ToolOutputError(
                f"`within: {self._shown}`: the inlined {tool_files.clean_name(name)} that allocates may be "
                f"{tool_files.clean_name(fitting[0])} or {tool_files.clean_name(others[0])}: write `within: "
                f"{tool_files.clean_name(symbol_names.in_module(name, file))}` to count both"
            )
        return bool(fitting)

    def require(self) -> None:
        """Raise ToolOutputError if no program has a matching function, since a figure of 0 would be meaningless."""
        if any(self._fits(symbol) for symbols in self._named.values() for symbol in symbols):
            return
        if self._unknown:
            raise ToolOutputError(
                f"no function that allocates matches `within: {self._shown}`, and the program has no names of "
                "functions: build it with debug information or without stripping"
            )
        raise ToolOutputError(
            f"no function of the program matches `within: {self._shown}`: write its name, or a glob such as *::name"
        )


def _forms(name: str) -> Iterator[str]:
    """Yield the forms of a function's name: with all or a part of its path, and without types and type arguments."""
    for plain in {name: None, _without_arguments(name): None}:
        parts = plain.split("::")
        modules = [part for part in parts[:-1] if not part[:1].isupper() and part[:1] != "<"] + parts[-1:]
        for words in (parts, modules):
            yield from ("::".join(words[at:]) for at in range(len(words)))


def _of_file(symbols: Sequence[str], file: str) -> Sequence[str]:
    """Select, from symbols with one last name, those that may be in a file, by the module that a Rust file has."""
    own = [symbol for symbol in symbols if not symbol.startswith(_FOREIGN_CRATES)]
    module = symbol_names.in_module("x", file).rpartition("::")[0]
    return [symbol for symbol in own if module and module in re.split(r"\W+", symbol)] or own


@cache
def _last_part(name: str) -> str:
    """Return the last part of a name, ``submit`` for ``demo::Queue<a::B>::submit(int)``; all closures have one name."""
    bare = _without_arguments(_AFTER.sub("", name, count=1))
    depth, start = 0, 0
    for at, letter in enumerate(bare):
        depth += {"<": 1, ">": -1, "(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and bare.startswith("::", at):
            start = at + 2
    return _CLOSURE.sub("{closure}", bare[start:])


def _without_arguments(name: str) -> str:
    """Return ``new`` for ``new<demo::Task>``. Other names, and those entirely in brackets, stay unchanged."""
    if not name.endswith(">") or name.endswith(("->", "operator>", "operator>>")):
        return name
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += {">": 1, "<": -1}.get(name[at], 0)
        if not depth:
            return name[:at].removesuffix("::") if name[at - 1] != " " else name
    return name


ADAPTER = callgrind.valgrind_tool(
    name=NAME,
    role=Role.MEASURE,
    profiler=Profiler(
        method=ProfilingMethod.COUNTS,
        follows={"alloc": 0, "allocs": 0, "heap_peak": 1, "rss": 1},
        sees="bytes asked for",
    ),
    options=DhatOptions,
    metrics=builtin_metrics(*_HEAP[0], "heap_peak", *_UNITS[0]),
    needs_program=lambda values: not values.get("report"),
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
