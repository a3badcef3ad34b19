"""The lines of ``objdump -d --no-show-raw-insn``, GNU's or LLVM's, as instructions: what each is, where it goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.linux import aarch64_arithmetic, x86_arithmetic
from perfflow.tools.linux.arithmetic import Arithmetic


class Machine(StrEnum):
    """Whose instructions a text is of."""

    X86 = "x86"
    AARCH64 = "aarch64"


class Flow(StrEnum):
    """Where the processor goes on: behind it, there or at the target, at the target alone, or no one knows where."""

    NEXT = "next"
    BRANCH = "branch"
    JUMP = "jump"
    LEAVES = "leaves"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; ``target`` is the address that it may go on at, where its text tells."""

    address: int
    flow: Flow
    target: int | None
    arithmetic: Arithmetic | None


_LINE = re.compile(r"\s*(?P<address>[0-9a-f]{1,16}):\s*(?P<text>.*)\Z")
_PREFIX = re.compile(r"(?:lock|rep(?:n?[ez])?|data16|addr32|notrack|bnd|[cdefgs]s|xacquire|xrelease|rex\S*|\{\w+\})\Z")
_COMMENT: Mapping[Machine, re.Pattern[str]] = {
    Machine.X86: re.compile(r"\s+(?:<|#).*"),
    Machine.AARCH64: re.compile(r"\s+(?:<|//|;).*"),
}
_TARGET = re.compile(r"(?:0x)?(?P<address>[0-9a-f]{1,16})\Z")
# Commas within parentheses and brackets belong to an address.
_COMMA = re.compile(r",\s*(?![^()\[\]]*[)\]])")
_X86_JUMPS = frozenset({"jmp", "jmpq", "jmpl", "jmpw", "ljmp"})
_X86_BRANCH = re.compile(r"(?:j\w+|loop\w*)\Z")
_X86_LEAVES = frozenset({"ret", "retq", "retl", "iret", "iretq", "hlt", "ud2", "sysret", "(bad)"})
_ARM_BRANCH = re.compile(r"(?:b\.\w+|bc\.\w+|cbn?z|tbn?z)\Z")
_ARM_LEAVES = re.compile(r"(?:ret(?:a[ab])?|br(?:a[abz]+)?|udf|brk|hlt)\Z")
_ARITHMETIC: Mapping[Machine, Callable[[str, Sequence[str]], Arithmetic | None]] = {
    Machine.X86: x86_arithmetic.arithmetic,
    Machine.AARCH64: aarch64_arithmetic.arithmetic,
}


def read(machine: Machine, lines: Iterable[str]) -> tuple[Instruction, ...]:
    """Return the instructions. Raises ToolOutputError for a line that is none, and if addresses do not rise."""
    found: list[Instruction] = []
    for line in lines:
        match = _LINE.match(line)
        if not match:
            raise ToolOutputError(f"objdump prints what is no instruction: {tool_files.clean_name(line)[:80]!r}")
        address = int(match["address"], 16)
        if found and address <= found[-1].address:
            raise ToolOutputError(f"objdump's addresses do not rise at {address:x}")
        found.append(_instruction(machine, address, match["text"]))
    return tuple(found)


def _instruction(machine: Machine, address: int, text: str) -> Instruction:
    words = _COMMENT[machine].sub("", text).split(maxsplit=1)
    while len(words) > 1 and _PREFIX.match(words[0]):
        words = words[1].split(maxsplit=1)
    mnemonic = words[0] if words else ""
    operands = _COMMA.split(words[1].strip()) if len(words) > 1 else []
    flow = _flow(machine, mnemonic)
    match = _TARGET.match(operands[-1]) if operands and flow in (Flow.BRANCH, Flow.JUMP) else None
    target = int(match["address"], 16) if match else None
    if flow is Flow.JUMP and target is None:
        flow = Flow.LEAVES
    return Instruction(address, flow, target, _ARITHMETIC[machine](mnemonic, operands))


def _flow(machine: Machine, mnemonic: str) -> Flow:
    if machine is Machine.X86:
        if mnemonic in _X86_JUMPS:
            return Flow.JUMP
        if _X86_BRANCH.match(mnemonic):
            return Flow.BRANCH
        return Flow.LEAVES if mnemonic in _X86_LEAVES else Flow.NEXT
    if mnemonic == "b":
        return Flow.JUMP
    if _ARM_BRANCH.match(mnemonic):
        return Flow.BRANCH
    return Flow.LEAVES if _ARM_LEAVES.match(mnemonic) else Flow.NEXT
