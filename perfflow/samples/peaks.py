"""Peaks of the machine: which of those that are known goes with a metric and a precision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from perfflow.samples.readings import Peak
from perfflow.units import Dimension

Precision = Literal["f64", "f32", "tf32", "bf16", "f16", "f8"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
PEAK_DIMENSIONS: Mapping[str, Dimension] = {"bandwidth": Dimension.THROUGHPUT, "flops": Dimension.FLOPS}
"""Peaks that tools find. A workflow may also say those of other metrics."""


def key_of(metric: str, precision: str = "") -> str:
    """``bandwidth``, ``flops f32``: how a workflow's ``peaks`` names one."""
    return f"{metric} {precision}".rstrip()


def read_peak_key(key: str) -> tuple[str, str]:
    """Metric and precision of a key of ``peaks``; what is no precision stays part of the metric's name."""
    metric, _, precision = key.rpartition(" ")
    return (metric, precision) if metric and precision in PRECISIONS else (key, "")


@dataclass(frozen=True, slots=True)
class KnownPeak:
    """A peak and where it is from: the id of a step, or '' for the workflow's own ``peaks``."""

    peak: Peak
    step: str = ""

    @property
    def source(self) -> str:
        """``found by step roof``, or ``said by the workflow``."""
        return f"found by step {self.step}" if self.step else "said by the workflow"


class Peaks:
    """All peaks that a run knows. What the workflow says comes before what was measured."""

    def __init__(self, declared: Mapping[str, float], found: Iterable[tuple[str, Peak]] = ()) -> None:
        """``declared``: base units by key; ``found``: peaks by the step that found them, of which the highest counts.

        A machine can do what it was once seen to do, so a lower figure of the same kind is a disturbed one.
        """
        self._known: dict[str, KnownPeak] = {}
        for step, peak in found:
            key = key_of(peak.metric, peak.precision)
            before = self._known.get(key)
            if before is None or peak.value > before.peak.value:
                self._known[key] = KnownPeak(peak, step)
        for key, value in declared.items():
            metric, precision = read_peak_key(key)
            self._known[key_of(metric, precision)] = KnownPeak(Peak(metric, value, precision))

    def __iter__(self) -> Iterator[KnownPeak]:
        return iter(self._known.values())

    def of(self, metric: str, precision: str = "") -> KnownPeak | None:
        """The peak that figures of a metric are held against, None where none is known.

        Declared bytes by time are memory traffic, so ``throughput`` falls back on ``bandwidth``. Of flops without a
        precision it is the highest of all: a share of it is never too good. A precision that was not measured has none.
        """
        if metric == "flops":
            return self._of_flops(precision)
        found = self._known.get(metric)
        return found or (self._known.get("bandwidth") if metric == "throughput" else None)

    def _of_flops(self, precision: str) -> KnownPeak | None:
        if precision:
            return self._known.get(key_of("flops", precision)) or self._known.get("flops")
        every = [item for item in self if item.peak.metric == "flops"]
        return max(every, key=lambda item: item.peak.value, default=None)


def peak_to_json(peak: Peak) -> dict[str, Any]:
    """Plain data for events."""
    return {name: getattr(peak, name) for name in Peak.__slots__}


def peak_from_json(data: Mapping[str, Any]) -> Peak:
    """Read what ``peak_to_json`` wrote."""
    return Peak(**{name: data[name] for name in Peak.__slots__ if name in data})


def peaks_details(peaks: tuple[Peak, ...]) -> dict[str, Any]:
    """What a step's event says of the peaks that its tool found; nothing where it found none."""
    return {"peaks": [peak_to_json(peak) for peak in peaks]} if peaks else {}
