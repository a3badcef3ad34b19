"""``nvcc``: builds a CUDA program, and reports its kernels' registers and spills, for one architecture or several.

The path of the program is an output. No GPU is needed: the resources of a kernel are known when it is assembled, and
ptxas prints them (``-Xptxas -v``). The form below is that of CUDA 12.9 and 13.5; earlier versions leave out the
barriers. Names are as c++filt shows them.

    ptxas info    : Compiling entry function 'sum(float*)' for 'sm_80'
    ptxas info    : Function properties for sum(float*)
        112 bytes stack frame, 196 bytes spill stores, 288 bytes spill loads
    ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem, 368 bytes cmem[0]
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Usage
from perfflow.model.stacks import summed
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import Adapter, Builder, Call, CommandText, Invocation, Program, Role, words
from perfflow.tools.nvidia import cuda_bench, ncu
from perfflow.tools.tool_files import clean_name, last_line

_INFO = "ptxas.txt"
_PATH = "path.txt"
_CONVERTED = "converters.stderr"
# ptxas writes mangled names. The size of the input comes last, so a truncated text is recognized.
_DEMANGLE = ("/bin/sh", "-c", 'c++filt <"$1" && wc -c <"$1"', "sh")
# A 64-bit program, library, object or cubin; code for several architectures without a program (`-fatbin`).
_ELF, _FATBIN = b"\x7fELF\x02\x01", b"\x50\xed\x55\xba"
_ARCH = r"sm_\d{2,3}[af]?"
_SINGLE = re.compile(rf"{_ARCH}|native|all|all-major")
_WARNING = re.compile(r"^(?:nvcc|ptxas) warning *: (?P<what>.*\S)|^(?P<where>\S+\(\d+\): warning.*\S)")
_ERROR = re.compile(
    r"^(?:nvcc fatal|(?:ptxas|nvlink) (?:error|fatal)) *: (?P<tool>.*\S)"
    r"|^(?P<code>\S+\(\d+\): (?:catastrophic )?error.*\S)"
    r"|(?P<host>^\S+: No such file or directory$|(?:fatal error|error|undefined reference|cannot find)\b.*\S)"
)
_MOST_WARNINGS = 5
# Messages of nvcc, ptxas or the host compiler, and the remedy for each.
_REMEDIES: Mapping[str, str] = {
    "Unsupported gpu architecture|is not defined for option 'gpu-": "run `nvcc --list-gpu-code` for those that "
    "this nvcc supports",
    "unsupported (?:GNU|clang) version": "add an older compiler to `flags`: `-ccbin g++-12`, or "
    "`-allow-unsupported-compiler`",
    r"(?:gcc|g\+\+|cl\.exe|c\+\+): No such file|preprocess host compiler|Cannot find compiler": "nvcc needs a C++ "
    "compiler: apt-get install g++",
    "too much shared data": "static shared memory is limited to 48 KiB per block",
    "fatal error: (?:cub|thrust|cuda)/": "pip install nvidia-cuda-cccl, or an include folder in `flags`",
    r"cuda_runtime\.h|crt/host_config\.h|libdevice|cicc": f"the toolkit is incomplete: {cuda_bench.COMPILER}",
}
_ENTRY = re.compile(r"^ptxas info +: Compiling entry function '(?P<name>.+)' for '(?P<arch>sm_\w+)'\s*$")
_PROPERTIES = re.compile(r"^ptxas info +: Function properties for (?P<name>.+?)\s*$")
_FRAME = re.compile(r"^\s+(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads\s*$")
_USED = re.compile(r"^ptxas info +: Used (?P<registers>\d{1,4}) registers(?P<rest>.*)$")
# Earlier versions print static shared memory as a sum, 1024+16.
_SHARED = re.compile(r"(?:used )?(?P<amount>\d{1,9})(?:\+(?P<more>\d{1,9}))? bytes smem\b.*")
# The limit per thread of every architecture since Kepler.
_MOST_REGISTERS = 255


class NvccOptions(adapter.Options):
    """``with`` keys of ``uses: nvcc``."""

    file: list[str] | str = Field(min_length=1, description="The source file, or a list of source files.")
    out: str = Field(default="", description="Path of the program. Default: in the step's folder.")
    arch: list[str] | str = Field(
        default="",
        description="Architecture (`sm_90`, `native`), or a list of them for one program. Default: that of nvcc.",
    )
    flags: CommandText = Field(default="", description="Additional arguments for nvcc, after `-O3 -lineinfo`.")


class _Kernel(NamedTuple):
    """Resources of one kernel on one architecture: registers and bytes per thread, bytes of shared memory per block.

    ``stores`` and ``loads`` are bytes that a thread spills. They count each instruction once: a spill in a loop moves
    more.
    """

    name: str
    arch: str
    registers: int
    shared: int
    stack: int
    stores: int
    loads: int


def invocations(call: Call[NvccOptions]) -> tuple[Invocation, ...]:
    """Build, read the names of kernels, and install the program at ``out``. Raises ToolOutputError."""
    options = call.options
    built = str(_built(call))
    argv = (
        *(call.program or "nvcc", "-O3", "-lineinfo", "-Xptxas", "-v"),
        *_architectures(options.arch),
        *(*words(options.flags), "-o", built, *_sources(call)),
    )
    steps = [Invocation(argv), Invocation((*_DEMANGLE, str(call.folder / "stderr")), stdout=_INFO, stderr=_CONVERTED)]
    if options.out:
        steps.append(Invocation(("install", "-D", built, options.out), stderr=_CONVERTED))
        steps.append(Invocation(("realpath", options.out), stdout=_PATH, stderr=_CONVERTED))
    return tuple(steps)


def _sources(call: Call[NvccOptions]) -> Sequence[str]:
    file = call.options.file
    return [file] if isinstance(file, str) else file


def _built(call: Call) -> Path:
    """Return the path of the program, which is named after the first source."""
    return call.folder / Path(_sources(call)[0]).stem


def _architectures(arch: list[str] | str) -> tuple[str, ...]:
    """Return the flags for code of each architecture, with PTX for later GPUs of the last one of several.

    Raises ToolOutputError for an invalid name.
    """
    named = arch.replace(",", " ").split() if isinstance(arch, str) else arch
    form = _SINGLE if len(named) == 1 else re.compile(_ARCH)
    for name in named:
        if not form.fullmatch(name):
            raise ToolOutputError(
                f"`arch` is {name!r}: set sm_90, a list of such names, or one of native, all and all-major"
            )
    if len(named) < 2:
        return tuple(f"-arch={name}" for name in named)
    *others, last = dict.fromkeys(named)
    number = last.removeprefix("sm_")
    codes = [f"arch=compute_{name.removeprefix('sm_')},code={name}" for name in others]
    codes.append(f"arch=compute_{number},code=[{last},compute_{number}]")
    return tuple(word for code in codes for word in ("-gencode", code))


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the program if it exists; ``parse`` reports why it does not."""
    return tool_files.left(_built(call))


