"""The stacks that py-spy writes, as ``raw`` text or for speedscope: one list of frames, root first, for each sample.

In both formats a frame has a function, a file and a line; native frames have a library, and ``--subprocesses`` puts a
root above each process: its number, which differs in every run, and its command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.stacks import Frame
from perfflow.tools import tool_files, tool_json
from perfflow.tools.tool_json import Figure, Json, Positives, Whole

_DRIVER = "python_run.py"
_DRIVER_TAIL = f"/drivers/{_DRIVER}"
_MARKER = "perfflow_program"
_ROOT = "process:"
START_UP = Frame("[python start-up]")
"""Stands for what the interpreter does before the program, which is part of the run, but not of the program."""
# `function (file:line)`; native frames have a library and no line.
_FRAME = re.compile(r"(?P<name>.*?) \((?P<file>.*):(?P<line>\d+)\)\Z|(?P<native>.*) \((?P<library>.*)\)\Z")
# A command line may hold any character, line ends and semicolons included.
_PROCESS = re.compile(
    r'(?:^|(?<=;))process \d+:"(?P<words>.{0,20000}?)"(?=;(?:process \d+:"|[^;\n"]* \()| \d+$)',
    re.DOTALL | re.MULTILINE,
)
_PROCESS_NAME = re.compile(r'process \d+:"(?P<words>.*)"\Z', re.DOTALL)
_NEXT_LINE = re.compile(r'\nprocess \d+:"')
_DRIVER_WORDS = re.compile(r"\S+/drivers/python_run\.py (?:--silent )?\S+ (?:script|module|code) ")
_ADDRESS = re.compile(r"0x[0-9a-f]+\Z|\?\Z")
_RUNPY = "<frozen runpy>"

Sample = tuple[list[Frame], int]
"""Frames, root first, and how often they were seen."""


def read_raw(text: str, file: str) -> Iterator[Sample]:
    """Yield the stacks of ``--format raw``. Raises ToolOutputError naming ``file`` for any other line."""
    for line in _PROCESS.sub(_root, text).split("\n"):
        # Samples taken before there was a frame have a count and no stack.
        if line and line[0] != " ":
            yield _read_line(line, file)


class _Frame(Json):
    """A library and no line where it is native."""

    name: str
    file: str
    line: Whole | None = None

    @property
    def frame(self) -> Frame:
        """As it is shown."""
        if process := _PROCESS_NAME.match(self.name):
            return Frame(tool_files.clean_name(_root(process)))
        if not self.line:
            return _native(self.name, self.file)
        return Frame(tool_files.clean_name(self.name), tool_files.clean_name(self.file), self.line)


class _Shared(Json):
    frames: list[_Frame]


class _Profile(Json):
    samples: list[list[Whole]]
    weights: Positives
    end: Figure = Field(alias="endValue")


class _Speedscope(Json):
    shared: _Shared
    profiles: list[_Profile]


def read_speedscope(path: Path, remedy: str) -> Iterator[Sample]:
    """Yield the stacks of ``--format speedscope``, each seen once.

    Raises ToolOutputError where the parts of the file do not belong together.
    """
    found = tool_json.read(_Speedscope, path, remedy)
    frames = [item.frame for item in found.shared.frames]
    for profile in found.profiles:
        seconds, taken = sum(profile.weights), len(profile.samples)
        if taken != len(profile.weights) or abs(seconds - profile.end) > 1e-6 * max(1, taken):
            raise ToolOutputError(f"{path.name} is damaged: samples, weights and endValue do not belong together")
        for sample in filter(None, profile.samples):
            if max(sample) >= len(frames):
                raise ToolOutputError(f"{path.name} is damaged: a sample names frames that are not there")
            yield [frames[index] for index in sample], 1


def of_program(frames: list[Frame], file: str) -> list[Frame]:
    """Return the program's own part of a stack; [] for samples of the driver at work before or after it.

    Raises ToolOutputError naming ``file`` if the driver's last frame is not where it has to be.
    """
    head = list(takewhile(lambda frame: frame.name.startswith(_ROOT), frames))
    body = frames[len(head) :]
    ours = [index for index in range(len(body)) if body[index].file.endswith(_DRIVER_TAIL)]
    # Where a frame of the driver is damaged, its samples and the program's would pass for each other's.
    marked = [index for index in range(len(body)) if body[index].name.startswith(_MARKER)]
    if marked not in ([], ours[-1:]) or any(_DRIVER in frame.name for frame in body):
        raise ToolOutputError(f"{file} is damaged: a frame of perfflow's driver is not where it has to be")
    if not ours:
        body = _without_start_up(body)
    elif body[ours[-1]].name == _MARKER:
        body = body[ours[-1] + 1 :]
    else:
        return []
    return [*head, *body] if body else []


def shown(frame: Frame) -> str:
    """Return a flame graph's name: without the folder, which says where somebody's files lie."""
    return f"{frame.name} ({Path(frame.file).name})" if frame.file else frame.name


def _without_start_up(body: list[Frame]) -> list[Frame]:
    """Return a stack that no driver is above, with what the interpreter does by itself under one name."""
    # ``python -m`` runs a module from runpy, which comes with the interpreter as the rest of its start-up does.
    own = body[sum(1 for _ in takewhile(lambda frame: frame.file == _RUNPY, body)) :]
    if not own and body:
        return [START_UP]
    first = next((frame.file for frame in own if frame.file), "")
    return [START_UP, *own] if first.startswith("<frozen") else own


def _root(process: re.Match[str]) -> str:
    """Return a process's frame on one line, without number, semicolons and the driver.

    Raises ToolOutputError for one that only the next line's ends.
    """
    if _NEXT_LINE.search(process["words"]):
        raise ToolOutputError("py-spy's stacks are damaged: the command line of a process does not end")
    words = " ".join(process["words"].split()).replace(";", ":")
    return f"{_ROOT} {_DRIVER_WORDS.sub('', words)}"


def _read_line(line: str, file: str) -> Sample:
    """Take ``main (a.py:3);work (a.py:9) 12`` apart. Raises ToolOutputError for any other line."""
    stack, _, count = line.rpartition(" ")
    # More digits than any count has would be slow to convert, and is refused beyond 4300.
    if not stack or not count.isascii() or not count.isdecimal() or len(count) > 15:
        raise ToolOutputError(f"{file} is cut short or holds no stack: {line[:80]!r}")
    return [_frame(text) for text in stack.split(";")], int(count)


def _frame(text: str) -> Frame:
    match = _FRAME.match(text)
    if text.startswith(_ROOT) or not match:
        return Frame(tool_files.clean_name(text))
    if match["file"] is None:
        return _native(match["native"], match["library"])
    # A line number of more digits than any file has lines is nonsense of no consequence.
    line = int(match["line"][:9])
    return Frame(tool_files.clean_name(match["name"]), tool_files.clean_name(match["file"]), line)


def _native(function: str, library: str) -> Frame:
    name = Path(library).name
    # The addresses of functions without a name differ in every run.
    return Frame(tool_files.clean_name(f"[{name}]" if _ADDRESS.match(function) else f"{function} ({name})"))
