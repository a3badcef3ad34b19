"""``torch-profiler``: operators, regions and steps of a PyTorch program, from Chrome traces that it exports itself.

The program profiles itself with ``torch.profiler`` and chooses where to write; drivers/written_files.py copies the new
traces. Several traces are those of several ranks. The docstring of each metric's function says whether it is a sum over
ranks, their mean or the worst; it is None if no trace has the data. Shares are of the time of the steps
(``ProfilerStep``), which exist if the profiler has a ``schedule``.

``read_trace`` folds one trace: steps, loader, operators, regions, kernels, memory and all-reduces. The file, plain or
gzipped, is a Chrome trace ("Trace Event Format" of Chromium, as Kineto's ``output_json.cpp`` writes it). It is read
event by event. An event takes 32 B of memory, so a trace of a gigabyte takes some hundred megabytes. Times are in µs,
as in the file. Names of events and categories are those of Kineto in PyTorch 2.x. Events of one thread nest, so self
time is a span's length minus that of the spans directly inside it, as in ``key_averages()``.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, cast

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Hotspot, Parsed, Profile, Reading, StackCounts, Usage
from perfflow.model.stacks import Stack, write_folded
from perfflow.stats.paired_test import quantile
from perfflow.tools import parsed_output, python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role, leaves
from perfflow.tools.parsed_output import Json

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
class OperatorSums:
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
class FoldedTrace:
    """A folded trace; ``rank`` is None if the program was not distributed."""

    rank: int | None = None
    rows: dict[tuple[str, str], OperatorSums] = field(default_factory=dict)
    steps: dict[int, Interval] = field(default_factory=dict)
    loading: list[Interval] = field(default_factory=list)
    kernels: dict[str, list[Interval]] = field(default_factory=dict)
    """The intervals in which each device computes."""
    device_rows: dict[tuple[str, str], OperatorSums] = field(default_factory=dict)
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
        row = self.device_rows.setdefault((name, category), OperatorSums(tool_files.clean_name(name), category))
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
        open_spans: list[tuple[float, OperatorSums, Stack]] = []
        self_time: defaultdict[Stack, float] = defaultdict(float)
        called: list[Interval] = []
        for at in order:
            start, length, number = thread[at : at + 3]
            name, kind = names[int(number)]
            # All-reduce calls that have ended kept their thread waiting until this event.
            self.waits += [(begun, start) for begun, end in called if end <= start]
            called = [call for call in called if call[1] > start]
            while open_spans and open_spans[-1][0] <= start:
                open_spans.pop()
            row = self.rows.setdefault((name, kind), OperatorSums(tool_files.clean_name(name), kind))
            # A recursive call is already part of the outer call's total.
            row.add(length, length if all(parent is not row for _, parent, _ in open_spans) else 0.0)
            stack: Stack = (row.name,)
            if open_spans:
                end, parent, around = open_spans[-1]
                parent.own -= min(length, end - start)
                self_time[around] -= min(length, end - start)
                stack = (*around, row.name)
            self_time[stack] += length
            open_spans.append((start + length, row, stack))
            if _ALLREDUCE_CALL.match(name):
                called.append((start, start + length))
        whole = {stack: round(spent * _NANOS) for stack, spent in self_time.items()}
        self.stacks.append(Counter({stack: spent for stack, spent in whole.items() if spent > 0}))


def read_trace(path: Path) -> FoldedTrace:
    """Fold a trace. Raises ToolOutputError if it is damaged, or contains no event of PyTorch's profiler."""
    trace = FoldedTrace()
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
            return _document(_TorchProfilerText(path.name, cast(IO[str], lines)), handle)
    except (OSError, EOFError, zlib.error) as error:
        raise ToolOutputError(f"{path.name} was not written, is cut short or damaged: {_REMEDY}") from error


class _TorchProfilerText:
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
                decoded, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if not self._more():
                    raise self.trouble() from error
                continue
            # A number at the end of a chunk may continue in the next one.
            if end < len(self._text) or not self._more():
                self._at = end
                return cast(object, decoded)

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


def _document(text: _TorchProfilerText, handle: Callable[[Mapping[str, object]], None]) -> Mapping[str, object]:
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


def _parts(text: _TorchProfilerText, opening: str, closing: str) -> Iterator[None]:
    """Yield before each member of an object or item of an array, so that the caller can read it."""
    text.take(opening)
    if text.peek() == closing:
        text.take(closing)
        return
    yield
    while text.take("," + closing) == ",":
        yield


NAME = "torch-profiler"
_DRIVER = python_command.driver_command("written_files.py")
_LISTED = "written.json"
_TABLE, _FOLDED = "operators.json", "operators.folded"
_MOST_ROWS = 20
_MICRO = 1e-6


class TorchProfilerOptions(CommandOptions):
    """``with`` keys of ``uses: torch-profiler``."""

    trace: str = Field(
        default="trace*.json*",
        min_length=1,
        description="Path or glob of the traces that the program writes (.json or .json.gz), one for each rank.",
    )


