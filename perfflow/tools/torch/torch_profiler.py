"""``torch-profiler``: operators, regions and steps of a PyTorch program, from Chrome traces that it exports itself.

The program profiles itself with ``torch.profiler`` and chooses where to write; drivers/written_files.py copies the new
traces. Several traces are those of several ranks. The docstring of each metric's function says whether it is a sum over
ranks, their mean or the worst; it is None if no trace has the data. Shares are of the time of the steps
(``ProfilerStep``), which exist if the profiler has a ``schedule``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Hotspot, Parsed, Profile, Reading, StackCounts, Usage
from perfflow.model.stacks import Stack, write_folded
from perfflow.stats.paired_test import quantile
from perfflow.tools import python_command, tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role, leaves
from perfflow.tools.tool_json import Json
from perfflow.tools.torch import torch_trace
from perfflow.tools.torch.torch_trace import Interval, Row, Trace

NAME = "torch-profiler"
_DRIVER = python_command.driver_command("written_files.py")
_LISTED = "written.json"
_TABLE, _FOLDED = "operators.json", "operators.folded"
_MOST_ROWS = 20
_MICRO = 1e-6


class Options(CommandOptions):
    """``with`` keys of ``uses: torch-profiler``."""

    trace: str = Field(
        default="trace*.json*",
        min_length=1,
        description="Path or glob of the traces that the program writes (.json or .json.gz), one for each rank.",
    )


class _File(Json):
    # The driver chooses these names.
    copied: str = Field(alias="copy", pattern=r"^written-[0-9]{1,6}(\.[A-Za-z0-9_]{1,20}){0,2}$")


class _Listed(Json):
    files: list[_File]
    old: list[str]


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Run the program, and copy the traces that it writes."""
    pattern = call.options.trace
    return (Invocation((*_DRIVER, str(call.folder), pattern, "--", *call.command)),)


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Fold the traces into metrics and hotspots, and write every operator to ``operators.json``.

    Raises ToolOutputError with a remedy if there is no new trace, or if a trace is damaged or empty.
    """
    listed = tool_json.read(_Listed, call.folder / _LISTED)
    if not listed.files:
        pattern = tool_files.clean_name(call.options.trace)[:100]
        there = "only older files match" if listed.old else "no file matches"
        raise ToolOutputError(
            f"the program wrote no trace: {there} {pattern!r}; call `export_chrome_trace` with such a path, or set "
            "`trace` to the path of its traces"
        )
    names = [file.copied for file in listed.files]
    traces = [torch_trace.read(call.folder / name) for name in names]
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


def _stacks(traces: Sequence[Trace]) -> Counter[Stack]:
    """Return operators and regions on the CPU below their thread, counted from 1: system ids differ in every run."""
    found = Counter[Stack]()
    for place, trace in enumerate(traces):
        rank = f"rank {place if trace.rank is None else trace.rank}, " if len(traces) > 1 else ""
        for number, stacks in enumerate(trace.stacks, 1):
            found.update({(f"{rank}thread {number}", *stack): spent for stack, spent in stacks.items()})
    return found


def _summed(tables: Sequence[Mapping[tuple[str, str], Row]]) -> list[Row]:
    """Return the sums of the rows of several traces, the largest own time first."""
    sums: dict[tuple[str, str], Row] = {}
    for table in tables:
        for key, row in table.items():
            sums.setdefault(key, Row(row.name, row.kind)).add(row.own, row.total, row.calls)
    return sorted(sums.values(), key=lambda row: (-row.own, row.name, row.kind))


def _hotspots(rows: Sequence[Row], unit: str) -> Iterator[Hotspot]:
    """Yield the largest rows by their own time."""
    whole = sum(max(0.0, row.own) for row in rows)
    for row in rows[:_MOST_ROWS]:
        if row.own > 0:
            calls = "1 call" if row.calls == 1 else f"{row.calls:,} calls"
            within = "" if unit != "time" else f", {row.total / 1e3:.3g} ms in total"
            cause = f"measured: {row.kind}, {calls}, {row.own / 1e3:.3g} ms own time{within}"
            yield Hotspot(row.name, row.own / whole, unit, NAME, cause=cause)


def _warnings(traces: Sequence[Trace]) -> Iterator[str]:
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
    first, second, found = union(intervals), union(windows), []
    one = other = 0
    while one < len(first) and other < len(second):
        start, end = max(first[one][0], second[other][0]), min(first[one][1], second[other][1])
        if start < end:
            found.append((start, end))
        if first[one][1] <= second[other][1]:
            one += 1
        else:
            other += 1
    return found


def dataloader_wait(traces: Sequence[Trace]) -> float | None:
    """Return the share of the time of steps that is in the loader's ``__next__``, over all ranks."""
    told = [trace for trace in traces if trace.steps and trace.loading]
    if not told:
        return None
    waited = sum(length(within(trace.loading, _steps(trace))) for trace in told)
    return waited / sum(length(union(_steps(trace))) for trace in told)


def compile_time(traces: Sequence[Trace]) -> float | None:
    """Return how much longer (s) the first step took than the median of the others, without loading; the worst rank.

    Besides compiling, it includes all other work that a program does once. It needs ``ProfilerStep#0`` in the trace, so
    a schedule without ``wait``, ``warmup`` and ``skip_first``, and at least two more steps.
    """
    return _worst(map(_extra, traces))


def _extra(trace: Trace) -> float | None:
    if 0 not in trace.steps or len(trace.steps) < 3:
        return None
    own = {number: length([step]) - length(within(trace.loading, [step])) for number, step in trace.steps.items()}
    first = own.pop(0)
    return max(0.0, first - quantile(list(own.values()), 0.5)) * _MICRO


def gpu_util(traces: Sequence[Trace]) -> float | None:
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


def gpu_memory_peak(traces: Sequence[Trace]) -> float | None:
    """Return the most bytes that tensors held on one device, of the worst rank. It needs ``profile_memory=True``."""
    return _worst(trace.peaks.get("gpu_memory_peak") for trace in traces)


def tensor_memory_peak(traces: Sequence[Trace]) -> float | None:
    """Return the same for the CPU, counted from the start of the profiler."""
    return _worst(trace.peaks.get("tensor_memory_peak") for trace in traces)


def allreduce_fraction(traces: Sequence[Trace]) -> float | None:
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


def rank_skew(traces: Sequence[Trace]) -> float | None:
    """Return how much longer the slowest rank's step is than the mean rank's, as a share, without all-reduce waits."""
    told = [trace for trace in traces if trace.steps]
    if len(told) < 2:
        return None
    own = [_own_work(trace) for trace in told]
    mean = sum(own) / len(own)
    return max(own) / mean - 1.0 if mean > 0 else None


def _own_work(trace: Trace) -> float:
    """Return the mean length of a step (µs) without the time in which the rank waits."""
    waits = within(trace.on_device or trace.waits, _steps(trace))
    return (length(union(_steps(trace))) - length(waits)) / len(trace.steps)


def _worst(told: Iterable[float | None]) -> float | None:
    return max((figure for figure in told if figure is not None), default=None)


def _steps(trace: Trace) -> list[Interval]:
    return list(trace.steps.values())


_ALL = (dataloader_wait, compile_time, gpu_util, gpu_memory_peak, tensor_memory_peak, allreduce_fraction, rank_skew)
FIGURES = {figure.__name__: figure for figure in _ALL}
"""The function of each metric."""


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    options=Options,
    metrics=builtin_metrics(*FIGURES),
    outputs=leaves(_LISTED),
)