def parse(call: Call, usage: Usage) -> Parsed:
    """Check that there is a program, and warn of spills. The figures are outputs. Raises ToolOutputError."""
    found = _kernels(call)
    said = tool_files.last_bytes(call.folder)
    warnings = [match["what"] or match["where"] for match in map(_WARNING.match, said.splitlines()) if match]
    shown = [clean_name(text)[:200] for text in dict.fromkeys(warnings)][:_MOST_WARNINGS]
    return Parsed(warnings=(*_spilled(found), *shown))


def results(call: Call) -> Mapping[str, str]:
    """Return the program's ``path`` and size, and the largest need of a kernel. Raises ToolOutputError."""
    kernels = _kernels(call)
    # Bytes that all kernels of an architecture spill.
    spilled = summed((kernel.arch, kernel.stores + kernel.loads) for kernel in kernels)
    figures = {
        "path": _path(call),
        "binary_size": _built(call).stat().st_size,
        "kernels": len({kernel.name for kernel in kernels}),
        "registers": max((kernel.registers for kernel in kernels), default=0),
        "spills": max(spilled.values(), default=0),
        "stack": max((kernel.stack for kernel in kernels), default=0),
        "shared": max((kernel.shared for kernel in kernels), default=0),
    }
    return {name: str(value) for name, value in figures.items()}


def made(call: Call) -> tuple[Path, ...]:
    """Return the path of the program, where it was installed."""
    return (_path(call),)


def _path(call: Call[NvccOptions]) -> Path:
    if not call.options.out:
        return _built(call)
    path = tool_files.read_whole(call.folder / _PATH)[:-1]
    if not path.startswith("/") or path != clean_name(path):
        raise ToolOutputError(f"{_PATH} contains no path")
    return Path(path)


