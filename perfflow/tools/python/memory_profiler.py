"""``memory-profiler``: the resident size of a program and its children over time and, optionally, by line.

``mprof`` samples from outside and exits 0 even if the program failed, so a driver records the exit status. Lines are
watched only in the modules that ``profile`` names: reading the size of the process takes much longer than most lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Annotated

from pydantic import AfterValidator, Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import LARGEST, Hotspot, Parsed, Profile, Reading, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, leaves
from perfflow.tools.parsed_output import Whole
from perfflow.tools.python import in_program

NAME = "memory-profiler"

_SAMPLES = "mprofile.dat"
_ROWS = "lines.json"
_FEW = 10
_MIB = 1024 * 1024
_SAMPLE = re.compile(r"MEM (?P<size>\d+\.\d+) (?P<when>\d+\.\d+)\Z", re.ASCII)
_TOO_SHORT = "the program was too short to be sampled: give it more work or set a smaller `interval`"


class MemoryProfilerOptions(CommandOptions):
    """``with`` keys of ``uses: memory-profiler``."""

    interval: float = Field(default=0.01, gt=0, le=10, description="Time between two samples, in seconds.")
    profile: in_program.Modules = Field(
        default=[], description=f"{in_program.WATCHED} Default: none, because this is very slow."
    )


class _MemoryProfilerRow(in_program.ProgramPlace):
    """One line: its hits, and the MiB by which the process grew in it, 0 if it shrank."""

    hits: Whole
    grown: Annotated[float, Field(lt=LARGEST), AfterValidator(lambda size: max(0.0, size))]


class _MemoryProfilerRows(in_program.Watched):
    rows: list[_MemoryProfilerRow]


def invocations(call: Call[MemoryProfilerOptions]) -> tuple[Invocation, ...]:
    """Sample the program, which runs under a driver by its own interpreter.

    Raises ToolOutputError with a remedy if the command is not a Python invocation.
    """
    program = in_program.under("memory_profiler_run.py", call, call.folder / _ROWS, ",".join(call.options.profile)).argv
    flags = ("--include-children", "--exit-code", "--nopython", "--interval", f"{call.options.interval:f}")
    argv = (call.program or "mprof", "run", *flags, "--output", str(call.folder / _SAMPLES), *program)
    return (Invocation(argv),)


def parse(call: Call[MemoryProfilerOptions], usage: Usage) -> Parsed:
    """Read ``rss_sampled`` (B), the highest sample, and rank watched lines by how much the process grew in them.

    Raises ToolOutputError if the program failed or was too short, if a file is invalid, or if no named module ran.
    """
    profile, names = in_program.read(_MemoryProfilerRows, call.folder / _ROWS), call.options.profile
    sizes = list(_samples(tool_files.read_whole(call.folder / _SAMPLES, _TOO_SHORT)))
    if not any(sizes):
        raise ToolOutputError(_TOO_SHORT)
    if names and not profile.rows:
        raise ToolOutputError(f"no line was profiled: {in_program.reason_without_rows(names)}")
    peak = Reading("rss_sampled", tool_files.number(max(sizes), "rss_sampled"))
    warnings = (*_warnings(sizes, names), *in_program.not_imported(names, profile.modules))
    return Parsed((peak,), tuple(_hotspots(profile.rows)), (Profile(_SAMPLES, NAME),), warnings)


def _samples(text: str) -> Iterator[float]:
    """Yield the samples (B) from lines ``MEM <MiB> <time>``. Before them is the command, on any number of lines.

    Raises ToolOutputError for a line that is not a sample.
    """
    lines = text.split("\n")[:-1]
    if not lines[0].startswith("CMDLINE "):
        raise ToolOutputError(f"{_SAMPLES} is not a file of mprof: it does not start with CMDLINE")
    for line in dropwhile(lambda line: not _SAMPLE.match(line), lines):
        match = tool_files.matched(_SAMPLE, line, f"{_SAMPLES} is cut short or contains a line that is not a sample")
        yield tool_files.number_in(match["size"], "a sample") * _MIB


def _hotspots(rows: Sequence[_MemoryProfilerRow]) -> Iterator[Hotspot]:
    whole = sum(row.grown for row in rows)
    for row in in_program.ranked(rows, lambda row: row.grown):
        cause = f"measured: the process grew by {row.grown:.3g} MiB in {in_program.counted(row.hits, 'hit')}"
        yield Hotspot(row.function, row.grown / whole, "bytes", NAME, row.file, row.line, cause)


def _warnings(sizes: Sequence[float], names: Sequence[str]) -> Iterator[str]:
    if len(sizes) < _FEW:
        yield f"{len(sizes)} samples are few and can miss the peak: give the program more work or a smaller `interval`"
    if names:
        yield "rss_sampled includes memory_profiler itself, which `profile` loads into the program"


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    options=MemoryProfilerOptions,
    program=Program("mprof", "pip install memory-profiler", version=("run", "--version")),
    metrics=builtin_metrics("rss_sampled"),
    python=True,
    outputs=leaves(_SAMPLES, _ROWS),
)
