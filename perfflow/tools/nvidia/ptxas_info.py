"""What ptxas says of the kernels that it assembles (``-Xptxas -v``): registers, spills, stack, shared memory.

    ptxas info    : Compiling entry function 'sum(float*)' for 'sm_80'
    ptxas info    : Function properties for sum(float*)
        112 bytes stack frame, 196 bytes spill stores, 288 bytes spill loads
    ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem, 368 bytes cmem[0]

Seen of CUDA 12.9 and 13.5; earlier ones leave out the barriers and the compile time. Names are as c++filt shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.nvidia import ncu_names

_ENTRY = re.compile(r"^ptxas info +: Compiling entry function '(?P<name>.+)' for '(?P<arch>sm_\w+)'\s*$")
_PROPERTIES = re.compile(r"^ptxas info +: Function properties for (?P<name>.+?)\s*$")
_FRAME = re.compile(r"^\s+(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads\s*$")
_USED = re.compile(r"^ptxas info +: Used (?P<registers>\d{1,4}) registers(?P<rest>.*)$")
# Static shared memory was once told apart as 1024+16.
_SHARED = re.compile(r"(?:used )?(?P<amount>\d{1,9})(?:\+(?P<more>\d{1,9}))? bytes smem\b.*")
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
    names = ncu_names.short_names(name for name, _ in found)
    return tuple(replace(kernel, name=names[kernel.name]) for kernel in found.values())


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
    parts = [_matched(_SHARED, part) for part in used["rest"].split(", ") if "smem" in part]
    stack, stores, loads = frame
    shared = sum(int(part["amount"]) + int(part["more"] or 0) for part in parts)
    return Kernel(tool_files.clean_name(entry["name"]), entry["arch"], registers, stack, stores, loads, shared)
