"""What an arithmetic instruction works on: one number, or a vector of them.

Of floating point, arithmetic is what Intel's counters FP_ARITH_INST_RETIRED count (Intel 64 and IA-32 Architectures
Software Developer's Manual, volume 3, performance monitoring events: ADD, SUB, HADD, HSUB, MUL, DIV, MIN, MAX, SQRT,
RCP, RSQRT, DPP, FM(N)ADD, FM(N)SUB), and their like on AArch64. Packed integers have logic, shifts, comparisons and
sums of products, too. Moves, conversions, shuffles, and the logic of floating point, by which scalar code changes
signs, are no arithmetic, nor is what makes a zero or all ones. Scalar integers are not told from the arithmetic of
addresses and loops, so they are left out. A fused multiply-add is one instruction.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One arithmetic instruction.

    ``element`` is ``f32``, ``i8`` and so on; '' of bitwise logic, which has none. ``lanes`` are the results it makes
    (at most, where it is masked), 0 where that is not known: without an element, and of SVE, whose registers are as
    long as the processor has them. ``register`` is the kind of register: ``xmm``, ``ymm``, ``q``, ``z``.
    """

    packed: bool
    element: str
    lanes: int
    register: str
