"""What each benchmark ran on, and which kernel of a GPU it is: what decides which peaks are its roof."""

from __future__ import annotations

from perfflow.model.criteria import Criteria
from perfflow.model.gpu.roof import SpeedOfLight
from perfflow.model.kernels import KernelFacts, by_benchmark, together
from perfflow.model.peaks import Peaks, published_peaks
from perfflow.model.readings import Side
from perfflow.store.record import Record, Series


class RanOn:
    """Looks the device, the kernel and the precision of a record's benchmarks up."""

    def __init__(self, record: Record) -> None:
        self._record, found = record, record.kernels()
        self._kernels = by_benchmark(found)
        self._devices: dict[tuple[str, str, str], list[str]] = {}
        for item in found:
            self._devices.setdefault((item.step, item.benchmark, item.tree), []).append(item.facts.device)

    def kernel(self, series: Series, side: Side) -> KernelFacts | None:
        """The kernel that a benchmark is, as a profiler saw it on a side; None of any other."""
        return self._kernels.get((series.benchmark, side.value))

    def device(self, series: Series, side: Side) -> str:
        """The GPU that a side of a benchmark ran on; '' is the machine's own processor."""
        devices = self._record.outcome_of(series.step).devices
        own = self._devices.get((series.step, series.benchmark, side.value), [])
        return together(own) or together(devices)

    def precision(self, series: Series, side: Side) -> str:
        """The precision of its arithmetic: what the step says, else what a profiler saw; '' where neither tells."""
        kernel = self.kernel(series, side)
        return self._record.precision_of(series) or (kernel.precision if kernel else "")


def known_peaks(record: Record, criteria: Criteria) -> Peaks:
    """All peaks that a run knows: declared ones, those found, and what is published of the GPUs that it ran on."""
    devices = [name for _, step in record.ended_steps() for name in step.devices]
    devices += [item.facts.device for item in record.kernels()]
    return Peaks(criteria.peaks, record.peaks(), published_peaks(devices))


def evidence_of(facts: KernelFacts) -> SpeedOfLight | None:
    """What the profiler saw of the units of the GPU, None where it did not look."""
    if facts.sm_share is None or facts.memory_share is None:
        return None
    return SpeedOfLight(facts.sm_share, facts.memory_share, facts.waves)
