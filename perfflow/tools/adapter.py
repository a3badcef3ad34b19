"""The interface of tool adapters: functions that build argv from a call and read readings from output files.

The functions are pure: an adapter starts no process, reads no clock and does not use git; ``run`` does that. Exit
status, valid fresh output files and correctness are three separate facts. An adapter therefore names the files that it
needs, and ``parse`` raises ToolOutputError if one of them has invalid contents, whatever the exit status was.

``samples_of_pace`` gives the number of samples that a brief process takes of one benchmark: fewer of a slow one, so
that it ends in about 1 s. A first process takes the fewest samples to find the duration of an iteration. Its samples
are discarded.
"""

from __future__ import annotations

import math
import re
import shlex
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import cache, wraps
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar, cast, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from perfflow.model.errors import AdapterError, StepError, ToolOutputError
from perfflow.model.metrics import Metric
from perfflow.model.readings import BATCH, Parsed, Reading, Usage
from perfflow.model.similar import kebab
from perfflow.model.units import UnitError, duration
from perfflow.tools import tool_files

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultedTypeVar

    Options_co = DefaultedTypeVar("Options_co", default=Any, covariant=True)
else:
    # typing.TypeVar of Python 3.11 has no default.
    Options_co = TypeVar("Options_co", covariant=True)


class Role(StrEnum):
    """The purpose of a step or a tool. ``measure``, ``profile`` and ``machine`` steps run alone on the machine.

    ``machine`` measures the peaks of the machine itself, and its figures belong to no benchmark. ``candidate`` changes
    the code, and the change is kept or reverted. ``compare`` compares the kept changes with the original.
    """

    MEASURE = "measure"
    PROFILE = "profile"
    MACHINE = "machine"
    CHECK = "check"
    WORK = "work"
    CANDIDATE = "candidate"
    COMPARE = "compare"


OPTIONAL_ROLES = (Role.PROFILE, Role.MACHINE)
"""Roles whose steps are optional: if their program is missing they are skipped, and the report names them."""


class Effort(StrEnum):
    """The length of a run of a suite.

    A comparison takes its samples from ``brief`` runs, the shortest that give one valid figure per benchmark. Under a
    sampling profiler a suite runs ``sampled``: for about a second, with little besides the benchmark itself.
    """

    NORMAL = "normal"
    BRIEF = "brief"
    SAMPLED = "sampled"


