"""What a tool adapter is: one module per program, pure functions from a call to argv and from files to readings.

An adapter starts nothing, reads no clock and knows no git; ``run`` does that. Exit status, valid fresh output files and
correctness are three separate facts, so an adapter names the files it needs and ``parse`` raises ToolOutputError when
one of them does not hold what it should, whatever the exit status was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict

from perfflow.samples.readings import Parsed, Usage
from perfflow.units import UnitError, duration


class Role(StrEnum):
    """What a step is for, or a tool is used for. ``measure`` and ``profile`` have the machine to themselves.

    So has ``machine``, which finds out what the machine itself can do: its figures are those of no benchmark.
    ``candidate`` changes the code and is kept or not; ``compare`` compares what was kept with the original.
    """

    MEASURE = "measure"
    PROFILE = "profile"
    MACHINE = "machine"
    CHECK = "check"
    WORK = "work"
    CANDIDATE = "candidate"
    COMPARE = "compare"


LOOKING_ON = (Role.PROFILE, Role.MACHINE)
"""Roles that only add to what is known: where their program is missing they are skipped and named."""


class Effort(StrEnum):
    """``brief`` asks a suite for the shortest run that still yields one honest number per benchmark."""

    NORMAL = "normal"
    BRIEF = "brief"


class Options(BaseModel):
    """Base of every adapter's ``with`` keys; an unknown key is an error with the nearest valid name."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def _text_or_words(value: object) -> object:
    """Accept numbers inside an argv list, since YAML turns ``[./x, 10]`` into a number."""
    if isinstance(value, list):
        return [str(item) if isinstance(item, int | float) and not isinstance(item, bool) else item for item in value]
    return value


CommandText = Annotated[str | list[str], BeforeValidator(_text_or_words)]
"""A command as shell-like words in one string, or as an argv list."""


def _seconds(value: object) -> object:
    """Read a duration; a number without a unit is none. Raises ValueError, whose text is all that is shown of it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not a duration: write a number and a unit, such as 2s")  # noqa: TRY004 (pydantic's)
    try:
        return duration(str(value))
    except UnitError as error:
        raise ValueError(f"{error}: {error.hint}" if error.hint else str(error)) from error


Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A duration as the user writes it, ``50ms`` or ``2s``, in s."""


class CommandOptions(Options):
    """``with`` keys of tools that run one command. ``command`` may be left out where ``benchmark`` names its source."""

    command: CommandText | None = None
    shell: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation of a tool on one side, every template rendered.

    ``program`` is the absolute path of the tool's own executable, ``command`` the argv of the program under it (with
    ``shell`` it is ``[bash, -c, TEXT]`` and ``shell_text`` holds TEXT). ``folder`` is a new, empty folder for outputs;
    the runner puts ``stderr`` there. ``benchmark`` is whose figures it yields, where ``*`` stands for names that the
    output gives. ``only`` restricts a suite to one benchmark. ``kept`` is where the processes of
    ``preparations`` worked: it is the same for all calls of a step on one side, None where it is ``folder`` itself.
    """

    options: Options
    folder: Path
    program: str = ""
    command: tuple[str, ...] = ()
    shell_text: str = ""
    benchmark: str = ""
    only: str = ""
    effort: Effort = Effort.NORMAL
    kept: Path | None = None

    @property
    def place(self) -> Path:
        """The folder with what ``preparations`` left."""
        return self.kept or self.folder


@dataclass(frozen=True, slots=True)
class Invocation:
    """One process to start: ``argv[0]`` is an absolute path or found on PATH; ``env`` is added to the step's own.

    ``stdout`` names the file in the call's folder that receives the output; without it output is discarded, since a
    terminal or a disk behind stdout changes what is measured. ``stderr`` names the file in the folder for the error
    output; the next process that names the same begins it anew. ``cwd`` is where it starts, from the step's own working
    directory, which it is by default.

    With ``beside`` it is a sampler: it runs beside the process after it, and is stopped by SIGINT when that has ended.
    That process starts as soon as the sampler has written to ``stdout``, or after ``beside`` seconds at the latest. The
    sampler's stderr goes to ``sampler.stderr``.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdout: str = ""
    cwd: str = ""
    beside: float = 0.0
    stderr: str = "stderr"


