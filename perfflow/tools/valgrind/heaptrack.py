"""``heaptrack``: record every heap allocation of a program, several times faster than valgrind.

It is preloaded and records calls of malloc, so the program must be linked dynamically. Peak, counts and leaks are read
from exact figures; the rounded figures that heaptrack prints only serve as a check. heaptrack loads the C++ library,
whose initial allocation of 72,704 B counts as the program's.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from pathlib import Path

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Profile, Reading, StackCounts, Usage
from perfflow.model.stacks import read_folded, summed, write_folded
from perfflow.tools import python_command, regular_files, tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Profiler, ProfilingMethod, Program, Role
from perfflow.tools.valgrind import massif
from perfflow.tools.valgrind.massif import HeapFrame

NAME = "heaptrack"

_PRINTER = "heaptrack_print"
_TEXT, _CALLS = "heaptrack.txt", "allocations.folded"
_DRIVER = python_command.driver_command("heaptrack_text.py", __file__)
# ELF header: 32 bytes, the offset of the program header table, 14 bytes, the size and number of its entries.
_HEADER = struct.Struct("<32sQ14x2H4x")
_INTERPRETER = (3).to_bytes(4, "little")
_ROUNDING = 0.006
# Output of heaptrack_print: stacks with counts, the allocator first, then totals.
_STACK = re.compile(
    r"^(?P<count>[1-9]\d{0,17}) (?:calls to allocation functions with \S+ peak consumption"
    r"|(?P<temporary>temporary allocations of \d+ allocations in total \([\d.]+%\))) from\n(?P<frames>(?:  .*\n)*)",
    re.MULTILINE,
)
# A frame with its source and library; a frame without a name has neither.
_FRAME = re.compile(r"  (?P<name>\S.*)?\n(?:    at (?P<file>.*):(?P<line>\d{1,9})\n)?(?:    in .*\n)?")
_TOTALS = {
    "calls to allocation functions": "calls",
    "temporary memory allocations": "temporary",
    "peak heap memory consumption": "peak",
    "total memory leaked": "leaked",
}
_TOTAL = re.compile(
    rf"^(?P<what>{'|'.join(_TOTALS)}): (?P<value>\d+(?:\.\d+)?)(?P<unit>[BKMGT]?)(?: \(-?\S+/s\))?$", re.MULTILINE
)
_Counted = tuple[list[HeapFrame], int]
_UNITS = {"": 1.0, "B": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_NO_SOURCES = "no allocation has a source file of the project: build with debug information (-g)"


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command with heaptrack preloaded, then convert the recording to text.

    Raises ToolOutputError for a statically linked program, and for a folder whose name heaptrack, a shell script, would
    split into words.
    """
    if any(letter.isspace() or letter in "*?[%" for letter in str(call.folder)):
        raise ToolOutputError(f"heaptrack cannot write to a path with a blank or a wildcard: {call.folder}")
    if call.command and _is_static(Path(call.command[0])):
        # heaptrack would wait for it forever.
        raise ToolOutputError("heaptrack cannot be loaded into a statically linked program: use `uses: massif`")
    program = call.program or "heaptrack"
    beside = Path(program).with_name(_PRINTER)
    printer = str(beside) if beside.is_file() else _PRINTER
    record = (program, "-o", str(call.folder / "heaptrack"), *call.command)
    # Otherwise heaptrack queries servers on the network for debug information.
    return (
        Invocation(record, env={"DEBUGINFOD_URLS": ""}),
        Invocation((*_DRIVER, str(call.folder), printer), env={"DEBUGINFOD_URLS": ""}),
    )


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the text and the recording, whose extension depends on the build of heaptrack."""
    recordings = (path for path in sorted(call.folder.glob("heaptrack.*")) if path.suffix in {".zst", ".gz"})
    return (call.folder / _TEXT, *recordings)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``heap_peak`` and ``leaked`` (B), ``allocs`` and ``temporary_allocs``, and rank functions by allocations.

    An allocation is temporary if it is freed before the next one. Raises ToolOutputError if a file is missing, cut or
    invalid, if its parts do not add up to its totals, or if nothing was allocated.
    """
    places, totals = _read(call.folder / _TEXT)
    sums = {name: sum(count for _, count in stacks) for name, stacks in places.items()}
    sums |= {cost: _folded(call.folder / f"{cost}.folded") for cost in ("peak", "leaked")}
    for name, total in totals.items():
        exact = name in places
        if abs(sums[name] - total) > (0 if exact else _ROUNDING * max(sums[name], total) + 0.5):
            raise ToolOutputError(f"{_TEXT} is damaged: its {name} do not add up to its total")
    if not sums["calls"]:
        raise ToolOutputError(f"{NAME} {massif.NO_ALLOCATION}")
    metrics = {"heap_peak": "peak", "allocs": "calls", "temporary_allocs": "temporary", "leaked": "leaked"}
    readings = tuple(Reading(name, tool_files.number(sums[of], name)) for name, of in metrics.items())
    is_known = any(frame.own for stack, _ in places["calls"] for frame in stack)

    def cause(calls: int, temporary: int) -> str:
        return f"{calls:,} allocation{'s' if calls != 1 else ''}, {temporary:,} of them temporary"

    calls, temporary = (
        [(massif.holder_of(stack), count) for stack, count in places[of]] for of in ("calls", "temporary")
    )
    spots = massif.ranked_frames(calls, NAME, "allocations", cause, temporary)
    _write_calls(call.folder / _CALLS, places["calls"])
    held = [("heap_peak", "peak"), *([("leaked", "leaked")] if sums["leaked"] else [])]
    profiles = [
        Profile(_TEXT, NAME),
        Profile(_CALLS, "folded", StackCounts("allocations", "allocs")),
        *(Profile(f"{cost}.folded", "folded", StackCounts("bytes", metric)) for metric, cost in held),
    ]
    return Parsed(readings, spots, tuple(profiles), () if is_known else (_NO_SOURCES,))