class _TorchProfilerFile(Json):
    # The driver chooses these names.
    copied: str = Field(alias="copy", pattern=r"^written-[0-9]{1,6}(\.[A-Za-z0-9_]{1,20}){0,2}$")


class _Listed(Json):
    files: list[_TorchProfilerFile]
    old: list[str]


def invocations(call: Call[TorchProfilerOptions]) -> tuple[Invocation, ...]:
    """Run the program, and copy the traces that it writes."""
    pattern = call.options.trace
    return (Invocation((*_DRIVER, str(call.folder), pattern, "--", *call.command)),)


def parse(call: Call[TorchProfilerOptions], usage: Usage) -> Parsed:
    """Fold the traces into metrics and hotspots, and write every operator to ``operators.json``.

    Raises ToolOutputError with a remedy if there is no new trace, or if a trace is damaged or empty.
    """
    listed = parsed_output.read_json(_Listed, call.folder / _LISTED)
    if not listed.files:
        pattern = tool_files.clean_name(call.options.trace)[:100]
        there = "only older files match" if listed.old else "no file matches"
        raise ToolOutputError(
            f"the program wrote no trace: {there} {pattern!r}; call `export_chrome_trace` with such a path, or set "
            "`trace` to the path of its traces"
        )
    names = [file.copied for file in listed.files]
    traces = [read_trace(call.folder / name) for name in names]
    ranks = Counter(trace.rank for trace in traces if trace.rank is not None)
    for rank, number in ranks.items():
        # Sums would count the rank twice.
        if number > 1:
            raise ToolOutputError(f"{number} traces are of rank {rank}: set `trace` to match one trace for each rank")
    rows = _summed([trace.rows for trace in traces])
    device = _summed([trace.device_rows for trace in traces])
    steps = [{str(number): end - start for number, (start, end) in trace.steps.items()} for trace in traces]
    table = {"unit": "us", "steps": steps, "cpu": [*map(asdict, rows)], "device": [*map(asdict, device)]}
    (call.folder / _TABLE).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    stacks = _stacks(traces)
    (call.folder / _FOLDED).write_text(write_folded(stacks), encoding="utf-8")
    folded = [Profile(_FOLDED, "folded", StackCounts("ns", by_thread=True))] if stacks else []
    figures = ((metric, figure(traces)) for metric, figure in FIGURES.items())
    return Parsed(
        tuple(Reading(metric, value) for metric, value in figures if value is not None),
        (*_hotspots(rows, "time"), *_hotspots(device, "device time")),
        (*(Profile(name, "chrome-trace") for name in names), Profile(_TABLE, "operators"), *folded),
        tuple(_warnings(traces)),
    )


def _stacks(traces: Sequence[FoldedTrace]) -> Counter[Stack]:
    """Return operators and regions on the CPU below their thread, counted from 1: system ids differ in every run."""
    found = Counter[Stack]()
    for place, trace in enumerate(traces):
        rank = f"rank {place if trace.rank is None else trace.rank}, " if len(traces) > 1 else ""
        for number, stacks in enumerate(trace.stacks, 1):
            found.update({(f"{rank}thread {number}", *stack): spent for stack, spent in stacks.items()})
    return found


def _summed(tables: Sequence[Mapping[tuple[str, str], OperatorSums]]) -> list[OperatorSums]:
    """Return the sums of the rows of several traces, the largest own time first."""
    sums: dict[tuple[str, str], OperatorSums] = {}
    for table in tables:
        for key, row in table.items():
            sums.setdefault(key, OperatorSums(row.name, row.kind)).add(row.own, row.total, row.calls)
    return sorted(sums.values(), key=lambda row: (-row.own, row.name, row.kind))


def _hotspots(rows: Sequence[OperatorSums], unit: str) -> Iterator[Hotspot]:
    """Yield the largest rows by their own time."""
    whole = sum(max(0.0, row.own) for row in rows)
    for row in rows[:_MOST_ROWS]:
        if row.own > 0:
            calls = "1 call" if row.calls == 1 else f"{row.calls:,} calls"
            within = "" if unit != "time" else f", {row.total / 1e3:.3g} ms in total"
            cause = f"measured: {row.kind}, {calls}, {row.own / 1e3:.3g} ms own time{within}"
            yield Hotspot(row.name, row.own / whole, unit, NAME, cause=cause)


def _warnings(traces: Sequence[FoldedTrace]) -> Iterator[str]:
    """Yield a warning for each group of metrics that the traces do not give."""
    if not all(trace.steps for trace in traces):
        remedy = "give the profiler a `schedule` and call its `step()`"
        yield f"a trace has no ProfilerStep, so shares of steps are missing: {remedy}"
    elif not any(trace.loading for trace in traces):
        yield "no step reads from a DataLoader, so dataloader_wait is missing"
    if len(traces) > 1 and any(trace.rank is None for trace in traces):
        yield "not every trace has a rank: each trace counts as a rank of its own"


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of the intervals, as intervals in order that do not overlap."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def length(intervals: Iterable[Interval]) -> float:
    """Return the sum of the lengths. Take the union of overlapping intervals first."""
    return sum(end - start for start, end in intervals)


