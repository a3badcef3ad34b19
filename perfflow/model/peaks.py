"""Peaks of the machine, looked up by metric, precision and device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from perfflow.model.gpu.devices import find
from perfflow.model.readings import Peak
from perfflow.model.units import Dimension

Precision = Literal["f64", "f32", "tf32", "bf16", "f16", "f8"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
PEAK_DIMENSIONS: Mapping[str, Dimension] = {"bandwidth": Dimension.THROUGHPUT, "flops": Dimension.FLOPS}
"""Peaks that tools measure. A workflow may also declare peaks of other metrics."""


def key_of(metric: str, precision: str = "", device: str = "") -> str:
    """Return the key of a peak in a workflow's ``peaks``: ``flops f32``, or ``flops f32 of NVIDIA H200`` for a GPU."""
    return f"{metric} {precision}".rstrip() + (f" of {device}" if device else "")


def read_peak_key(key: str) -> tuple[str, str]:
    """Return the metric and precision of a key of ``peaks``; an unknown precision stays part of the metric's name."""
    metric, _, precision = key.rpartition(" ")
    return (metric, precision) if metric and precision in PRECISIONS else (key, "")


@dataclass(frozen=True)
class KnownPeak:
    """A peak and the id of the step that measured it, '' for the workflow's own ``peaks`` and published ones."""

    peak: Peak
    step: str = ""

    @property
    def source(self) -> str:
        """Text such as ``found by step roof``, ``said by the workflow`` or ``published for L4``."""
        return f"found by step {self.step}" if self.step else self.peak.how.partition(":")[0] or "said by the workflow"


class Peaks:
    """All known peaks of a run, of the machine and of each of its GPUs.

    Peaks of the workflow take precedence on every device, then measured ones, then published ones. Measured and
    published peaks only apply to their own device.
    """

    def __init__(
        self, declared: Mapping[str, float], found: Iterable[tuple[str, Peak]] = (), published: Iterable[Peak] = ()
    ) -> None:
        """``declared``: base units by key; ``found``: peaks with the step that measured them; the highest counts.

        A lower figure of the same kind was disturbed, because the machine has reached the higher one.
        """
        self._known: dict[tuple[str, str, str], KnownPeak] = {}
        for step, peak in found:
            key = (peak.metric, peak.precision, peak.device)
            before = self._known.get(key)
            if before is None or peak.value > before.peak.value:
                self._known[key] = KnownPeak(peak, step)
        for peak in published:
            self._known.setdefault((peak.metric, peak.precision, peak.device), KnownPeak(peak))
        self._declared: dict[tuple[str, str], KnownPeak] = {}
        for name, value in declared.items():
            metric, precision = read_peak_key(name)
            self._declared[metric, precision] = KnownPeak(Peak(metric, value, precision))

    def __iter__(self) -> Iterator[KnownPeak]:
        """Iterate over the peaks in use; a declared peak replaces all others of its kind."""
        yield from (known for key, known in self._known.items() if key[:2] not in self._declared)
        yield from self._declared.values()

    def of(self, metric: str, precision: str = "", device: str = "") -> KnownPeak | None:
        """Return the peak for a metric on a device, None if none is known.

        ``throughput`` is declared bytes over time, which is memory traffic, so it falls back on ``bandwidth``. Flops
        without a precision use the highest peak of all precisions, so the share is never too high. Flops with a
        precision never use the peak of another precision.
        """
        if metric == "flops":
            return self._of_flops(precision, device)
        found = self._get(metric, "", device)
        return found or (self._get("bandwidth", "", device) if metric == "throughput" else None)

    def _get(self, metric: str, precision: str, device: str) -> KnownPeak | None:
        return self._declared.get((metric, precision)) or self._known.get((metric, precision, device))

    def _of_flops(self, precision: str, device: str) -> KnownPeak | None:
        if precision:
            return self._get("flops", precision, device) or self._get("flops", "", device)
        kinds = dict.fromkeys(
            [*(key[1] for key in self._known if key[0] == "flops"), *(key[1] for key in self._declared)]
        )
        every = [known for kind in kinds if (known := self._get("flops", kind, device))]
        return max(every, key=lambda item: item.peak.value, default=None)


def published_peaks(devices: Iterable[str]) -> Iterator[Peak]:
    """Yield the published peaks of GPUs by name, none for GPUs that the table lacks."""
    for name in dict.fromkeys(filter(None, devices)):
        device = find(name)
        for metric, value, precision, how in device.peaks() if device else ():
            yield Peak(metric, value, precision, how, name)
