"""``torch-profiler``: operators, regions and steps of a PyTorch program, from Chrome traces that it exports itself.

The program profiles itself by ``torch.profiler`` and writes where it likes; drivers/written_files.py keeps copies of
the traces that are new. Several traces are those of several ranks. A figure is a sum over ranks, a mean of them, or of
the worst, as its function says; None where no trace tells. Shares are of the time of the steps (``ProfilerStep``),
which exist where the profiler has a ``schedule``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import of_perfflow
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
_KEPT = 20
_MICRO = 1e-6


class Options(CommandOptions):
    """``with`` keys of ``uses: torch-profiler``."""

    trace: str = Field(
        default="trace*.json*",
        min_length=1,
        description="The traces that the program writes, a path or glob, .json or .json.gz; one for each rank.",
    )


class _File(Json):
    # As the driver names them.
    copied: str = Field(alias="copy", pattern=r"^written-[0-9]{1,6}(\.[A-Za-z0-9_]{1,20}){0,2}$")


class _Listed(Json):
    files: list[_File]
    old: list[str]


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Run the program, and copy the traces that it wrote."""
    pattern = call.options.trace
    return (Invocation((*_DRIVER, str(call.folder), pattern, "--", *call.command)),)


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Fold the traces into figures and hotspots; every operator goes into ``operators.json``.

    Raises ToolOutputError with a remedy if there is no new trace, or if one is damaged or holds nothing.
    """
    listed = tool_json.read(_Listed, call.folder / _LISTED)
    if not listed.files:
        pattern = tool_files.clean_name(call.options.trace)[:100]
        there = "only older ones match" if listed.old else "nothing matches"
        raise ToolOutputError(
            f"the program wrote no trace, {there} {pattern!r}: have it call `export_chrome_trace` with such a path, "
            "or say under `trace` where it writes"
        )
    names = [file.copied for file in listed.files]
    traces = [torch_trace.read(call.folder / name) for name in names]
    ranks = Counter(trace.rank for trace in traces if trace.rank is not None)
    for rank, number in ranks.items():
        # Their sums would count the rank twice.
        if number > 1:
            raise ToolOutputError(f"{number} traces are of rank {rank}: name one for each under `trace`")
    rows = _together([trace.rows for trace in traces])
    device = _together([trace.device_rows for trace in traces])
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
    """The operators and regions of all threads on the CPU, below their thread; its number differs in every run."""
    found = Counter[Stack]()
    for place, trace in enumerate(traces):
        rank = f"rank {place if trace.rank is None else trace.rank}, " if len(traces) > 1 else ""
        for number, stacks in enumerate(trace.stacks, 1):
            found.update({(f"{rank}thread {number}", *stack): spent for stack, spent in stacks.items()})
    return found


def _together(tables: Sequence[Mapping[tuple[str, str], Row]]) -> list[Row]:
    """Sum the rows of several traces, the largest first."""
    sums: dict[tuple[str, str], Row] = {}
    for table in tables:
        for key, row in table.items():
            sums.setdefault(key, Row(row.name, row.kind)).add(row.own, row.total, row.calls)
    return sorted(sums.values(), key=lambda row: (-row.own, row.name, row.kind))


def _hotspots(rows: Sequence[Row], unit: str) -> Iterator[Hotspot]:
    """Yield the largest rows by their own time."""
    whole = sum(max(0.0, row.own) for row in rows)
    for row in rows[:_KEPT]:
        if row.own > 0:
            calls = "1 call" if row.calls == 1 else f"{row.calls:,} calls"
            within = "" if unit != "time" else f", {row.total / 1e3:.3g} ms with all in it"
            cause = f"measured: {row.kind}, {calls}, {row.own / 1e3:.3g} ms of its own{within}"
            yield Hotspot(row.name, row.own / whole, unit, NAME, cause=cause)


def _warnings(traces: Sequence[Trace]) -> Iterator[str]:
    """Say what the traces cannot tell."""
    if not all(trace.steps for trace in traces):
        remedy = "give the profiler a `schedule` and call its `step()`"
        yield f"a trace has no ProfilerStep, so shares of steps are not told: {remedy}"
    elif not any(trace.loading for trace in traces):
        yield "no step takes from a DataLoader, so dataloader_wait is not told"
    if len(traces) > 1 and any(trace.rank is None for trace in traces):
        yield "not every trace says its rank: each is taken for a rank of its own"


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return what the intervals cover together, as ones that do not overlap, in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def length(intervals: Iterable[Interval]) -> float:
    """Sum of the lengths; of overlapping ones take the union first."""
    return sum(end - start for start, end in intervals)


def within(intervals: Iterable[Interval], windows: Iterable[Interval]) -> list[Interval]:
    """Return the parts of what the intervals cover that lie in what the windows cover."""
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
    """Time in the loader's ``__next__`` within steps over that of the steps, over all ranks."""
    told = [trace for trace in traces if trace.steps and trace.loading]
    if not told:
        return None
    waited = sum(length(within(trace.loading, _steps(trace))) for trace in told)
    return waited / sum(length(union(_steps(trace))) for trace in told)


