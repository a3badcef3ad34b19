"""Linkers that can order functions: find those that suit a build, and build their arguments."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from perfflow.execute.layouts.link_command import LinkCommand, LinkFailedError

_MOLD_FOLDERS = ("/usr/libexec/mold", "/usr/lib/mold", "/usr/local/libexec/mold")


class LinkerKind(Enum):
    """A family of linkers. The value matches its ``--version`` output."""

    LLD = re.compile(r"LLD (?P<version>[\d.]+)")
    MOLD = re.compile(r"mold (?P<version>[\d.]+)")
    GOLD = re.compile(r"GNU gold .*?(?P<version>[\d.]+)$", re.MULTILINE)
    BFD = re.compile(r"GNU ld .*?(?P<version>[\d.]+)$", re.MULTILINE)


_NAMES = {LinkerKind.LLD: "lld", LinkerKind.MOLD: "mold", LinkerKind.GOLD: "gold", LinkerKind.BFD: "GNU ld"}
SHUFFLING = (LinkerKind.LLD, LinkerKind.MOLD)
"""Linkers that take a seed. The others need the order itself."""


@dataclass(frozen=True)
class Linker:
    """A linker for one link: its kind, its name and version for messages, and the link command that starts it.

    ``sections`` are the names of the program's code sections, for linkers that need an explicit order.
    """

    kind: LinkerKind
    name: str
    command: LinkCommand
    sections: tuple[str, ...] = ()

    def link(self, seed: int, padding: str, place: Path) -> Path:
        """Link with the order of ``seed`` (1 or more) into the folder ``place``. Raises LinkFailedError."""
        place.mkdir(parents=True, exist_ok=True)
        return self.command.run(place, padding, *self._order(seed, place / "order.txt"))

    def _order(self, seed: int, order: Path) -> list[str]:
        if self.kind is LinkerKind.LLD:
            return [f"-Wl,--shuffle-sections=.text*={seed}"]
        if self.kind is LinkerKind.MOLD:
            return [f"-Wl,--shuffle-sections={seed}"]
        names = list(self.sections)
        random.Random(seed).shuffle(names)  # noqa: S311 (an order, no secret)
        if self.kind is LinkerKind.GOLD:
            order.write_text("".join(f"{name}\n" for name in names))
            return ["-Xlinker", f"--section-ordering-file={order}"]
        placed = " ".join(f"*({name})" for name in names)
        order.write_text(f"SECTIONS {{ .text.shuffled : {{ {placed} }} }} INSERT BEFORE .text;\n")
        return ["-Xlinker", "-T", "-Xlinker", str(order)]

    def with_sections(self, padding: str, work: Path) -> Linker:
        """Return the linker with the code sections of a plain link, if it needs them. Raises LinkFailedError."""
        if self.kind in SHUFFLING:
            return self
        place = work / "map.txt"
        self.command.run(work, padding, "-Xlinker", f"-Map={place}")
        heading = "\nMemory map\n" if self.kind is LinkerKind.GOLD else "\nLinker script and memory map\n"
        _, _, placed = place.read_text(errors="replace").partition(heading)
        names = re.findall(r"^ (\.text\.[\w.$]+)(?=\s)", placed, re.MULTILINE)
        return replace(self, sections=tuple(sorted(set(names))))


def candidates(command: LinkCommand, *, only_own: bool) -> Iterator[Linker]:
    """Yield the linkers that may be able to link this in another order, the best first. Each may still fail.

    Linkers that shuffle by a seed come before those that need an order, and the build's own linker comes before others
    of its kind. ``only_own`` excludes all but the build's own linker.
    """
    own = _linker(command)
    if own and own.kind in SHUFFLING:
        yield own
    if not only_own:
        for selection in (["-fuse-ld=lld"], ["-fuse-ld=mold"], *([f"-B{folder}"] for folder in _MOLD_FOLDERS)):
            other = _linker(command.with_linker(selection))
            if other and other.kind in SHUFFLING and not (own and other.name == own.name):
                yield other
    if own and own.kind not in SHUFFLING:
        yield own


def _linker(command: LinkCommand) -> Linker | None:
    """Return the linker that the driver starts; None if there is none, or its kind is unknown."""
    selection = command.selection()
    try:
        text = command.start([*selection, "-Wl,--version"])
    except LinkFailedError:
        return None
    for kind in LinkerKind:
        if found := kind.value.search(text):
            name = f"{_NAMES[kind]} {found['version']}"
            of_rust = kind is LinkerKind.LLD and any("rustlib" in word for word in selection)
            return Linker(kind, "rust-lld" if of_rust else name, command)
    return None
