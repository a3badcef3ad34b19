"""``massif``: measure the heap's peak, exact to the byte, and the functions that hold it, with valgrind.

Each process writes one file with its process id in the name. A program that calls ``exec`` keeps its id, so the file is
of the last program only. Python's small-object allocator hides allocations from valgrind; PYTHONMALLOC turns it off,
unless python runs with -E or -I.

``HeapFrame`` and the functions after it are for all heap tools: they parse frames, ``0x4A: grab (hot.c:18)``, and
recognise functions that allocate for others. Rust's crate dhat adds a column after the line. Rankings skip allocators
and containers, since their callers cause the allocations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.memory_curve import MemoryCurve, memory_curve
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Hotspot, Parsed, Profile, Reading, Usage
from perfflow.model.stacks import Frame, costs_of, hotspots_of, is_own, summed
from perfflow.tools import python_command, symbol_names, tool_files
from perfflow.tools.adapter import Call, CommandOptions, Invocation, Profiler, ProfilingMethod, Role
from perfflow.tools.valgrind import callgrind

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
# Containers and strings: templates in the headers of the C++ library, and instances compiled into the library. Inlined
# functions of Rust have bare names, so the file tells that they are the ones above.
_LIBRARY_HEADER = re.compile(r".*/(?:include/c\+\+|c\+\+/v1|library/alloc/src/(?:alloc|raw_vec|boxed)(?=[./]))")
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
        return not library and is_own(self.frame.file)


def holder_of(frames: Sequence[HeapFrame], without: str = "[no frame]") -> Frame:
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


def ranked_frames(
    holders: Sequence[_Held], source: str, unit: str, cause: Callable[[int, int], str], beside: Iterable[_Held] = ()
) -> tuple[Hotspot, ...]:
    """Rank functions by ``holders``; ``cause`` describes a function's count there and in ``beside``."""
    whole = sum(count for _, count in holders)
    more = summed(((frame.name, frame.file), count) for frame, count in beside)
    return tuple(
        replace(spot, cause=f"measured: {cause(round(spot.share * whole), more[spot.location, spot.file])}")
        for spot in hotspots_of(holders, source=source, unit=unit)
    )


def read_frames(text: str) -> HeapFrame | None:
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
    shown = tool_files.clean_name(symbol_names.in_module(name, file))
    if library:
        shown = f"{name} ({tool_files.clean_name(Path(library).name)})"
    return HeapFrame(Frame(shown, tool_files.clean_name(file) if file else "", line), name, bool(for_others))


NAME = "massif"

_RULER = "#-----------\n"
_SNAPSHOT = re.compile(
    rf"^{_RULER}snapshot=\d+\n{_RULER}time=(\d{{1,18}})\nmem_heap_B=(\d{{1,18}})\nmem_heap_extra_B=(\d{{1,18}})\n"
    r"mem_stacks_B=(\d{1,18})\nheap_tree=(\w+)\n",
    re.MULTILINE | re.ASCII,
)
_COMMAND = re.compile(r"^cmd: (.+)$", re.MULTILINE)
_AXIS = re.compile(r"^time_unit: (i|ms|B)$", re.MULTILINE)
_AXES: Mapping[str, tuple[Literal["instructions", "time", "bytes"], float]] = {
    "i": ("instructions", 1.0),
    "ms": ("time", 1e-3),
    "B": ("bytes", 1.0),
}
_DEEPEST = 200
_NODE = re.compile(r"(?P<indent> *)n(?P<children>\d{1,9}): (?P<bytes>\d{1,18}) (?P<text>.*)\Z")
_BELOW = re.compile(r"in \d+ places?, ")


class MassifOptions(CommandOptions):
    """``with`` keys of ``uses: massif``."""

    stacks: bool = Field(default=False, description="Also count stack memory. This is several times slower.")


@dataclass(slots=True)
class _Node:
    """One node of a heap tree: the bytes held by a call path that ends in ``text``; ``known`` by the nodes below it."""

    depth: int
    size: int
    text: str
    missing: int
    known: int = 0


_Tree = Sequence[_Node]
"""Nodes in preorder."""


@dataclass(frozen=True)
class _MassifProcess:
    """One process: all bytes at its peak, its file and command, the heap tree at the peak, and its memory curve."""

    peak: int
    file: str
    command: str
    tree: _Tree
    curve: MemoryCurve | None


