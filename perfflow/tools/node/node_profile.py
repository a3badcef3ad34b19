"""``node-profile``: CPU time and memory of a Node.js program by function, file and line, by V8's own profilers.

The files are those of Chrome's developer tools: ``.cpuprofile`` has the nodes of a tree of calls and a sample a
millisecond, ``.heapprofile`` a tree with the bytes that each node allocated and that are held at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Profile, Usage
from perfflow.model.stacks import Frame
from perfflow.tools import parsed_output, sampled_stacks, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Profiler, ProfilingMethod, Role, may_leave
from perfflow.tools.parsed_output import Json, Whole
from perfflow.tools.sampled_stacks import Sample

NAME = "node-profile"
_CPU, _HEAP = "node.cpuprofile", "node.heapprofile"
_ENDED = "the program was killed, or it changed its own options"
_VITEST = "vitest.mjs"
_FILE_URL = "file://"
# Of V8 itself: no code of the program runs.
_WAITS = frozenset({"(idle)", "(program)", "(root)"})
_COLLECTOR = "(garbage collector)"


class _CallFrame(Json):
    """A function. Lines count from 0; -1 is unknown."""

    function: str = Field(alias="functionName")
    url: str = ""
    line: int = Field(default=-1, alias="lineNumber")

    @property
    def frame(self) -> Frame:
        """Return the frame as it is shown."""
        file = unquote(self.url.removeprefix(_FILE_URL))
        name = self.function or "(anonymous)"
        return Frame(tool_files.clean_name(name), tool_files.clean_name(file) if file else "", max(0, self.line + 1))


class _CpuNode(Json):
    id: Whole
    call: _CallFrame = Field(alias="callFrame")
    children: list[Whole] = Field(default=[])


class _CpuProfile(Json):
    nodes: list[_CpuNode]
    samples: list[Whole]

    def stacks(self) -> Iterator[Sample]:
        """Yield each stack with its number of samples. Raises ToolOutputError for a node that is not there."""
        nodes = {node.id: node for node in self.nodes}
        parents = {child: node.id for node in self.nodes for child in node.children}
        for leaf, count in Counter(self.samples).items():
            frames, at = list[Frame](), leaf
            while at in parents:
                frames.append(nodes[at].call.frame)
                at = parents[at]
                if len(frames) > len(nodes):
                    raise ToolOutputError(f"{_CPU} is damaged: a node calls itself")
            if leaf not in nodes:
                raise ToolOutputError(f"{_CPU} is damaged: a sample of an unknown node")
            yield tuple(reversed(frames)) or (nodes[leaf].call.frame,), count


class _HeapNode(Json):
    call: _CallFrame = Field(alias="callFrame")
    own: Whole = Field(alias="selfSize")
    children: list[_HeapNode] = Field(default=[])


class _HeapProfile(Json):
    head: _HeapNode

    def stacks(self) -> Iterator[Sample]:
        """Yield each stack with the bytes that its last function allocated and that are held."""
        left: list[tuple[_HeapNode, tuple[Frame, ...]]] = [(self.head, ())]
        while left:
            node, above = left.pop()
            frames = above if node.call.function == "(root)" else (*above, node.call.frame)
            if node.own and frames:
                yield frames, node.own
            left += [(child, frames) for child in node.children]


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program with both profilers, whose options come before those that it has.

    vitest runs benchmarks in a process of its own, to which it passes options.
    """
    options = (
        *("--cpu-prof", f"--cpu-prof-dir={call.folder}", f"--cpu-prof-name={_CPU}"),
        *("--heap-prof", f"--heap-prof-dir={call.folder}", f"--heap-prof-name={_HEAP}"),
    )
    if any(word.endswith(_VITEST) for word in call.command):
        return (Invocation((*call.command, *(f"--execArgv={option}" for option in options)), stdout="node.txt"),)
    return (Invocation((*call.command[:1], *options, *call.command[1:]), stdout="node.txt"),)


def parse(call: Call, _usage: Usage) -> Parsed:
    """Rank the functions by their own CPU time, and by the bytes that are held at the end.

    Raises ToolOutputError if the command does not start node, if a profile is missing or damaged, or if no sample is of
    the program.
    """
    if not call.command or Path(call.command[0]).name not in ("node", "nodejs"):
        raise ToolOutputError("node-profile needs a command that begins with `node`: write the script of npm's command")
    stacks = (
        list(parsed_output.read_json(_CpuProfile, call.folder / _CPU, _ENDED).stacks()),
        list(parsed_output.read_json(_HeapProfile, call.folder / _HEAP, _ENDED).stacks()),
    )
    raw = [Profile(_CPU, "cpuprofile"), Profile(_HEAP, "heapprofile")]
    return sampled_stacks.parsed(call, NAME, stacks, raw, collector=_COLLECTOR, ignored=_WAITS)


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    options=CommandOptions,
    outputs=may_leave(_CPU, _HEAP),
    profiler=Profiler(method=ProfilingMethod.SAMPLES, sees="CPU time and held memory"),
)
