"""``py-spy``: stacks of a Python program, sampled from outside with almost no overhead.

py-spy exits 0 even if the program fails, so drivers/python_run.py runs the program and records its exit status. With
``pid`` it records a running process, by drivers/py_spy_attach.py: only SIGINT ends such a recording and keeps its
samples. The target is paused for each sample: with ``--nonblocking`` most samples were lost or torn.

Stacks are ``raw`` text or JSON for speedscope. In both, a frame has a function, a file and a line; native frames have a
library. ``--threads`` adds a root frame for each thread, and ``--subprocesses`` one for each process: its number, which
differs in every run, and its name or command line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Profile, Reading, StackCounts, Usage
from perfflow.model.stacks import Frame, Stack, callers_and_callees, costs_of, hotspots_of, write_folded
from perfflow.model.units import duration
from perfflow.tools import parsed_output, python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Profiler, ProfilingMethod, Program, Role
from perfflow.tools.parsed_output import Figure, Json, Positives, Whole
from perfflow.tools.python import in_program, pytest_benchmark
from perfflow.tools.tool_files import clean_name

NAME = "py-spy"

_STATUS = "status.json"
_FOLDED = "stacks.folded"
_FILES = {"raw": "py-spy.raw", "speedscope": "py-spy.speedscope.json"}
_STDOUT = "py-spy.out"
_DRIVER = "python_run.py"
_ATTACH = python_command.driver_command("py_spy_attach.py", __file__)
_TIMER = str(Path(__file__).with_name("drivers") / "clocks.py")
_FEW = 100
_TOO_SHORT = "the program was too short to be sampled: give it more work or set a higher `rate`"
_IDLE = "the process was idle while it was recorded: put load on it, or set `idle: true` to see what it waits for"
_START_UP_ALONE = (
    "only the interpreter's start-up was sampled: give the program more work, and start it with its own interpreter, "
    "not with a shell script"
)
_WROTE = re.compile(r"Samples: (?P<samples>\d{1,15}) Errors: (?P<errors>\d{1,15})")
_BEHIND = re.compile(r"(?P<seconds>[\d.]+)s behind in sampling")
_MARKER = "perfflow_program"
_ROOT, _THREAD = "process:", "thread:"
_UNNAMED = "[unnamed]"
"""A thread without a name in Python, because Python did not start it."""
_START_UP = Frame("[python start-up]")
"""Stands for all frames of the interpreter's start-up, which is part of the run but not of the program."""
# `function (file:line)`; native frames have a library and no line.
_FRAME = re.compile(r"(?P<name>.*?) \((?P<file>.*):(?P<line>\d+)\)\Z|(?P<native>.*) \((?P<library>.*)\)\Z")
# A command line can contain any character, including line ends and semicolons.
_PROCESS = re.compile(
    r'(?:^|(?<=;))process \d+:"(?P<words>.{0,20000}?)"(?=;(?:process \d+:"|[^;\n"]* \()| \d+$)',
    re.DOTALL | re.MULTILINE,
)
_PROCESS_NAME = re.compile(r'process \d+:"(?P<words>.*)"\Z', re.DOTALL)
# A thread's name can contain any character, too, so it extends to the next frame.
_THREAD_NAME = re.compile(r"thread \((?P<number>\d{1,20})\)(?:: (?P<words>.*))?\Z", re.DOTALL)
_NEXT_LINE = re.compile(r'\nprocess \d+:"')
_DRIVER_WORDS = re.compile(r"\S+/drivers/python_run\.py (?:--silent )?\S+ (?:script|module|code) ")
_ADDRESS = re.compile(r"0x[0-9a-f]+\Z|\?\Z")
_RUNPY = "<frozen runpy>"
_Sample = tuple[list[Frame], int]
"""Frames, root first, and the number of samples."""


def _usable(text: str) -> str:
    """Return a valid duration unchanged. Raises UnitError, which is a ValueError with a remedy, for any other text."""
    duration(text)
    return text


class PySpyOptions(CommandOptions):
    """``with`` keys of ``uses: py-spy``."""

    rate: int = Field(default=200, ge=1, le=10_000, description="Samples per second.")
    format: Literal["raw", "speedscope"] = Field(
        default="raw", description="Format of py-spy's output. `speedscope` also keeps the profile for that viewer."
    )
    native: bool = Field(default=False, description="Also sample the C, C++ and Rust frames of extension modules.")
    subprocesses: bool = Field(default=False, description="Also sample Python processes that the program starts.")
    gil: bool = Field(default=False, description="Only sample threads that hold the interpreter's lock (GIL).")
    idle: bool = Field(default=False, description="Also sample idle threads.")
    nonblocking: bool = Field(default=False, description="Do not pause the program. Samples can be torn or lost.")
    pid: int | None = Field(
        default=None, ge=1, description="Record the running process with this number; `command` puts load on it."
    )
    duration: Annotated[str, AfterValidator(_usable)] | None = Field(
        default=None,
        description="How long to record the process of `pid`, such as `5s`. Default: while `command` runs.",
    )


