"""``heaptrack``: every heap allocation of a program that is loaded with it, several times faster than valgrind.

It sees what dynamically linked programs ask of malloc. Peak, counts and leaks are read from exact figures, not from
the rounded ones that heaptrack prints, which are only held against them. heaptrack brings the C++ library along, whose
72,704 B, set aside at the start, it counts as the program's.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Hotspot, Parsed, Profile, Reading, Usage
from perfflow.samples.stacks import Frame, hotspots_of, read_folded
from perfflow.tools import regular_files, tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Program, Role
from perfflow.tools.valgrind import heap_frames, heaptrack_text
from perfflow.tools.valgrind.heap_frames import HeapFrame
from perfflow.tools.valgrind.heaptrack_text import Text

NAME = "heaptrack"

_PRINTER = "heaptrack_print"
_TEXT = "heaptrack.txt"
_DRIVER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("drivers") / "heaptrack_text.py"))
# Of the header: 32 bytes, the offset of the segments' table, 14 bytes, the size of its entries and their number.
_HEADER = struct.Struct("<32sQ14x2H4x")
_INTERPRETER = (3).to_bytes(4, "little")
_ROUNDING = 0.006
_NO_SOURCES = "no allocation has a source file of the project's own: build with debug information (-g)"


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command with heaptrack loaded, then turn the recording into text.

    Raises ToolOutputError for a program that is linked statically, and for a folder that heaptrack, a shell script,
    would take for several words.
    """
    if any(letter.isspace() or letter in "*?[%" for letter in str(call.folder)):
        raise ToolOutputError(f"heaptrack cannot write to a path with a blank or a wildcard: {call.folder}")
    if call.command and _is_static(Path(call.command[0])):
        # heaptrack would wait for it for ever.
        raise ToolOutputError("heaptrack cannot be loaded into a statically linked program: `uses: massif` can tell")
    program = call.program or "heaptrack"
    beside = Path(program).with_name(_PRINTER)
    printer = str(beside) if beside.is_file() else _PRINTER
    record = (program, "-o", str(call.folder / "heaptrack"), *call.command)
    # It would ask servers on the network for debug information.
    return (
        Invocation(record, env={"DEBUGINFOD_URLS": ""}),
        Invocation((*_DRIVER, str(call.folder), printer), env={"DEBUGINFOD_URLS": ""}),
    )


def outputs(call: Call) -> tuple[Path, ...]:
    """The text and the recording, whose name depends on how heaptrack was built."""
    recordings = (path for path in sorted(call.folder.glob("heaptrack.*")) if path.suffix in {".zst", ".gz"})
    return (call.folder / _TEXT, *recordings)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``heap_peak`` and ``leaked`` (B), ``allocs`` and ``temporary_allocs``, and who allocates how often.

    An allocation is temporary if it is freed before the next one. Raises ToolOutputError if a file is missing, cut or
    nonsense, if its parts do not add up to its totals, or if nothing was allocated.
    """
    text = heaptrack_text.read(call.folder / _TEXT)
    sums = {name: sum(count for _, count in places) for name, places in text.places.items()}
    sums |= {cost: _folded(call.folder / f"{cost}.folded") for cost in ("peak", "leaked")}
    for name, total in text.totals.items():
        exact = name in text.places
        if abs(sums[name] - total) > (0 if exact else _ROUNDING * max(sums[name], total) + 0.5):
            raise ToolOutputError(f"{_TEXT} is damaged: its {name} do not add up to its total")
    if not sums["calls"]:
        raise ToolOutputError(
            "heaptrack saw no allocation: the program needs no heap, is linked statically, or has its own allocator"
        )
    metrics = {"heap_peak": "peak", "allocs": "calls", "temporary_allocs": "temporary", "leaked": "leaked"}
    readings = tuple(Reading(name, tool_files.number(sums[of], name)) for name, of in metrics.items())
    is_known = any(frame.own for stack, _ in text.places["calls"] for frame in stack)
    return Parsed(readings, _hotspots(text), (Profile(_TEXT, NAME),), () if is_known else (_NO_SOURCES,))


def _is_static(program: Path) -> bool:
    """Whether a file is a program that no dynamic linker loads: ELF of 64 bits with no segment that names one."""
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
    """Return the sum of folded stacks. Raises ToolOutputError."""
    try:
        return read_folded("\n".join(tool_files.read_lines(path))).total()
    except ValueError as error:
        raise ToolOutputError(f"{path.name}, {error}") from error


def _hotspots(text: Text) -> tuple[Hotspot, ...]:
    """Rank who asks for memory by the number of times."""
    temporary = Counter[tuple[str, str]]()
    for stack, count in text.places["temporary"]:
        holder = _holder(stack)
        temporary[holder.name, holder.file] += count
    calls = sum(count for _, count in text.places["calls"])
    leaves = ((_holder(stack), count) for stack, count in text.places["calls"])
    ranked = hotspots_of(leaves, source=NAME, unit="allocations")
    return tuple(
        replace(spot, cause=_cause(round(spot.share * calls), temporary[spot.location, spot.file])) for spot in ranked
    )


def _cause(calls: int, temporary: int) -> str:
    return f"measured: {calls:,} allocation{'s' if calls != 1 else ''}, {temporary:,} of them temporary"


def _holder(stack: Sequence[HeapFrame]) -> Frame:
    return heap_frames.holder(stack) or Frame("[no frame]")


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    program=Program("heaptrack", "apt-get install heaptrack"),
    metrics=of_perfflow("heap_peak", "allocs", "temporary_allocs", "leaked"),
    deterministic=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
