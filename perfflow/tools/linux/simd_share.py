"""``simd-share``: how much of the arithmetic in a program's hot loops is packed (SIMD), an estimate from their code.

perf samples where the program is, objdump disassembles the functions there, and of each loop around a sample the
arithmetic instructions are told apart, packed from scalar. Instructions are counted as they stand in the loop, not as
they are run: a branch that is seldom taken counts in full, and an instruction of sixteen lanes as much as one of two.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import FEW_SAMPLES, HOTSPOT, Hotspot, Parsed, Reading, Usage
from perfflow.samples.stacks import Frame
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, leaves
from perfflow.tools.linux import hot_code, hot_loops
from perfflow.tools.linux.arithmetic import Arithmetic
from perfflow.tools.linux.hot_code import HotCode, HotFunction
from perfflow.tools.linux.hot_loops import Region

NAME = "simd-share"

_DATA, _CODE = "perf.data", "hot-code.json"
_DRIVER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("drivers") / "hot_code.py"))
_FEW = 100
_LEAST = 0.1
"""The share of the samples that loops with arithmetic must have for their mix to say something of the program."""
_KEPT, _TOLD = 20, 2
"""Functions that are hotspots, and loops of each that its cause tells of."""
_TIMERS = frozenset({"cpu-clock", "task-clock"})
_C_LIBRARY = re.compile(r"(?:libc|ld|libpthread)(?:-linux[\w-]*|-musl[\w-]*|-\d[\d.]*)?\.so(?:\.\d+)*\Z|libc\.musl-")
# The same routines where they are linked into the program.
_STRINGS = re.compile(
    r"_*(?:w?mem(?:cpy|move|set|cmp|chr|rchr|pcpy|mem)|(?:str|wcs)n?(?:len|cmp|cpy|cat|chr|rchr|str|spn|cspn|casecmp))"
    r"(?:_(?:avx|sse|evex|erms|unaligned|aligned|chk|generic)\w*)?(?:@.*)?\Z"
)
_INTERPRETER = re.compile(r"(?:lib)?(?:python|ruby|perl|php|lua|node|jvm)[\d.]*(?:\.so[\d.]*)?\Z")
_NAMELESS = "code without symbols, where a loop is guessed from the instructions around"


class Options(CommandOptions):
    """``with`` keys of ``uses: simd-share``."""

    frequency: int = Field(default=999, ge=1, le=100_000, description="Samples per second of CPU time.")
    event: str = Field(
        default="",
        pattern=r"^(?:[A-Za-z0-9_][A-Za-z0-9_:/=.,-]*)?$",
        description="The event to sample, as `perf list` names it; by default perf's choice for this machine.",
    )


@dataclass(slots=True)
class _Loop:
    """A region with its samples, and those by source frame."""

    function: HotFunction
    region: Region
    frames: Counter[Frame]

    @property
    def samples(self) -> int:
        """All of them."""
        return self.frames.total()

    @property
    def frame(self) -> Frame:
        """The source frame with most samples."""
        return min(self.frames, key=lambda frame: (-self.frames[frame], frame.name, frame.file, frame.line))

    @property
    def arithmetic(self) -> list[Arithmetic]:
        """What is counted."""
        return [item.arithmetic for item in self.region.instructions if item.arithmetic]


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Record the command without call stacks, then disassemble what was hot."""
    options, program, data = cast(Options, call.options), call.program or "perf", str(call.folder / _DATA)
    event = ("-e", options.event) if options.event else ()
    # As for `perf`: without --no-bpf-event a record takes a second longer, -N leaves the user's build-id cache alone.
    record = (program, "record", "-q", "--no-bpf-event", "-N", *event, "-F", str(options.frequency), "-o", data)
    return (
        Invocation((*record, "--", *call.command)),
        Invocation((*_DRIVER, program, data), env={"DEBUGINFOD_URLS": "", "LC_ALL": "C"}, stdout=_CODE),
    )


def parse(call: Call, usage: Usage) -> Parsed:
    """Tell packed from scalar arithmetic in each hot loop; the share is their mean, weighted by samples.

    Where loops with arithmetic have too few of the samples there is no share, and a warning says so. Raises
    ToolOutputError if there are no samples, if nothing of them can be disassembled, or if the file is cut or nonsense.
    """
    found = hot_code.read(call.folder / _CODE)
    if not found.samples:
        raise ToolOutputError("perf took no sample: give the program more work or a higher `frequency`")
    loops = [loop for function in found.functions for loop in _loops(function)]
    unread = sum(sum(function.samples.values()) for function in found.functions) - sum(loop.samples for loop in loops)
    elsewhere: Counter[str] = Counter()
    for item in found.elsewhere:
        elsewhere[item.why] += item.samples
    if not loops:
        why = "; ".join(reason for reason, _ in elsewhere.most_common(3)) or "objdump finds no instruction there"
        raise ToolOutputError(f"nothing that was sampled can be disassembled: {why}")
    loops.sort(key=lambda loop: (-loop.samples, loop.function.file, loop.region.start))
    counted = [loop for loop in loops if loop.arithmetic and not _aside(loop.function)]
    covered = sum(loop.samples for loop in counted) / found.samples
    readings = tuple(_readings(counted)) if covered >= _LEAST else ()
    rest = Counter({f"{why}, which is not disassembled": count for why, count in elsewhere.items()})
    rest["addresses where objdump sees no instruction"] += unread
    warnings = (*_of_sampling(found, cast(Options, call.options).event), _of_share(covered))
    warnings += tuple(_of_the_rest(rest, loops, found.samples))
    return Parsed(readings, _hotspots(loops, found.samples), warnings=warnings)


