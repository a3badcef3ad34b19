"""``simd-share``: estimate the share of packed (SIMD) instructions in the arithmetic of a program's hot loops.

perf samples the program, objdump disassembles the hot functions, and the arithmetic instructions of each loop with
samples are classified as packed or scalar. The static instructions of the loop are counted, not their executions: a
rarely taken branch counts in full, and an instruction with sixteen lanes counts as much as one with two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import HOTSPOT, MOST_HOTSPOTS, Hotspot, Parsed, Reading, Usage
from perfflow.model.stacks import Frame, summed
from perfflow.tools import own_code, python_command, symbol_names, tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, Invocation, Program, Role, leaves
from perfflow.tools.linux import disassembly, perf_samples
from perfflow.tools.linux.disassembly import Arithmetic, Machine, Region
from perfflow.tools.tool_json import Counted, Json, Name, Whole

NAME = "simd-share"

_CODE = "hot-code.json"
_DRIVER = python_command.driver_command("hot_code.py", __file__)
_LEAST = 0.1
"""The smallest share of samples in loops with arithmetic for which the result represents the program."""
_DESCRIBED = 2
"""Number of loops that the cause of a hotspot describes."""
_C_LIBRARY = re.compile(r"(?:libc|ld|libpthread)(?:-linux[\w-]*|-musl[\w-]*|-\d[\d.]*)?\.so(?:\.\d+)*\Z|libc\.musl-")
# The C library's routines that are linked into the program.
_STRINGS = re.compile(
    r"_*(?:w?mem(?:cpy|move|set|cmp|chr|rchr|pcpy|mem)|(?:str|wcs)n?(?:len|cmp|cpy|cat|chr|rchr|str|spn|cspn|casecmp))"
    r"(?:_(?:avx|sse|evex|erms|unaligned|aligned|chk|generic)\w*)?(?:@.*)?\Z"
)
_INTERPRETER = re.compile(r"(?:lib)?(?:python|ruby|perl|php|lua|node|jvm)[\d.]*(?:\.so[\d.]*)?\Z")
_ESTIMATE = (
    "simd_share is an estimate from the instructions of hot loops with arithmetic, which hold {:.0%} of the samples"
)
_UNDEFINED = (
    "simd_share is undefined: loops with floating-point or vector arithmetic hold {:.0%} of the samples, and at least "
    "{:.0%} are needed (scalar integers are not counted)"
)
_NAMELESS = "code without symbols, where loops are guessed from the surrounding instructions"


class Options(perf_samples.Sampling):
    """``with`` keys of ``uses: simd-share``."""

    event: perf_samples.Event = ""


# The keys are addresses in hexadecimal.
_BY_ADDRESS = BeforeValidator(lambda of: {int(at, 16): what for at, what in of.items()} if isinstance(of, dict) else of)
_Symbol = Annotated[str, AfterValidator(lambda text: tool_files.clean_name(symbol_names.plain(text)) if text else "")]
_Machine = Annotated[Machine, tool_json.one_of({machine.value: machine for machine in Machine})]
# JSON has no tuples, so a list is one.
_Source = Annotated[tuple[str, str], Strict(strict=False)]
_Elsewhere = Annotated[tuple[Name, Name, Whole], Strict(strict=False)]


class _Function(Json):
    """A function with samples, as the driver describes it; ``name`` is its symbol or ''.

    ``sources`` are the inlined frames at an address: function and ``FILE:LINE``, innermost first.
    """

    name: _Symbol
    file: Name
    machine: _Machine
    samples: Annotated[dict[int, Counted], _BY_ADDRESS] = Field(alias="addresses", min_length=1)
    sources: Annotated[dict[int, list[_Source]], _BY_ADDRESS]
    listing: list[str]


class _HotCode(Json):
    """The output of drivers/hot_code.py: samples in total and by event, functions, and samples outside of functions.

    Entries of ``elsewhere`` are (place, reason, samples). With ``error``, all other keys are missing.
    """

    error: Name = ""
    samples: Whole = 0
    events: dict[Name, Whole] = Field(default={})
    functions: list[_Function] = Field(default=[])
    elsewhere: list[_Elsewhere] = Field(default=[])


class _Loop(NamedTuple):
    """A region and its samples by source frame."""

    function: _Function
    region: Region
    frames: Counter[Frame]

    @property
    def samples(self) -> int:
        """The number of samples in the region."""
        return self.frames.total()

    @property
    def frame(self) -> Frame:
        """The source frame with most samples."""
        return min(self.frames, key=lambda frame: (-self.frames[frame], frame.name, frame.file, frame.line))

    @property
    def arithmetic(self) -> list[Arithmetic]:
        """The arithmetic instructions of the region."""
        return [item.arithmetic for item in self.region.instructions if item.arithmetic]


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Record the command without call stacks, then disassemble the hot functions."""
    argv = (*_DRIVER, call.program or "perf", str(call.folder / perf_samples.DATA))
    return (
        perf_samples.recording(call, call.options.frequency, call.options.event),
        Invocation(argv, env={"DEBUGINFOD_URLS": "", "LC_ALL": "C"}, stdout=_CODE),
    )


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Classify the arithmetic of each hot loop; the share is the mean over loops, weighted by samples.

    If loops with arithmetic have too few samples, there is a warning and no share. Raises ToolOutputError if there are
    no samples, if no sampled code can be disassembled, or if the file is cut or invalid.
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
        raise ToolOutputError(f"none of the sampled code can be disassembled: {reasons}")
    loops.sort(key=lambda loop: (-loop.samples, loop.function.file, loop.region.start))
    counted = [loop for loop in loops if loop.arithmetic and not _excluded_reason(loop.function)]
    covered = sum(loop.samples for loop in counted) / found.samples
    used = max(found.events, key=lambda name: (found.events[name], name)).split(":")[0]
    rest = Counter({f"{why}, which is not disassembled": count for why, count in elsewhere.items()})
    rest["addresses where objdump sees no instruction"] += inside - sum(loop.samples for loop in loops)
    warnings = (
        *perf_samples.sampling_warnings(found.samples, used, call.options.event),
        _ESTIMATE.format(covered) if covered >= _LEAST else _UNDEFINED.format(covered, _LEAST),
        *_other_samples(rest, loops, found.samples),
    )
    readings = tuple(_readings(counted)) if covered >= _LEAST else ()
    return Parsed(readings, _hotspots(loops, found.samples), warnings=warnings)