class Options(BaseModel):
    """Base of every adapter's ``with`` keys: the field ``sample_size`` is the key ``sample-size``.

    An unknown key is an error that suggests the nearest valid name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, alias_generator=kebab)


def _text_or_words(value: object) -> object:
    """Accept numbers inside an argv list, since YAML turns ``[./x, 10]`` into a number.

    Raises ValueError for a text with a quote that is not closed; users see only the message.
    """
    if isinstance(value, str):
        try:
            shlex.split(value)
        except ValueError as error:
            raise ValueError(f"{value[:80]!r} cannot be split into words: {error}") from error
    if isinstance(value, list):
        return [str(item) if isinstance(item, int | float) and not isinstance(item, bool) else item for item in value]
    return value


CommandText = Annotated[str | list[str], BeforeValidator(_text_or_words)]
"""A command: one string that is split like a shell does, or an argv list."""


def _seconds(value: object) -> object:
    """Read a duration with its unit. Raises ValueError; users see only its text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not a duration: write a number and a unit, such as 2s")  # noqa: TRY004 (pydantic's)
    try:
        return duration(str(value))
    except UnitError as error:
        raise ValueError(f"{error}: {error.hint}" if error.hint else str(error)) from error


Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A duration in s, which the user writes with its unit: ``50ms`` or ``2s``."""


class CommandOptions(Options):
    """``with`` keys of tools that run one command. ``command`` is optional if ``benchmark`` names its source."""

    command: CommandText | None = None
    shell: bool = False


@dataclass(frozen=True)
class Call(Generic[Options_co]):
    """One call of a tool on one side, with every template rendered.

    ``program``: absolute path of the tool's executable.
    ``command``: argv of the measured program. With ``shell`` it is ``[bash, -c, TEXT]``, and ``shell_text`` is TEXT.
    ``folder``: a new, empty folder for outputs. The runner writes ``stderr`` there.
    ``benchmark``: the benchmark that is measured; ``*`` stands for names in the output.
    ``chosen``: the benchmarks of a suite to run, in this order if the program allows it; empty for all of them.
    ``pace``: the duration of the slowest of them once it is known. A brief run derives its number of samples from it.
    ``kept``: the folder that ``preparations`` used, the same for all calls of a step on one side; None if ``folder``.
    ``stdout``: destination of the command's output: ``pipe``, an absolute path, or '' for /dev/null. The runner applies
    it to a process whose argv ends with ``command``; an adapter needs it only if its program redirects the output.
    ``timeout``: the step's timeout in s or None. It also limits searches for the author's own patterns.
    ``built``: the folder that ``preparations`` used for measuring, if this call builds again for profilers in ``kept``.
    ``iterations``: iterations that a suite must run under a counting profiler, 0 for measuring.
    ``clock``: the library of tools/drivers/stepping_clock.c, to preload; None if it cannot be compiled.
    ``cpu_clock``: the library of tools/drivers/cpu_clock.c, to preload for measuring; None if the benchmarks may have
    threads or wait, or if it cannot be compiled.
    ``harness``: a regular expression for functions of the harness that the command runs, '' if there is none.
    ``core``: the core on which the other side's process runs at the same time, None if the call has the machine alone.
    Elapsed times then contain the other side's turns; only times without core waits mean anything.
    """

    options: Options_co
    folder: Path
    program: str = ""
    command: tuple[str, ...] = ()
    shell_text: str = ""
    benchmark: str = ""
    chosen: tuple[str, ...] = ()
    effort: Effort = Effort.NORMAL
    pace: Pace | None = None
    kept: Path | None = None
    stdout: str = ""
    timeout: float | None = None
    built: Path | None = None
    iterations: int = 0
    harness: str = ""
    clock: Path | None = None
    cpu_clock: Path | None = None
    core: int | None = None

    @property
    def only(self) -> str:
        """The benchmark that runs alone, '' if several or all run."""
        return self.chosen[0] if len(self.chosen) == 1 else ""

    @property
    def place(self) -> Path:
        """The folder with the results of ``preparations``."""
        return self.kept or self.folder

    @property
    def program_words(self) -> tuple[str, ...]:
        """The command, to which flags can be appended. Raises ToolOutputError for a shell command."""
        if self.shell_text:
            raise ToolOutputError("perfflow cannot add flags to a program in a shell command: remove `shell: true`")
        return self.command


@dataclass(frozen=True)
class Invocation:
    """One process to start. ``argv[0]`` is an absolute path or found on PATH; ``env`` extends the step's environment.

    ``stdout`` names the file in the call's folder for the output. Without it the output is discarded, since a terminal
    or a disk behind stdout changes the measurement. ``stderr`` names the file for the error output; the next process
    with the same name overwrites it. ``cwd`` is the working directory, relative to that of the step.

    With ``beside`` the process is a sampler. It runs in parallel with the next process and gets SIGINT when that has
    ended. The next process starts as soon as the sampler has written to ``stdout``, or after ``beside`` seconds. The
    sampler's stderr goes to ``sampler.stderr``.

    With ``in_bash`` it is bash, whose own start is not part of its wall time and CPU time.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdout: str = ""
    cwd: str = ""
    beside: float = 0.0
    stderr: str = "stderr"
    in_bash: bool = False


def leaves(*files: str) -> Callable[[Call], tuple[Path, ...]]:
    """Return ``outputs`` of a tool that writes these files into the call's folder."""
    return lambda call: tuple(call.folder / file for file in files)


def may_leave(*files: str) -> Callable[[Call], tuple[Path, ...]]:
    """Return ``outputs`` of a tool that writes these files on success; ``parse`` reports a missing or empty one."""
    return lambda call: tuple(path for file in files for path in tool_files.left(call.folder / file))


