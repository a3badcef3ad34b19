"""One trace of ``torch.profiler``, folded: steps, loader, operators, regions, kernels, memory and all-reduces.

Times are in µs, as in the file. Names of events and categories are those of Kineto in PyTorch 2.x. Events of one thread
nest, so self time is a span's length minus that of the spans directly inside it, as in ``key_averages()``. An event
takes 32 B of memory, so a trace of a gigabyte takes some hundred megabytes.

The file, plain or gzipped, is a Chrome trace ("Trace Event Format" of Chromium, as Kineto's ``output_json.cpp`` writes
it). It is read event by event.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from perfflow.model.errors import ToolOutputError
from perfflow.model.stacks import Stack
from perfflow.tools import tool_files

Interval = tuple[float, float]
"""Start and end, in µs."""
STEP = re.compile(r"ProfilerStep#(\d{1,9})\Z", re.ASCII)
STEPS = "ProfilerStep"
"""The common name of all steps. Their time outside of operators is that of Python."""
_LOADING = re.compile(r"enumerate\(DataLoader\)#.*__next__\Z")
_ALLREDUCE = re.compile(r"(?:gloo|nccl|mpi|ucc|xccl):all_?reduce", re.IGNORECASE)
_ALLREDUCE_CALL = re.compile(r"c10d::allreduce_")
_ALLREDUCE_KERNEL = re.compile(r"(?:nccl|rccl|onccl).*all_?reduce", re.IGNORECASE)
_ON_CPU = {"cpu_op": "operator", "user_annotation": "region", "cuda_runtime": "runtime", "cuda_driver": "runtime"}
_ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_MEMORY = "[memory]"
_CPU = 0
"""``Device Type`` of the CPU; all others are devices."""
_EVENTS = "traceEvents"
_CHUNK = 1 << 20
_NANOS = 1e3
"""ns in a µs."""
_LONGEST = 1 << 24
"""The most characters of one event, or of another value at top level: a file with a longer one is not a trace."""
_REMEDY = "the program was killed while it wrote, or the disk was full; trace fewer steps"
_DECODER = json.JSONDecoder()


@dataclass(slots=True)
class Row:
    """The sums over all events of one name: ``own`` and ``total`` time in µs."""

    name: str
    kind: str
    calls: int = 0
    own: float = 0.0
    total: float = 0.0

    def add(self, own: float, total: float, calls: int = 1) -> None:
        """Add an event, or several."""
        self.calls += calls
        self.own += own
        self.total += total


@dataclass(slots=True)
class Trace:
    """A folded trace; ``rank`` is None if the program was not distributed."""

    rank: int | None = None
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    steps: dict[int, Interval] = field(default_factory=dict)
    loading: list[Interval] = field(default_factory=list)
    kernels: dict[str, list[Interval]] = field(default_factory=dict)
    """The intervals in which each device computes."""
    device_rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    allreduces: list[Interval] = field(default_factory=list)
    """All-reduces as gloo or nccl record them, on a thread of their own."""
    waits: list[Interval] = field(default_factory=list)
    """From the call of each all-reduce to the next event of its thread: how long the thread waited."""
    on_device: list[Interval] = field(default_factory=list)
    """All-reduces as kernels, which contain the time of nccl."""
    peaks: dict[str, float] = field(default_factory=dict)
    """The most bytes that tensors held on one device, and on the CPU, by metric."""
    stacks: list[Counter[Stack]] = field(default_factory=list)
    """The own times of the spans of each thread, in ns, below the spans around them."""
    _threads: dict[tuple[str, str], array[float]] = field(default_factory=dict)
    """The spans of each thread: start and length in µs, and the number of the name."""
    _names: dict[tuple[str, str], int] = field(default_factory=dict)
    _began: float | None = None

    def add(self, event: Mapping[str, object]) -> None:
        """Keep the relevant data of an event. Raises ToolOutputError for a span without its times."""
        phase, category, name = event.get("ph"), event.get("cat"), event.get("name")
        if not isinstance(name, str) or not isinstance(category, str):
            return
        if phase == "i" and name == _MEMORY:
            self._see_memory(event.get("args"))
        if phase != "X" or (category not in _ON_CPU and category not in _ON_DEVICE):
            return
        start = tool_files.number(event.get("ts"), f"ts of {name[:40]!a}")
        length = tool_files.number(event.get("dur"), f"dur of {name[:40]!a}")
        # Times count from the machine's start in µs, so sums of a time and a length would lose nanoseconds.
        self._began = start if self._began is None else self._began
        start -= self._began
        if category in _ON_DEVICE:
            self._see_kernel(event, name, category, start, length)
        else:
            self._see_span(event, name, _ON_CPU[category], start, length)

    def fold(self) -> None:
        """Nest the spans of each thread, after the last event."""
        names = list(self._names)
        for key in list(self._threads):
            self._fold(self._threads.pop(key), names)

    def _see_memory(self, args: object) -> None:
        if not isinstance(args, dict) or "Total Allocated" not in args:
            return
        size = float(tool_files.whole(args["Total Allocated"], "Total Allocated"))
        metric = "tensor_memory_peak" if args.get("Device Type", _CPU) == _CPU else "gpu_memory_peak"
        self.peaks[metric] = max(size, self.peaks.get(metric, 0.0))

    def _see_kernel(self, event: Mapping[str, object], name: str, category: str, start: float, length: float) -> None:
        args = event.get("args")
        device = str((args if isinstance(args, dict) else {}).get("device", event.get("pid")))
        span = (start, start + length)
        self.kernels.setdefault(device, [])
        if category == "kernel":
            self.kernels[device].append(span)
        row = self.device_rows.setdefault((name, category), Row(tool_files.clean_name(name), category))
        row.add(length, length)
        if _ALLREDUCE_KERNEL.search(name):
            self.on_device.append(span)

    def _see_span(self, event: Mapping[str, object], name: str, kind: str, start: float, length: float) -> None:
        span = (start, start + length)
        if kind == "region":
            if step := STEP.match(name):
                number = int(step[1])
                if number in self.steps:
                    twice = f"the trace contains {name} twice"
                    raise ToolOutputError(f"{twice}: export each cycle of the schedule to its own file")
                self.steps[number] = span
                name = STEPS
            elif _LOADING.match(name):
                self.loading.append(span)
        if _ALLREDUCE.match(name):
            self.allreduces.append(span)
        thread = self._threads.setdefault((str(event.get("pid")), str(event.get("tid"))), array("d"))
        thread.extend((start, length, self._names.setdefault((name, kind), len(self._names))))

    def _fold(self, thread: array[float], names: Sequence[tuple[str, str]]) -> None:
        """Sum self and total times by name, and find the next event after each call of an all-reduce."""
        order = sorted(range(0, len(thread), 3), key=lambda at: (thread[at], -thread[at + 1]))
        open_spans: list[tuple[float, Row, Stack]] = []
        own: defaultdict[Stack, float] = defaultdict(float)
        called: list[Interval] = []
        for at in order:
            start, length, number = thread[at : at + 3]
            name, kind = names[int(number)]
            # All-reduce calls that have ended kept their thread waiting until this event.
            self.waits += [(begun, start) for begun, end in called if end <= start]
            called = [call for call in called if call[1] > start]
            while open_spans and open_spans[-1][0] <= start:
                open_spans.pop()
            row = self.rows.setdefault((name, kind), Row(tool_files.clean_name(name), kind))
            # A recursive call is already part of the outer call's total.
            row.add(length, length if all(parent is not row for _, parent, _ in open_spans) else 0.0)
            stack: Stack = (row.name,)
            if open_spans:
                end, parent, around = open_spans[-1]
                parent.own -= min(length, end - start)
                own[around] -= min(length, end - start)
                stack = (*around, row.name)
            own[stack] += length
            open_spans.append((start + length, row, stack))
            if _ALLREDUCE_CALL.match(name):
                called.append((start, start + length))
        whole = {stack: round(spent * _NANOS) for stack, spent in own.items()}
        self.stacks.append(Counter({stack: spent for stack, spent in whole.items() if spent > 0}))


def read(path: Path) -> Trace:
    """Fold a trace. Raises ToolOutputError if it is damaged, or contains no event of PyTorch's profiler."""
    trace = Trace()
    info = read_events(path, trace.add).get("distributedInfo")
    trace.fold()
    if isinstance(info, dict) and "rank" in info:
        trace.rank = tool_files.whole(info["rank"], "rank")
    if not trace.rows and not trace.device_rows:
        remedy = "check that its `schedule` becomes active and that the program calls its `step()` often enough"
        raise ToolOutputError(f"{path.name} contains no operator: the profiler recorded nothing; {remedy}")
    return trace