class _Status(Json):
    """The exit status; for a running process also the recorded time (s) and whether it ended during the recording."""

    status: Annotated[int, Field(gt=-100)]
    recorded: Figure = 0.0
    ended: bool = False


class _PySpyFrame(Json):
    """One frame. A native frame has a library instead of a file, and no line."""

    name: str
    file: str
    line: Whole | None = None

    @property
    def frame(self) -> Frame:
        """Return the frame as it is shown."""
        if process := _PROCESS_NAME.match(self.name):
            return Frame(clean_name(_root(process)))
        if not self.line:
            return _thread(self.name) or _native(self.name, self.file)
        return Frame(clean_name(self.name), clean_name(self.file), self.line)


class _Shared(Json):
    frames: list[_PySpyFrame]


class _PySpyProfile(Json):
    samples: list[list[Whole]]
    weights: Positives
    end: Figure = Field(alias="endValue")


class _Speedscope(Json):
    shared: _Shared
    profiles: list[_PySpyProfile]


def invocations(call: Call[PySpyOptions]) -> tuple[Invocation, ...]:
    """Record the program, which runs under drivers/python_run.py by its own interpreter, or a running process.

    Raises ToolOutputError with a remedy if the command is not a Python invocation, if ``pid`` and ``duration`` do not
    determine what is recorded and for how long, or if options exclude each other.
    """
    options = call.options
    if options.native and options.nonblocking:
        raise ToolOutputError("py-spy cannot read native frames without a pause: leave out `native` or `nonblocking`")
    names = ("native", "subprocesses", "gil", "idle", "nonblocking")
    argv = (
        *(call.program or "py-spy", "record", "--format", options.format, "--full-filenames", "--threads"),
        *("--rate", str(options.rate), "--output", str(call.folder / _FILES[options.format])),
        *(f"--{name}" for name in names if getattr(options, name)),
    )
    if options.pid is not None:
        if not (options.duration or call.command):
            raise ToolOutputError("with `pid`, set how long to record: add `duration: 5s`, or a `command`")
        seconds = str(duration(options.duration)) if options.duration else "0"
        words = (*_ATTACH, str(call.folder / _STATUS), seconds, *argv, "--pid", str(options.pid), "--", *call.command)
        return (Invocation(words, stdout=_STDOUT),)
    if options.duration:
        raise ToolOutputError("`duration` needs the `pid` of a running process; a command is recorded to its end")
    program = in_program.under_driver(call.command, _DRIVER, ("--silent", str(call.folder / _STATUS)))
    return (Invocation((*argv, "--", *program), stdout=_STDOUT),)


def outputs(call: Call[PySpyOptions]) -> tuple[Path, ...]:
    """Return the files with the stacks and with the program's exit status."""
    return (call.folder / _FILES[call.options.format], call.folder / _STATUS)


def parse(call: Call[PySpyOptions], usage: Usage) -> Parsed:
    """Fold the stacks into ``stacks.folded`` and rank functions by their own samples.

    With ``gil`` also read ``gil_share``, the share of the time in which any thread held the interpreter's lock. Raises
    ToolOutputError if the program failed, was too short or could not be read, or if a file is invalid.
    """
    options = call.options
    file, status = _FILES[options.format], _status(call.folder, options)
    remedy = _TOO_SHORT if options.pid is None else _IDLE
    read = _read_raw if options.format == "raw" else _read_speedscope
    sampled = ((_of_program(frames, file), count) for frames, count in read(call.folder / file, remedy))
    taken = [(frames, count) for frames, count in sampled if frames and _is_timed(frames, call.harness)]
    stacks, by_thread = _stacks(taken)
    leaves = [(frames[-1], count) for frames, count in taken]
    samples = stacks.total()
    if not samples:
        raise ToolOutputError(remedy)
    if all(_START_UP.name in stack for stack in stacks):
        raise ToolOutputError(_START_UP_ALONE)
    (call.folder / _FOLDED).write_text(write_folded(stacks), encoding="utf-8")
    profiles = [Profile(_FOLDED, "folded", StackCounts("samples", "time", by_thread=by_thread))]
    profiles += [Profile(file, options.format)] if options.format != "raw" else []
    inclusive = ((frame, count) for frames, count in taken for frame in callers_and_callees(frames))
    hotspots, costs = hotspots_of(leaves, source=NAME, inclusive=inclusive), costs_of(leaves, "time")
    seconds = status.recorded if options.pid else usage.wall
    readings = []
    # At each tick, at most one thread of a process holds the lock. Each process has its own lock.
    if options.gil and not options.subprocesses and seconds > 0:
        readings.append(Reading("gil_share", min(1.0, samples / (options.rate * seconds))))
    warnings = tuple(_warnings(call.folder, options, status, samples))
    return Parsed(tuple(readings), hotspots, tuple(profiles), warnings, costs, few_samples=samples < _FEW)