INTERFACES = (1,)
"""Supported versions of ``Adapter``. Its version changes if adapters for the old one would no longer work."""
SUCCESS = frozenset({0})
TRACE = "trace.json"
"""The settings of a process that records what benchmarks execute, in the call's folder."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")


@dataclass(frozen=True)
class Program:
    """The executable that a tool starts. Without a name it is the measured command itself.

    ``name`` is looked up on PATH, then in ``places``: patterns of folders in which it is often installed outside PATH
    (``$CUDA_HOME/bin``). ``install`` is the command that installs it on Debian or from PyPI; ``instead`` is an
    alternative if it cannot be installed. ``version`` are arguments that make it print its version, () if there are
    none.
    """

    name: str = ""
    install: str = ""
    version: tuple[str, ...] = ("--version",)
    places: tuple[str, ...] = ()
    instead: str = ""

    def __bool__(self) -> bool:
        """Whether the tool has an executable of its own."""
        return bool(self.name)


THE_COMMAND = Program()


class ProfilingMethod(StrEnum):
    """The method by which a profiler obtains its figures, which determines their errors."""

    SAMPLES = "samples"
    """It samples the program; the cost of a function is a number of samples."""
    SAMPLED_TIME = "sampled time"
    """It samples the program; the cost of a function is the time that the samples represent."""
    CALLS = "calls"
    """It times every call, which slows down short calls. The line of a function is its first line."""
    LINES = "lines"
    """It times every line, which slows down all lines. Lines with small costs are not listed."""
    COUNTS = "counts"
    """It counts every event. Figures are repeatable, and those of several iterations add up."""
    HOLDS = "holds"
    """It reports memory held at one moment, which does not grow with the number of iterations."""


@dataclass(frozen=True, kw_only=True)
class Profiler:
    """Properties of a profiler that decide when it is chosen, how often it runs and how it compares with others."""

    method: ProfilingMethod
    follows: Mapping[str, int] = field(default_factory=dict)
    """The metrics whose regressions it explains, each with its rank of preference; 0 is the best."""
    python: int | None = None
    """Its rank for the time of a Python program; None if it is not suited to Python."""
    sees: str = "time"
    """The quantity that it measures, in words."""
    repeats: bool = False
    """It follows child processes, so one recording can contain several runs of a program."""
    recording: str = ""
    """The text file of a call that ``parse`` reads. The files of several calls can be concatenated."""
    raw: tuple[str, ...] = ()
    """Large files of a call from which its other files are made; removed once two sides are compared."""


def words(text: CommandText) -> tuple[str, ...]:
    """Split the text of a key into arguments; keep a list. Raises ToolOutputError for a quote that is not closed."""
    try:
        return tuple(shlex.split(text) if isinstance(text, str) else text)
    except ValueError as error:
        raise ToolOutputError(f"{str(text)[:80]!r} cannot be split into words: {error}") from error


def _decides_by_the_clock(_call: Call, _seconds: float) -> tuple[int, ...]:
    return ()


@dataclass(frozen=True)
class Parts:
    """The option that names the files or targets of a suite: their benchmarks are new where only head has them.

    ``exist`` returns whether a tree has one of them, given the options and the working directory.
    """

    option: str
    exist: Callable[[Any, str, Path], bool]

    def names(self, options: Options) -> tuple[str, ...]:
        """Return what the option names; () if it chooses everything or nothing."""
        named = getattr(options, self.option)
        return (named,) if isinstance(named, str) and named else tuple(named) if isinstance(named, list) else ()


def _lists_nothing(_call: Call) -> Invocation | None:
    return None


def _traces_nothing(_call: Call) -> Invocation | None:
    return None


def _no_processes(_call: Call) -> tuple[Invocation, ...]:
    return ()


@dataclass(frozen=True)
class Suite:
    """How a tool runs the benchmarks that its program itself names, one by one and together."""

    listing: Callable[[Call], Invocation | None] = _lists_nothing
    """Returns the process that prints a suite's benchmark ids, one per line; None if it cannot list them."""
    tracing: Callable[[Call], Invocation | None] = _traces_nothing
    """Returns the process that runs the chosen benchmarks a few times and records what each executes and reads.

    Its settings are in the file TRACE of the call's folder, where it writes what it records: see
    drivers/python_trace.py. None if the benchmarks cannot be followed.
    """
    parts: Parts | None = None
    """The option that names files or targets of a suite, of which one tree of a gate may lack some."""
    iteration_counts: Callable[[Call, float], tuple[int, ...]] = _decides_by_the_clock
    """Returns two increasing numbers of iterations that a call can run, given the seconds of one iteration.

    () if this build of the suite cannot run a fixed number. An adapter without this field decides by the clock alone.
    """
    together: float = 0.0
    """The longest iteration (s) of a benchmark that one process measures together with others, several in
    ``call.chosen``. 0 if a process measures either one benchmark or the whole suite, infinity if it always measures the
    whole suite.

    A benchmark that fails then does not fail the call: ``parse`` names it in ``failed``.
    """
    times_by_clock: bool = False
    """It times by the monotonic clock alone, so ``Call.cpu_clock`` lets it time by CPU time."""
    steps_clock: bool = False
    """A clock that advances by a fixed time per reading makes it run a fixed number: ``Call.clock``."""
    iterated: Callable[[Call], str] = lambda _call: ""
    """Returns a text that is equal on both sides if calls with ``iterations`` ran equally many.

    Raises ToolOutputError if the call ran another number than it was asked for.
    """
    harness: str = ""
    """A regular expression for functions of a suite's harness: the beginning of ``FUNCTION`` or ``FILE:FUNCTION``.

    Heap profilers leave out what it allocates itself, and profilers of stacks what it does not call.
    """
    profilers: tuple[str, ...] = ()
    """The profilers that know its programs best, which are tried before all others."""


