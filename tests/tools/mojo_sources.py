"""Sources in older dialects of Mojo, in ``old_mojo``, each with a part of the remedy that perfflow reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_REMEDIES = {
    "fn": "write `def`",
    "alias": "`comptime NAME = ...`",
    "let": "write `var` for `let`",
    "inout": "write `mut` for `inout`",
    "inout-self": "`out self`",
    "owned": "write `var` for `owned`",
    "borrowed": "leave out `borrowed`",
    "parameter-if": "`comptime if`",
    "parameter-for": "`comptime for`",
    "module": "imported from std",
    "run": "`run(f)`",
    "import-and-run": "imported from std",
    "closures": "`b.iter(f)`",
    "capture": "`def f() {mut}:`",
    "unified": "leave out `unified`",
    "vectorize": "`vectorize[WIDTH](n, body)`",
    "raises": "add `raises`",
    "value": "`@fieldwise_init`",
    "simdwidthof": "`simd_width_of`",
    "str": "`String(...)`",
    "list": "`[1, 2, 3]`",
    "no-main": "`def main()`",
    "no-module": "`include`",
}
OLD: Mapping[str, tuple[str, str]] = {
    case: ((Path(__file__).parent / "old_mojo" / f"{case}.mojo").read_text(), remedy)
    for case, remedy in _REMEDIES.items()
}
"""The source and the remedy of each case."""