def read_events(path: Path, handle: Callable[[Mapping[str, object]], None]) -> Mapping[str, object]:
    """Call ``handle`` with each event. Return the other values at top level, such as ``distributedInfo``.

    Raises ToolOutputError if the file is missing, empty, truncated or not such a trace.
    """
    try:
        with path.open("rb") as stream:
            is_gzip = stream.read(2) == b"\x1f\x8b"
        # The content decides, not the name.
        with (gzip.open if is_gzip else open)(path, "rt", encoding="utf-8", errors="replace") as lines:
            return _document(_Text(path.name, cast(IO[str], lines)), handle)
    except (OSError, EOFError, zlib.error) as error:
        raise ToolOutputError(f"{path.name} was not written, is cut short or damaged: {_REMEDY}") from error


class _Text:
    """A text that is read in chunks; values are decoded from the current position."""

    def __init__(self, name: str, stream: IO[str]) -> None:
        self._name, self._stream = name, stream
        self._text, self._at = "", 0

    def peek(self) -> str:
        """Return the next character that is not white space, '' at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def take(self, wanted: str) -> str:
        """Skip one of the characters ``wanted`` and return it. Raises ToolOutputError for any other."""
        found = self.peek()
        if not found or found not in wanted:
            raise self.trouble()
        self._at += 1
        return found

    def value(self) -> object:
        """Decode the next value. Raises ToolOutputError if there is none."""
        self.peek()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if not self._more():
                    raise self.trouble() from error
                continue
            # A number at the end of a chunk may continue in the next one.
            if end < len(self._text) or not self._more():
                self._at = end
                return cast(object, found)

    def trouble(self) -> ToolOutputError:
        """Return the error for an unexpected character or an unexpected end."""
        return ToolOutputError(f"{self._name} is empty, cut short, damaged or not JSON: {_REMEDY}")

    def _more(self) -> bool:
        """Read the next chunk; return False at the end. Raises ToolOutputError if one value is too long."""
        if len(self._text) - self._at > _LONGEST:
            raise ToolOutputError(f"{self._name} is not a trace: one value in it is longer than {_LONGEST >> 20} MiB")
        chunk = self._stream.read(_CHUNK)
        self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)


def _document(text: _Text, handle: Callable[[Mapping[str, object]], None]) -> Mapping[str, object]:
    others: dict[str, object] = {}
    events = 0
    for _ in _parts(text, "{", "}"):
        key = text.value()
        text.take(":")
        if not isinstance(key, str):
            raise text.trouble()
        if key != _EVENTS:
            others[key] = text.value()
            continue
        if events:
            raise ToolOutputError(f"the trace contains {_EVENTS} twice")
        for events, _ in enumerate(_parts(text, "[", "]"), 1):  # noqa: B007 (how many these were)
            event = text.value()
            if not isinstance(event, dict):
                raise ToolOutputError("the trace contains an event that is not an object")
            handle(event)
    if text.peek():
        raise text.trouble()
    if not events:
        raise ToolOutputError(f"the trace contains no {_EVENTS}: it is empty, or JSON of another program")
    return others


def _parts(text: _Text, opening: str, closing: str) -> Iterator[None]:
    """Yield before each member of an object or item of an array, so that the caller can read it."""
    text.take(opening)
    if text.peek() == closing:
        text.take(closing)
        return
    yield
    while text.take("," + closing) == ",":
        yield
