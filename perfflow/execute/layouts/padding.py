"""Sections of padding: they let a small program's functions start at every slot of a cache line equally often."""

from __future__ import annotations

_SECTIONS, _STEP, _SIZES = 32, 16, 4


def source() -> str:
    """Return assembly with 32 sections of 16 to 64 bytes of code; the flag "R" keeps them though nobody calls them.

    16 bytes are the alignment that compilers give a function.
    """
    sections = [
        f'.section .text.perfflow_padding_{number},"axR",%progbits\n.p2align 4\n.zero {_STEP * (1 + number % _SIZES)}\n'
        for number in range(_SECTIONS)
    ]
    return "".join(sections) + '.section .note.GNU-stack,"",%progbits\n'
