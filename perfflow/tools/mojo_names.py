"""Names of Mojo functions as a person writes them: without the parameters and arguments that each symbol has in full.

In a program of `mojo build` 1.2.0: ``kernels::add[LITMutOrigin,::Origin[True, $0]](::Pointer[True, $0, ::SIMD[
DType.float32, 1], $1, AddressSpace.GENERIC],::SIMD[DType.int, 1])``; values of parameters follow behind a comma.
"""

from __future__ import annotations

import re

# A type by its whole path, or an origin: no other language has them in brackets.
_MOJO = re.compile(r"[\[(,] ?(?:::[A-Z]|LIT(?:Mut|Imm)Origin)")
_OPENING, _CLOSING = "[(", ")]"


def plain(name: str) -> str:
    """Return a function's name without what is in brackets; a name that is not Mojo's stays what it is."""
    if not _MOJO.search(name):
        return name
    depth = 0
    kept = []
    for letter in name:
        depth += letter in _OPENING
        if not depth:
            kept.append(letter)
        depth -= letter in _CLOSING and depth > 0
    return "".join(kept).partition(",")[0] or name
