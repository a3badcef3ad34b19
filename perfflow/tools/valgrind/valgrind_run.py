"""Running a command and its children under one of valgrind's tools, and what to say of the processes that ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program

VALGRIND = Program("valgrind", "apt-get install valgrind")
MALLOC: Mapping[str, str] = {"PYTHONMALLOC": "malloc"}
"""Python's own allocator of small objects hides allocations from valgrind; this turns it off."""


class Seeded(CommandOptions):
    """``with`` keys of the tools that count instructions."""

    hash_seed: bool = Field(default=True, description="Run Python with PYTHONHASHSEED=0, so that its counts repeat.")

    @property
    def env(self) -> Mapping[str, str]:
        """What is added to the program's environment."""
        return {"PYTHONHASHSEED": "0"} if self.hash_seed else {}


valgrind_tool = partial(Adapter, program=VALGRIND, deterministic=True, passes_stdout=True)
"""The adapter of one of valgrind's tools, from what sets it apart from the others."""


def invocation(call: Call, tool: str, *flags: str, env: Mapping[str, str]) -> Invocation:
    """Return the call of valgrind's ``tool`` that leaves a file ``TOOL.PID.out`` for each process."""
    # In this pattern valgrind replaces %p by the process's id, and %% by %.
    pattern = f"{str(call.folder).replace('%', '%%')}/{tool}.%p.out"
    fixed = ("-q", f"--tool={tool}", "--trace-children=yes", f"--{tool}-out-file={pattern}")
    return Invocation((call.program or VALGRIND.name, *fixed, *flags, *call.command), env=env)


def files(call: Call, tool: str) -> tuple[Path, ...]:
    """The files that are there; a process may leave several, in parts. Their names are known after the run only."""
    return tuple(sorted(call.folder.glob(f"{tool}.*.out*")))


def files_of_a_run(call: Call, tool: str) -> tuple[Path, ...]:
    """The files that are there. Raises ToolOutputError if there are none, since every process leaves one."""
    if paths := files(call, tool):
        return paths
    said = tool_files.last_words(call.folder)
    hint = f": {said}" if said.startswith("valgrind:") else ""
    raise ToolOutputError(f"{tool} left no file: the command did not start, or was killed{hint}")


def sums_of(commands: Sequence[str], what: str) -> tuple[str, ...]:
    """Say, of the command lines of all processes, that ``what`` is summed over them, and which of it is counted twice.

    A forked process starts with the figures of its parent; one that calls ``exec`` starts anew.
    """
    if len(commands) == 1:
        return ()
    found = [f"{len(commands)} processes ran; {what} summed over them"]
    if forked := next((command for command, count in Counter(commands).items() if count > 1), ""):
        name = tool_files.clean_name(forked)[:80]
        found.append(f"{name!r} forked: what it did before that is counted again in each of its children")
    return tuple(found)