def _loops(function: HotFunction) -> Collection[_Loop]:
    """Return the regions with samples; some of these may be at no instruction of the function."""
    regions = hot_loops.regions(function.code)
    found: dict[int, _Loop] = {}
    for address, samples in function.samples.items():
        if region := regions.get(address):
            loop = found.setdefault(id(region), _Loop(function, region, Counter()))
            loop.frames[function.frame_at(address)] += samples
    return found.values()


def _readings(loops: Sequence[_Loop]) -> Iterator[Reading]:
    weight = sum(loop.samples for loop in loops)
    shares = [sum(item.packed for item in loop.arithmetic) / len(loop.arithmetic) for loop in loops]
    yield Reading("simd_share", sum(loop.samples * share for loop, share in zip(loops, shares, strict=True)) / weight)
    known = [(loop.samples, [item.lanes for item in loop.arithmetic if item.lanes]) for loop in loops]
    # Bitwise logic has no lanes, and SVE's registers are of a length that the code does not tell.
    if sized := [(samples, sum(lanes) / len(lanes)) for samples, lanes in known if lanes]:
        yield Reading("vector_width", sum(count * lanes for count, lanes in sized) / sum(count for count, _ in sized))


def _hotspots(loops: Sequence[_Loop], total: int) -> tuple[Hotspot, ...]:
    """Rank functions by their samples: the line is the one with most, the cause is told of the loops with most."""
    places: dict[tuple[str, str], list[_Loop]] = {}
    for loop in loops:
        places.setdefault((loop.frame.name, loop.frame.file), []).append(loop)
    found = []
    for (name, file), own in places.items():
        samples = sum(loop.samples for loop in own)
        told = [loop for loop in own[:_TOLD] if loop is own[0] or loop.samples >= _LEAST * samples]
        cause = f"{'; '.join(_cause(loop, samples) for loop in told)}; estimate"
        line, share = own[0].frame.line, samples / total
        found.append(Hotspot(name, share, "time", NAME, file, line, cause, self_share=share))
    return tuple(sorted(found, key=lambda spot: (-spot.share, spot.location, spot.file))[:_KEPT])


def _cause(loop: _Loop, samples: int) -> str:
    """``12 packed (ymm, 8 lanes f32), 2 scalar arithmetic instructions in the loop of 31 (80% of it)``."""
    part = f" ({loop.samples / samples:.0%} of it)" if loop.samples < samples else ""
    where = f"in the {'loop' if loop.region.is_loop else 'block'} of {len(loop.region.instructions)}{part}"
    arithmetic = loop.arithmetic
    if not arithmetic:
        return f"no floating-point or vector arithmetic {where}"
    kinds = Counter(_kind(item) for item in arithmetic if item.packed)
    packed = [f"{count} packed ({kind})" for kind, count in sorted(kinds.items(), key=lambda x: (-x[1], x[0]))]
    scalar = sum(not item.packed for item in arithmetic)
    noun = "instruction" if len(arithmetic) == 1 else "instructions"
    return f"{', '.join([*packed, *([f'{scalar} scalar'] if scalar else [])])} arithmetic {noun} {where}"


def _kind(item: Arithmetic) -> str:
    """``ymm, 8 lanes f32``."""
    lanes = f"{item.lanes} lanes " if item.lanes else ""
    return f"{item.register}, {lanes}{item.element}" if item.element else f"{item.register}, bits"


def _aside(function: HotFunction) -> str:
    """Whose code it is where its arithmetic is not the program's, '' where it is.

    The C library works on bytes by vectors, whatever the program does, and an interpreter on numbers that it boxes.
    """
    name = Path(function.file).name
    if _C_LIBRARY.match(name) or _STRINGS.match(function.name):
        return "the C library's own routines, which do not count"
    return f"{name}, an interpreter, whose own code does not count" if _INTERPRETER.match(name) else ""


def _of_sampling(found: HotCode, event: str) -> Iterator[str]:
    if found.samples < _FEW:
        yield f"{found.samples} {FEW_SAMPLES}: give the program more work, or a higher `frequency`"
    used = max(found.events, key=lambda name: (found.events[name], name), default="").split(":")[0]
    if used in _TIMERS and event.split(":", maxsplit=1)[0] != used:
        yield f"sampled by the timer {used}: this machine offers perf no hardware counter"


def _of_share(covered: float) -> str:
    held = f"{covered:.0%} of the samples"
    if covered < _LEAST:
        return (
            f"simd_share is undefined: loops with floating-point or vector arithmetic hold {held}, and less than "
            f"{_LEAST:.0%} says nothing (scalar integers are not counted)"
        )
    return f"simd_share is an estimate from the instructions of hot loops with arithmetic, which hold {held}"


def _of_the_rest(reasons: Counter[str], loops: Sequence[_Loop], total: int) -> Iterator[str]:
    """Say where samples are that the share says nothing of, or something else than it seems."""
    for loop in loops:
        if reason := _aside(loop.function) or ("" if loop.function.name else _NAMELESS):
            reasons[reason] += loop.samples
    for reason, samples in reasons.most_common():
        if samples >= HOTSPOT * total:
            yield f"{samples / total:.0%} of the samples are in {reason}"


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    options=Options,
    program=Program("perf", "apt-get install linux-perf binutils"),
    metrics=of_perfflow("simd_share", "vector_width"),
    passes_stdout=True,
    invocations=invocations,
    outputs=leaves(_DATA, _CODE),
    parse=parse,
)
