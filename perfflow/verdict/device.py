"""The device, the GPU kernel and the precision of each benchmark, which select the peaks of its roof."""

from __future__ import annotations

from perfflow.model.criteria import Criteria
from perfflow.model.gpu.devices import SpeedOfLight
from perfflow.model.kernels import KernelResult, by_benchmark, together
from perfflow.model.peaks import Peaks, published_peaks
from perfflow.model.readings import Side
from perfflow.store.record import MetricSeries, Record


class RanOn:
    """The devices, kernels and precisions of a record's benchmarks."""

    def __init__(self, record: Record) -> None:
        self._record, found = record, record.kernels()
        self._kernels = by_benchmark(found)
        self._devices: dict[tuple[str, str, str], list[str]] = {}
        for item in found:
            self._devices.setdefault((item.step, item.benchmark, item.tree), []).append(item.device)

    def kernel(self, series: MetricSeries, side: Side) -> KernelResult | None:
        """Return the single GPU kernel that a benchmark runs, as profiled on a side; None for other benchmarks."""
        return self._kernels.get((series.benchmark, side.value))

    def device(self, series: MetricSeries, side: Side) -> str:
        """Return the GPU that a side of a benchmark ran on; '' for the CPU."""
        devices = self._record.outcome_of(series.step).devices
        own = self._devices.get((series.step, series.benchmark, side.value), [])
        return together(own) or together(devices)

    def precision(self, series: MetricSeries, side: Side) -> str:
        """Return the precision of the arithmetic, as the step declares it or a profiler found it; '' if unknown."""
        kernel = self.kernel(series, side)
        return self._record.precision_of(series) or (kernel.precision if kernel else "")


def known_peaks(record: Record, criteria: Criteria) -> Peaks:
    """Return all peaks of a run: declared, measured, and published for the GPUs that it ran on."""
    devices = [name for _, step in record.ended_steps() for name in step.devices]
    devices += [item.device for item in record.kernels()]
    return Peaks(criteria.peaks, record.peaks(), published_peaks(devices))


def evidence_of(facts: KernelResult) -> SpeedOfLight | None:
    """Return the utilization of the GPU's units by the profiler, None if it was not measured."""
    if facts.sm_share is None or facts.memory_share is None:
        return None
    return SpeedOfLight(facts.sm_share, facts.memory_share, facts.waves)