def within(intervals: Iterable[Interval], windows: Iterable[Interval]) -> list[Interval]:
    """Return the intersection of the union of the intervals with the union of the windows."""
    first, second, common = union(intervals), union(windows), []
    one = other = 0
    while one < len(first) and other < len(second):
        start, end = max(first[one][0], second[other][0]), min(first[one][1], second[other][1])
        if start < end:
            common.append((start, end))
        if first[one][1] <= second[other][1]:
            one += 1
        else:
            other += 1
    return common


def dataloader_wait(traces: Sequence[FoldedTrace]) -> float | None:
    """Return the share of the time of steps that is in the loader's ``__next__``, over all ranks."""
    told = [trace for trace in traces if trace.steps and trace.loading]
    if not told:
        return None
    waited = sum(length(within(trace.loading, _steps(trace))) for trace in told)
    return waited / sum(length(union(_steps(trace))) for trace in told)


def compile_time(traces: Sequence[FoldedTrace]) -> float | None:
    """Return how much longer (s) the first step took than the median of the others, without loading; the worst rank.

    Besides compiling, it includes all other work that a program does once. It needs ``ProfilerStep#0`` in the trace, so
    a schedule without ``wait``, ``warmup`` and ``skip_first``, and at least two more steps.
    """
    return _worst(map(_extra, traces))


def _extra(trace: FoldedTrace) -> float | None:
    if 0 not in trace.steps or len(trace.steps) < 3:
        return None
    own = {number: length([step]) - length(within(trace.loading, [step])) for number, step in trace.steps.items()}
    first = own.pop(0)
    return max(0.0, first - quantile(list(own.values()), 0.5)) * _MICRO


def gpu_util(traces: Sequence[FoldedTrace]) -> float | None:
    """Return the share of the time in which a kernel runs, the mean of all devices.

    The time is that of the steps, or without steps from the first kernel to the last.
    """
    shares = []
    for trace in traces:
        for spans in trace.kernels.values():
            around = _steps(trace) or spans
            windows = [(min(around)[0], max(end for _, end in around))] if spans else []
            whole = length(windows)
            shares.append(length(within(spans, windows)) / whole if whole else 0.0)
    return sum(shares) / len(shares) if shares else None


def gpu_memory_peak(traces: Sequence[FoldedTrace]) -> float | None:
    """Return the most bytes that tensors held on one device, of the worst rank. It needs ``profile_memory=True``."""
    return _worst(trace.peaks.get("gpu_memory_peak") for trace in traces)


def tensor_memory_peak(traces: Sequence[FoldedTrace]) -> float | None:
    """Return the same for the CPU, counted from the start of the profiler."""
    return _worst(trace.peaks.get("tensor_memory_peak") for trace in traces)


def allreduce_fraction(traces: Sequence[FoldedTrace]) -> float | None:
    """Return the share of the time of steps in which a rank runs an all-reduce, the mean of all ranks.

    On a device, an all-reduce lasts as long as its kernel; on the CPU, as long as gloo reports, or from its call to the
    next event of the rank's thread.
    """
    shares = []
    for trace in traces:
        whole = length(union(_steps(trace)))
        if spans := trace.on_device or [*trace.allreduces, *trace.waits]:
            shares += [length(within(spans, _steps(trace))) / whole] if whole else []
    return sum(shares) / len(shares) if shares else None


def rank_skew(traces: Sequence[FoldedTrace]) -> float | None:
    """Return how much longer the slowest rank's step is than the mean rank's, as a share, without all-reduce waits."""
    told = [trace for trace in traces if trace.steps]
    if len(told) < 2:
        return None
    own = [_own_work(trace) for trace in told]
    mean = sum(own) / len(own)
    return max(own) / mean - 1.0 if mean > 0 else None


def _own_work(trace: FoldedTrace) -> float:
    """Return the mean length of a step (µs) without the time in which the rank waits."""
    waits = within(trace.on_device or trace.waits, _steps(trace))
    return (length(union(_steps(trace))) - length(waits)) / len(trace.steps)


def _worst(told: Iterable[float | None]) -> float | None:
    return max((figure for figure in told if figure is not None), default=None)


def _steps(trace: FoldedTrace) -> list[Interval]:
    return list(trace.steps.values())


_ALL = (dataloader_wait, compile_time, gpu_util, gpu_memory_peak, tensor_memory_peak, allreduce_fraction, rank_skew)
FIGURES = {figure.__name__: figure for figure in _ALL}
"""The function of each metric."""


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    options=TorchProfilerOptions,
    metrics=builtin_metrics(*FIGURES),
    outputs=leaves(_LISTED),
)
