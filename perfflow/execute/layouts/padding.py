"""Padding sections, with which a small program's functions start at each slot of a cache line equally often."""

from __future__ import annotations

_SECTIONS, _STEP, _SIZES = 32, 16, 4


def source() -> str:
    """Return assembly with 32 sections of 16 to 64 bytes. The flag "R" keeps them although nothing refers to them.

    16 bytes is the alignment that compilers use for functions.
    """
    sections = [
        f'.section .text.perfflow_padding_{number},"axR",%progbits\n.p2align 4\n.zero {_STEP * (1 + number % _SIZES)}\n'
        for number in range(_SECTIONS)
    ]
    return "".join(sections) + '.section .note.GNU-stack,"",%progbits\n'
