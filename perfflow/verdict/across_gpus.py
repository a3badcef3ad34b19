"""Kernels of two sides that ran on different GPUs: compare how well each uses its GPU. This never is a regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.model.gpu.gpu_comparison import OnDevice
from perfflow.model.gpu.gpu_comparison import rows as lined_up
from perfflow.model.peaks import Peaks
from perfflow.model.readings import Side
from perfflow.model.result import Benchmark, RooflinePoint
from perfflow.model.result_kernels import KernelResult, OnGpu
from perfflow.store.record import Record
from perfflow.verdict.device import RanOn

MARK = "across GPUs: "
"""Prefix of the note on a row whose sides ran on different GPUs."""


def without_decisions(record: Record, rows: Sequence[Benchmark]) -> Iterator[Benchmark]:
    """Yield the rows. A row whose sides ran on different GPUs gets no decision and does not gate."""
    ran = RanOn(record)
    for row in rows:
        series = record.series[row.name, row.metric]
        first, second = (ran.device(series, side) for side in Side)
        if not (first and second and first != second and row.baseline and row.candidate):
            yield row
            continue
        note = f"{MARK}{first} and {second}, so there is no decision"
        undecided = {"decision": None, "level": "ok", "more": None, "gating": False, "leading": False, "accepted": ""}
        yield row.model_copy(update=undecided | {"warnings": [*row.warnings, note]})


def on_each_gpu(
    kernels: Sequence[KernelResult], rows: Sequence[Benchmark], points: Sequence[RooflinePoint], peaks: Peaks
) -> Iterator[OnGpu]:
    """Yield a line for each side of the kernels that ran on two GPUs, the best use of a GPU first."""
    by_name: dict[tuple[str, str], list[KernelResult]] = {}
    for item in kernels:
        by_name.setdefault((item.benchmark, item.name), []).append(item)
    shares = {(point.benchmark, point.tree): point.share for point in points}
    moved = {row.name: row for row in rows if row.metric == "bandwidth"}
    measured = []
    for group in by_name.values():
        if len({item.device for item in group if item.seconds}) > 1 and len({item.tree for item in group}) > 1:
            for item in (item for item in group if item.seconds):
                share = shares.get((item.benchmark, item.tree))
                share = _of_bandwidth(item, moved.get(item.benchmark), peaks) if share is None else share
                measured.append(OnDevice(item.name, item.device, item.seconds or 0.0, share))
    for line in lined_up(measured):
        yield OnGpu(
            kernel=line.kernel,
            device=line.device,
            seconds=line.seconds,
            share=line.share,
            slower=line.slower,
            of_best=line.of_best,
        )


def _of_bandwidth(item: KernelResult, row: Benchmark | None, peaks: Peaks) -> float | None:
    """Return the share of the peak bandwidth, which is the roof of a kernel without arithmetic, such as a copy."""
    sample = (row.candidate if item.tree == "candidate" else row.baseline) if row else None
    peak = peaks.of("bandwidth", "", item.device)
    return sample.value / peak.peak.value if sample and sample.value and peak else None
