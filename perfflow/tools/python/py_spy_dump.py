"""``py-spy-dump``: where each thread of a running Python process stands now, for one that hangs or only waits.

One look is no profile, so there are no hotspots: the stacks are kept as JSON, and folded, each thread once.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Parsed, Profile, Usage
from perfflow.samples.stacks import Stack, write_folded
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Options, Program, Role
from perfflow.tools.python import py_spy_trouble

_THREADS = "threads.json"
_FOLDED = "stacks.folded"


class DumpOptions(Options):
    """``with`` keys of ``uses: py-spy-dump``."""

    pid: int = Field(ge=1, description="The running process.")
    native: bool = Field(default=False, description="Also show the C, C++ and Rust frames of extension modules.")
    subprocesses: bool = Field(default=False, description="Also look into Python processes that it started.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Look once into the process. Local variables are left out: they may hold secrets."""
    options = cast(DumpOptions, call.options)
    flags = [f"--{name}" for name in ("native", "subprocesses") if getattr(options, name)]
    argv = (call.program or "py-spy", "dump", "--json", "--full-filenames", "--pid", str(options.pid), *flags)
    return (Invocation(argv, stdout=_THREADS),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The threads with their stacks."""
    return (call.folder / _THREADS,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Fold the stacks into ``stacks.folded``: state and name of the thread, then its frames, root first.

    A thread holds the interpreter's lock, is active, or waits. Raises ToolOutputError if py-spy could not look into
    the process, or if it saw no thread with a frame.
    """
    path = call.folder / _THREADS
    if (not path.exists() or not path.stat().st_size) and (
        reason := py_spy_trouble.said(call.folder, cast(DumpOptions, call.options).pid)
    ):
        raise ToolOutputError(reason)
    threads = tool_files.read_json(path)
    if not isinstance(threads, list):
        raise ToolOutputError(f"{_THREADS} is no list of threads")
    stacks = Counter(stack for thread in threads if (stack := _stack(thread)))
    if not stacks:
        raise ToolOutputError("py-spy saw no thread that runs Python code")
    (call.folder / _FOLDED).write_text(write_folded(stacks), encoding="utf-8")
    return Parsed(profiles=(Profile(_FOLDED, "folded"), Profile(_THREADS, "threads")))


def _stack(thread: object) -> Stack:
    """Return a thread's stack below what it does; () where it has no frame. Raises ToolOutputError."""
    if not isinstance(thread, dict):
        raise ToolOutputError(f"{_THREADS} is damaged: a thread is no object")
    name, frames = thread.get("thread_name"), thread.get("frames")
    holds, active = thread.get("owns_gil"), thread.get("active")
    if not isinstance(frames, list) or not isinstance(holds, bool) or not isinstance(active, bool):
        raise ToolOutputError(f"{_THREADS} is damaged: a thread has no frames, or no state")
    state = "holds the GIL" if holds else "active" if active else "waits"
    number = tool_files.whole(thread.get("os_thread_id") or 0, "os_thread_id")
    root = f"{name if isinstance(name, str) and name else f'thread {number}'} [{state}]"
    found = [_shown(frame) for frame in reversed(frames)]
    return (tool_files.clean_name(root), *found) if found else ()


def _shown(frame: object) -> str:
    name, file, line = (frame.get(key) if isinstance(frame, dict) else None for key in ("name", "filename", "line"))
    if not isinstance(name, str) or not isinstance(file, str):
        raise ToolOutputError(f"{_THREADS} is damaged: a frame has no name or no file")
    place = f"{Path(file).name}:{tool_files.whole(line, 'line')}" if line else Path(file).name
    return tool_files.clean_name(f"{name} ({place})")


ADAPTER = Adapter(
    name="py-spy-dump",
    role=Role.PROFILE,
    options=DumpOptions,
    program=Program("py-spy", "pip install py-spy"),
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