def _loops(function: _Function) -> Collection[_Loop]:
    """Return the regions with samples. Samples that are not at an instruction of the function are left out.

    Each sample is attributed to the innermost function of the project at its address, else to the function itself.
    """
    sources = {address: frames for address, found in function.sources.items() if (frames := [*_frames(found)])}
    library = Path(function.file).name
    name = f"{function.name} ({library})" if function.name else f"[{library}]"
    # The outermost frame is the function itself. For some addresses the line is unknown.
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
    # Bitwise logic has no lanes, and the length of SVE's registers is unknown.
    if sized := [(samples, sum(lanes) / len(lanes)) for samples, lanes in known if lanes]:
        yield Reading("vector_width", sum(count * lanes for count, lanes in sized) / sum(count for count, _ in sized))


def _hotspots(loops: Sequence[_Loop], total: int) -> tuple[Hotspot, ...]:
    """Rank functions by samples. The line is that with most samples, the cause describes the loops with most."""
    places: dict[tuple[str, str], list[_Loop]] = {}
    for loop in loops:
        places.setdefault((loop.frame.name, loop.frame.file), []).append(loop)
    found = []
    for (name, file), own in places.items():
        samples = sum(loop.samples for loop in own)
        told = [loop for loop in own[:_DESCRIBED] if loop is own[0] or loop.samples >= _LEAST * samples]
        cause = f"{'; '.join(_cause(loop, samples) for loop in told)}; estimate"
        line, share = own[0].frame.line, samples / total
        found.append(Hotspot(name, share, "time", NAME, file, line, cause, self_share=share))
    return tuple(sorted(found, key=lambda spot: (-spot.share, spot.location, spot.file))[:MOST_HOTSPOTS])


def _cause(loop: _Loop, samples: int) -> str:
    """Return ``12 packed (ymm, 8 lanes f32), 2 scalar arithmetic instructions in the loop of 31 (80% of it)``."""
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


def _excluded_reason(function: _Function) -> str:
    """Return why a function's arithmetic does not count as the program's, '' if it does.

    The C library processes bytes with vectors whatever the program does, and an interpreter computes on boxed numbers.
    """
    name = Path(function.file).name
    if _C_LIBRARY.match(name) or _STRINGS.match(function.name):
        return "the C library's own routines, which do not count"
    return f"{name}, an interpreter, whose own code does not count" if _INTERPRETER.match(name) else ""


def _other_samples(reasons: Counter[str], loops: Sequence[_Loop], total: int) -> Iterator[str]:
    """Yield warnings about samples that the share does not cover, or for which it is less reliable."""
    for loop in loops:
        if reason := _excluded_reason(loop.function) or ("" if loop.function.name else _NAMELESS):
            reasons[reason] += loop.samples
    for reason, samples in reasons.most_common():
        if samples >= HOTSPOT * total:
            yield f"{samples / total:.0%} of the samples are in {reason}"


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    options=Options,
    program=Program("perf", "apt-get install linux-perf binutils"),
    metrics=builtin_metrics("simd_share", "vector_width"),
    passes_stdout=True,
    invocations=invocations,
    outputs=leaves(perf_samples.DATA, _CODE),
    parse=parse,
)
