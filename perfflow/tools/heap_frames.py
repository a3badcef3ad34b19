"""Frames of valgrind's heap tools, ``0x4A: grab (hot.c:18)``, and which of them only allocate for others.

What an allocator or a container holds is its callers' doing, so a ranking passes it over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perfflow.samples.stacks import Frame
from perfflow.tools import tool_files

_PLACE = re.compile(
    r"0x[0-9A-Fa-f]+: (?P<name>.*?)(?: \((?P<file>[^()]*):(?P<line>\d{1,9})\)| \(in (?P<library>.*)\))?\Z"
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


@dataclass(frozen=True, slots=True)
class HeapFrame:
    """One frame as shown, its function's bare ``name``, and whether it allocates ``for_others``."""

    frame: Frame
    name: str
    for_others: bool


def read(text: str) -> HeapFrame | None:
    """Take one frame apart; None for text that is none."""
    match = _PLACE.match(text)
    if not match:
        return None
    name, file, library = tool_files.clean_name(match["name"]), match["file"], match["library"]
    for_others = _allocates_for_others(name, file or library or "")
    if file is not None:
        return HeapFrame(Frame(name, tool_files.clean_name(file), int(match["line"])), name, for_others)
    shown = f"{name} ({tool_files.clean_name(Path(library).name)})" if library else name
    return HeapFrame(Frame(shown), name, for_others)


def _allocates_for_others(name: str, place: str) -> bool:
    """Tell whether a function is an allocator or a container, by its name and its source file or library."""
    if _ALLOCATOR.match(name) or _LIBRARY_HEADER.match(place):
        return True
    return name.startswith("std::") and bool(_LIBRARY.match(place))
