"""One trace of ``torch.profiler``, folded: steps, loader, operators, regions, kernels, memory and all-reduces.

Times are in µs, as in the file, and shares are taken of them. Names of events and categories are Kineto's of PyTorch
2.x. Events of one thread nest, so self time is a span's length less that of the spans directly inside it, which is also
what ``key_averages()`` says. Of an event 32 B are kept, so that a trace of a gigabyte takes some hundred megabytes.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.torch import chrome_trace
from perfflow.tools.torch.intervals import Interval, union

STEP = re.compile(r"ProfilerStep#(\d{1,9})\Z", re.ASCII)
STEPS = "ProfilerStep"
"""What all steps are called together: time in none of their operators is Python's own."""
_LOADING = re.compile(r"enumerate\(DataLoader\)#.*__next__\Z")
_ALLREDUCE = re.compile(r"(?:gloo|nccl|mpi|ucc|xccl):all_?reduce", re.IGNORECASE)
_ALLREDUCE_CALL = re.compile(r"c10d::allreduce_")
_ALLREDUCE_KERNEL = re.compile(r"(?:nccl|rccl|onccl).*all_?reduce", re.IGNORECASE)
_ON_CPU = {"cpu_op": "operator", "user_annotation": "region", "cuda_runtime": "runtime", "cuda_driver": "runtime"}
_ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_MEMORY = "[memory]"
_CPU = 0
"""``Device Type`` of the CPU; all others are devices."""


@dataclass(slots=True)
class Row:
    """What all events of one name add up to: ``own`` and ``total`` time in µs."""

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
    """A folded trace. Intervals are (start, end) in µs; ``rank`` is None where the program was not distributed."""

    rank: int | None = None
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    steps: dict[int, Interval] = field(default_factory=dict)
    loading: list[Interval] = field(default_factory=list)
    kernels: dict[str, list[Interval]] = field(default_factory=dict)
    """Busy times of each device."""
    device_rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    allreduces: list[Interval] = field(default_factory=list)
    """As gloo or nccl record them, on a thread of their own."""
    held: list[Interval] = field(default_factory=list)
    """From the call of each all-reduce to what its thread did next: how long the thread was kept."""
    on_device: list[Interval] = field(default_factory=list)
    """All-reduces as kernels, which is where nccl's time is."""
    device_peak: int | None = None
    """Largest sum of bytes that tensors held on one device."""
    tensor_peak: int | None = None
    """The same on the CPU."""


def read(path: Path) -> Trace:
    """Fold a trace. Raises ToolOutputError if it is damaged, or holds nothing that a profiler of PyTorch records."""
    reader = _Reader()
    others = chrome_trace.read(path, reader.see)
    trace = reader.folded()
    info = others.get("distributedInfo")
    if isinstance(info, dict) and "rank" in info:
        trace.rank = tool_files.whole(info["rank"], "rank")
    if not trace.rows and not trace.device_rows:
        remedy = "is its `schedule` ever active, and does the program call its `step()` often enough?"
        raise ToolOutputError(f"{path.name} holds no operator: the profiler recorded nothing; {remedy}")
    return trace


class _Reader:
    """Takes a trace's events in any order."""

    def __init__(self) -> None:
        self._trace = Trace()
        # The spans of each thread: start and length in µs, and the number of the name.
        self._threads: dict[tuple[str, str], array[float]] = {}
        self._names: dict[tuple[str, str], int] = {}
        self._began: float | None = None

    def see(self, event: Mapping[str, object]) -> None:
        """Keep what is of use of an event. Raises ToolOutputError for a span without its times."""
        phase, category, name = event.get("ph"), event.get("cat"), event.get("name")
        if not isinstance(name, str) or not isinstance(category, str):
            return
        if phase == "i" and name == _MEMORY:
            self._see_memory(event.get("args"))
        if phase != "X" or (category not in _ON_CPU and category not in _ON_DEVICE):
            return
        start = tool_files.number(event.get("ts"), f"ts of {name[:40]!a}")
        length = tool_files.number(event.get("dur"), f"dur of {name[:40]!a}")
        # Counted from the machine's start in µs, so that sums of a time and a length would lose nanoseconds.
        self._began = start if self._began is None else self._began
        start -= self._began
        if category in _ON_DEVICE:
            self._see_kernel(event, name, category, start, length)
        else:
            self._see_span(event, name, _ON_CPU[category], start, length)

    def folded(self) -> Trace:
        """Nest the spans of each thread, once all are there."""
        names = list(self._names)
        for thread in self._threads.values():
            self._fold(thread, names)
        return self._trace

    def _see_memory(self, args: object) -> None:
        if not isinstance(args, dict) or "Total Allocated" not in args:
            return
        size = tool_files.whole(args["Total Allocated"], "Total Allocated")
        held = "tensor_peak" if args.get("Device Type", _CPU) == _CPU else "device_peak"
        setattr(self._trace, held, max(size, getattr(self._trace, held) or 0))

    def _see_kernel(self, event: Mapping[str, object], name: str, category: str, start: float, length: float) -> None:
        args = event.get("args")
        device = str((args if isinstance(args, dict) else {}).get("device", event.get("pid")))
        span = (start, start + length)
        self._trace.kernels.setdefault(device, [])
        if category == "kernel":
            self._trace.kernels[device].append(span)
        row = self._trace.device_rows.setdefault((name, category), Row(tool_files.clean_name(name), category))
        row.add(length, length)
        if _ALLREDUCE_KERNEL.search(name):
            self._trace.on_device.append(span)

    def _see_span(self, event: Mapping[str, object], name: str, kind: str, start: float, length: float) -> None:
        span = (start, start + length)
        if kind == "region":
            if step := STEP.match(name):
                number = int(step[1])
                if number in self._trace.steps:
                    twice = f"the trace holds {name} twice"
                    raise ToolOutputError(f"{twice}: export each of several cycles to its own file")
                self._trace.steps[number] = span
                name = STEPS
            elif _LOADING.match(name):
                self._trace.loading.append(span)
        if _ALLREDUCE.match(name):
            self._trace.allreduces.append(span)
        thread = self._threads.setdefault((str(event.get("pid")), str(event.get("tid"))), array("d"))
        thread.extend((start, length, self._names.setdefault((name, kind), len(self._names))))

    def _fold(self, thread: array[float], names: Sequence[tuple[str, str]]) -> None:
        """Sum self and total times by name, and find what followed each call of an all-reduce."""
        order = sorted(range(0, len(thread), 3), key=lambda at: (thread[at], -thread[at + 1]))
        open_spans: list[tuple[float, Row]] = []
        called: list[Interval] = []
        for at in order:
            start, length, number = thread[at : at + 3]
            name, kind = names[int(number)]
            # How long the calls of all-reduces that are over by now held their thread.
            self._trace.held += [(begun, start) for begun, end in called if end <= start]
            called = [call for call in called if call[1] > start]
            while open_spans and open_spans[-1][0] <= start:
                open_spans.pop()
            row = self._trace.rows.setdefault((name, kind), Row(tool_files.clean_name(name), kind))
            # What is called by itself is within its own total already.
            row.add(length, length if all(parent is not row for _, parent in open_spans) else 0.0)
            if open_spans:
                end, parent = open_spans[-1]
                parent.own -= min(length, end - start)
            open_spans.append((start + length, row))
            if _ALLREDUCE_CALL.match(name):
                called.append((start, start + length))


def busy(trace: Trace) -> Mapping[str, Sequence[Interval]]:
    """Times when each device computes, without overlaps."""
    return {device: union(spans) for device, spans in trace.kernels.items()}
