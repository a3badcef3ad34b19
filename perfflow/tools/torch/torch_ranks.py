"""What the traces of one or several ranks say of a training run, as figures.

Each is a sum over ranks, a mean of them, or of the worst, as its function says; None where no trace tells. Shares are
of the time of the steps (``ProfilerStep``), which exist where the profiler has a ``schedule``.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.statistics import quantile
from perfflow.tools.torch.intervals import Interval, length, union, within
from perfflow.tools.torch.torch_trace import Trace, busy

_MICRO = 1e-6


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
    return max((extra * _MICRO for trace in traces if (extra := _extra(trace)) is not None), default=None)


def _extra(trace: Trace) -> float | None:
    if 0 not in trace.steps or len(trace.steps) < 3:
        return None
    own = {number: length([step]) - length(within(trace.loading, [step])) for number, step in trace.steps.items()}
    first = own.pop(0)
    return max(0.0, first - quantile(list(own.values()), 0.5))


def gpu_util(traces: Sequence[Trace]) -> float | None:
    """Share of the time in which a kernel runs, the mean of all devices; without steps from first to last kernel."""
    shares = []
    for trace in traces:
        for spans in busy(trace).values():
            around = _steps(trace) or spans
            windows = [(min(around)[0], max(end for _, end in around))] if spans else []
            whole = length(windows)
            shares.append(length(within(spans, windows)) / whole if whole else 0.0)
    return sum(shares) / len(shares) if shares else None


def gpu_memory_peak(traces: Sequence[Trace]) -> float | None:
    """The most bytes that PyTorch's tensors held on one device, of the worst rank. Told by ``profile_memory=True``."""
    return max((float(trace.device_peak) for trace in traces if trace.device_peak is not None), default=None)


def tensor_memory_peak(traces: Sequence[Trace]) -> float | None:
    """The same on the CPU, counted from the profiler's start on."""
    return max((float(trace.tensor_peak) for trace in traces if trace.tensor_peak is not None), default=None)


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


def _steps(trace: Trace) -> list[Interval]:
    return list(trace.steps.values())


FIGURES = {
    figure.__name__: figure
    for figure in (
        *(dataloader_wait, compile_time, gpu_util, gpu_memory_peak, tensor_memory_peak),
        *(allreduce_fraction, rank_skew),
    )
}
"""By metric."""