@dataclass(frozen=True)
class Builder:
    """What a tool makes: builds before it measures, files, and outputs for later steps."""

    preparations: Callable[[Call], tuple[Invocation, ...]] = _no_processes
    """Returns the processes to run once per side in ``call.kept``, before a suite is listed and anything is timed.

    If one of them fails, ``parse`` raises ToolOutputError with the reason.
    """
    before_each: Callable[[Call], tuple[Invocation, ...]] = _no_processes
    """Returns the processes to run before every call, not timed, such as ``touch`` before a build."""
    relink: Callable[[Call, Path, int, Path], Invocation | None] = lambda _call, _program, _seed, _output: None
    """Returns the process that writes one of the ``executed`` files, its functions in an order drawn by a seed, to
    another file; None if the links of the build are recorded and repeated.
    """
    lacks_lines: Callable[[Call], bool] = lambda _call: False
    """Whether the build of ``preparations`` has no source lines for profilers; a call with ``built`` then adds them.

    Raises ToolOutputError if nothing was built.
    """
    executed: Callable[[Call], tuple[Path, ...] | None] = lambda _call: None
    """Returns the files that a call executes; None if they follow from the argv."""
    made: Callable[[Call], tuple[Path, ...]] = lambda _call: ()
    """Returns files that must exist after a call, whether new or unchanged. Raises ToolOutputError.

    ``outputs`` are removed before a call and must be new after it, which does not fit a program that is up to date.
    """
    results: Callable[[Call], Mapping[str, str]] = lambda _call: {}
    """Returns the ``steps.ID.outputs`` for later steps. Raises ToolOutputError."""


NO_SUITE, NO_BUILD = Suite(), Builder()
"""Of tools that run one command, and of tools that make nothing."""


