"""Run a command and its children under one of valgrind's tools, and describe the processes that ran."""

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
"""Environment that turns off Python's allocator of small objects, which hides allocations from valgrind."""


class Seeded(CommandOptions):
    """``with`` keys of the tools that count instructions."""

    hash_seed: bool = Field(default=True, description="Run Python with PYTHONHASHSEED=0, for repeatable counts.")

    @property
    def env(self) -> Mapping[str, str]:
        """Variables that are added to the program's environment."""
        return {"PYTHONHASHSEED": "0"} if self.hash_seed else {}


valgrind_tool = partial(Adapter, program=VALGRIND, deterministic=True, passes_stdout=True)
"""``Adapter`` with the fields that all of valgrind's tools share."""


def invocation(call: Call, tool: str, *flags: str, env: Mapping[str, str]) -> Invocation:
    """Return the process that runs valgrind's ``tool``, which writes a file ``TOOL.PID.out`` for each process."""
    # In this pattern valgrind replaces %p by the process id, and %% by %.
    pattern = f"{str(call.folder).replace('%', '%%')}/{tool}.%p.out"
    fixed = ("-q", f"--tool={tool}", "--trace-children=yes", f"--{tool}-out-file={pattern}")
    return Invocation((call.program or VALGRIND.name, *fixed, *flags, *call.command), env=env)


def files(call: Call, tool: str) -> tuple[Path, ...]:
    """Return the existing files. A process may write several parts, so the names are only known after the run."""
    return tuple(sorted(call.folder.glob(f"{tool}.*.out*")))


def files_of_a_run(call: Call, tool: str) -> tuple[Path, ...]:
    """Return the existing files. Raises ToolOutputError if there are none, since every process writes one."""
    if paths := files(call, tool):
        return paths
    said = tool_files.last_words(call.folder)
    hint = f": {said}" if said.startswith("valgrind:") else ""
    raise ToolOutputError(f"{tool} wrote no file: the command did not start or was killed{hint}")


def sum_warnings(commands: Sequence[str], what: str) -> tuple[str, ...]:
    """Return warnings that ``what`` is summed over all processes, and about figures that are counted twice.

    A forked process starts with the figures of its parent; after ``exec`` it starts at 0.
    """
    if len(commands) == 1:
        return ()
    found = [f"{len(commands)} processes ran; {what} summed over them"]
    if forked := next((command for command, count in Counter(commands).items() if count > 1), ""):
        name = tool_files.clean_name(forked)[:80]
        found.append(f"{name!r} forked: its figures before the fork are counted again in each child")
    return tuple(found)
