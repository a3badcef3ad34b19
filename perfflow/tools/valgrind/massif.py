"""``massif``: the heap's peak, exact to the byte, and who holds it, by valgrind.

Each process leaves one file named by its id. A program that calls ``exec`` keeps its id, so only what it became last
is in the file. Python's own small-object allocator hides allocations from valgrind; PYTHONMALLOC turns it off, unless
the program is run with -E or -I.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Hotspot, Parsed, Profile, Reading, Usage
from perfflow.samples.stacks import Frame, costs_of, hotspots_of
from perfflow.tools import python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.valgrind import heap_frames, valgrind_run
from perfflow.tools.valgrind.heap_frames import HeapFrame

NAME = "massif"

_RULER = "#-----------"
_KEYS = ("time", "mem_heap_B", "mem_heap_extra_B", "mem_stacks_B", "heap_tree")
_DEEPEST = 200
_NODE = re.compile(r"(?P<indent> *)n(?P<children>\d{1,9}): (?P<bytes>\d{1,18}) (?P<text>.*)\Z")
_BELOW = re.compile(r"in \d+ places?, ")


class Options(CommandOptions):
    """``with`` keys of ``uses: massif``."""

    stacks: bool = Field(default=False, description="Count the stacks, too; several times slower.")


@dataclass(slots=True)
class _Node:
    """One node of a heap tree: bytes held by a call path that ends in ``text``."""

    size: int
    text: str
    expected: int
    children: list[_Node] = field(default_factory=list)


@dataclass(slots=True)
class _Snapshot:
    """The heap at one moment: total in bytes, and the tree of who holds it."""

    total: int
    tree: _Node | None


@dataclass(slots=True)
class _Process:
    """What one process left: its command, file and the snapshot of its peak."""

    path: Path
    command: str
    peak: _Snapshot


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    # Only freeing makes massif mark a peak, so every snapshot is detailed, else a program that frees nothing has none.
    argv = (
        *(
            call.program or valgrind_run.VALGRIND.name,
            "-q",
            "--tool=massif",
            "--peak-inaccuracy=0.0",
            "--detailed-freq=1",
        ),
        *("--fullpath-after=", "--trace-children=yes"),
        *(("--stacks=yes",) if cast(Options, call.options).stacks else ()),
        # In this pattern valgrind replaces %p by the process's id, and %% by %.
        f"--massif-out-file={str(call.folder).replace('%', '%%')}/massif.%p.out",
        *call.command,
    )
    return (Invocation(argv, env={"PYTHONMALLOC": "malloc"}),)


def outputs(call: Call) -> tuple[Path, ...]:
    """One file per process; their names are known after the run only, and ``parse`` misses them if there are none."""
    return tuple(sorted(call.folder.glob("massif.*.out")))


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``heap_peak`` (B) and its holders from the file of the process with the highest peak.

    Raises ToolOutputError if there is no file, if one is cut or nonsense, or if no allocation was seen.
    """
    paths = outputs(call)
    if not paths:
        raise ToolOutputError("massif left no file: the command did not start, or was killed")
    processes = [_read(path) for path in paths]
    largest = max(processes, key=lambda process: (process.peak.total, process.path.name))
    if not largest.peak.total:
        raise ToolOutputError("massif saw no allocation: the program needs no heap, or has its own allocator")
    return Parsed(
        (Reading("heap_peak", float(largest.peak.total)),),
        _hotspots(largest.peak.tree),
        (Profile(largest.path.name, "massif"),),
        (*_warnings(processes, largest), *python_command.hidden_objects(call.command)),
        costs_of(_holders(largest.peak.tree), "heap_peak") if largest.peak.tree else (),
    )


