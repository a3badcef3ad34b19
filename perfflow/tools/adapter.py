"""What a tool adapter is: pure functions from a call to argv and from files to readings, and facts about the program.

An adapter starts nothing, reads no clock and knows no git; ``run`` does that. Exit status, valid fresh output files and
correctness are three separate facts, so an adapter names the files it needs and ``parse`` raises ToolOutputError when
one of them does not hold what it should, whatever the exit status was.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict

from perfflow.model.errors import ToolOutputError
from perfflow.model.later import dataclass, late_pattern
from perfflow.model.metrics import Metric
from perfflow.model.readings import Parsed, Usage
from perfflow.model.units import UnitError, duration
from perfflow.tools import tool_files
from perfflow.tools.pacing import Pace

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultedTypeVar

    Options_co = DefaultedTypeVar("Options_co", default=Any, covariant=True)
else:
    # That of Python 3.11 has no default.
    Options_co = TypeVar("Options_co", covariant=True)


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


INSTEAD = "x-instead"
"""In a field's ``json_schema_extra``: what to write instead of a deprecated key."""


class CommandOptions(Options):
    """``with`` keys of tools that run one command. ``command`` may be left out where ``benchmark`` names its source."""

    command: CommandText | None = None
    shell: bool = False


@dataclass(frozen=True)
class Call(Generic[Options_co]):
    """One invocation of a tool on one side, every template rendered.

    ``program`` is the absolute path of the tool's own executable, ``command`` the argv of the program under it (with
    ``shell`` it is ``[bash, -c, TEXT]`` and ``shell_text`` holds TEXT). ``folder`` is a new, empty folder for outputs;
    the runner puts ``stderr`` there. ``benchmark`` is whose figures it yields, where ``*`` stands for names that the
    output gives. ``only`` restricts a suite to one benchmark, and ``pace`` is how long that takes, once it is known, by
    which a brief run adapts its number of samples. ``kept`` is where the processes of
    ``preparations`` worked: it is the same for all calls of a step on one side, None where it is ``folder`` itself.
    ``stdout`` is where the command's output goes: ``pipe``, an absolute path, or '' for /dev/null. A process whose argv
    ends with ``command`` is started so; only an adapter of a program that redirects the output itself need look at it.
    ``timeout`` is that of the step in s, None without one: what its author's own patterns may take of it is bounded.
    ``built`` is where ``preparations`` worked for measuring, of a call that builds again for profilers, in another
    ``kept``. ``iterations`` is how often a suite is to run its benchmark where a profiler counts, 0 where it measures.
    """

    options: Options_co
    folder: Path
    program: str = ""
    command: tuple[str, ...] = ()
    shell_text: str = ""
    benchmark: str = ""
    only: str = ""
    effort: Effort = Effort.NORMAL
    pace: Pace | None = None
    kept: Path | None = None
    stdout: str = ""
    timeout: float | None = None
    built: Path | None = None
    iterations: int = 0

    @property
    def place(self) -> Path:
        """The folder with what ``preparations`` left."""
        return self.kept or self.folder

    @property
    def program_words(self) -> tuple[str, ...]:
        """The command, for flags behind it. Raises ToolOutputError for a shell's text, which hides the program."""
        if self.shell_text:
            raise ToolOutputError("perfflow adds flags to the program, which a shell's text hides: drop `shell: true`")
        return self.command


@dataclass(frozen=True)
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


def leaves(*files: str) -> Callable[[Call], tuple[Path, ...]]:
    """``outputs`` of a tool that leaves these files in the call's folder."""
    return lambda call: tuple(call.folder / file for file in files)


def may_leave(*files: str) -> Callable[[Call], tuple[Path, ...]]:
    """``outputs`` of a tool that leaves these files where it went well; ``parse`` says why one is missing or empty."""
    return lambda call: tuple(path for file in files for path in tool_files.left(call.folder / file))


INTERFACES = (1,)
"""Versions of ``Adapter`` that can be used: it gets another where an adapter for the old one would not work."""
SUCCESS = frozenset({0})
_NAME = late_pattern(r"[a-z0-9][a-z0-9-]{0,63}\Z")