def compile_time(traces: Sequence[Trace]) -> float | None:
    """How much longer the very first step took than the median of the others, s, loading aside; of the worst rank.

    Beside compiling it holds whatever else a program does once. Told where ``ProfilerStep#0`` is in the trace, so of a
    schedule without ``wait``, ``warmup`` and ``skip_first``, and two steps more.
    """
    return _worst(map(_extra, traces))


def _extra(trace: Trace) -> float | None:
    if 0 not in trace.steps or len(trace.steps) < 3:
        return None
    own = {number: length([step]) - length(within(trace.loading, [step])) for number, step in trace.steps.items()}
    first = own.pop(0)
    return max(0.0, first - quantile(list(own.values()), 0.5)) * _MICRO


def gpu_util(traces: Sequence[Trace]) -> float | None:
    """Share of the time in which a kernel runs, the mean of all devices; without steps from first to last kernel."""
    shares = []
    for trace in traces:
        for spans in trace.kernels.values():
            around = _steps(trace) or spans
            windows = [(min(around)[0], max(end for _, end in around))] if spans else []
            whole = length(windows)
            shares.append(length(within(spans, windows)) / whole if whole else 0.0)
    return sum(shares) / len(shares) if shares else None


def gpu_memory_peak(traces: Sequence[Trace]) -> float | None:
    """The most bytes that PyTorch's tensors held on one device, of the worst rank. Told by ``profile_memory=True``."""
    return _worst(trace.peaks.get("gpu_memory_peak") for trace in traces)


def tensor_memory_peak(traces: Sequence[Trace]) -> float | None:
    """The same on the CPU, counted from the profiler's start on."""
    return _worst(trace.peaks.get("tensor_memory_peak") for trace in traces)


def allreduce_fraction(traces: Sequence[Trace]) -> float | None:
    """Share of the steps in which a rank has an all-reduce under way, the mean of all ranks.

    On a device that is while its kernel runs; on the CPU as long as gloo says, or from its call to what the rank's
    thread did next.
    """
    shares = []
    for trace in traces:
        whole = length(union(_steps(trace)))
        if spans := trace.on_device or [*trace.allreduces, *trace.held]:
            shares += [length(within(spans, _steps(trace))) / whole] if whole else []
    return sum(shares) / len(shares) if shares else None


def rank_skew(traces: Sequence[Trace]) -> float | None:
    """How much longer a step of the slowest rank is than the mean rank's, each without its waiting for all-reduces."""
    told = [trace for trace in traces if trace.steps]
    if len(told) < 2:
        return None
    own = [_own_work(trace) for trace in told]
    mean = sum(own) / len(own)
    return max(own) / mean - 1.0 if mean > 0 else None


def _own_work(trace: Trace) -> float:
    """Mean length of a step without the time in which the rank waits, µs."""
    waits = within(trace.on_device or trace.held, _steps(trace))
    return (length(union(_steps(trace))) - length(waits)) / len(trace.steps)


def _worst(told: Iterable[float | None]) -> float | None:
    return max((figure for figure in told if figure is not None), default=None)


def _steps(trace: Trace) -> list[Interval]:
    return list(trace.steps.values())


_ALL = (dataloader_wait, compile_time, gpu_util, gpu_memory_peak, tensor_memory_peak, allreduce_fraction, rank_skew)
FIGURES = {figure.__name__: figure for figure in _ALL}
"""By metric."""


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    options=Options,
    metrics=of_perfflow(*FIGURES),
    outputs=leaves(_LISTED),
)
