"""Names of functions, as tools find them in a program, without what compilers added to them."""

from __future__ import annotations

from perfflow.tools import mojo_names, rust_names


def plain(name: str) -> str:
    """Return a function's name as a person writes it, whichever language it is of."""
    return mojo_names.plain(rust_names.plain(name))