class Tool(Protocol):
    """An adapter module. Constants first, then pure functions."""

    @property
    def NAME(self) -> str:
        """The word after ``uses:``."""

    @property
    def ROLE(self) -> Role:
        """What the tool is used for."""

    @property
    def DETERMINISTIC(self) -> bool:
        """Whether a second run on the same program says the same, so that one run a side is enough."""

    @property
    def PROGRAM(self) -> str:
        """Executable looked up on PATH; '' when the measured command itself is the program."""

    @property
    def VERSION_ARGV(self) -> tuple[str, ...]:
        """Arguments that make PROGRAM print its version; () where there is none."""

    @property
    def INSTALL(self) -> str:
        """The command that installs PROGRAM on Debian or from PyPI."""

    @property
    def METRICS(self) -> frozenset[str]:
        """Names of the metrics that ``parse`` can yield."""

    @property
    def INTERPRETER(self) -> str:
        """'python' when the command must start with a real Python interpreter, not a shim; else ''."""

    @property
    def OPTIONS(self) -> type[Options]:
        """The pydantic model of the step's ``with``."""

    def invocations(self, call: Call) -> tuple[Invocation, ...]:
        """Return the processes to run in order: the tool itself, then converters of what it left."""

    def outputs(self, call: Call) -> tuple[Path, ...]:
        """Return the files that must exist, be newer than the start, and hold something."""

    def parse(self, call: Call, usage: Usage) -> Parsed:
        """Read the outputs. Raises ToolOutputError with the reason."""

    def enumerate(self, call: Call) -> Invocation | None:
        """Return the process that lists a suite's benchmark ids, one a line; None for a tool of one command."""


SUCCESS = frozenset({0})


def good_statuses(tool: Tool | None) -> frozenset[int]:
    """Exit statuses that are no failure: an adapter of a program with others names them in GOOD_STATUSES."""
    named: frozenset[int] = getattr(tool, "GOOD_STATUSES", SUCCESS)
    return named


def is_suite(tool: Tool | None) -> bool:
    """Whether the benchmarks' names are the program's own, which an adapter of a suite says by SUITE."""
    return bool(getattr(tool, "SUITE", False))


def needs_python(tool: Tool | None, call: Call) -> bool:
    """Whether a call's command must start with a Python interpreter, which ``interpreter(call)`` of an adapter tells.

    Without that function it is INTERPRETER that tells, for all its calls.
    """
    if tool is None or not call.command:
        return False
    found = getattr(tool, "interpreter", None)
    return bool((found(call) if found else tool.INTERPRETER) == "python")


def attaches(tool: Tool | None, values: Mapping[str, object]) -> bool:
    """Whether a step's ``with`` names what to measure, so that it needs no command.

    That is a running process, and until when to look at it, a source to build, or what a program left. An adapter that
    can do so names the keys in ATTACHES.
    """
    keys: tuple[str, ...] = getattr(tool, "ATTACHES", ())
    return bool(keys) and all(values.get(key) is not None for key in keys)


def finds_peaks(tool: Tool | None) -> bool:
    """Whether an adapter may find peaks of the machine, or of a device of it, which it says by PEAKS."""
    return bool(getattr(tool, "PEAKS", False))


def tells_conditions(tool: Tool | None) -> bool:
    """Whether a profiler tells of the machine while it works, such as its clocks, which it says by CONDITIONS.

    In a gate it is wanted whatever was measured: what is found may be due to it.
    """
    return bool(getattr(tool, "CONDITIONS", False))


def on_gpu(tool: Tool | None) -> bool:
    """Whether what an adapter measures runs on a GPU, which it says by GPU: no peak of the processor is its roof."""
    return bool(getattr(tool, "GPU", False))


def runs_program(tool: Tool, values: Mapping[str, object]) -> bool:
    """Whether a step with these keys starts the tool's own program.

    An adapter that can do without it, since it also reads what the program left elsewhere, or runs what it built, has
    ``needs_program(with)``.
    """
    found = getattr(tool, "needs_program", None)
    return bool(tool.PROGRAM) and bool(found is None or found(dict(values)))


def is_built_first(tool: Tool | None) -> bool:
    """Whether an adapter has ``preparations``."""
    return hasattr(tool, "preparations")


def preparations(tool: Tool, call: Call) -> tuple[Invocation, ...]:
    """Return the processes to run once a side in ``call.kept``, before a suite is listed and anything is timed.

    An adapter that has to build what it measures has a function ``preparations(call)``; where one of the processes
    fails, ``parse`` says why.
    """
    found = getattr(tool, "preparations", None)
    return tuple(found(call)) if found else ()


def executed(tool: Tool, call: Call) -> tuple[Path, ...] | None:
    """Return the files that a call executes, by an adapter's ``executed(call)``; None where its argv tells."""
    found = getattr(tool, "executed", None)
    return tuple(found(call)) if found else None


def made(tool: Tool, call: Call) -> tuple[Path, ...]:
    """Return files that were there before or are new, and must be there now, by an adapter's ``made(call)``.

    ``outputs`` are removed before a call and must be new after it; a program that was up to date is neither. Raises
    ToolOutputError.
    """
    found = getattr(tool, "made", None)
    return tuple(found(call)) if found else ()


def results(tool: Tool, call: Call) -> Mapping[str, str]:
    """Return what later steps see as ``steps.ID.outputs``, by an adapter's ``results(call)``, else nothing.

    Raises ToolOutputError.
    """
    found = getattr(tool, "results", None)
    return dict(found(call)) if found else {}
