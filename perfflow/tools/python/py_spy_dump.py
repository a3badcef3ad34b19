"""``py-spy-dump``: the current stack of each thread of a running Python process, such as one that hangs.

A single dump is not a profile, so there are no hotspots. The stacks are kept as JSON and folded, each thread once.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Profile, StackCounts, Usage
from perfflow.model.stacks import Stack, write_folded
from perfflow.tools import parsed_output, tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Options, Program, Role, leaves
from perfflow.tools.parsed_output import Json, Whole
from perfflow.tools.python import pytest_benchmark

_THREADS = "threads.json"
_FOLDED = "stacks.folded"


class DumpOptions(Options):
    """``with`` keys of ``uses: py-spy-dump``."""

    pid: int = Field(ge=1, description="Number of the running process.")
    native: bool = Field(default=False, description="Also show the C, C++ and Rust frames of extension modules.")
    subprocesses: bool = Field(default=False, description="Also show Python processes that it started.")


class _PySpyDumpFrame(Json):
    name: str
    filename: str
    line: Whole | None = None


class _Thread(Json):
    thread_name: str | None = None
    os_thread_id: Whole | None = None
    owns_gil: bool
    active: bool
    frames: list[_PySpyDumpFrame]


class _Dump(Json):
    threads: list[_Thread]


def invocations(call: Call[DumpOptions]) -> tuple[Invocation, ...]:
    """Dump the stacks once, without local variables: they can contain secrets."""
    flags = [f"--{name}" for name in ("native", "subprocesses") if getattr(call.options, name)]
    argv = (call.program or "py-spy", "dump", "--json", "--full-filenames", "--pid", str(call.options.pid), *flags)
    return (Invocation(argv, stdout=_THREADS),)


def parse(call: Call[DumpOptions], usage: Usage) -> Parsed:
    """Fold the stacks into ``stacks.folded``: state and name of the thread, then its frames, root first.

    A thread holds the interpreter's lock, is active, or waits. Raises ToolOutputError if py-spy could not read the
    process, or if no thread has a frame.
    """
    path = call.folder / _THREADS
    process = f"process {call.options.pid}"
    reason = tool_files.why(tool_files.last_bytes(call.folder), pytest_benchmark.PY_SPY, process=process)
    if reason and not tool_files.left(path):
        raise ToolOutputError(reason)
    threads = parsed_output.checked_json(_Dump, {"threads": tool_files.read_json(path)}, _THREADS).threads
    stacks = Counter(stack for thread in threads if (stack := _stack(thread)))
    if not stacks:
        raise ToolOutputError("py-spy found no thread that runs Python code")
    (call.folder / _FOLDED).write_text(write_folded(stacks), encoding="utf-8")
    return Parsed(
        profiles=(Profile(_FOLDED, "folded", StackCounts("samples", by_thread=True)), Profile(_THREADS, "threads"))
    )


def _stack(thread: _Thread) -> Stack:
    """Return a thread's stack below its name and state; () if it has no frame."""
    state = "holds the GIL" if thread.owns_gil else "active" if thread.active else "waits"
    root = f"{thread.thread_name or f'thread {thread.os_thread_id or 0}'} [{state}]"
    found = [_shown(frame) for frame in reversed(thread.frames)]
    return (tool_files.clean_name(root), *found) if found else ()


def _shown(frame: _PySpyDumpFrame) -> str:
    file = Path(frame.filename).name
    return tool_files.clean_name(f"{frame.name} ({file}:{frame.line})" if frame.line else f"{frame.name} ({file})")


ADAPTER = Adapter(
    "py-spy-dump",
    Role.PROFILE,
    invocations,
    parse,
    options=DumpOptions,
    program=Program("py-spy", "pip install py-spy"),
    outputs=leaves(_THREADS),
)
