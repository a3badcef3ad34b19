"""Arithmetic among x86 instructions as objdump and llvm-objdump write them (AT&T syntax): SSE to AVX-512, and x87.

Mnemonics are those of Intel's Software Developer's Manual, volume 2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from perfflow.tools.linux.arithmetic import Arithmetic

_REGISTER = re.compile(r"%([xyz]?mm)\d")
_BITS: Mapping[str, int] = {"mm": 64, "xmm": 128, "ymm": 256, "zmm": 512}
_FLOAT_BITS: Mapping[str, int] = {"s": 32, "d": 64, "h": 16}
_INTEGER_BITS: Mapping[str, int] = {"b": 8, "w": 16, "d": 32, "q": 64}
_FLOAT = re.compile(
    r"v?(?:add|sub|mul|div|sqrt|min|max|addsub|hadd|hsub|dp|(?:rcp|rsqrt)(?:14|28)?"
    r"|fn?m(?:add|sub)(?:132|213|231)?|fm(?:addsub|subadd)(?:132|213|231)?|fc?m(?:add|ul)c)"
    r"(?P<packed>[ps])(?P<element>[sdh])\Z"
)
_INTEGER = re.compile(
    r"v?p(?:(?:add|sub)u?s?|mull|mulhu?|mulhrs|min[su]|max[su]|abs|avg|sign|h(?:add|sub)s?|s(?:ll|rl|ra)v?|sh[lr]dv?|ro[lr]v?"
    r"|opcnt|lzcnt|cmp(?:n?eq|gt|n?l[te])?u?|madd52[lh]u)"
    r"(?P<element>[bwdq])\Z"
)
# Sums of products and differences: by the element of their results.
_SUMS = re.compile(
    r"v?(?:pmadd(?P<words>wd)|pmadd(?P<bytes>ubsw)|pmulu?(?P<long>dq)|(?:p|mp|dbp)(?P<sad>sadbw)|pdp[bw][su]{2}(?P<dot>ds?)"
    r"|dp(?P<brain>bf16ps))\Z"
)
_SUM_ELEMENTS: Mapping[str, tuple[str, int]] = {
    "words": ("i32", 32),
    "bytes": ("i16", 16),
    "long": ("i64", 64),
    "sad": ("i16", 16),
    "dot": ("i32", 32),
    "brain": ("f32", 32),
}
_LOGIC = re.compile(r"v?p(?:and|andn|or|xor|ternlog)[dq]?\Z")
_MAKES_CONSTANT = re.compile(r"v?p(?:xor|andn|sub|cmpeq|cmpgt)")
_X87 = re.compile(
    r"f(?:i?(?:add|subr?|mul|divr?)p?[slt]?|sqrt|sin|cos|sincos|ptan|patan|2xm1|yl2x|yl2xp1|prem1?|scale)\Z"
)


def arithmetic(mnemonic: str, operands: Sequence[str]) -> Arithmetic | None:
    """Return what arithmetic an instruction is; None for all else. ``operands`` are in the order of the text."""
    if _X87.match(mnemonic):
        return Arithmetic(packed=False, element="f80", lanes=1, register="st")
    register = max((found for text in operands for found in _REGISTER.findall(text)), key=_BITS.__getitem__, default="")
    if not register:
        return None
    bits = _BITS[register]
    if match := _FLOAT.match(mnemonic):
        width = _FLOAT_BITS[match["element"]]
        packed = match["packed"] == "p"
        return Arithmetic(packed=packed, element=f"f{width}", lanes=bits // width if packed else 1, register=register)
    if _makes_constant(mnemonic, operands):
        return None
    # Before the others, of which `pand` and `por` look like one with the element d or r.
    if _LOGIC.match(mnemonic):
        return Arithmetic(packed=True, element="", lanes=0, register=register)
    if match := _INTEGER.match(mnemonic):
        width = _INTEGER_BITS[match["element"]]
        return Arithmetic(packed=True, element=f"i{width}", lanes=bits // width, register=register)
    if match := _SUMS.match(mnemonic):
        element, width = _SUM_ELEMENTS[str(match.lastgroup)]
        return Arithmetic(packed=True, element=element, lanes=bits // width, register=register)
    return None


def _makes_constant(mnemonic: str, operands: Sequence[str]) -> bool:
    """Whether it only makes zeros or ones: a register with itself, or a truth table that is constant."""
    if "ternlog" in mnemonic:
        return operands[0] in {"$0xff", "$0x0", "$255", "$0", "$-0x1", "$-1", "$0xffffffffffffffff"}
    return bool(_MAKES_CONSTANT.match(mnemonic)) and len(operands) > 1 and operands[0] == operands[1]