@dataclass(frozen=True)
class Program:
    """The executable that a tool starts; without a name the measured command itself is the program.

    ``name`` is looked up on PATH, then in ``places``, patterns of folders in which it is often installed apart from
    PATH (``$CUDA_HOME/bin``). ``install`` is the command that installs it on Debian or from PyPI; ``instead`` says what
    else helps where that does not. ``version`` are arguments that make it print its version, () where there are none.
    """

    name: str = ""
    install: str = ""
    version: tuple[str, ...] = ("--version",)
    places: tuple[str, ...] = ()
    instead: str = ""

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self.name)


THE_COMMAND = Program()


class Way(StrEnum):
    """How a profiler comes by its figures, and so in which way it errs."""

    SAMPLES = "samples"
    """It looks now and then; what a function costs is a number of samples."""
    SAMPLED_TIME = "sampled time"
    """The same, and what a function costs is the time that the samples stand for."""
    CALLS = "calls"
    """It times every call, which slows small ones down; the line of a function is where it begins."""
    LINES = "lines"
    """It times every line, which slows all of them down; small ones are not listed."""
    COUNTS = "counts"
    """It counts every event: the figures repeat, and those of several iterations add up."""
    HOLDS = "holds"
    """It tells what was held at one time, which no further iteration adds to."""


@dataclass(frozen=True, kw_only=True)
class Profiler:
    """What is to be known of a profiler to choose it, to run it often enough, and to compare it with others."""

    way: Way
    follows: Mapping[str, int] = field(default_factory=dict)
    """The metrics whose regressions it explains, each with its place in the order of preference, the first 0."""
    python: int | None = None
    """Its place in that order for the time of a Python program; None where it is of no use for one."""
    sees: str = "time"
    """What its figures are of, in words."""
    repeats: bool = False
    """It follows child processes, so one recording can hold several runs of a program."""
    recording: str = ""
    """The text file of a call that ``parse`` reads; those of several calls, one after the other, are that of all."""


def words(text: CommandText) -> tuple[str, ...]:
    """Return a key that is text or a list as arguments. Raises ToolOutputError where a quote is not closed."""
    try:
        return tuple(shlex.split(text) if isinstance(text, str) else text)
    except ValueError as error:
        raise ToolOutputError(f"{str(text)[:80]!r} is not a list of words: {error}") from error


def _lists_nothing(_call: Call) -> Invocation | None:
    return None


def _no_processes(_call: Call) -> tuple[Invocation, ...]:
    return ()


