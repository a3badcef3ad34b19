"""``massif``: the heap's peak, exact to the byte, and who holds it, by valgrind.

Each process leaves one file named by its id. A program that calls ``exec`` keeps its id, so only what it became last
is in the file. Python's own small-object allocator hides allocations from valgrind; PYTHONMALLOC turns it off, unless
the program is run with -E or -I.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Hotspot, Parsed, Profile, Reading, Usage
from perfflow.samples.stacks import Frame, costs_of, hotspots_of
from perfflow.tools import python_command, tool_files
from perfflow.tools.adapter import Call, CommandOptions, Invocation, Role
from perfflow.tools.valgrind import heap_frames, valgrind_run
from perfflow.tools.valgrind.heap_frames import HeapFrame

NAME = "massif"

_RULER = re.compile(r"^#-----------\n", re.MULTILINE)
_COMMAND = re.compile(r"^cmd: (.+)$", re.MULTILINE)
_KEYS = ("time", "mem_heap_B", "mem_heap_extra_B", "mem_stacks_B", "heap_tree")
_DEEPEST = 200
_NODE = re.compile(r"(?P<indent> *)n(?P<children>\d{1,9}): (?P<bytes>\d{1,18}) (?P<text>.*)\Z")
_BELOW = re.compile(r"in \d+ places?, ")


class Options(CommandOptions):
    """``with`` keys of ``uses: massif``."""

    stacks: bool = Field(default=False, description="Count the stacks, too; several times slower.")


@dataclass(slots=True)
class _Node:
    """One node of a heap tree: bytes held by a call path that ends in ``text``, and of them by the nodes below it."""

    depth: int
    size: int
    text: str
    missing: int
    known: int = 0


_Tree = Sequence[_Node]
"""Nodes, each before those below it."""


@dataclass(slots=True)
class _Process:
    """What one process left: its command, its file, and the bytes at its peak with who holds them, if that is known."""

    path: Path
    command: str
    total: int
    tree: _Tree


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    # Only freeing makes massif mark a peak, so every snapshot is detailed, else a program that frees nothing has none.
    flags = ("--peak-inaccuracy=0.0", "--detailed-freq=1", "--fullpath-after=")
    stacks = ("--stacks=yes",) if cast(Options, call.options).stacks else ()
    return (valgrind_run.invocation(call, NAME, *flags, *stacks, env=valgrind_run.MALLOC),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``heap_peak`` (B) and its holders from the file of the process with the highest peak.

    Raises ToolOutputError if there is no file, if one is cut or nonsense, or if no allocation was seen.
    """
    processes = [_read(path) for path in valgrind_run.files_of_a_run(call, NAME)]
    largest = max(processes, key=lambda process: (process.total, process.path.name))
    if not largest.total:
        raise ToolOutputError("massif saw no allocation: the program needs no heap, or has its own allocator")
    return Parsed(
        (Reading("heap_peak", float(largest.total)),),
        _hotspots(largest.tree),
        (Profile(largest.path.name, "massif"),),
        (*_warnings(processes, largest), *python_command.hidden_objects(call.command)),
        costs_of(_holders(largest.tree), "heap_peak"),
    )


def _read(path: Path) -> _Process:
    """Read one file. Raises ToolOutputError unless every snapshot in it is whole."""
    header, *blocks = _RULER.split(tool_files.read_whole(path))
    command = _COMMAND.search(header)
    if not command or len(blocks) % 2 or not blocks:
        raise ToolOutputError(f"{path.name} is cut short or not of massif")
    # A snapshot is its number between two rulers, then its body.
    snapshots = [_snapshot(path, body.splitlines()) for body in blocks[1::2]]
    return _Process(path, command[1], *max(snapshots, key=lambda snapshot: (snapshot[0], bool(snapshot[1]))))


def _snapshot(path: Path, body: list[str]) -> tuple[int, _Tree]:
    """Return the bytes of all kinds at one moment, and the tree of who holds the heap, empty where there is none."""
    pairs = [line.partition("=") for line in body[: len(_KEYS)]]
    if tuple(key for key, _, _ in pairs) != _KEYS:
        raise ToolOutputError(f"{path.name} is cut short: a snapshot lacks its figures")
    *sizes, kind = [value for _, _, value in pairs[1:]]
    if not all(size.isascii() and size.isdecimal() and len(size) <= 18 for size in sizes):
        raise ToolOutputError(f"{path.name} holds a size that is no number of bytes")
    tree = [] if kind == "empty" else _tree(path, body[len(_KEYS) :])
    if tree and tree[0].size != int(sizes[0]):
        raise ToolOutputError(f"{path.name} is damaged: a heap tree does not add up to its heap")
    return sum(map(int, sizes)), tree


def _tree(path: Path, lines: list[str]) -> _Tree:
    """Read a tree from its indented lines. Raises ToolOutputError if nodes are missing or sizes do not add up."""
    tree: list[_Node] = []
    above: list[_Node] = []
    for line in lines:
        match = _NODE.match(line)
        depth = len(match["indent"]) if match else 0
        if not match or depth > min(len(above), _DEEPEST) or (tree and not depth):
            raise ToolOutputError(f"{path.name} holds a line that is no part of a heap tree: {line[:80]!r}")
        node = _Node(depth, int(match["bytes"]), match["text"], int(match["children"]))
        above[depth:] = [node]
        tree.append(node)
        if depth:
            above[depth - 1].missing -= 1
            above[depth - 1].known += node.size
    if not tree or any(node.missing or node.known > node.size for node in tree):
        raise ToolOutputError(f"{path.name} is cut short: a heap tree lacks nodes")
    return tree


def _hotspots(tree: _Tree) -> tuple[Hotspot, ...]:
    """Rank the functions that hold the heap at its peak."""
    ranked = hotspots_of(_holders(tree), source=NAME, unit="bytes")
    return tuple(
        replace(spot, cause=f"measured: {round(spot.share * tree[0].size):,} B held at the peak") for spot in ranked
    )


def _holders(tree: _Tree) -> Iterator[tuple[Frame, int]]:
    """Yield who asked for memory and how much."""
    stack: list[HeapFrame | None] = []
    known_to = _DEEPEST + 1
    for node in tree:
        if node.depth > known_to:
            continue
        # What massif summed up below its threshold is no frame, nor is the root.
        found = heap_frames.read(node.text) if node.depth and not _BELOW.match(node.text) else None
        stack[node.depth :] = [found]
        known_to = node.depth if found and found.own else _DEEPEST + 1
        if found and found.own:
            yield found.frame, node.size
        elif node.size > node.known:
            yield heap_frames.holder([*filter(None, stack)]) or Frame("[many small places]"), node.size - node.known


def _warnings(processes: list[_Process], largest: _Process) -> Iterator[str]:
    """Say which process is shown when the program started others, and when its peak has no tree."""
    if len(processes) > 1:
        command = tool_files.clean_name(largest.command)[:80]
        yield f"{len(processes)} processes ran; the peak is that of {command!r}, others are not added to it"
    if not largest.tree:
        yield "massif kept no detailed snapshot of the peak, so its holders are unknown"


ADAPTER = valgrind_run.adapter(NAME, Role.PROFILE, ("heap_peak",), Options, invocations, parse)