def invocations(call: Call[MassifOptions]) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    # massif marks a peak only when memory is freed. With all snapshots detailed, a program that frees nothing has a
    # tree as well.
    flags = ("--peak-inaccuracy=0.0", "--detailed-freq=1", "--fullpath-after=")
    stacks = ("--stacks=yes",) if call.options.stacks else ()
    # Without the threshold, all that the harness holds is known.
    places = ("--threshold=0.0",) if call.harness else ()
    return (callgrind.valgrind_invocation(call, NAME, *flags, *stacks, *places, env=callgrind.MALLOC),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``heap_peak`` (B), its holders and the memory curve from the file of the process with the highest peak.

    Raises ToolOutputError if there is no file, if a file is cut or invalid, or if there was no allocation.
    """
    processes = [_read(path) for path in callgrind.files_of_a_run(call, NAME)]
    highest = max(processes, key=lambda process: (process.peak, process.file))
    if not highest.peak:
        raise ToolOutputError(f"{NAME} {NO_ALLOCATION}")
    warnings = [*python_command.hidden_objects(call.command)]
    if not highest.tree:
        warnings.insert(0, "massif has no detailed snapshot of the peak, so its holders are unknown")
    if len(processes) > 1:
        shown = f"{len(processes)} processes ran; the peak is that of {program_of(highest.command)!r}"
        warnings.insert(0, f"{shown} only")
    held = [*_holders(highest.tree, call.harness)]
    holders = [(frame, size) for frame, size, is_of_harness in held if not is_of_harness]
    if call.harness:
        of_harness = sum(size for _, size, is_of_harness in held if is_of_harness)
        shown = f"{of_harness:,} B of the {highest.peak:,} B at the peak are held by the harness"
        warnings.insert(0, f"{shown}, not by the benchmark")
    readings, profiles = (Reading("heap_peak", float(highest.peak)),), (Profile(highest.file, NAME),)
    spots = ranked_frames(holders, NAME, "bytes", lambda size, _: f"{size:,} B held at the peak")
    costs = costs_of(holders, "heap_peak")
    return Parsed(readings, spots, profiles, tuple(warnings), costs, memory=highest.curve)


def program_of(command: str) -> str:
    """Return a command for a warning: its program without the folder, and the beginning of its arguments."""
    return tool_files.clean_name(re.sub(r"^\S*/", "", command))[:80]


def _read(path: Path) -> _MassifProcess:
    """Read the file of one process.

    Raises ToolOutputError if a snapshot is incomplete.
    """
    header, *blocks = _SNAPSHOT.split(tool_files.read_whole(path))
    command, unit = _COMMAND.search(header), _AXIS.search(header)
    if not command or not unit or not blocks or _RULER in header:
        raise ToolOutputError(f"{path.name} is cut short or not a file of massif")
    peak: tuple[int, _Tree] = (0, ())
    axis, step = _AXES[unit[1]]
    points: list[tuple[float, float]] = []
    for at, heap, *others, kind, text in zip(*(blocks[at::6] for at in range(6)), strict=True):
        tree = _tree(path, text.splitlines()) if text or kind != "empty" else []
        if tree and tree[0].size != int(heap):
            raise ToolOutputError(f"{path.name} is damaged: a heap tree does not add up to the size of its heap")
        held = sum(map(int, [heap, *others]))
        points.append((int(at) * step, float(held)))
        peak = max(peak, (held, tree), key=lambda found: (found[0], bool(found[1])))
    return _MassifProcess(peak[0], path.name, command[1], peak[1], memory_curve(axis, points))


def _tree(path: Path, lines: list[str]) -> _Tree:
    """Read a tree from its indented lines. Raises ToolOutputError if nodes are missing or sizes do not add up."""
    tree: list[_Node] = []
    above: list[_Node] = []
    for line in lines:
        match = _NODE.match(line)
        depth = len(match["indent"]) if match else 0
        if not match or depth > min(len(above), _DEEPEST) or (tree and not depth):
            raise ToolOutputError(f"{path.name} has a line that is not part of a heap tree: {line[:80]!r}")
        node = _Node(depth, int(match["bytes"]), match["text"], int(match["children"]))
        above[depth:] = [node]
        tree.append(node)
        if depth:
            above[depth - 1].missing -= 1
            above[depth - 1].known += node.size
    if not tree or any(node.missing or node.known > node.size for node in tree):
        raise ToolOutputError(f"{path.name} is cut short: a heap tree lacks nodes")
    return tree


def _holders(tree: _Tree, harness: str) -> Iterator[tuple[Frame, int, bool]]:
    """Yield the functions that hold memory, their bytes, and whether the harness allocated them."""
    stack: list[HeapFrame | None] = []
    known_to = _DEEPEST + 1
    for node in tree:
        if node.depth > known_to:
            continue
        # The root and massif's sums of places below its threshold are not frames.
        heap_frame = read_frames(node.text) if node.depth and not _BELOW.match(node.text) else None
        stack[node.depth :] = [heap_frame]
        known_to = node.depth if heap_frame and heap_frame.own else _DEEPEST + 1
        frames = [*filter(None, stack)]
        if heap_frame and heap_frame.own:
            yield heap_frame.frame, node.size, is_of_harness(frames, harness)
        elif node.size > node.known:
            holder = holder_of(frames, "[many small places]")
            yield holder, node.size - node.known, is_of_harness(frames, harness)


ADAPTER = callgrind.valgrind_tool(
    name=NAME,
    role=Role.PROFILE,
    profiler=Profiler(method=ProfilingMethod.HOLDS, follows={"heap_peak": 0, "rss": 0}, sees="bytes held"),
    options=MassifOptions,
    metrics=builtin_metrics("heap_peak"),
    invocations=invocations,
    outputs=partial(callgrind.valgrind_files, tool=NAME),
    parse=parse,
)
