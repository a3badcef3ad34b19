"""What ptxas says of the kernels that it assembles (``-Xptxas -v``): registers, spills, stack, shared memory.

    ptxas info    : Compiling entry function 'sum(float*)' for 'sm_80'
    ptxas info    : Function properties for sum(float*)
        112 bytes stack frame, 196 bytes spill stores, 288 bytes spill loads
    ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem, 368 bytes cmem[0]

Seen of CUDA 12.9 and 13.5; earlier ones leave out the barriers and the compile time. Names are as c++filt shows them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files

_ENTRY = re.compile(r"^ptxas info +: Compiling entry function '(?P<name>.+)' for '(?P<arch>sm_\w+)'\s*$")
_PROPERTIES = re.compile(r"^ptxas info +: Function properties for (?P<name>.+?)\s*$")
_FRAME = re.compile(r"^\s+(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads\s*$")
_USED = re.compile(r"^ptxas info +: Used (?P<registers>\d{1,4}) registers(?P<rest>.*)$")
# What follows, by the end of each part. Static shared memory was once told apart as 1024+16.
_AMOUNTS = re.compile(r"(?:used )?(?P<amount>\d{1,9})(?:\+(?P<more>\d{1,9}))? (?P<what>barriers|bytes [sc]mem)\b.*")
_AMOUNT = re.compile(r"barrier|smem|cmem")
# What a thread may have, in any architecture since Kepler.
_MOST_REGISTERS = 255


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one kernel needs on one architecture: registers and bytes a thread, bytes of shared memory a block.

    ``spill_stores`` and ``spill_loads`` are bytes that a thread moves for want of registers, as far as the text of the
    program tells: a spill in a loop moves more.
    """

    name: str
    arch: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int = 0
    constant: int = 0
    barriers: int = 0

    @property
    def spills(self) -> int:
        """Bytes stored and loaded."""
        return self.spill_stores + self.spill_loads


def kernels(text: str) -> tuple[Kernel, ...]:
    """Read every kernel of every architecture. Raises ToolOutputError where one lacks its figures or has them twice."""
    found: dict[tuple[str, str], Kernel] = {}
    for kernel in _entries(text.splitlines()):
        key = kernel.name, kernel.arch
        if key in found:
            raise ToolOutputError(f"ptxas tells twice of {kernel.name[:80]} for {kernel.arch}")
        found[key] = kernel
    return tuple(_with_short_names(list(found.values())))


def _entries(lines: Sequence[str]) -> Iterator[Kernel]:
    """Functions that are called and not inlined have properties of their own, but no registers: they are left aside."""
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
                shown = tool_files.clean_name(line)[:80]
                raise ToolOutputError(f"ptxas does not say of which kernel this is, or what it spills: {shown}")
            yield _kernel(entry, frame, match)
            entry = None
    _require_complete(entry)


def _matched(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    match = pattern.match(line)
    if not match:
        raise ToolOutputError(f"ptxas says what perfflow does not know: {tool_files.clean_name(line)[:80]}")
    return match


def _require_complete(entry: re.Match[str] | None) -> None:
    if entry:
        raise ToolOutputError(f"ptxas does not say how many registers {entry['name'][:80]} uses")


def _kernel(entry: re.Match[str], frame: tuple[int, ...], used: re.Match[str]) -> Kernel:
    registers = int(used["registers"])
    if registers > _MOST_REGISTERS:
        raise ToolOutputError(f"ptxas says {registers} registers, which no thread has")
    amounts: Counter[str] = Counter()
    for part in used["rest"].split(", "):
        if _AMOUNT.search(part):
            match = _matched(_AMOUNTS, part)
            amounts[match["what"]] += int(match["amount"]) + int(match["more"] or 0)
    stack, stores, loads = frame
    return Kernel(
        tool_files.clean_name(entry["name"]),
        entry["arch"],
        registers,
        stack=stack,
        spill_stores=stores,
        spill_loads=loads,
        shared=amounts["bytes smem"],
        constant=amounts["bytes cmem"],
        barriers=amounts["barriers"],
    )


def _with_short_names(found: Sequence[Kernel]) -> Iterator[Kernel]:
    """Leave out the parameters, and ``void`` before a template's name, where the names still differ."""
    times = Counter((_short(kernel.name), kernel.arch) for kernel in found)
    for kernel in found:
        short = _short(kernel.name)
        yield replace(kernel, name=short) if times[short, kernel.arch] == 1 else kernel


def _short(name: str) -> str:
    """Return ``ns::sum<float, 8>`` of ``void ns::sum<float, 8>(float*)``; a name without parameters as it is."""
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return name[:at].removeprefix("void ") if name[at] == "(" and name.endswith(")") else name
    return name