@dataclass(frozen=True)
class Adapter:
    """One external program, as a step's ``uses:`` names it. The defaults fit most tools.

    Raises TypeError if a field is missing or has the wrong type, so that a mistake shows when the module is imported.
    """

    name: str
    """The word after ``uses:``."""
    role: Role
    """What the tool is used for."""
    invocations: Callable[[Call], tuple[Invocation, ...]]
    """Returns the processes to run, in order: the tool itself, then converters of its output."""
    parse: Callable[[Call, Usage], Parsed]
    """Reads the outputs. Raises ToolOutputError with the reason."""
    _: KW_ONLY
    interface: int = 1
    """The version of this class that the adapter was written for."""
    description: str = ""
    """One line about it. Default: the first paragraph of the docstring of the module with ``parse``."""
    outputs: Callable[[Call], tuple[Path, ...]] = lambda _call: ()
    """Returns the files that must exist, be newer than the start of the call, and not be empty."""
    options: type[Options] = CommandOptions
    """The pydantic model of the step's ``with``."""
    program: Program = THE_COMMAND
    """The executable that it starts."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """Every metric that ``parse`` can yield: ``builtin_metrics("time")``, or its own metric with unit and direction."""
    counters: bool = False
    """Besides ``metrics``, it can yield counters that the authors of benchmarks define."""
    deterministic: bool = False
    """A second run of the same program gives the same figures, so one run per side is enough."""
    good_statuses: frozenset[int] = SUCCESS
    """Exit statuses that do not count as failure."""

    python: bool = False
    """The command must start with a real Python interpreter, not a shim."""
    attaches: tuple[str, ...] = ()
    """Keys that together replace ``command``: they name a running process, a source or a report."""
    needs_program: Callable[[Mapping[str, object]], bool] = lambda _values: True
    """Whether a step with these keys starts ``program``; some steps only read an existing file of it."""
    passes_stdout: bool = False
    """The tool passes the command's output to its own stdout, so the step's ``stdout`` can redirect it."""

    suite: Suite = NO_SUITE
    """How it runs benchmarks that the program itself names; NO_SUITE for a tool of one command."""
    build: Builder = NO_BUILD
    """What it makes before and besides its figures."""

    profiler: Profiler | None = None
    """Its properties if it attributes costs to functions, else None."""
    client: bool = False
    """It measures another process, such as a server, so the functions of its own explain nothing."""
    gpu: bool = False
    """The measured code runs on a GPU, so peaks of the processor are no roof for it."""
    finds_peaks: bool = False
    """It may find peaks of the machine or of one of its devices."""
    conditions: bool = False
    """It reports the machine's state during the run, such as clocks; a gate runs it for every metric."""

    is_of_file: bool = False
    """It is defined by a tool file, so its texts about a program may come from a stranger."""

    def __post_init__(self) -> None:
        """Check the types of all fields, since third-party adapters are often written without mypy.

        Guard its functions, so that a mistake in one of them ends a step and not perfflow.
        """
        for name, value in _checked(self.name, self).items():
            object.__setattr__(self, name, value)
        for part in ("suite", "build"):
            suite_or_builder: Suite | Builder = getattr(self, part)
            if suite_or_builder not in (NO_SUITE, NO_BUILD):
                functions: dict[str, Any] = _checked(self.name, suite_or_builder)
                object.__setattr__(self, part, replace(suite_or_builder, **functions))
        if not _NAME.match(self.name):
            raise TypeError(f"Adapter {self.name!r}: name must be lower-case words joined by -")
        if not issubclass(self.options, Options):
            raise TypeError(f"Adapter {self.name!r}: options must be a subclass of {Options.__module__}.Options")
        metrics: Mapping[str, Any] = self.metrics
        wrong = [name for name, metric in metrics.items() if not isinstance(metric, Metric) or metric.name != name]
        if wrong:
            raise TypeError(f"Adapter {self.name!r}: metrics must map names to a Metric, not {wrong[0]!r}")

    @property
    def is_suite(self) -> bool:
        """Whether the program itself names its benchmarks."""
        return self.suite is not NO_SUITE

    @property
    def is_built_first(self) -> bool:
        """Whether it has ``preparations``."""
        return self.build.preparations is not _no_processes

    @property
    def can_list(self) -> bool:
        """Whether it has a ``listing``."""
        return self.suite.listing is not _lists_nothing

    @property
    def can_trace(self) -> bool:
        """Whether it has a ``tracing``."""
        return self.suite.tracing is not _traces_nothing

    @property
    def fixes_iterations(self) -> bool:
        """Whether it may run one benchmark of a suite a fixed number of times."""
        return self.suite.iteration_counts is not _decides_by_the_clock

    @property
    def counts(self) -> bool:
        """Whether it counts what a program does, or finds the largest amount that it holds, repeatably."""
        counting = (ProfilingMethod.COUNTS, ProfilingMethod.HOLDS)
        return self.deterministic and self.profiler is not None and self.profiler.method in counting

    @property
    def takes_command(self) -> bool:
        """Whether its steps have the key ``command``."""
        return "command" in self.options.model_fields

    def read_options(self, values: object) -> Options:
        """Return the ``with`` of a step. Raises ValidationError, and AdapterError for a mistake in the model."""
        try:
            return self.options.model_validate(values)
        except (ValidationError, StepError):
            raise
        except Exception as error:
            raise AdapterError(f"the adapter of {self.name} failed in options: {_told(error)}") from error

    def is_attached(self, values: Mapping[str, object]) -> bool:
        """Whether a step's ``with`` has all keys of ``attaches``, so that it needs no command."""
        return bool(self.attaches) and all(values.get(key) is not None for key in self.attaches)

    def starts_program(self, values: Mapping[str, object]) -> bool:
        """Whether a step with these keys starts ``program``."""
        return bool(self.program) and self.needs_program(values)

    def wants_python(self, call: Call) -> bool:
        """Whether a call's command must start with a Python interpreter."""
        return self.python and bool(call.command) and not self.is_attached(call.options.model_dump(by_alias=True))


