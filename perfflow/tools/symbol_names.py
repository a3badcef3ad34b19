"""Names of functions, as tools find them in a program, without what compilers added to them.

Those of Mojo have parameters and arguments in full. In a program of `mojo build` 1.2.0: ``kernels::add[LITMutOrigin,
::Origin[True, $0]](::Pointer[True, $0, ::SIMD[DType.float32, 1], $1, AddressSpace.GENERIC],::SIMD[DType.int, 1])``;
values of parameters follow behind a comma.
"""

from __future__ import annotations

import re

from perfflow.tools import rust_names

# A type by its whole path, or an origin: no other language has them in brackets.
_MOJO = re.compile(r"[\[(,] ?(?:::[A-Z]|LIT(?:Mut|Imm)Origin)")


def plain(name: str) -> str:
    """Return a function's name as a person writes it, whichever language it is of."""
    name = rust_names.plain(name)
    return _without_brackets(name) if _MOJO.search(name) else name


def _without_brackets(name: str) -> str:
    depth = 0
    kept = []
    for letter in name:
        depth += letter in "[("
        if not depth:
            kept.append(letter)
        depth -= letter in "])" and depth > 0
    return "".join(kept).partition(",")[0] or name
