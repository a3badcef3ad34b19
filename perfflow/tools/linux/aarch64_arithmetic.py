"""Arithmetic among AArch64 instructions as objdump and llvm-objdump write them: floating point, Advanced SIMD, SVE.

Mnemonics are those of Arm's A-profile A64 Instruction Set Architecture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from perfflow.tools.linux.arithmetic import Arithmetic

_VECTOR = re.compile(r"\b(?:v\d+\.(?P<count>\d+)(?P<element>[bhsd])|z\d+\.(?P<long>[bhsdq]))\b")
_SCALAR = re.compile(r"(?P<element>[hsd])\d+\Z")
_BITS: Mapping[str, int] = {"b": 8, "h": 16, "s": 32, "d": 64, "q": 128}
_FLOATS = """
fadd fsub fsubr fmul fmulx fnmul fdiv fdivr fsqrt fmin fmax fminnm fmaxnm fabd fmadd fmsub fnmadd fnmsub fmla fmls fnmla
fnmls fmad fmsb fnmad fnmsb fcmla fcadd fmlal fmlsl fmmla frecpe frecps frsqrte frsqrts faddp fmaxp fminp fmaxnmp
fminnmp faddv fadda fmaxv fminv fmaxnmv fminnmv bfdot bfmmla bfmlal
"""
_SIGNED = """
qadd qsub hadd rhadd hsub abd aba abdl abal adalp addl addw subl subw addlp addlv addv max min maxp minp maxv minv mull
mlal mlsl dot shl shr sra rshl rshr rsra qshl qrshl mulh mmla div divr
"""
"""Behind s or u, for signed and unsigned integers."""
_PLAIN = """
add sub subr mul mla mls mad msb addp addv shl sri sli lsl lsr asr lslr lsrr asrr abs neg clz cls pmul pmull addhn subhn
raddhn rsubhn sqdmulh sqrdmulh sqdmull sqdmlal sqdmlsl sqrdmlah sqrdmlsh sqabs sqneg suqadd usqadd usdot sudot usmmla
cmeq cmge cmgt cmhi cmhs cmle cmlt cmtst cmpeq cmpge cmpgt cmphi cmphs cmplo cmpls cmplt cmple cmpne
"""
_FLOAT = frozenset(_FLOATS.split())
_INTEGER = frozenset([*_PLAIN.split(), *(f"{sign}{name}" for sign in "su" for name in _SIGNED.split())])
_LOGIC = frozenset({"and", "bic", "eor", "eor3", "bcax", "orr", "orn"})


def arithmetic(mnemonic: str, operands: Sequence[str]) -> Arithmetic | None:
    """Return what arithmetic an instruction is; None for all else. ``operands`` are in the order of the text."""
    vector = _VECTOR.search(" ".join(operands))
    if not vector:
        scalar = _SCALAR.match(operands[0]) if operands else None
        if not scalar or mnemonic not in _FLOAT:
            return None
        return Arithmetic(packed=False, element=f"f{_BITS[scalar['element']]}", lanes=1, register=scalar["element"])
    if vector["long"]:
        register, lanes, bits = "z", 0, _BITS[vector["long"]]
    else:
        lanes, bits = int(vector["count"]), _BITS[vector["element"]]
        register = "q" if lanes * bits > _BITS["d"] else "d"
    if _is(mnemonic, _FLOAT):
        return Arithmetic(packed=True, element=f"f{bits}", lanes=lanes, register=register)
    if mnemonic in _LOGIC:
        makes_zero = mnemonic == "eor" and len(operands) > 1 and operands[-1] == operands[-2]
        return None if makes_zero else Arithmetic(packed=True, element="", lanes=0, register=register)
    # `cnt` and the sum of its eight bytes are how a number's bits are counted, which has no instruction of its own.
    if _is(mnemonic, _INTEGER) and not (mnemonic in {"addv", "uaddlv"} and vector[0].endswith(".8b")):
        return Arithmetic(packed=True, element=f"i{bits}", lanes=lanes, register=register)
    return None


def _is(mnemonic: str, names: frozenset[str]) -> bool:
    """Whether it is one of the names, or its form for the upper half, ``2``, or each second element, ``b``, ``t``."""
    return mnemonic in names or (mnemonic[-1:] in {"2", "b", "t"} and mnemonic[:-1] in names)
