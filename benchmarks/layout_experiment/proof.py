"""Whether two executables have the same instructions in a function, wherever it stands, by objdump."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

_NAME = re.compile(r"^[0-9a-f]+ \w (.*)$", re.MULTILINE)
_HASH = re.compile(r"::h[0-9a-f]{16}\b")
_RELATIVE = re.compile(r"-?0x[0-9a-f]+\(%rip\)(?: *#.*)?")
_FILLING = re.compile(r"^(?:(?:data16|cs) )*(?:nop|xchg *%ax,%ax|int3)")


class NoFunctionError(Exception):
    """The executable has no function of that name."""


def same_code(old: Path, new: Path, functions: Sequence[str]) -> bool:
    """Whether all these functions have the same instructions in both; addresses of data aside. Raises NoFunctionError.

    Targets of jumps count as distances from the function's start, targets of calls as names.
    """
    return all(instructions(old, name) == instructions(new, name) for name in functions)


def instructions(program: Path, function: str) -> list[str]:
    """The instructions of one function, filling after its end aside. Raises NoFunctionError."""
    symbol = _symbol(program, function)
    # Cut by hand: objdump's own --demangle leaves the names that it is asked for mangled.
    said = _said("objdump", "-d", "--no-show-raw-insn", "--no-addresses", f"--disassemble={symbol}", str(program))
    text = said.partition(f"<{symbol}>:\n")[2].partition("\n\n")[0]
    lines = [_RELATIVE.sub("(%rip)", line.strip()) for line in text.splitlines()]
    while lines and _FILLING.match(lines[-1]):
        lines.pop()
    if not lines:
        raise NoFunctionError(f"{program}: {function} has no instructions")
    return lines


def _symbol(program: Path, function: str) -> str:
    """The name by which the linker knows it."""
    plain, demangled = (_NAME.findall(_said("nm", *options, str(program))) for options in ([], ["-C"]))
    for symbol, name in zip(plain, demangled, strict=True):
        if _HASH.sub("", name) == function:
            return str(symbol)
    raise NoFunctionError(f"{program} has no function {function}")


def _said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
