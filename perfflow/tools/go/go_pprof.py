"""``go-pprof``: CPU time and allocations of a Go benchmark by function, from the profiles of its own test binary.

It needs nothing but Go's runtime, which takes 100 samples a second, and one for every 512 KiB that are allocated. The
profiles are protocol buffers: https://github.com/google/pprof/blob/main/proto/profile.proto
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Profile, Usage
from perfflow.model.stacks import Frame
from perfflow.tools import sampled_stacks, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Profiler, ProfilingMethod, Role, leaves
from perfflow.tools.go import go_bench
from perfflow.tools.regular_files import read
from perfflow.tools.sampled_stacks import Sample

NAME = "go-pprof"
_CPU, _HEAP = "cpu.pb.gz", "heap.pb.gz"
# At 100 samples a second; the last of several flags counts.
_LENGTH = "-test.benchtime=2s"
_LARGEST = 256 * 2**20
# The loop of a benchmark is preempted there, at no place that a user could change.
_PREEMPTED = "runtime.asyncPreempt"
_COLLECTOR = "runtime.gcBgMarkWorker"
_VERSION = "@v"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_Fields = list[tuple[int, int | bytes]]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and the place after it. Raises IndexError if the data is cut."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value & (2**64 - 1), at


def _fields(data: bytes) -> _Fields:
    """Return the numbers and the values of a message's fields. Raises ValueError and IndexError for damaged data."""
    found: _Fields = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            found.append((key >> 3, value))
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("a field of an unknown kind")
        if at + size > len(data):
            raise ValueError("a field that is cut")
        found.append((key >> 3, data[at : at + size]))
        at += size
    return found


def _numbers(fields: _Fields, number: int) -> list[int]:
    """Return a repeated number, which is packed or not."""
    found: list[int] = []
    for key, value in fields:
        if key == number and isinstance(value, int):
            found.append(value)
        elif key == number and isinstance(value, bytes):
            at = 0
            while at < len(value):
                one, at = _varint(value, at)
                found.append(one)
    return found


def _messages(fields: _Fields, number: int) -> Iterator[_Fields]:
    return (_fields(value) for key, value in fields if key == number and isinstance(value, bytes))


def _one(fields: _Fields, number: int) -> int:
    return next((value for key, value in fields if key == number and isinstance(value, int)), 0)


@dataclass(frozen=True)
class PprofProfile:
    """``samples``: the frames of each stack, root first, and its values; ``kinds`` names the values, such as cpu."""

    kinds: tuple[str, ...]
    samples: tuple[tuple[tuple[Frame, ...], Mapping[str, int]], ...]

    def of(self, kind: str) -> list[Sample]:
        """Return the stacks with one of their values. Raises ToolOutputError if the profile has no such value."""
        if kind not in self.kinds:
            raise ToolOutputError(f"the profile has no values of {kind}")
        return [(frames, values[kind]) for frames, values in self.samples if values[kind]]


def read_profile(path: Path, placed: Callable[[str], str] = str) -> PprofProfile:
    """Read a profile. ``placed`` returns a file as it is shown. Raises ToolOutputError if it is missing or damaged."""
    try:
        data = read(path, _LARGEST)
        top = _fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        texts = [value.decode("utf-8", "replace") for key, value in top if key == 6 and isinstance(value, bytes)]
        functions = {_one(each, 1): (texts[_one(each, 2)], placed(texts[_one(each, 4)])) for each in _messages(top, 5)}
        frames = {_one(each, 1): tuple(_frames(each, functions)) for each in _messages(top, 4)}
        kinds = tuple(texts[_one(each, 1)] for each in _messages(top, 1))
        samples = []
        for each in _messages(top, 2):
            leaf_first = [frame for location in _numbers(each, 1) for frame in frames[location]]
            values = dict(zip(kinds, _numbers(each, 2), strict=True))
            samples.append((tuple(reversed(leaf_first)), values))
    except FileNotFoundError as error:
        raise ToolOutputError(f"{path.name} was not written") from error
    except (OSError, EOFError, zlib.error, ValueError, LookupError) as error:
        raise ToolOutputError(f"{path.name} is cut short or no profile of pprof") from error
    return PprofProfile(kinds, tuple(samples))


def _frames(location: _Fields, functions: Mapping[int, tuple[str, str]]) -> Iterator[Frame]:
    """Yield the frames of a location, those of inlined functions first."""
    for line in _messages(location, 4):
        name, file = functions[_one(line, 1)]
        yield Frame(short_name(name), tool_files.clean_name(file) if file else "", _one(line, 2))


_PATH = re.compile(r"[^\[({]*/")


def short_name(name: str) -> str:
    """Return a function's name without the path of its package: ``text.Count``."""
    return tool_files.clean_name(_PATH.sub("", name, count=1))


@dataclass(frozen=True)
class _Places:
    """Where the files of a test binary are, which its profile names by their modules: ``example.com/words/text.go``."""

    modules: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, program: str) -> _Places:
        """Return those of a binary that ``go-bench`` built, else none."""
        place = next((folder for folder in Path(program).parents if (folder / go_bench.SUITE).is_file()), None)
        return cls(go_bench.suite_in(place).modules if place else {})

    def __call__(self, file: str) -> str:
        for module, folder in self.modules.items():
            if file.startswith(f"{module}/"):
                return f"{folder}/{file.removeprefix(f'{module}/')}"
        # -trimpath leaves out where the standard library and the modules of others are.
        if _VERSION in file:
            return f"/go/pkg/mod/{file}"
        return file if file.startswith("/") or "." in file.partition("/")[0] else f"$GOROOT/src/{file}"


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the benchmark with both profiles."""
    profiles = (f"-test.cpuprofile={call.folder / _CPU}", f"-test.memprofile={call.folder / _HEAP}")
    return (Invocation((*call.command, _LENGTH, *profiles), stdout="go.txt"),)


def parse(call: Call, _usage: Usage) -> Parsed:
    """Rank the functions that the benchmark calls by their own CPU time, and those that allocate by bytes.

    Raises ToolOutputError if the command is not a Go test binary, if a profile is missing or damaged, and if no sample
    is of the benchmark.
    """
    if not any(word.startswith("-test.") for word in call.command):
        raise ToolOutputError("go-pprof profiles benchmarks of `uses: go-bench`; for another program, `uses: perf`")
    places = _Places.of(call.command[0] if call.command else "")
    profile = read_profile(call.folder / _CPU, places)
    stacks = profile.of("samples"), read_profile(call.folder / _HEAP, places).of("alloc_space")
    raw = [Profile(name, "pprof") for name in (_CPU, _HEAP)]
    return sampled_stacks.parsed(call, NAME, stacks, raw, collector=_COLLECTOR, ignored=(_PREEMPTED,), metric="alloc")


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    options=CommandOptions,
    outputs=leaves(_CPU, _HEAP),
    profiler=Profiler(
        method=ProfilingMethod.SAMPLES,
        sees="CPU time and allocated bytes",
    ),
)
