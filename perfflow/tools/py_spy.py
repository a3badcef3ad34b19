"""``py-spy``: stacks of a Python program sampled from outside, at next to no cost to it.

py-spy exits 0 although the program fails, so drivers/python_run.py runs the program and records its exit status. The
target is paused for each sample: with ``--nonblocking`` most samples were lost or torn.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import FEW_SAMPLES, Parsed, Profile, Usage
from perfflow.samples.stacks import Frame, Stack, costs_of, hotspots_of, write_folded
from perfflow.tools import python_command, tool_files
from perfflow.tools.protocol import Call, CommandOptions, Invocation, Role

NAME = "py-spy"
ROLE = Role.PROFILE
DETERMINISTIC = False
PROGRAM = "py-spy"
VERSION_ARGV: tuple[str, ...] = ("--version",)
INSTALL = "pip install 'perfflow[tools]'"
METRICS: frozenset[str] = frozenset()
INTERPRETER = "python"

_RAW = "py-spy.raw"
_STATUS = "status.json"
_FOLDED = "stacks.folded"
_DRIVER = "python_run.py"
_DRIVER_TAIL = f"/drivers/{_DRIVER}"
_MARKER = "perfflow_program"
_ROOT = "process:"
# What the interpreter does before the program is part of the run, but not of the program.
_START_UP = Frame("[python start-up]")
_FEW = 100
_TOO_SHORT = "the program was too short to be sampled: give it more work or a higher `rate`"
_NO_STATUS = "the program ended by os._exit, exec or a signal"
# `function (file:line)`; native frames have a library and no line.
_FRAME = re.compile(r"(?P<name>.*?) \((?P<file>.*):(?P<line>\d+)\)\Z|(?P<native>.*) \((?P<library>.*)\)\Z")
# The root that --subprocesses puts above each process: its number, which differs in every run, and its command line,
# which may hold any character, line ends and semicolons included.
_PROCESS = re.compile(
    r'(?:^|(?<=;))process \d+:"(?P<words>.{0,20000}?)"(?=;(?:process \d+:"|[^;\n"]* \()| \d+$)',
    re.DOTALL | re.MULTILINE,
)
_DRIVER_WORDS = re.compile(r"\S+/drivers/python_run\.py \S+ (?:script|module|code) ")
_ADDRESS = re.compile(r"0x[0-9a-f]+\Z|\?\Z")
_MISSED = re.compile(r"Samples: \d+ Errors: (?P<errors>\d+)")


class Options(CommandOptions):
    """``with`` keys of ``uses: py-spy``."""

    rate: int = Field(default=200, ge=1, le=10_000, description="Samples per second.")
    native: bool = Field(default=False, description="Also sample the C, C++ and Rust frames of extension modules.")
    subprocesses: bool = Field(default=False, description="Also sample Python processes that the program starts.")
    gil: bool = Field(default=False, description="Only sample threads while they hold the interpreter's lock.")


OPTIONS = Options


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Record the program, which runs under drivers/python_run.py by its own interpreter.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    options = cast(Options, call.options)
    program = python_command.under_driver(call.command, _DRIVER, (str(call.folder / _STATUS),))
    flags = [flag for flag in ("native", "subprocesses", "gil") if getattr(options, flag)]
    argv = (
        *(call.program or PROGRAM, "record", "--format", "raw", "--full-filenames", "--rate", str(options.rate)),
        *("--output", str(call.folder / _RAW), *(f"--{flag}" for flag in flags), "--", *program),
    )
    return (Invocation(argv),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The stacks, and the program's exit status."""
    return (call.folder / _RAW, call.folder / _STATUS)


def parse(call: Call, usage: Usage) -> Parsed:
    """Fold the stacks into ``stacks.folded`` and rank functions by their own samples.

    Raises ToolOutputError if the program failed, was too short, or if a file is nonsense.
    """
    _check_status(call.folder / _STATUS)
    stacks: Counter[Stack] = Counter()
    leaves: list[tuple[Frame, int]] = []
    text = tool_files.read_whole(call.folder / _RAW, _TOO_SHORT)
    for line in _PROCESS.sub(_root, text).split("\n"):
        # Samples taken before there was a frame have a count and no stack.
        if not line or line[0] == " ":
            continue
        frames, count = _read_line(line)
        if frames := _of_program(frames):
            stacks[tuple(_shown(frame) for frame in frames)] += count
            leaves.append((frames[-1], count))
    samples = sum(stacks.values())
    if not samples:
        raise ToolOutputError(_TOO_SHORT)
    (call.folder / _FOLDED).write_text(write_folded(stacks), encoding="utf-8")
    warnings = _warnings(call.folder, samples)
    hotspots, costs = hotspots_of(leaves, source=NAME), costs_of(leaves, "time")
    return Parsed((), hotspots, (Profile(_FOLDED, "folded"),), warnings, costs)


