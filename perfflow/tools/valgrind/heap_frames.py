"""Parse frames of heap tools, ``0x4A: grab (hot.c:18)``, and recognise functions that allocate for others.

Rust's crate dhat adds a column after the line. Rankings skip allocators and containers, since their callers cause the
allocations.
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
# Containers and strings: templates in the headers of the C++ library, and instances compiled into the library.
_LIBRARY_HEADER = re.compile(r".*/(?:include/c\+\+|c\+\+/v1)/")
_LIBRARY = re.compile(r".*/libstdc\+\+\.|.*/libc\+\+\.")
# The crate of `<T as alloc::...>::f`. Rust's crate dhat shortens paths, so only names identify the standard library.
_RUST_LIBRARY = re.compile(r"<?(?:[&*\[\w;\] ]+ as )?(?:std|core|alloc|hashbrown|dhat)::")
NO_ALLOCATION = "saw no allocation: the program does not use the heap, is linked statically, or has its own allocator"
_Held = tuple[Frame, int]
"""The function that allocated, and a count."""


@dataclass(frozen=True, slots=True)
class HeapFrame:
    """One frame as shown, its function's bare ``name``, and whether it allocates ``for_others``."""

    frame: Frame
    name: str
    for_others: bool

    @property
    def own(self) -> bool:
        """Whether it is the project's own code."""
        library = self.for_others or (self.frame.file.endswith(".rs") and _RUST_LIBRARY.match(self.name))
        return not library and own_code.is_own(self.frame.file)


def holder(frames: Sequence[HeapFrame], without: str = "[no frame]") -> Frame:
    """Return the function that allocated, from a stack with the allocator first: the first caller of the project.

    If no caller is known to be of the project, return the first that does not allocate for others, else the last.
    ``without`` is the name for an empty stack.
    """
    for wanted in (lambda each: each.own, lambda each: not each.for_others):
        if found := next(filter(wanted, frames), None):
            return found.frame
    return frames[-1].frame if frames else Frame(without)


def is_of_harness(frames: Iterable[HeapFrame], harness: str) -> bool:
    """Return whether a harness allocates, by a stack with the allocator first: it is nearer than any own function.

    ``harness``: a regular expression for the beginning of a function's name or file, '' if there is no harness.
    """
    for frame in frames if harness else ():
        if re.match(harness, frame.name) or frame.frame.is_of(harness):
            return True
        if frame.own:
            return False
    return False


def ranked(
    holders: Sequence[_Held], source: str, unit: str, cause: Callable[[int, int], str], beside: Iterable[_Held] = ()
) -> tuple[Hotspot, ...]:
    """Rank functions by ``holders``; ``cause`` describes a function's count there and in ``beside``."""
    whole = sum(count for _, count in holders)
    more = summed(((frame.name, frame.file), count) for frame, count in beside)
    return tuple(
        replace(spot, cause=f"measured: {cause(round(spot.share * whole), more[spot.location, spot.file])}")
        for spot in hotspots_of(holders, source=source, unit=unit)
    )


def read(text: str) -> HeapFrame | None:
    """Parse one frame; None if the text is not a frame."""
    match = _PLACE.match(text)
    if not match:
        return None
    return frame_of(match["name"], match["file"] or "", int(match["line"] or 0), match["library"] or "")


def frame_of(text: str, file: str = "", line: int = 0, library: str = "") -> HeapFrame:
    """Return the frame of a function by name, with its source file and line, or its library, if known.

    The name and the file or library decide whether it allocates for others.
    """
    name = tool_files.clean_name(symbol_names.plain(text))
    of_library = name.startswith("std::") and _LIBRARY.match(file or library)
    for_others = _ALLOCATOR.match(name) or _LIBRARY_HEADER.match(file or library) or of_library
    shown = tool_files.clean_name(rust_names.in_module(name, file))
    if library:
        shown = f"{name} ({tool_files.clean_name(Path(library).name)})"
    return HeapFrame(Frame(shown, tool_files.clean_name(file) if file else "", line), name, bool(for_others))