def _is_timed(frames: Sequence[Frame], harness: str) -> bool:
    """Return whether the harness called the running function, directly or not; True without a harness.

    The timer that perfflow gives a harness is not the benchmark's.
    """
    if not harness:
        return True
    own = frames[-1].is_of(harness) or frames[-1].file == _TIMER
    return not own and any(frame.is_of(harness) for frame in frames)


def _stacks(taken: Sequence[_Sample]) -> tuple[Counter[Stack], bool]:
    """Count the stacks by their shown frames. Also return whether each stack begins with its thread's name.

    Python can name a thread after its first samples. A program that does not use ``threading`` has no names.
    """
    files = in_program.short_paths(frame.file for frames, _ in taken for frame in frames)
    roots = [_thread_of(frames) for frames, _ in taken]
    names = {number: name for number, name in roots if name}
    stacks: Counter[Stack] = Counter()
    for (frames, count), (number, _) in zip(taken, roots, strict=True):
        below = [frame for frame in frames if not frame.name.startswith(_THREAD)]
        shown = (f"{frame.name} ({files[frame.file]})" if frame.file else frame.name for frame in below)
        stacks[(*([names.get(number, _UNNAMED)] if names else []), *shown)] += count
    return stacks, bool(names)


def _thread_of(frames: Sequence[Frame]) -> tuple[str, str]:
    """Return the number and the name of a stack's thread, '' for each that is unknown."""
    root = next((frame.name for frame in frames if frame.name.startswith(_THREAD)), _THREAD)
    number, _, name = root.removeprefix(_THREAD).partition(" ")
    return number, name


def _status(folder: Path, options: PySpyOptions) -> _Status:
    """Return the status that the driver recorded. Raises ToolOutputError if the program failed."""
    process, who, hint = f"process {options.pid}", "command", "py-spy did not finish"
    if options.pid is None:
        process, who, hint = "the program", "program", "the program ended by os._exit, exec or a signal"
    reason = tool_files.why(tool_files.last_bytes(folder), pytest_benchmark.PY_SPY, process=process)
    if reason and not (folder / _STATUS).exists():
        raise ToolOutputError(reason)
    status = parsed_output.read_json(_Status, folder / _STATUS, hint)
    if status.status < 0:
        raise ToolOutputError(f"the command was killed by signal {-status.status}")
    if status.status:
        raise ToolOutputError(f"the {who} exited with status {status.status}")
    return status


def _read_raw(path: Path, remedy: str) -> Iterator[_Sample]:
    """Yield the stacks of ``--format raw``. Raises ToolOutputError for any other line, or if stacks are missing."""
    samples = 0
    for line in _PROCESS.sub(_root, tool_files.read_whole(path, remedy)).removesuffix("\n").split("\n"):
        stack, _, count = line.rpartition(" ")
        # int() is slow for very long numbers, and refuses more than 4300 digits.
        if not (stack or line.startswith(" ")) or not re.fullmatch(r"[0-9]{1,15}", count):
            raise ToolOutputError(f"{path.name} is cut short or contains a line that is not a stack: {line[:80]!r}")
        samples += int(count)
        # Samples taken before there was a frame have a count and no stack.
        if stack:
            yield [_frame(text) for text in _parts(stack)], int(count)
    # The text has no end mark, but py-spy prints how many samples it wrote.
    wrote = _WROTE.search(tool_files.last_bytes(path.parent, _STDOUT))
    if wrote and samples < int(wrote["samples"]):
        raise ToolOutputError(f"{path.name} is cut short: it contains {samples} of the {wrote['samples']} samples")


def _parts(stack: str) -> Iterator[str]:
    """Split a stack into its frames. The name of a thread can contain semicolons."""
    thread: list[str] = []
    for part in stack.split(";"):
        if thread and not _FRAME.match(part):
            thread.append(part)
            continue
        if thread:
            yield ";".join(thread)
        thread = [part] if _THREAD_NAME.match(part) else []
        if not thread:
            yield part
    if thread:
        yield ";".join(thread)