def _write_calls(path: Path, stacks: Iterable[_Counted]) -> None:
    """Write the stacks with their numbers of allocations for a flame graph, the allocator last."""
    found = summed((tuple(each.frame.name for each in reversed(frames)), count) for frames, count in stacks)
    path.write_text(write_folded(found), encoding="utf-8")


def _is_static(program: Path) -> bool:
    """Whether a file is a statically linked program: 64-bit ELF without a segment that names a dynamic linker."""
    try:
        with regular_files.opened(program) as stream:
            head = stream.read(_HEADER.size)
            if len(head) < _HEADER.size or head[:6] != b"\x7fELF\x02\x01":
                return False
            start, size, count = _HEADER.unpack(head)[1:]
            stream.seek(start)
            kinds = [stream.read(size)[:4] for _ in range(count)]
    except (OSError, ValueError):
        return False
    return _INTERPRETER not in kinds


def _folded(path: Path) -> int:
    """Return the sum of folded stacks. Raises ToolOutputError for an invalid file."""
    try:
        return read_folded("\n".join(tool_files.read_lines(path))).total()
    except ValueError as error:
        raise ToolOutputError(f"{path.name}, {error}") from error


def _read(path: Path) -> tuple[dict[str, list[_Counted]], dict[str, float]]:
    """Return stacks with their counts, ``calls`` and ``temporary``, and the totals of ``_TOTALS``.

    Raises ToolOutputError if a total is missing or a stack is invalid.
    """
    text = tool_files.read_whole(path)
    places: dict[str, list[_Counted]] = {"calls": [], "temporary": []}
    for match in _STACK.finditer(text):
        if _FRAME.sub("", match["frames"]):
            raise ToolOutputError(f"{path.name} has a stack with lines that are not frames: {match[0][:80]!r}")
        named_frames = [frame for frame in _FRAME.finditer(match["frames"]) if frame["name"]]
        stack = [massif.frame_of(frame["name"], frame["file"] or "", int(frame["line"] or 0)) for frame in named_frames]
        places["temporary" if match["temporary"] else "calls"].append((stack, int(match["count"])))
    rest = _STACK.sub("", text)
    if stray := re.search(r"^  .*", rest, re.MULTILINE):
        raise ToolOutputError(f"{path.name} has a line that is not part of a stack: {stray[0][:80]!r}")
    totals: dict[str, float] = {}
    for total in _TOTAL.finditer(rest):
        name = _TOTALS[total["what"]]
        if name in totals:
            raise ToolOutputError(f"{path.name} is damaged: it has the total of its {name} twice")
        totals[name] = tool_files.number_in(total["value"], name) * _UNITS[total["unit"]]
    if totals.keys() != set(_TOTALS.values()):
        raise ToolOutputError(f"{path.name} is cut short or not a file of heaptrack")
    return places, totals


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    profiler=Profiler(method=ProfilingMethod.HOLDS, follows={"alloc": 1, "allocs": 1}, sees="allocations"),
    program=Program("heaptrack", "apt-get install heaptrack"),
    metrics=builtin_metrics("heap_peak", "allocs", "temporary_allocs", "leaked"),
    deterministic=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
