"""``scalene``: a Python program's time by line in Python, native code and the system, and its allocations and copies.

scalene runs in the program's interpreter and samples by signals. Its shares have no sample counts. It exits 0 after
SIGINT and for a program too short to be sampled, and 1 after ``sys.exit()``, so drivers/scalene_run.py records the exit
status, and a missing profile is an error. No figure becomes a metric: memory is sampled in steps of 1 MB.

The profile has shares of time in percent and sizes in MiB, by line of each file. perfflow sums functions from lines.
scalene's own sums (2.4.0) are only used for names: scalene spreads a sample in a loop over the lines of the loop, but
counts only one of them in the sum, so functions with loops get too little time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import MOST_HOTSPOTS, Cost, Hotspot, Parsed, Profile, Usage
from perfflow.tools import parsed_output, python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Profiler, ProfilingMethod, Role
from perfflow.tools.parsed_output import Figure, Json, Whole
from perfflow.tools.python import in_program

NAME = "scalene"
# It has no ``program``: scalene is a module of the profiled program's interpreter.

_PROFILE = "scalene.json"
_STATUS = "status.json"
_NOT_INSTALLED = "scalene is not installed for this interpreter"
_FEW = 100
_MIB = 1024.0 * 1024.0
_WHOLE = 1.005
"""The largest possible sum of all shares, since they are rounded."""
_DEFINITION = re.compile(r"\s*(?:(?:async\s+)?def|class)\s+(\w+)")
_TOO_SHORT = (
    "scalene took no sample of the program's own code: give the program more work (at least a second), and start it "
    "where its code is: scalene only profiles code below the working directory or beside the script"
)
_NO_STATUS = "the program ended by a signal, by exec, or in another way that also ended scalene"


class ScaleneOptions(CommandOptions):
    """``with`` keys of ``uses: scalene``."""

    rate: int = Field(default=100, ge=1, le=1000, description="Samples per second.")
    memory: bool = Field(default=True, description="Also sample allocations and copies of memory.")


Share = Annotated[float, Field(ge=0, le=100 * _WHOLE)]
"""In percent."""


class _ScaleneNamed(Json):
    """The name of the function that starts in a line, with its class."""

    line: str
    lineno: Whole


class _ScaleneRow(_ScaleneNamed):
    """The text of a line; ``start_function_line`` is the first line of the function around it, 0 at the top level.

    ``n_sys_percent`` is time in which the process was not on a core: in the kernel, asleep, or while others ran.
    """

    start_function_line: Whole
    n_cpu_percent_python: Share = 0.0
    n_cpu_percent_c: Share = 0.0
    n_sys_percent: Share = 0.0
    n_gpu_percent: Share = 0.0
    n_malloc_mb: Figure
    n_copy_mb_s: Figure
    cpu_samples_list: list[float] = Field(default=[])


class _ScaleneFile(Json):
    lines: list[_ScaleneRow]
    functions: list[_ScaleneNamed]


class _ScaleneProfile(Json):
    """A profile. It has no files if no sample hit the program's own code."""

    files: dict[str, _ScaleneFile] = Field(default={})
    elapsed_time_sec: Figure = 0.0
    max_footprint_mb: Figure = 0.0
    max_footprint_fname: str | None = None
    max_footprint_lineno: Whole | None = None


class _ScaleneFunction(NamedTuple):
    """The lines of a function, a class body or a file's top level, without the time of calls, except into libraries.

    ``parts`` are its shares of the time (0..1) in Python, in native code and in the system; ``line`` is the costliest.
    """

    name: str
    file: str
    line: int
    parts: tuple[float, ...]
    rows: Sequence[_ScaleneRow]

    @property
    def share(self) -> float:
        """Return the share of the time in all three parts."""
        return sum(self.parts)


