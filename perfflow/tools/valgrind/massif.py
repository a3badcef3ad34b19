"""``massif``: measure the heap's peak, exact to the byte, and the functions that hold it, with valgrind.

Each process writes one file with its process id in the name. A program that calls ``exec`` keeps its id, so the file is
of the last program only. Python's small-object allocator hides allocations from valgrind; PYTHONMALLOC turns it off,
unless python runs with -E or -I.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.memory_curve import MemoryCurve, memory_curve
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Profile, Reading, Usage
from perfflow.model.stacks import Frame, costs_of
from perfflow.tools import python_command, tool_files
from perfflow.tools.adapter import Call, CommandOptions, Invocation, Profiler, ProfilingMethod, Role
from perfflow.tools.valgrind import heap_frames, valgrind_run
from perfflow.tools.valgrind.heap_frames import HeapFrame

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


class Options(CommandOptions):
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
class _Process:
    """One process: all bytes at its peak, its file and command, the heap tree at the peak, and its memory curve."""

    peak: int
    file: str
    command: str
    tree: _Tree
    curve: MemoryCurve | None


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    # massif marks a peak only when memory is freed. With all snapshots detailed, a program that frees nothing has a
    # tree as well.
    flags = ("--peak-inaccuracy=0.0", "--detailed-freq=1", "--fullpath-after=")
    stacks = ("--stacks=yes",) if call.options.stacks else ()
    # Without the threshold, all that the harness holds is known.
    places = ("--threshold=0.0",) if call.harness else ()
    return (valgrind_run.invocation(call, NAME, *flags, *stacks, *places, env=valgrind_run.MALLOC),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``heap_peak`` (B), its holders and the memory curve from the file of the process with the highest peak.

    Raises ToolOutputError if there is no file, if a file is cut or invalid, or if there was no allocation.
    """
    processes = [_read(path) for path in valgrind_run.files_of_a_run(call, NAME)]
    highest = max(processes, key=lambda process: (process.peak, process.file))
    if not highest.peak:
        raise ToolOutputError(f"{NAME} {heap_frames.NO_ALLOCATION}")
    warnings = [*python_command.hidden_objects(call.command)]
    if not highest.tree:
        warnings.insert(0, "massif has no detailed snapshot of the peak, so its holders are unknown")
    if len(processes) > 1:
        shown = f"{len(processes)} processes ran; the peak is that of {tool_files.clean_name(highest.command)[:80]!r}"
        warnings.insert(0, f"{shown} only")
    held = [*_holders(highest.tree, call.harness)]
    holders = [(frame, size) for frame, size, is_of_harness in held if not is_of_harness]
    if call.harness:
        of_harness = sum(size for _, size, is_of_harness in held if is_of_harness)
        shown = f"{of_harness:,} B of the {highest.peak:,} B at the peak are held by the harness"
        warnings.insert(0, f"{shown}, not by the benchmark")
    readings, profiles = (Reading("heap_peak", float(highest.peak)),), (Profile(highest.file, NAME),)
    spots = heap_frames.ranked(holders, NAME, "bytes", lambda size, _: f"{size:,} B held at the peak")
    costs = costs_of(holders, "heap_peak")
    return Parsed(readings, spots, profiles, tuple(warnings), costs, memory=highest.curve)


def _read(path: Path) -> _Process:
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
    return _Process(peak[0], path.name, command[1], peak[1], memory_curve(axis, points))


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
        found = heap_frames.read(node.text) if node.depth and not _BELOW.match(node.text) else None
        stack[node.depth :] = [found]
        known_to = node.depth if found and found.own else _DEEPEST + 1
        frames = [*filter(None, stack)]
        if found and found.own:
            yield found.frame, node.size, heap_frames.is_of_harness(frames, harness)
        elif node.size > node.known:
            holder = heap_frames.holder(frames, "[many small places]")
            yield holder, node.size - node.known, heap_frames.is_of_harness(frames, harness)


ADAPTER = valgrind_run.valgrind_tool(
    name=NAME,
    role=Role.PROFILE,
    profiler=Profiler(method=ProfilingMethod.HOLDS, follows={"heap_peak": 0, "rss": 0}, sees="bytes held"),
    options=Options,
    metrics=builtin_metrics("heap_peak"),
    invocations=invocations,
    outputs=partial(valgrind_run.files, tool=NAME),
    parse=parse,
)
