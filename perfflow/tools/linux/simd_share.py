"""``simd-share``: how much of the arithmetic in a program's hot loops is packed (SIMD), an estimate from their code.

perf samples where the program is, objdump disassembles the functions there, and of each loop around a sample the
arithmetic instructions are told apart, packed from scalar. Instructions are counted as they stand in the loop, not as
they are run: a branch that is seldom taken counts in full, and an instruction of sixteen lanes as much as one of two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import HOTSPOT, MOST_HOTSPOTS, Hotspot, Parsed, Reading, Usage
from perfflow.model.stacks import Frame, summed
from perfflow.tools import own_code, python_command, symbol_names, tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, Invocation, Program, Role, leaves
from perfflow.tools.linux import disassembly, perf_samples
from perfflow.tools.linux.disassembly import Arithmetic, Machine, Region
from perfflow.tools.tool_json import Counted, Json, Name, Whole

NAME = "simd-share"

_CODE = "hot-code.json"
_DRIVER = python_command.bare("hot_code.py", __file__)
_LEAST = 0.1
"""The share of the samples that loops with arithmetic must have for their mix to say something of the program."""
_TOLD = 2
"""Loops of a hotspot that its cause tells of."""
_C_LIBRARY = re.compile(r"(?:libc|ld|libpthread)(?:-linux[\w-]*|-musl[\w-]*|-\d[\d.]*)?\.so(?:\.\d+)*\Z|libc\.musl-")
# The same routines where they are linked into the program.
_STRINGS = re.compile(
    r"_*(?:w?mem(?:cpy|move|set|cmp|chr|rchr|pcpy|mem)|(?:str|wcs)n?(?:len|cmp|cpy|cat|chr|rchr|str|spn|cspn|casecmp))"
    r"(?:_(?:avx|sse|evex|erms|unaligned|aligned|chk|generic)\w*)?(?:@.*)?\Z"
)
_INTERPRETER = re.compile(r"(?:lib)?(?:python|ruby|perl|php|lua|node|jvm)[\d.]*(?:\.so[\d.]*)?\Z")
_ESTIMATE = (
    "simd_share is an estimate from the instructions of hot loops with arithmetic, which hold {:.0%} of the samples"
)
_UNDEFINED = (
    "simd_share is undefined: loops with floating-point or vector arithmetic hold {:.0%} of the samples, and less than "
    "{:.0%} says nothing (scalar integers are not counted)"
)
_NAMELESS = "code without symbols, where a loop is guessed from the instructions around"


class Options(perf_samples.Sampling):
    """``with`` keys of ``uses: simd-share``."""

    event: perf_samples.Event = ""


# Addresses are written in hexadecimal.
_BY_ADDRESS = BeforeValidator(lambda of: {int(at, 16): what for at, what in of.items()} if isinstance(of, dict) else of)
_Symbol = Annotated[str, AfterValidator(lambda text: tool_files.clean_name(symbol_names.plain(text)) if text else "")]
_Machine = Annotated[Machine, tool_json.one_of({machine.value: machine for machine in Machine})]
# JSON has no tuples, so a list is one.
_Source = Annotated[tuple[str, str], Strict(strict=False)]
_Elsewhere = Annotated[tuple[Name, Name, Whole], Strict(strict=False)]


class _Function(Json):
    """A function that perf has samples in, by its symbol, '' without one, and all that the driver says of it.

    ``sources`` are what is inlined at an address: function and ``FILE:LINE``, innermost first.
    """

    name: _Symbol
    file: Name
    machine: _Machine
    samples: Annotated[dict[int, Counted], _BY_ADDRESS] = Field(alias="addresses", min_length=1)
    sources: Annotated[dict[int, list[_Source]], _BY_ADDRESS]
    listing: list[str]


class _HotCode(Json):
    """What drivers/hot_code.py writes: samples in all and by event, and those that are in no function: where, and why.

    ``error`` says why there is nothing else.
    """

    error: Name = ""
    samples: Whole = 0
    events: dict[Name, Whole] = Field(default={})
    functions: list[_Function] = Field(default=[])
    elsewhere: list[_Elsewhere] = Field(default=[])


class _Loop(NamedTuple):
    """A region with its samples, and those by source frame."""

    function: _Function
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


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Record the command without call stacks, then disassemble what was hot."""
    argv = (*_DRIVER, call.program or "perf", str(call.folder / perf_samples.DATA))
    return (
        perf_samples.recording(call, call.options.frequency, call.options.event),
        Invocation(argv, env={"DEBUGINFOD_URLS": "", "LC_ALL": "C"}, stdout=_CODE),
    )


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Tell packed from scalar arithmetic in each hot loop; the share is their mean, weighted by samples.

    Where loops with arithmetic have too few of the samples there is no share, and a warning says so. Raises
    ToolOutputError if there are no samples, if nothing of them can be disassembled, or if the file is cut or nonsense.
    """
    found = tool_json.read(_HotCode, call.folder / _CODE)
    if found.error:
        raise ToolOutputError(found.error)
    elsewhere = summed((why, count) for _, why, count in found.elsewhere)
    inside = sum(sum(function.samples.values()) for function in found.functions)
    if not inside + elsewhere.total() == found.samples == sum(found.events.values()):
        raise ToolOutputError(f"{_CODE} is damaged: its samples do not add up")
    if not found.samples:
        raise ToolOutputError(perf_samples.NO_SAMPLE)
    loops = [loop for function in found.functions for loop in _loops(function)]
    if not loops:
        reasons = "; ".join(reason for reason, _ in elsewhere.most_common(3)) or "objdump finds no instruction there"
        raise ToolOutputError(f"nothing that was sampled can be disassembled: {reasons}")
    loops.sort(key=lambda loop: (-loop.samples, loop.function.file, loop.region.start))
    counted = [loop for loop in loops if loop.arithmetic and not _aside(loop.function)]
    covered = sum(loop.samples for loop in counted) / found.samples
    used = max(found.events, key=lambda name: (found.events[name], name)).split(":")[0]
    rest = Counter({f"{why}, which is not disassembled": count for why, count in elsewhere.items()})
    rest["addresses where objdump sees no instruction"] += inside - sum(loop.samples for loop in loops)
    warnings = (
        *perf_samples.sampling_warnings(found.samples, used, call.options.event),
        _ESTIMATE.format(covered) if covered >= _LEAST else _UNDEFINED.format(covered, _LEAST),
        *_of_the_rest(rest, loops, found.samples),
    )
    readings = tuple(_readings(counted)) if covered >= _LEAST else ()
    return Parsed(readings, _hotspots(loops, found.samples), warnings=warnings)


def _loops(function: _Function) -> Collection[_Loop]:
    """Return the regions with samples; some of these may be at no instruction of the function.

    Each sample is put to the innermost function of the project's own at its address, else to the function itself.
    """
    sources = {address: frames for address, found in function.sources.items() if (frames := [*_frames(found)])}
    library = Path(function.file).name
    name = f"{function.name} ({library})" if function.name else f"[{library}]"
    # What stands around all that is inlined is the function itself; of some addresses the line is not known.
    around = (frames[-1] for frames in sources.values() if own_code.is_own(frames[-1].file))
    whole = next(around, Frame(tool_files.clean_name(name)))
    regions = disassembly.regions(disassembly.read(function.machine, function.listing))
    found: dict[int, _Loop] = {}
    for address, samples in function.samples.items():
        if region := regions.get(address):
            frames = sources.get(address, [])
            at = own_code.innermost(frames)
            loop = found.setdefault(id(region), _Loop(function, region, Counter()))
            loop.frames[whole if at is None else frames[at]] += samples
    return found.values()


def _frames(sources: Sequence[tuple[str, str]]) -> Iterator[Frame]:
    for function, place in sources:
        file, _, line = place.rpartition(":")
        if line.isascii() and line.isdecimal() and len(line) < 10:
            yield Frame(tool_files.clean_name(symbol_names.plain(function)), tool_files.clean_name(file), int(line))


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
    return tuple(sorted(found, key=lambda spot: (-spot.share, spot.location, spot.file))[:MOST_HOTSPOTS])


def _cause(loop: _Loop, samples: int) -> str:
    """``12 packed (ymm, 8 lanes f32), 2 scalar arithmetic instructions in the loop of 31 (80% of it)``."""
    part = f" ({loop.samples / samples:.0%} of it)" if loop.samples < samples else ""
    where = f"in the {'loop' if loop.region.is_loop else 'block'} of {len(loop.region.instructions)}{part}"
    arithmetic = loop.arithmetic
    if not arithmetic:
        return f"no floating-point or vector arithmetic {where}"
    kinds = Counter(f"{item.register}, {_lanes(item)}" for item in arithmetic if item.packed)
    packed = [f"{count} packed ({kind})" for kind, count in sorted(kinds.items(), key=lambda x: (-x[1], x[0]))]
    scalar = sum(not item.packed for item in arithmetic)
    noun = "instruction" if len(arithmetic) == 1 else "instructions"
    return f"{', '.join([*packed, *([f'{scalar} scalar'] if scalar else [])])} arithmetic {noun} {where}"


def _lanes(item: Arithmetic) -> str:
    return f"{item.lanes} lanes {item.element}" if item.lanes else item.element or "bits"


def _aside(function: _Function) -> str:
    """Whose code it is where its arithmetic is not the program's, '' where it is.

    The C library works on bytes by vectors, whatever the program does, and an interpreter on numbers that it boxes.
    """
    name = Path(function.file).name
    if _C_LIBRARY.match(name) or _STRINGS.match(function.name):
        return "the C library's own routines, which do not count"
    return f"{name}, an interpreter, whose own code does not count" if _INTERPRETER.match(name) else ""


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
    outputs=leaves(perf_samples.DATA, _CODE),
    parse=parse,
)
