"""Frames of heap tools, ``0x4A: grab (hot.c:18)``, and which of them only allocate for others.

Rust's crate dhat has a column behind the line. What an allocator or a container holds is its callers' doing, so a
ranking passes it over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.model.readings import Hotspot
from perfflow.model.stacks import Frame, hotspots_of, summed
from perfflow.tools import own_code, rust_names, symbol_names, tool_files

_PLACE = re.compile(
    r"0x[0-9A-Fa-f]+: (?P<name>.*?)(?: \((?P<file>[^()]*?):(?P<line>\d{1,9})(?::\d{1,9})?\)| \(in (?P<library>.*)\))?\Z"
)
_ALLOCATOR = re.compile(
    r"""(?:
      operator\ new | (?:std::|__gnu_cxx::)\S*alloc | std::_\w+_base<.*_M_(?:allocate|create|get_node)
      | __rust_\w*alloc | __r[dg]l_\w*alloc | alloc::(?:alloc|raw_vec|boxed)::
      | <alloc::(?:alloc|raw_vec)::
      | _?_?(?:m|c|re|x?m|xc|xre)alloc(?:array)?\b | memalign\b | x?(?:mem|str|strn)dup\b
      | g_(?:malloc|realloc|slice_alloc|try_malloc|strdup)\w*
      | _?_?Py(?:Mem|Object)_(?:Raw)?(?:Malloc|Calloc|Realloc)\b | _PyMem_\w*(?:Malloc|Calloc|Realloc)\b
      | _?PyObject_GC_(?:Alloc|New|NewVar|Malloc)\w* | gc_alloc\b
    )""",
    re.VERBOSE,
)
# Containers and strings: templates in the headers of the C++ library, and the instances it brings along itself.
_LIBRARY_HEADER = re.compile(r".*/(?:include/c\+\+|c\+\+/v1)/")
_LIBRARY = re.compile(r".*/libstdc\+\+\.|.*/libc\+\+\.")
# Of `<T as alloc::...>::f` the crate; Rust's crate dhat shortens paths, so that only names tell the standard library's.
_RUST_LIBRARY = re.compile(r"<?(?:[&*\[\w;\] ]+ as )?(?:std|core|alloc|hashbrown|dhat)::")
NO_ALLOCATION = "saw no allocation at all: the program needs no heap, is linked statically, or has its own allocator"
_Held = tuple[Frame, int]
"""Who asked for memory, and a count."""


@dataclass(frozen=True, slots=True)
class HeapFrame:
    """One frame as shown, its function's bare ``name``, and whether it allocates ``for_others`` or is the ``own``."""

    frame: Frame
    name: str
    for_others: bool

    @property
    def own(self) -> bool:
        """Whether it is the project's own code."""
        library = self.for_others or (self.frame.file.endswith(".rs") and _RUST_LIBRARY.match(self.name))
        return not library and own_code.is_own(self.frame.file)


def holder(frames: Sequence[HeapFrame], without: str = "[no frame]") -> Frame:
    """Return who asked for memory, of a stack from the allocator on: the first caller that is the project's own.

    Where none is known to be, it is the first that does not allocate for others, else the last; ``without`` frames it
    is called so.
    """
    for wanted in (lambda each: each.own, lambda each: not each.for_others):
        if found := next(filter(wanted, frames), None):
            return found.frame
    return frames[-1].frame if frames else Frame(without)


def ranked(
    holders: Sequence[_Held], source: str, unit: str, cause: Callable[[int, int], str], beside: Iterable[_Held] = ()
) -> tuple[Hotspot, ...]:
    """Rank who asked for memory; ``cause`` words how much that was, and what is counted ``beside`` of the same one."""
    whole = sum(count for _, count in holders)
    more = summed(((frame.name, frame.file), count) for frame, count in beside)
    return tuple(
        replace(spot, cause=f"measured: {cause(round(spot.share * whole), more[spot.location, spot.file])}")
        for spot in hotspots_of(holders, source=source, unit=unit)
    )


def read(text: str) -> HeapFrame | None:
    """Take one frame apart; None for text that is none."""
    match = _PLACE.match(text)
    if not match:
        return None
    return frame_of(match["name"], match["file"] or "", int(match["line"] or 0), match["library"] or "")


def frame_of(text: str, file: str = "", line: int = 0, library: str = "") -> HeapFrame:
    """Return the frame of a function by its name, and its source file and line, or the library, where they are known.

    It is an allocator or a container by its name and where it is.
    """
    name = tool_files.clean_name(symbol_names.plain(text))
    of_library = name.startswith("std::") and _LIBRARY.match(file or library)
    for_others = _ALLOCATOR.match(name) or _LIBRARY_HEADER.match(file or library) or of_library
    shown = tool_files.clean_name(rust_names.in_module(name, file))
    if library:
        shown = f"{name} ({tool_files.clean_name(Path(library).name)})"
    return HeapFrame(Frame(shown, tool_files.clean_name(file) if file else "", line), name, bool(for_others))
