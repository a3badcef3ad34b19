"""``py-spy``: stacks of a Python program sampled from outside, at next to no cost to it.

py-spy exits 0 although the program fails, so drivers/python_run.py runs the program and records its exit status. With
``pid`` it records a process that is there already, by drivers/py_spy_attach.py, since only SIGINT ends that and keeps
what was recorded. The target is paused for each sample: with ``--nonblocking`` most samples were lost or torn.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

from pydantic import AfterValidator, Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import FEW_SAMPLES, Parsed, Profile, Reading, Usage
from perfflow.samples.stacks import Frame, Stack, costs_of, hotspots_of, write_folded
from perfflow.tools import tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role
from perfflow.tools.python import in_program, py_spy_stacks, py_spy_trouble
from perfflow.tools.tool_json import Figure, Json
from perfflow.units import duration

NAME = "py-spy"

_STATUS = "status.json"
_FOLDED = "stacks.folded"
_SAID = "py-spy.out"
_DRIVER = "python_run.py"
_ATTACH = (sys.executable, "-I", "-S", str(Path(__file__).with_name("drivers") / "py_spy_attach.py"))
_FEW = 100
_TOO_SHORT = "the program was too short to be sampled: give it more work or a higher `rate`"
_IDLE = "the process did nothing while it was recorded: put load on it, or see what it waits for with `idle: true`"
_START_UP_ALONE = (
    "nothing but the interpreter's start-up was sampled: give the program more work, and start it by its own "
    "interpreter, not by a shell script in front of it"
)
_NO_STATUS = "the program ended by os._exit, exec or a signal"
_WROTE = re.compile(r"Samples: (?P<samples>\d{1,15}) Errors: (?P<errors>\d{1,15})")
_COUNT = re.compile(r" (\d{1,15})$", re.MULTILINE)
_BEHIND = re.compile(r"(?P<seconds>[\d.]+)s behind in sampling")


class Format(StrEnum):
    """What py-spy writes beside the folded stacks."""

    RAW = "raw"
    SPEEDSCOPE = "speedscope"


_FILES = {Format.RAW: "py-spy.raw", Format.SPEEDSCOPE: "py-spy.speedscope.json"}


def _usable(text: str) -> str:
    """Return a duration as it is written. Raises UnitError, which is a ValueError, with what to write."""
    duration(text)
    return text


class Options(CommandOptions):
    """``with`` keys of ``uses: py-spy``."""

    rate: int = Field(default=200, ge=1, le=10_000, description="Samples per second.")
    format: Format = Field(default=Format.RAW, description="Also keep the profile in this form: raw or speedscope.")
    native: bool = Field(default=False, description="Also sample the C, C++ and Rust frames of extension modules.")
    subprocesses: bool = Field(default=False, description="Also sample Python processes that the program starts.")
    gil: bool = Field(default=False, description="Only sample threads while they hold the interpreter's lock.")
    idle: bool = Field(default=False, description="Also sample threads that wait.")
    nonblocking: bool = Field(default=False, description="Do not pause the program: samples may be torn or lost.")
    pid: int | None = Field(default=None, ge=1, description="Record this running process; `command` is load on it.")
    duration: Annotated[str, AfterValidator(_usable)] | None = Field(
        default=None, description="How long to record the process of `pid`, such as 5s; else while `command` runs."
    )


class _Status(Json):
    """How the program ended, and of a process that ran on how long it was recorded (s), and whether it ended before."""

    status: Annotated[int, Field(gt=-100)]
    recorded: Figure = 0.0
    ended: bool = False


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Record the program, which runs under drivers/python_run.py by its own interpreter, or a running process.

    Raises ToolOutputError with a remedy if the command is no Python invocation, or if ``pid`` and ``duration`` leave
    open what is recorded or for how long, or if py-spy cannot do all of what is asked.
    """
    options = cast(Options, call.options)
    if options.native and options.nonblocking:
        raise ToolOutputError("py-spy cannot follow native frames without a pause: leave out `native` or `nonblocking`")
    names = ("native", "subprocesses", "gil", "idle", "nonblocking")
    argv = (
        *(call.program or "py-spy", "record", "--format", options.format.value, "--full-filenames"),
        *("--rate", str(options.rate), "--output", str(call.folder / _FILES[options.format])),
        *(f"--{name}" for name in names if getattr(options, name)),
    )
    if options.pid is not None:
        if not (options.duration or call.command):
            raise ToolOutputError("`pid` does not say how long to record: add `duration: 5s`, or a `command`")
        seconds = str(duration(options.duration)) if options.duration else "0"
        words = (*_ATTACH, str(call.folder / _STATUS), seconds, *argv, "--pid", str(options.pid), "--", *call.command)
        return (Invocation(words, stdout=_SAID),)
    if options.duration:
        raise ToolOutputError("`duration` is for a running process: add its `pid`; a command is recorded to its end")
    program = in_program.under_driver(call.command, _DRIVER, ("--silent", str(call.folder / _STATUS)))
    return (Invocation((*argv, "--", *program), stdout=_SAID),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The stacks, and the program's exit status."""
    return (call.folder / _FILES[cast(Options, call.options).format], call.folder / _STATUS)


def parse(call: Call, usage: Usage) -> Parsed:
    """Fold the stacks into ``stacks.folded`` and rank functions by their own samples.

    With ``gil`` also ``gil_share``, the share of the time in which any thread held the interpreter's lock. Raises
    ToolOutputError if the program failed, was too short, could not be looked into, or if a file is nonsense.
    """
    options = cast(Options, call.options)
    status = _status(call.folder, options)
    stacks: Counter[Stack] = Counter()
    leaves: list[tuple[Frame, int]] = []
    for frames, count in _samples(call.folder, options):
        if frames := py_spy_stacks.of_program(frames, _FILES[options.format]):
            stacks[tuple(py_spy_stacks.shown(frame) for frame in frames)] += count
            leaves.append((frames[-1], count))
    samples = sum(stacks.values())
    if not samples:
        raise ToolOutputError(_TOO_SHORT if options.pid is None else _IDLE)
    if all(py_spy_stacks.START_UP.name in stack for stack in stacks):
        raise ToolOutputError(_START_UP_ALONE)
    (call.folder / _FOLDED).write_text(write_folded(stacks), encoding="utf-8")
    profiles = [Profile(_FOLDED, "folded")]
    if options.format is Format.SPEEDSCOPE:
        profiles.append(Profile(_FILES[options.format], options.format.value))
    hotspots, costs = hotspots_of(leaves, source=NAME), costs_of(leaves, "time")
    readings = _held(samples, options, status, usage) if options.gil else ()
    return Parsed(readings, hotspots, tuple(profiles), _warnings(call.folder, options, status, samples), costs)


def _status(folder: Path, options: Options) -> _Status:
    """Return what the driver wrote about the program's end. Raises ToolOutputError if that was a failure."""
    if not (folder / _STATUS).exists() and (reason := py_spy_trouble.said(folder, options.pid)):
        raise ToolOutputError(reason)
    found = tool_json.read(_Status, folder / _STATUS, _NO_STATUS if options.pid is None else "py-spy did not finish")
    if found.status < 0:
        raise ToolOutputError(f"the command was killed by signal {-found.status}")
    if found.status:
        who = "program" if options.pid is None else "command"
        raise ToolOutputError(f"the {who} exited with status {found.status}")
    return found


def _samples(folder: Path, options: Options) -> list[py_spy_stacks.Sample]:
    path = folder / _FILES[options.format]
    remedy = _TOO_SHORT if options.pid is None else _IDLE
    if options.format is Format.SPEEDSCOPE:
        return list(py_spy_stacks.read_speedscope(path, remedy))
    text = tool_files.read_whole(path, remedy)
    # Nothing in the text says where it ends, but py-spy says how many samples it wrote.
    wrote, there = _WROTE.search(tool_files.last_bytes(folder, _SAID)), sum(map(int, _COUNT.findall(text)))
    if wrote and there < int(wrote["samples"]):
        raise ToolOutputError(f"{path.name} is cut short: it holds {there} of the {wrote['samples']} samples")
    return list(py_spy_stacks.read_raw(text, path.name))


def _held(samples: int, options: Options, status: _Status, usage: Usage) -> tuple[Reading, ...]:
    """Return the share of py-spy's ticks at which a thread held the lock; at each at most one thread of a process."""
    seconds = status.recorded if options.pid else usage.wall
    # Several processes have a lock each, whose shares do not add up to one.
    if options.subprocesses or seconds <= 0:
        return ()
    return (Reading("gil_share", min(1.0, samples / (options.rate * seconds))),)


def _warnings(folder: Path, options: Options, status: _Status, samples: int) -> tuple[str, ...]:
    """Say when there are too few samples to rank anything, and which py-spy itself could not take."""
    found = []
    if samples < _FEW:
        more = "give the program more work, or" if options.pid is None else "put more load on it, record for longer, or"
        found.append(f"{samples} {FEW_SAMPLES}: {more} a higher `rate`, for shares to mean much")
    said = tool_files.last_bytes(folder, _SAID) + tool_files.last_bytes(folder)
    wrote = _WROTE.search(said)
    if wrote and wrote["errors"].strip("0"):
        found.append(f"py-spy failed to take {wrote['errors']} samples")
    if behind := _BEHIND.findall(said):
        found.append(f"py-spy fell up to {max(behind, key=float)} s behind: a lower `rate` would be kept up with")
    if status.ended:
        found.append(f"process {options.pid} ended before the recording did")
    return tuple(found)


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    options=Options,
    program=Program("py-spy", "pip install py-spy"),
    metrics=of_perfflow("gil_share"),
    python=True,
    attaches=("pid", "duration"),
    outputs=outputs,
)
