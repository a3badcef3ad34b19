"""Copy third-party crates that cargo built in one slot to the other, which then need not build them again."""

from __future__ import annotations

from contextlib import suppress

from perfflow.tools.rust.drivers import cargo_units
from perfflow.trees.slots import Slot


def share_crates(built: Slot, other: Slot) -> int:
    """Copy missing units of crates without files of the tree to the slot ``other``; return the number of units.

    Raises UserError if git fails. Units that cannot be copied are built again.
    """
    if built.path == other.path:
        return 0
    copied = 0
    for target in built.cargo_folders():
        parent = built.path if target.is_relative_to(built.path) else built.build
        place = (other.path if parent == built.path else other.build) / target.relative_to(parent)
        with suppress(OSError):
            copied += cargo_units.share(target, place, built.path)
    return copied