def enumerate(call: Call) -> None:
    """One command is one benchmark."""


def _check_status(path: Path) -> None:
    content = tool_files.read_json(path, _NO_STATUS)
    status = tool_files.whole(content.get("status") if isinstance(content, dict) else None, "exit status")
    if status:
        raise ToolOutputError(f"the program exited with status {status}")


def _root(process: re.Match[str]) -> str:
    """Return a process's frame on one line, without number, semicolons and the driver."""
    words = " ".join(process["words"].split()).replace(";", ":")
    return f"{_ROOT} {_DRIVER_WORDS.sub('', words)}"


def _read_line(line: str) -> tuple[list[Frame], int]:
    """Take ``main (a.py:3);work (a.py:9) 12`` apart. Raises ToolOutputError for any other line."""
    stack, _, count = line.rpartition(" ")
    # More digits than any count has would be slow to convert, and is refused beyond 4300.
    if not stack or not count.isascii() or not count.isdecimal() or len(count) > 15:
        raise ToolOutputError(f"{_RAW} is cut short or holds no stack: {line[:80]!r}")
    return [_frame(text) for text in stack.split(";")], int(count)


def _frame(text: str) -> Frame:
    match = _FRAME.match(text)
    if text.startswith(_ROOT) or not match:
        return Frame(tool_files.clean_name(text))
    if match["file"] is None:
        library = Path(match["library"]).name
        # The addresses of functions without a name differ in every run.
        name = f"[{library}]" if _ADDRESS.match(match["native"]) else f"{match['native']} ({library})"
        return Frame(tool_files.clean_name(name))
    # A line number of more digits than any file has lines is nonsense of no consequence.
    line = int(match["line"][:9])
    return Frame(tool_files.clean_name(match["name"]), tool_files.clean_name(match["file"]), line)


def _shown(frame: Frame) -> str:
    """Return a flame graph's name: without the folder, which says where somebody's files lie."""
    return f"{frame.name} ({Path(frame.file).name})" if frame.file else frame.name


def _of_program(frames: list[Frame]) -> list[Frame]:
    """Return the program's own part of a stack; [] for samples of the driver at work before or after it.

    Raises ToolOutputError if the driver's last frame is not where it has to be.
    """
    head = list(takewhile(lambda frame: frame.name.startswith(_ROOT), frames))
    body = frames[len(head) :]
    ours = [index for index in range(len(body)) if body[index].file.endswith(_DRIVER_TAIL)]
    # Where a frame of the driver is damaged, its samples and the program's would pass for each other's.
    marked = [index for index in range(len(body)) if body[index].name.startswith(_MARKER)]
    if marked not in ([], ours[-1:]) or any(_DRIVER in frame.name for frame in body):
        raise ToolOutputError(f"{_RAW} is damaged: a frame of perfflow's driver is not where it has to be")
    if ours:
        body = body[ours[-1] + 1 :] if body[ours[-1]].name == _MARKER else []
    elif next((frame.file for frame in body if frame.file), "").startswith("<frozen"):
        body = [_START_UP, *body]
    return [*head, *body] if body else []


def _warnings(folder: Path, samples: int) -> tuple[str, ...]:
    """Say when there are too few samples to rank anything, and how many py-spy itself could not take."""
    found = []
    if samples < _FEW:
        found.append(
            f"{samples} {FEW_SAMPLES}: give the program more work, or a higher `rate`, for shares to mean much"
        )
    missed = _MISSED.search(tool_files.last_bytes(folder))
    if missed and missed["errors"].strip("0"):
        found.append(f"py-spy failed to take {missed['errors'][:15]} samples")
    return tuple(found)