def _read(path: Path) -> _Process:
    """Read one file. Raises ToolOutputError unless every snapshot in it is whole."""
    header, *blocks = _blocks(tool_files.read_whole(path).splitlines())
    command = next((line.removeprefix("cmd: ") for line in header if line.startswith("cmd: ")), "")
    if not command or len(blocks) % 2 or not blocks:
        raise ToolOutputError(f"{path.name} is cut short or not of massif")
    # A snapshot is its number between two rulers, then its body.
    snapshots = [_snapshot(path, body) for body in blocks[1::2]]
    peak = max(snapshots, key=lambda snapshot: (snapshot.total, snapshot.tree is not None))
    return _Process(path, command, peak)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines between rulers."""
    block: list[str] = []
    for line in lines:
        if line == _RULER:
            yield block
            block = []
        else:
            block.append(line)
    yield block


def _snapshot(path: Path, body: list[str]) -> _Snapshot:
    pairs = [line.partition("=") for line in body[: len(_KEYS)]]
    if tuple(key for key, _, _ in pairs) != _KEYS:
        raise ToolOutputError(f"{path.name} is cut short: a snapshot lacks its figures")
    values = {key: value for key, _, value in pairs}
    sizes = [values["mem_heap_B"], values["mem_heap_extra_B"], values["mem_stacks_B"]]
    if not all(size.isascii() and size.isdecimal() and len(size) <= 18 for size in sizes):
        raise ToolOutputError(f"{path.name} holds a size that is no number of bytes")
    total = sum(int(size) for size in sizes)
    if values["heap_tree"] == "empty":
        return _Snapshot(total, None)
    tree = _tree(path, body[len(_KEYS) :])
    if tree.size != int(sizes[0]):
        raise ToolOutputError(f"{path.name} is damaged: a heap tree does not add up to its heap")
    return _Snapshot(total, tree)


def _tree(path: Path, lines: list[str]) -> _Node:
    """Read a tree from its indented lines. Raises ToolOutputError if nodes are missing or sizes do not add up."""
    root: _Node | None = None
    open_nodes: list[_Node] = []
    for line in lines:
        match = _NODE.match(line)
        if not match or len(match["indent"]) > min(len(open_nodes), _DEEPEST) or (root and not match["indent"]):
            raise ToolOutputError(f"{path.name} holds a line that is no part of a heap tree: {line[:80]!r}")
        node = _Node(int(match["bytes"]), match["text"], int(match["children"]))
        depth = len(match["indent"])
        del open_nodes[depth:]
        if open_nodes:
            open_nodes[-1].children.append(node)
        open_nodes.append(node)
        root = root or node
    if not root or not all(_whole(node) for node in _walk(root)):
        raise ToolOutputError(f"{path.name} is cut short: a heap tree lacks nodes")
    return root


def _whole(node: _Node) -> bool:
    return len(node.children) == node.expected and sum(child.size for child in node.children) <= node.size


def _walk(root: _Node) -> Iterator[_Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children


def _hotspots(tree: _Node | None) -> tuple[Hotspot, ...]:
    """Rank the functions that hold the heap at its peak."""
    if tree is None or not tree.size:
        return ()
    ranked = hotspots_of(_holders(tree), source=NAME, unit="bytes")
    return tuple(
        replace(spot, cause=f"measured: {round(spot.share * tree.size):,} B held at the peak") for spot in ranked
    )


def _holders(tree: _Node) -> Iterator[tuple[Frame, int]]:
    """Yield who asked for memory and how much."""
    waiting: list[tuple[_Node, tuple[HeapFrame, ...]]] = [(tree, ())]
    while waiting:
        node, stack = waiting.pop()
        known = sum(child.size for child in node.children)
        if node.size > known:
            yield heap_frames.holder(stack) or Frame("[many small places]"), node.size - known
        for child in node.children:
            # What massif summed up below its threshold is no frame.
            found = None if _BELOW.match(child.text) else heap_frames.read(child.text)
            if found and found.own:
                yield found.frame, child.size
            else:
                waiting.append((child, (*stack, found) if found else stack))


def _warnings(processes: list[_Process], largest: _Process) -> tuple[str, ...]:
    """Say which process is shown when the program started others, and when its peak has no tree."""
    found = []
    if len(processes) > 1:
        command = tool_files.clean_name(largest.command)[:80]
        found.append(f"{len(processes)} processes ran; the peak is that of {command!r}, others are not added to it")
    if largest.peak.tree is None:
        found.append("massif kept no detailed snapshot of the peak, so its holders are unknown")
    return tuple(found)


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    options=Options,
    program=valgrind_run.VALGRIND,
    metrics=of_perfflow("heap_peak"),
    deterministic=True,
    passes_stdout=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
