"""Remove compilers' additions from function names that tools find in a program.

Mojo's names contain all parameters and arguments. In a program of `mojo build` 1.2.0: ``kernels::add[LITMutOrigin,
::Origin[True, $0]](::Pointer[True, $0, ::SIMD[DType.float32, 1], $1, AddressSpace.GENERIC],::SIMD[DType.int, 1])``.
The values of parameters follow after a comma.
"""

from __future__ import annotations

import re

from perfflow.tools import rust_names

# A type with its full path, or an origin: no other language has them in brackets.
_MOJO = re.compile(r"[\[(,] ?(?:::[A-Z]|LIT(?:Mut|Imm)Origin)")


def plain(name: str) -> str:
    """Return a function's name as in source code, for any language."""
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