@dataclass(frozen=True)
class Adapter:
    """One external program, as a step's ``uses:`` names it. What is left at its default is what most tools do.

    Raises TypeError where a field is missing or of another type, so that a mistake shows when the module is imported.
    """

    name: str
    """The word after ``uses:``."""
    role: Role
    """What the tool is used for."""
    invocations: Callable[[Call], tuple[Invocation, ...]]
    """Returns the processes to run in order: the tool itself, then converters of what it left."""
    parse: Callable[[Call, Usage], Parsed]
    """Reads the outputs. Raises ToolOutputError with the reason."""
    _: KW_ONLY
    interface: int = 1
    """The version of this class that it was written for."""
    outputs: Callable[[Call], tuple[Path, ...]] = lambda _call: ()
    """Returns the files that must exist, be newer than the start, and hold something."""
    options: type[Options] = CommandOptions
    """The pydantic model of the step's ``with``."""
    program: Program = THE_COMMAND
    """What it starts."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """Every metric that ``parse`` can yield: ``of_perfflow("time")``, or one of its own with unit and direction."""
    counters: bool = False
    """Figures of the benchmarks' authors come beside ``metrics``, under names of their own."""
    deterministic: bool = False
    """A second run on the same program says the same, so that one run a side is enough."""
    good_statuses: frozenset[int] = SUCCESS
    """Exit statuses that are no failure."""

    python: bool = False
    """The command must start with a real Python interpreter, not a shim."""
    attaches: tuple[str, ...] = ()
    """Keys that, given together, name what to measure in place of a command: a running process, a source, a report."""
    needs_program: Callable[[Mapping[str, object]], bool] = lambda _values: True
    """Whether a step with these keys starts ``program``, where it may read what that left elsewhere."""
    passes_stdout: bool = False
    """The command's output goes to the tool's own, so the step's ``stdout`` can say where to."""

    suite: bool = False
    """The benchmarks' names are the program's own."""
    listing: Callable[[Call], Invocation | None] = _lists_nothing
    """Returns the process that prints a suite's benchmark ids, one a line; None for a tool of one command."""
    preparations: Callable[[Call], tuple[Invocation, ...]] = _no_processes
    """Returns the processes to run once a side in ``call.kept``, before a suite is listed and anything is timed.

    Where one of them fails, ``parse`` says why.
    """
    lacks_lines: Callable[[Call], bool] = lambda _call: False
    """Whether what ``preparations`` built tells profilers no source lines, so that a call with ``built`` tells more.

    Raises ToolOutputError where nothing was built.
    """
    iteration_counts: Callable[[Call, float], tuple[int, ...]] = lambda _call, _seconds: ()
    """Returns two rising numbers of iterations that a call can be made to run of a benchmark which takes so many s.

    () where it goes by the clock alone.
    """
    iterated: Callable[[Call], str] = lambda _call: ""
    """Returns what is the same on both sides where calls with ``iterations`` ran equally many."""
    executed: Callable[[Call], tuple[Path, ...] | None] = lambda _call: None
    """Returns the files that a call executes; None where the argv tells."""
    made: Callable[[Call], tuple[Path, ...]] = lambda _call: ()
    """Returns files that were there before or are new, and must be there now. Raises ToolOutputError.

    ``outputs`` are removed before a call and must be new after it; a program that was up to date is neither.
    """
    results: Callable[[Call], Mapping[str, str]] = lambda _call: {}
    """Returns what later steps see as ``steps.ID.outputs``. Raises ToolOutputError."""

    profiler: Profiler | None = None
    """What is to be known of it where it tells which functions cost how much; None where it does not."""
    gpu: bool = False
    """What it measures runs on a GPU: no peak of the processor is its roof."""
    finds_peaks: bool = False
    """It may find peaks of the machine, or of a device of it."""
    conditions: bool = False
    """It reports the machine's state while it works, such as clocks: a gate wants it whatever was measured."""

    is_of_file: bool = False
    """A tool file defines it: what it says of a program may be a stranger's text."""

    def __post_init__(self) -> None:
        """Refuse what mypy would have refused: adapters from outside are often written without it."""
        for name, kind in _kinds().items():
            if not isinstance(getattr(self, name), kind):
                what = "a function" if kind is Callable else getattr(kind, "__name__", str(kind))
                raise TypeError(f"Adapter {self.name!r}: {name} must be {what}, not {getattr(self, name)!r}")
        if not _NAME.match(self.name):
            raise TypeError(f"Adapter {self.name!r}: name must be lower-case words joined by -")
        if not issubclass(self.options, Options):
            raise TypeError(f"Adapter {self.name!r}: options must be a subclass of {Options.__module__}.Options")
        metrics: Mapping[str, Any] = self.metrics
        wrong = [name for name, metric in metrics.items() if not isinstance(metric, Metric) or metric.name != name]
        if wrong:
            raise TypeError(f"Adapter {self.name!r}: metrics must map names to a Metric, not {wrong[0]!r}")

    @property
    def is_built_first(self) -> bool:
        """Whether it has ``preparations``."""
        return self.preparations is not _no_processes

    @property
    def can_list(self) -> bool:
        """Whether it has a ``listing``."""
        return self.listing is not _lists_nothing

    @property
    def takes_command(self) -> bool:
        """Whether the steps have a key ``command``."""
        return "command" in self.options.model_fields

    def is_attached(self, values: Mapping[str, object]) -> bool:
        """Whether a step's ``with`` names what to measure, so that it needs no command."""
        return bool(self.attaches) and all(values.get(key) is not None for key in self.attaches)

    def starts_program(self, values: Mapping[str, object]) -> bool:
        """Whether a step with these keys starts ``program``."""
        return bool(self.program) and self.needs_program(values)

    def wants_python(self, call: Call) -> bool:
        """Whether a call's command must start with a Python interpreter."""
        return self.python and bool(call.command) and not self.is_attached(call.options.model_dump(by_alias=True))


@cache
def _kinds() -> Mapping[str, Any]:
    """What the fields of an adapter are instances of, without what is in the brackets of ``tuple[str, ...]``."""
    hints = {name: kind for name, kind in get_type_hints(Adapter).items() if name != "_"}
    return {name: kind if isinstance(kind, UnionType) else get_origin(kind) or kind for name, kind in hints.items()}