def _kernels(call: Call) -> list[_Kernel]:
    """Return every kernel of every architecture. Raises ToolOutputError if one has no figures or has them twice."""
    if not outputs(call):
        raise ToolOutputError(_why(tool_files.last_bytes(call.folder)) or "nvcc left no program")
    _require_whole(_built(call))
    printed, _, size = tool_files.read_whole(call.folder / _INFO)[:-1].rpartition("\n")
    if not size.isdecimal():
        raise ToolOutputError(f"{_INFO} is cut short")
    kernels: dict[tuple[str, str], _Kernel] = {}
    for kernel in _entries(printed.splitlines()):
        if kernels.setdefault((kernel.name, kernel.arch), kernel) is not kernel:
            raise ToolOutputError(f"ptxas reports {kernel.name[:80]} twice for {kernel.arch}")
    names = ncu.short_names(name for name, _ in kernels)
    return [kernel._replace(name=names[kernel.name]) for kernel in kernels.values()]


def _entries(lines: Sequence[str]) -> Iterator[_Kernel]:
    """Yield the kernels. Functions that are not inlined have properties of their own but no registers: skip them."""
    entry: re.Match[str] | None = None
    frame: tuple[int, ...] = ()
    subject = ""
    for line in lines:
        if "Compiling entry function" in line:
            _require_complete(entry)
            entry, frame = _matched(_ENTRY, line), ()
        elif match := _PROPERTIES.match(line):
            subject = match["name"]
        elif "stack frame" in line:
            sizes = tuple(int(group) for group in _matched(_FRAME, line).groups())
            if entry and subject == entry["name"]:
                frame = sizes
        elif match := _USED.match(line):
            if not entry or not frame:
                shown = clean_name(line)[:80]
                raise ToolOutputError(f"ptxas does not report the kernel or the spills of this line: {shown}")
            parts = [_matched(_SHARED, part) for part in match["rest"].split(", ") if "smem" in part]
            shared = sum(int(part["amount"]) + int(part["more"] or 0) for part in parts)
            if (registers := int(match["registers"])) > _MOST_REGISTERS:
                raise ToolOutputError(f"ptxas reports {registers} registers; a thread has at most {_MOST_REGISTERS}")
            yield _Kernel(clean_name(entry["name"]), entry["arch"], registers, shared, *frame)
            entry = None
    _require_complete(entry)


def _require_complete(entry: re.Match[str] | None) -> None:
    if entry:
        raise ToolOutputError(f"ptxas does not report how many registers {entry['name'][:80]} uses")


def _matched(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    return tool_files.matched(pattern, line, "ptxas printed a line that perfflow cannot read")


def _require_whole(path: Path) -> None:
    """Compare a file's size with its header. Raises ToolOutputError, also for a file that is not machine code."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(64)
    if head[:6] == _ELF and len(head) == 64:
        (table,) = struct.unpack_from("<Q", head, 40)
        each, count = struct.unpack_from("<HH", head, 58)
        end = table + each * count
    elif head[:4] == _FATBIN and len(head) >= 16:
        end = sum(struct.unpack_from("<HQ", head, 6))
    else:
        raise ToolOutputError(f"{path.name} is not a program: the flags made nvcc write something else")
    if size < end:
        raise ToolOutputError(f"{path.name} is cut short")


def _why(said: str) -> str:
    """Return why there is no program: the first error and its remedy, else the last line; '' without any output."""
    found = [match for match in map(_ERROR.search, said.splitlines()) if match]
    if not found:
        line = last_line(said)
        return clean_name(line)[:200] if line else ""
    reason = clean_name(found[0][found[0].lastgroup or 0])[:200]
    remedy = next((remedy for pattern, remedy in _REMEDIES.items() if re.search(pattern, said)), "")
    return f"{reason}; {remedy}" if remedy else reason


def _spilled(found: Sequence[_Kernel]) -> Iterator[str]:
    """Yield a warning for each kernel that spills registers to memory, the worst first."""
    spilling = [kernel for kernel in found if kernel.stores + kernel.loads]
    for kernel in sorted(spilling, key=lambda kernel: -kernel.stores - kernel.loads)[:_MOST_WARNINGS]:
        yield (
            f"{kernel.name[:80]} ({kernel.arch}) spills: {kernel.stores:,} B stored and {kernel.loads:,} B "
            f"loaded per thread, at {kernel.registers} registers"
        )
    if len(spilling) > _MOST_WARNINGS:
        yield f"{len(spilling) - _MOST_WARNINGS} more kernels spill"


ADAPTER = Adapter(
    name="nvcc",
    role=Role.WORK,
    options=NvccOptions,
    program=Program("nvcc", cuda_bench.COMPILER, places=cuda_bench.TOOLKIT_PLACES),
    invocations=invocations,
    outputs=outputs,
    parse=parse,
    build=Builder(made=made, results=results),
)
