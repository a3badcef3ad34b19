"""``simd-share``: estimate the share of packed (SIMD) instructions in the arithmetic of a program's hot loops.

perf samples the program, objdump disassembles the hot functions, and the arithmetic instructions of each loop with
samples are classified as packed or scalar. The static instructions of the loop are counted, not their executions: a
rarely taken branch counts in full, and an instruction with sixteen lanes counts as much as one with two.

``read`` parses the output of ``objdump -d --no-show-raw-insn``, GNU's or LLVM's, into instructions. Floating-point
arithmetic is what Intel's counters FP_ARITH_INST_RETIRED count (Intel 64 and IA-32 Architectures Software Developer's
Manual, volume 3, performance monitoring events: ADD, SUB, HADD, HSUB, MUL, DIV, MIN, MAX, SQRT, RCP, RSQRT, DPP,
FM(N)ADD, FM(N)SUB), and the equivalents on AArch64. For packed integers, logic, shifts, comparisons and sums of
products count as well. Not counted: moves, conversions, shuffles, floating-point logic, by which scalar code changes
signs, and instructions that make a zero or all ones. Scalar integer instructions cannot be distinguished from the
arithmetic of addresses and loops, so they are not counted either. A fused multiply-add is one instruction.

Mnemonics of x86 (SSE to AVX-512, and x87) are those of the same manual, volume 2, in AT&T syntax; those of AArch64
(floating point, Advanced SIMD, SVE) are those of Arm's A-profile A64 Instruction Set Architecture.

``code_regions`` finds loops. These are natural loops (Aho, Lam, Sethi, Ullman, Compilers, section 9.6.6): a branch back
to a header, with all blocks that reach it without passing the header. If these would be the whole function, because the
header can be bypassed or a jump table hides edges, the loop is the code between the header and the branch. Instructions
of an inner loop do not belong to the outer one, so that a hot inner loop is separate from the cold code around it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import HOTSPOT, MOST_HOTSPOTS, Hotspot, Parsed, Reading, Usage
from perfflow.model.stacks import Frame, innermost_own, is_own, summed
from perfflow.tools import parsed_output, python_command, symbol_names, tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Program, Role, leaves
from perfflow.tools.linux import perf
from perfflow.tools.parsed_output import Counted, Json, Name, Whole


class InstructionSet(StrEnum):
    """The instruction set of a disassembly."""

    X86 = "x86"
    AARCH64 = "aarch64"


class Flow(StrEnum):
    """Control flow after an instruction: the next one, the next one or the target, the target, or unknown."""

    NEXT = "next"
    BRANCH = "branch"
    JUMP = "jump"
    LEAVES = "leaves"


class Arithmetic(NamedTuple):
    """The operands of one arithmetic instruction: one number or a vector.

    ``element`` is ``f32``, ``i8`` and so on, '' for bitwise logic. ``lanes`` is the number of results (the maximum if
    masked), 0 if unknown: without an element, and for SVE, whose register length depends on the processor.
    ``register`` is the kind of register: ``xmm``, ``ymm``, ``q``, ``z``.
    """

    packed: bool
    element: str
    lanes: int
    register: str


class Instruction(NamedTuple):
    """One instruction; ``target`` is the address of a branch or jump, if its text has one."""

    address: int
    flow: Flow
    target: int | None
    arithmetic: Arithmetic | None


class Region(NamedTuple):
    """Instructions that run about equally often: a loop without its inner loops, or a block outside of loops."""

    is_loop: bool
    start: int
    instructions: tuple[Instruction, ...]


_LINE = re.compile(r"\s*(?P<address>[0-9a-f]{1,16}):\s*(?P<text>.*)\Z")
_PREFIX = re.compile(r"(?:lock|rep(?:n?[ez])?|data16|addr32|notrack|bnd|[cdefgs]s|xacquire|xrelease|rex\S*|\{\w+\})\Z")
_COMMENT: Mapping[InstructionSet, re.Pattern[str]] = {
    InstructionSet.X86: re.compile(r"\s+(?:<|#).*"),
    InstructionSet.AARCH64: re.compile(r"\s+(?:<|//|;).*"),
}
_TARGET = re.compile(r"(?:0x)?(?P<address>[0-9a-f]{1,16})\Z")
# Commas within parentheses and brackets belong to an address.
_COMMA = re.compile(r",\s*(?![^()\[\]]*[)\]])")
# The first match of a mnemonic applies. All other instructions continue with the next one.
_FLOWS: Mapping[InstructionSet, Mapping[Flow, re.Pattern[str]]] = {
    InstructionSet.X86: {
        Flow.JUMP: re.compile(r"jmp[qlw]?|ljmp"),
        Flow.BRANCH: re.compile(r"j\w+|loop\w*"),
        Flow.LEAVES: re.compile(r"ret[ql]?|iretq?|hlt|ud2|sysret|\(bad\)"),
    },
    InstructionSet.AARCH64: {
        Flow.JUMP: re.compile(r"b"),
        Flow.BRANCH: re.compile(r"b\.\w+|bc\.\w+|cbn?z|tbn?z"),
        Flow.LEAVES: re.compile(r"ret(?:a[ab])?|br(?:a[abz]+)?|udf|brk|hlt"),
    },
}
_VISITS = 2_000_000
"""Largest number of blocks visited for all loops of a function; the smallest loops come first."""

_X86_REGISTER = re.compile(r"%([xyz]?mm)\d")
_X86_BITS: Mapping[str, int] = {"mm": 64, "xmm": 128, "ymm": 256, "zmm": 512}
_X86_FLOATS: Mapping[str, str] = {"h": "f16", "s": "f32", "d": "f64"}
_X86_INTEGERS: Mapping[str, str] = {"b": "i8", "w": "i16", "d": "i32", "q": "i64"}
_X86_FLOAT = re.compile(
    r"v?(?:add|sub|mul|div|sqrt|min|max|addsub|hadd|hsub|dp|(?:rcp|rsqrt)(?:14|28)?"
    r"|fn?m(?:add|sub)(?:132|213|231)?|fm(?:addsub|subadd)(?:132|213|231)?|fc?m(?:add|ul)c)"
    r"(?P<packed>[ps])(?P<element>[sdh])\Z"
)
_X86_INTEGER = re.compile(
    r"v?p(?:(?:add|sub)u?s?|mull|mulhu?|mulhrs|min[su]|max[su]|abs|avg|sign|h(?:add|sub)s?|s(?:ll|rl|ra)v?|sh[lr]dv?|ro[lr]v?"
    r"|opcnt|lzcnt|cmp(?:n?eq|gt|n?l[te])?u?|madd52[lh]u)"
    r"(?P<element>[bwdq])\Z"
)
# Sums of products and differences, grouped by the element of their results.
_X86_SUMS = re.compile(
    r"v?(?:(?P<i16>pmaddubsw|(?:m|db)?psadbw)|(?P<i32>pmaddwd|pdp[bw][su]{2}ds?)|(?P<i64>pmulu?dq)|(?P<f32>dpbf16ps))\Z"
)
_X86_LOGIC = re.compile(r"v?p(?:and|andn|or|xor|ternlog)[dq]?\Z")
_X86_MAKES_CONSTANT = re.compile(r"v?p(?:xor|andn|sub|cmpeq|cmpgt)")
_X86_CONSTANT_TABLES = frozenset({"$0xff", "$0x0", "$255", "$0", "$-0x1", "$-1", "$0xffffffffffffffff"})
_X87 = re.compile(
    r"f(?:i?(?:add|subr?|mul|divr?)p?[slt]?|sqrt|sin|cos|sincos|ptan|patan|2xm1|yl2x|yl2xp1|prem1?|scale)\Z"
)

# `v0.1q` is skipped: the elements of the operation are those of the next operand.
_ARM_VECTOR = re.compile(r"\b(?:v\d+\.(?P<count>\d+)(?!q)|z\d+\.)(?P<element>[bhsdq])\b")
_ARM_SCALAR = re.compile(r"(?P<element>[hsd])\d+\Z")
_ARM_BITS: Mapping[str, int] = {"b": 8, "h": 16, "s": 32, "d": 64, "q": 128}
_ARM_FLOATS = """
fadd fsub fsubr fmul fmulx fnmul fdiv fdivr fsqrt fmin fmax fminnm fmaxnm fabd fmadd fmsub fnmadd fnmsub fmla fmls fnmla
fnmls fmad fmsb fnmad fnmsb fcmla fcadd fmlal fmlsl fmmla frecpe frecps frsqrte frsqrts faddp fmaxp fminp fmaxnmp
fminnmp faddv fadda fmaxv fminv fmaxnmv fminnmv bfdot bfmmla bfmlal
"""
_ARM_SIGNED = """
qadd qsub hadd rhadd hsub abd aba abdl abal adalp addl addw subl subw addlp addlv addv max min maxp minp maxv minv mull
mlal mlsl dot shl shr sra rshl rshr rsra qshl qrshl mulh mmla div divr
"""
"""Suffixes after s or u, for signed and unsigned integers."""
_ARM_PLAIN = """
add sub subr mul mla mls mad msb addp addv shl sri sli lsl lsr asr lslr lsrr asrr abs neg clz cls pmul pmull addhn subhn
raddhn rsubhn sqdmulh sqrdmulh sqdmull sqdmlal sqdmlsl sqrdmlah sqrdmlsh sqabs sqneg suqadd usqadd usdot sudot usmmla
cmeq cmge cmgt cmhi cmhs cmle cmlt cmtst cmpeq cmpge cmpgt cmphi cmphs cmplo cmpls cmplt cmple cmpne
"""
_ARM_FLOAT = frozenset(_ARM_FLOATS.split())
_ARM_INTEGER = frozenset([*_ARM_PLAIN.split(), *(f"{sign}{name}" for sign in "su" for name in _ARM_SIGNED.split())])
_ARM_LOGIC = frozenset({"and", "bic", "eor", "eor3", "bcax", "orr", "orn"})


def read(machine: InstructionSet, lines: Iterable[str]) -> tuple[Instruction, ...]:
    """Return the instructions. Raises ToolOutputError for an invalid line, and if addresses do not increase."""
    found: list[Instruction] = []
    for line in lines:
        match = tool_files.matched(_LINE, line, "objdump printed a line that is not an instruction")
        address = int(match["address"], 16)
        if found and address <= found[-1].address:
            raise ToolOutputError(f"objdump's addresses do not increase at {address:x}")
        found.append(_instruction(machine, address, match["text"]))
    return tuple(found)


def _instruction(machine: InstructionSet, address: int, text: str) -> Instruction:
    words = _COMMENT[machine].sub("", text).split(maxsplit=1)
    while len(words) > 1 and _PREFIX.match(words[0]):
        words = words[1].split(maxsplit=1)
    mnemonic = words[0] if words else ""
    operands = _COMMA.split(words[1].strip()) if len(words) > 1 else []
    flow = next((flow for flow, pattern in _FLOWS[machine].items() if pattern.fullmatch(mnemonic)), Flow.NEXT)
    match = _TARGET.match(operands[-1]) if operands and flow in (Flow.BRANCH, Flow.JUMP) else None
    target = int(match["address"], 16) if match else None
    if flow is Flow.JUMP and target is None:
        flow = Flow.LEAVES
    return Instruction(address, flow, target, _ARITHMETIC[machine](mnemonic, operands))


def _x86_arithmetic(mnemonic: str, operands: Sequence[str]) -> Arithmetic | None:
    """Return the arithmetic of an instruction, None for others. ``operands`` are in the order of the text."""
    if _X87.match(mnemonic):
        return Arithmetic(packed=False, element="f80", lanes=1, register="st")
    registers = (found for text in operands for found in _X86_REGISTER.findall(text))
    register = max(registers, key=_X86_BITS.__getitem__, default="")
    if not register:
        return None
    if match := _X86_FLOAT.match(mnemonic):
        element = _X86_FLOATS[match["element"]]
        if match["packed"] == "s":
            return Arithmetic(packed=False, element=element, lanes=1, register=register)
    elif _makes_constant(mnemonic, operands):
        return None
    elif _X86_LOGIC.match(mnemonic):
        # Before the others, of which `pand` and `por` look like one with the element d or r.
        element = ""
    elif match := _X86_INTEGER.match(mnemonic):
        element = _X86_INTEGERS[match["element"]]
    elif match := _X86_SUMS.match(mnemonic):
        element = str(match.lastgroup)
    else:
        return None
    lanes = _X86_BITS[register] // int(element[1:]) if element else 0
    return Arithmetic(packed=True, element=element, lanes=lanes, register=register)


def _makes_constant(mnemonic: str, operands: Sequence[str]) -> bool:
    """Whether the result is all zeros or ones: both operands are one register, or the truth table is constant."""
    if "ternlog" in mnemonic:
        return operands[0] in _X86_CONSTANT_TABLES
    return bool(_X86_MAKES_CONSTANT.match(mnemonic)) and len(operands) > 1 and operands[0] == operands[1]


def _aarch64_arithmetic(mnemonic: str, operands: Sequence[str]) -> Arithmetic | None:
    """Return the arithmetic of an instruction, None for others. ``operands`` are in the order of the text."""
    vector = _ARM_VECTOR.search(" ".join(operands))
    if not vector:
        scalar = _ARM_SCALAR.match(operands[0]) if operands else None
        if not scalar or mnemonic not in _ARM_FLOAT:
            return None
        bits, register = _ARM_BITS[scalar["element"]], scalar["element"]
        return Arithmetic(packed=False, element=f"f{bits}", lanes=1, register=register)
    lanes, bits = int(vector["count"] or 0), _ARM_BITS[vector["element"]]
    register = "z" if vector["count"] is None else "q" if lanes * bits > _ARM_BITS["d"] else "d"
    if _is(mnemonic, _ARM_FLOAT):
        return Arithmetic(packed=True, element=f"f{bits}", lanes=lanes, register=register)
    if mnemonic in _ARM_LOGIC:
        makes_zero = mnemonic == "eor" and len(operands) > 1 and operands[-1] == operands[-2]
        return None if makes_zero else Arithmetic(packed=True, element="", lanes=0, register=register)
    # `cnt` with the sum of its eight bytes counts the bits of one number, which has no scalar instruction.
    if _is(mnemonic, _ARM_INTEGER) and not (mnemonic in {"addv", "uaddlv"} and vector[0].endswith(".8b")):
        return Arithmetic(packed=True, element=f"i{bits}", lanes=lanes, register=register)
    return None


def _is(mnemonic: str, names: frozenset[str]) -> bool:
    """Whether a mnemonic is one of the names, or their form for the upper half (2) or every second element (b, t)."""
    return mnemonic in names or (mnemonic[-1:] in {"2", "b", "t"} and mnemonic[:-1] in names)


_ARITHMETIC: Mapping[InstructionSet, Callable[[str, Sequence[str]], Arithmetic | None]] = {
    InstructionSet.X86: _x86_arithmetic,
    InstructionSet.AARCH64: _aarch64_arithmetic,
}


def code_regions(code: Sequence[Instruction]) -> Mapping[int, Region]:
    """Return the regions by the address of each instruction."""
    blocks = _blocks(code)
    loops = sorted(_loops(blocks), key=lambda loop: (sum(len(blocks[number]) for number in loop[1]), loop[0]))
    taken: set[int] = set()
    groups: list[tuple[bool, int, list[int]]] = []
    for header, body in loops:
        groups.append((True, header, sorted(body - taken)))
        taken |= body
    groups += ((False, number, [number]) for number in range(len(blocks)) if number not in taken)
    regions: dict[int, Region] = {}
    for is_loop, first, numbers in groups:
        inside = tuple(item for number in numbers for item in blocks[number])
        region = Region(is_loop, blocks[first][0].address, inside)
        regions |= dict.fromkeys((item.address for item in inside), region)
    return regions


def _blocks(code: Sequence[Instruction]) -> list[list[Instruction]]:
    """Return basic blocks, in the order of addresses."""
    starts = {item.target for item in code}
    blocks: list[list[Instruction]] = []
    is_over = True
    for item in code:
        if is_over or item.address in starts:
            blocks.append([])
        blocks[-1].append(item)
        is_over = item.flow is not Flow.NEXT
    return blocks


def _loops(blocks: Sequence[Sequence[Instruction]]) -> Iterator[tuple[int, set[int]]]:
    """Yield the header and the blocks of each loop as numbers. Loops with the same header are merged."""
    number_of = {block[0].address: number for number, block in enumerate(blocks)}
    before: list[list[int]] = [[] for _ in blocks]
    latches: dict[int, list[int]] = {}
    for number, block in enumerate(blocks):
        flow, target = block[-1].flow, block[-1].target
        falls_through = flow in (Flow.NEXT, Flow.BRANCH) and number + 1 < len(blocks)
        after = {number + 1} if falls_through else set()
        if target in number_of:
            after.add(number_of[target])
        for successor in after:
            before[successor].append(number)
            if successor <= number:
                latches.setdefault(successor, []).append(number)
    visits = 0
    for header, ends in sorted(latches.items(), key=lambda item: (max(item[1]) - item[0], item[0])):
        body = {header}
        waiting = list(ends)
        while waiting and visits < _VISITS:
            number = waiting.pop()
            if number not in body:
                visits += 1
                body.add(number)
                waiting += before[number]
        # If the first block is in the body but is not the header, the loop can be entered without the header.
        yield header, set(range(header, max(ends) + 1)) if waiting or (header and 0 in body) else body


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


class SimdShareOptions(perf.RecordOptions):
    """``with`` keys of ``uses: simd-share``."""

    event: perf.Event = ""


# The keys are addresses in hexadecimal.
_BY_ADDRESS = BeforeValidator(lambda of: {int(at, 16): what for at, what in of.items()} if isinstance(of, dict) else of)
_Symbol = Annotated[str, AfterValidator(lambda text: tool_files.clean_name(symbol_names.plain(text)) if text else "")]
_Machine = Annotated[InstructionSet, parsed_output.one_of_keys({machine.value: machine for machine in InstructionSet})]
# JSON has no tuples, so a list is one.
_Source = Annotated[tuple[str, str], Strict(strict=False)]
_Elsewhere = Annotated[tuple[Name, Name, Whole], Strict(strict=False)]


class _SimdShareFunction(Json):
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
    functions: list[_SimdShareFunction] = Field(default=[])
    elsewhere: list[_Elsewhere] = Field(default=[])


class _Loop(NamedTuple):
    """A region and its samples by source frame."""

    function: _SimdShareFunction
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


def invocations(call: Call[SimdShareOptions]) -> tuple[Invocation, ...]:
    """Record the command without call stacks, then disassemble the hot functions."""
    argv = (*_DRIVER, call.program or "perf", str(call.folder / perf.DATA))
    return (
        perf.recording(call, call.options.frequency, call.options.event),
        Invocation(argv, env={"DEBUGINFOD_URLS": "", "LC_ALL": "C"}, stdout=_CODE),
    )


def parse(call: Call[SimdShareOptions], usage: Usage) -> Parsed:
    """Classify the arithmetic of each hot loop; the share is the mean over loops, weighted by samples.

    If loops with arithmetic have too few samples, there is a warning and no share. Raises ToolOutputError if there are
    no samples, if no sampled code can be disassembled, or if the file is cut or invalid.
    """
    hot_code = parsed_output.read_json(_HotCode, call.folder / _CODE)
    if hot_code.error:
        raise ToolOutputError(hot_code.error)
    elsewhere = summed((why, count) for _, why, count in hot_code.elsewhere)
    inside = sum(sum(function.samples.values()) for function in hot_code.functions)
    if not inside + elsewhere.total() == hot_code.samples == sum(hot_code.events.values()):
        raise ToolOutputError(f"{_CODE} is damaged: its samples do not add up")
    if not hot_code.samples:
        raise ToolOutputError(perf.NO_SAMPLE)
    loops = [loop for function in hot_code.functions for loop in _hot_loops(function)]
    if not loops:
        reasons = "; ".join(reason for reason, _ in elsewhere.most_common(3)) or "objdump finds no instruction there"
        raise ToolOutputError(f"none of the sampled code can be disassembled: {reasons}")
    loops.sort(key=lambda loop: (-loop.samples, loop.function.file, loop.region.start))
    counted = [loop for loop in loops if loop.arithmetic and not _excluded_reason(loop.function)]
    covered = sum(loop.samples for loop in counted) / hot_code.samples
    used = max(hot_code.events, key=lambda name: (hot_code.events[name], name)).split(":")[0]
    rest = Counter({f"{why}, which is not disassembled": count for why, count in elsewhere.items()})
    rest["addresses where objdump sees no instruction"] += inside - sum(loop.samples for loop in loops)
    warnings = (
        *perf.sampling_warnings(hot_code.samples, used, call.options.event),
        _ESTIMATE.format(covered) if covered >= _LEAST else _UNDEFINED.format(covered, _LEAST),
        *_other_samples(rest, loops, hot_code.samples),
    )
    readings = tuple(_readings(counted)) if covered >= _LEAST else ()
    few_samples = perf.are_few(hot_code.samples)
    return Parsed(readings, _hotspots(loops, hot_code.samples), warnings=warnings, few_samples=few_samples)


def _hot_loops(function: _SimdShareFunction) -> Collection[_Loop]:
    """Return the regions with samples. Samples that are not at an instruction of the function are left out.

    Each sample is attributed to the innermost function of the project at its address, else to the function itself.
    """
    sources = {address: frames for address, loops in function.sources.items() if (frames := [*_frames(loops)])}
    library = Path(function.file).name
    name = f"{function.name} ({library})" if function.name else f"[{library}]"
    # The outermost frame is the function itself. For some addresses the line is unknown.
    around = (frames[-1] for frames in sources.values() if is_own(frames[-1].file))
    whole = next(around, Frame(tool_files.clean_name(name)))
    regions = code_regions(read(function.machine, function.listing))
    loops: dict[int, _Loop] = {}
    for address, samples in function.samples.items():
        if region := regions.get(address):
            frames = sources.get(address, [])
            at = innermost_own(frames)
            loop = loops.setdefault(id(region), _Loop(function, region, Counter()))
            loop.frames[whole if at is None else frames[at]] += samples
    return loops.values()


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
    spots = []
    for (name, file), loops_here in places.items():
        samples = sum(loop.samples for loop in loops_here)
        described = [
            loop for loop in loops_here[:_DESCRIBED] if loop is loops_here[0] or loop.samples >= _LEAST * samples
        ]
        cause = f"{'; '.join(_cause(loop, samples) for loop in described)}; estimate"
        line, share = loops_here[0].frame.line, samples / total
        spots.append(Hotspot(name, share, "time", NAME, file, line, cause, self_share=share))
    return tuple(sorted(spots, key=lambda spot: (-spot.share, spot.location, spot.file))[:MOST_HOTSPOTS])


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


def _excluded_reason(function: _SimdShareFunction) -> str:
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
    options=SimdShareOptions,
    program=Program("perf", "apt-get install linux-perf binutils"),
    metrics=builtin_metrics("simd_share", "vector_width"),
    passes_stdout=True,
    invocations=invocations,
    outputs=leaves(perf.DATA, _CODE),
    parse=parse,
)