def invocations(call: Call[ScaleneOptions]) -> tuple[Invocation, ...]:
    """Run the program under scalene by its own interpreter.

    Raises ToolOutputError with a remedy if the command is not a Python invocation, or if it is code (``-c``).
    """
    if python_command.split(call.command).form is python_command.Form.CODE:
        raise ToolOutputError("scalene only profiles files: put the code of `-c` into a script")
    mode = "memory" if call.options.memory else "cpu"
    own = (call.folder / _PROFILE, call.options.rate, mode, call.folder / _STATUS)
    return (in_program.under("scalene_run.py", call, *own),)


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the file with the exit status and, if there is one, the profile: ``parse`` reports why it is missing."""
    return (call.folder / _STATUS, *tool_files.left(call.folder / _PROFILE))


def parse(call: Call, usage: Usage) -> Parsed:
    """Rank functions by their share of the samples: in Python, in native code, and in the system.

    Raises ToolOutputError if scalene is not installed, the program failed or was too short, or if a file is invalid.
    """
    if not (call.folder / _STATUS).exists() and _NOT_INSTALLED in tool_files.last_bytes(call.folder):
        python = call.command[0] if call.command else "python"
        raise ToolOutputError(f"{_NOT_INSTALLED}: {python} -m pip install scalene")
    in_program.read(Json, call.folder / _STATUS, _NO_STATUS)
    if not (call.folder / _PROFILE).exists():
        raise ToolOutputError(_TOO_SHORT)
    profile = parsed_output.read_json(_ScaleneProfile, call.folder / _PROFILE, _TOO_SHORT)
    functions = [item for path, content in profile.files.items() for item in _functions(path, content)]
    if sum(item.share for item in functions) > _WHOLE:
        raise ToolOutputError(f"{_PROFILE} is damaged: its shares add up to more than 100%")
    ranked = sorted((item for item in functions if item.share), key=lambda item: (-item.share, item.name))
    if not ranked:
        raise ToolOutputError(_TOO_SHORT)
    spots = tuple(_hotspot(item, profile) for item in ranked[:MOST_HOTSPOTS])
    seconds = [(item, item.share * profile.elapsed_time_sec) for item in ranked]
    costs = tuple(Cost("time", item.name, time_of, item.file, item.line) for item, time_of in seconds if time_of)
    rows = (row for content in profile.files.values() for row in content.lines)
    samples = len({sample for row in rows for sample in row.cpu_samples_list})
    few = f"{samples} samples are few: give the program more work or set a higher `rate` for reliable shares"
    is_few = samples < _FEW
    return Parsed((), spots, (Profile(_PROFILE, NAME),), (few,) if is_few else (), costs, few_samples=is_few)


def _functions(path: str, content: _ScaleneFile) -> Iterator[_ScaleneFunction]:
    """Yield the functions of a file."""
    texts = {row.lineno: row.line for row in content.lines}
    for start in sorted({row.start_function_line for row in content.lines}):
        own = [row for row in content.lines if row.start_function_line == start]
        name = _name(start, texts.get(start, ""), content.functions) if start else "<module>"
        line = max(own, key=lambda row: (sum(_percents(row)), -row.lineno)).lineno
        parts = tuple(sum(percents) / 100 for percents in zip(*map(_percents, own), strict=True))
        yield _ScaleneFunction(tool_files.clean_name(name), tool_files.clean_name(path), line, parts, own)


def _percents(row: _ScaleneRow) -> tuple[float, float, float]:
    return row.n_cpu_percent_python, row.n_cpu_percent_c, row.n_sys_percent


def _name(start: int, text: str, names: Sequence[_ScaleneNamed]) -> str:
    """Return the name, with its class, of the function whose ``def`` is in line ``start``."""
    match = _DEFINITION.match(text)
    plain = match[1] if match else f"line {start}"
    # The first line of a decorated function is that of its first decorator.
    called = (item.line for item in reversed(names) if item.lineno <= start)
    return next((name for name in called if name.rpartition(".")[2] == plain), plain)


def _hotspot(function: _ScaleneFunction, profile: _ScaleneProfile) -> Hotspot:
    python, native, system = function.parts
    gpu = max(row.n_gpu_percent for row in function.rows) / 100
    allocated, copied = sum(row.n_malloc_mb for row in function.rows), sum(row.n_copy_mb_s for row in function.rows)
    texts = [f"{python:.0%} in Python, {native:.0%} in native code, {system:.0%} in the system or waiting"]
    if gpu >= 0.005:
        texts.append(f"the GPU busy for {gpu:.0%}")
    if allocated:
        texts.append(f"{_size(allocated)} seen allocated")
    if copied * _MIB >= 1:
        texts.append(f"{_size(copied)} copied a second")
    largest, line = tool_files.clean_name(profile.max_footprint_fname or ""), profile.max_footprint_lineno
    if line and largest == function.file and profile.max_footprint_mb and line in {row.lineno for row in function.rows}:
        texts.append(f"the program's peak memory in line {line}, {_size(profile.max_footprint_mb)}")
    cause = f"measured: {'; '.join(texts)}"
    return Hotspot(
        function.name, function.share, "time", NAME, function.file, function.line, cause, self_share=function.share
    )


def _size(mebibytes: float) -> str:
    size = mebibytes * _MIB / 1e6
    return f"{size:,.0f} MB" if size >= 10 else f"{size:.1f} MB"


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    profiler=Profiler(method=ProfilingMethod.SAMPLED_TIME),
    options=ScaleneOptions,
    python=True,
    outputs=outputs,
)