def _guarded(tool: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of an adapter that raises only StepErrors. One that is guarded already is returned as it is."""
    if function in (_lists_nothing, _traces_nothing, _no_processes, _decides_by_the_clock) or hasattr(
        function, _GUARDED
    ):
        return function

    @wraps(function)
    def guarded(*args: Any) -> Any:
        try:
            return function(*args)
        except StepError:
            raise
        except Exception as error:
            raise AdapterError(f"the adapter of {tool} failed in {name}: {_told(error)}") from error

    setattr(guarded, _GUARDED, True)
    return guarded


_GUARDED = "is_guarded"


def _told(error: Exception) -> str:
    """Return an exception in one line, with the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def _checked(tool: str, part: Adapter | Suite | Builder) -> dict[str, Callable[..., Any]]:
    """Return the functions of a part, guarded. Raises TypeError for a field of the wrong type."""
    functions = {}
    kinds: Mapping[str, Any] = _kinds(cast("Any", type(part)))
    for name, kind in kinds.items():
        value = getattr(part, name)
        if not isinstance(value, kind):
            what = "a function" if kind is Callable else getattr(kind, "__name__", str(kind))
            raise TypeError(f"Adapter {tool!r}: {name} must be {what}, not {value!r}")
        if kind is Callable:
            functions[name] = _guarded(tool, name, value)
    return functions


@cache
def _kinds(part: type) -> Mapping[str, Any]:
    """Return the types of a part's fields, without type arguments such as those of ``tuple[str, ...]``."""
    hints = {name: kind for name, kind in get_type_hints(part).items() if name != "_"}
    return {name: kind if isinstance(kind, UnionType) else get_origin(kind) or kind for name, kind in hints.items()}


SECONDS = 0.5
"""Largest time of all samples of one process in s, if that allows enough samples."""
SLOW = 2.0
"""Time of one process in s above which a harness should use a faster mode, if it has one."""
_TIMES = ("time", "cpu")


@dataclass(frozen=True, slots=True)
class Pace:
    """Durations in a benchmark's first process, in s: ``seconds`` per iteration, and ``spent`` in all its samples."""

    seconds: float
    spent: float


FEWEST = Pace(math.inf, math.inf)
"""Stands for a benchmark that is so slow that a harness takes as few iterations as it can."""


def pace_of(readings: Iterable[Reading]) -> Pace | None:
    """Return the pace of the one benchmark that a process reported, None if it reported no time."""
    timed = next((item for item in readings if item.metric in _TIMES), None)
    if timed is None:
        return None
    iterations = timed.inner.get("n", 1.0) * timed.inner.get(BATCH, 1.0)
    return Pace(timed.value, timed.value * iterations)


class BuiltBenchmarks(Protocol):
    """An executable with benchmarks; ``ids`` maps perfflow's names to what it knows of them."""

    @property
    def ids(self) -> Mapping[str, object]:
        """The names."""


B = TypeVar("B", bound=BuiltBenchmarks)


def having_chosen(call: Call, executables: Iterable[B]) -> list[tuple[int, B]]:
    """Return the executables that have chosen benchmarks, with their numbers; all if none is chosen.

    Raises ToolOutputError for a chosen benchmark that none has.
    """
    wanted = set(call.chosen)
    found = [(number, each) for number, each in enumerate(executables) if not wanted or wanted & each.ids.keys()]
    if unknown := [name for name in call.chosen if not any(name in each.ids for _, each in found)]:
        raise ToolOutputError(f"the benchmark {unknown[0]!r} does not exist")
    return found


def samples_of_pace(pace: Pace | None, least: int, most: int, seconds: float = SECONDS) -> int:
    """Return the number of samples to take, each of at least one iteration; ``least`` if no pace is known.

    ``seconds``: largest time of all samples.
    """
    fit = int(seconds / pace.seconds) if pace and pace.seconds * most > seconds else most if pace else least
    return max(least, min(most, fit))