def _read_speedscope(path: Path, remedy: str) -> Iterator[_Sample]:
    """Yield the stacks of ``--format speedscope``, each with a count of 1.

    Raises ToolOutputError if the parts of the file contradict each other.
    """
    speedscope = parsed_output.read_json(_Speedscope, path, remedy)
    frames = [item.frame for item in speedscope.shared.frames]
    for profile in speedscope.profiles:
        seconds, taken = sum(profile.weights), len(profile.samples)
        if taken != len(profile.weights) or abs(seconds - profile.end) > 1e-6 * max(1, taken):
            raise ToolOutputError(f"{path.name} is damaged: samples, weights and endValue contradict each other")
        for sample in filter(None, profile.samples):
            if max(sample) >= len(frames):
                raise ToolOutputError(f"{path.name} is damaged: a sample refers to a missing frame")
            yield [frames[index] for index in sample], 1


def _of_program(frames: list[Frame], file: str) -> list[Frame]:
    """Return the program's own part of a stack; [] for samples of the driver before or after the program.

    Raises ToolOutputError naming ``file`` if the driver's last frame is in the wrong place.
    """
    head = list(takewhile(lambda frame: frame.name.startswith((_ROOT, _THREAD)), frames))
    body = frames[len(head) :]
    ours = [index for index in range(len(body)) if body[index].file.endswith(f"/drivers/{_DRIVER}")]
    # If a frame of the driver is damaged, samples of the driver and of the program cannot be told apart.
    marked = [index for index in range(len(body)) if body[index].name.startswith(_MARKER)]
    if marked not in ([], ours[-1:]) or any(_DRIVER in frame.name for frame in body):
        raise ToolOutputError(f"{file} is damaged: a frame of perfflow's driver is in the wrong place")
    if ours:
        body = body[ours[-1] + 1 :] if body[ours[-1]].name == _MARKER else []
        return [*head, *body] if body else []
    # All start-up of the interpreter becomes one frame. ``python -m`` runs a module from runpy, which is frozen, too.
    below = list(dropwhile(lambda frame: frame.file == _RUNPY, body))
    first = next((frame.file for frame in below if frame.file), "")
    is_start_up = first.startswith("<frozen") if below else bool(body)
    return [*head, *([_START_UP] if is_start_up else []), *below] if body else []


def _root(process: re.Match[str]) -> str:
    """Return the frame of a process on one line, without its number, semicolons and the driver.

    Raises ToolOutputError if the command line of the process extends into the next line's process.
    """
    if _NEXT_LINE.search(process["words"]):
        raise ToolOutputError("py-spy's stacks are damaged: the command line of a process does not end")
    words = " ".join(process["words"].split()).replace(";", ":")
    return f"{_ROOT} {_DRIVER_WORDS.sub('', words)}"


def _thread(text: str) -> Frame | None:
    found = _THREAD_NAME.match(text)
    return (
        Frame(clean_name(f"{_THREAD}{found['number']} {' '.join((found['words'] or '').split())}")) if found else None
    )


def _frame(text: str) -> Frame:
    if thread := _thread(text):
        return thread
    match = _FRAME.match(text)
    if text.startswith(_ROOT) or not match:
        return Frame(clean_name(text))
    if match["file"] is None:
        return _native(match["native"], match["library"])
    # No file has more lines. A wrong line number does no harm.
    line = int(match["line"][:9])
    return Frame(clean_name(match["name"]), clean_name(match["file"]), line)


def _native(function: str, library: str) -> Frame:
    name = Path(library).name
    # The address of a function without a name differs in every run.
    return Frame(clean_name(f"[{name}]" if _ADDRESS.match(function) else f"{function} ({name})"))


def _warnings(folder: Path, options: PySpyOptions, status: _Status, samples: int) -> Iterator[str]:
    """Warn of too few samples for reliable shares, and of samples that py-spy could not take."""
    if samples < _FEW:
        more = "give the program more work" if options.pid is None else "put more load on it, record for longer"
        yield f"{samples} samples are few: {more} or set a higher `rate` for reliable shares"
    printed = tool_files.last_bytes(folder, _STDOUT) + tool_files.last_bytes(folder)
    wrote = _WROTE.search(printed)
    if wrote and wrote["errors"].strip("0"):
        yield f"py-spy failed to take {wrote['errors']} samples"
    if behind := _BEHIND.findall(printed):
        yield f"py-spy fell up to {max(behind, key=float)} s behind: set a lower `rate`"
    if status.ended:
        yield f"process {options.pid} ended before the recording"


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    profiler=Profiler(method=ProfilingMethod.SAMPLES, python=1),
    options=PySpyOptions,
    program=Program("py-spy", "pip install py-spy"),
    metrics=builtin_metrics("gil_share"),
    python=True,
    attaches=("pid", "duration"),
    outputs=outputs,
)
