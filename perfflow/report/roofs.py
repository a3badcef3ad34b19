"""The roofline as a table: each kernel's intensity, what it attains of what it could, and what stands in its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfflow.report.leading import Leading, leading
from perfflow.report.rows import NOTHING
from perfflow.result import PeakResult, Result, RooflinePoint
from perfflow.samples.peaks import PEAK_DIMENSIONS, KnownPeak, Peaks, key_of
from perfflow.samples.readings import Peak
from perfflow.units import Dimension, format_quantity, significant


@dataclass(frozen=True, slots=True)
class RoofRow:
    """One side of one kernel; ``side`` is '' where nothing is compared."""

    benchmark: str
    side: str
    intensity: str
    attained: str
    attainable: str
    share: str
    bound: str
    note: str


@dataclass(frozen=True, slots=True)
class Roofline:
    """The peaks that make the roof, each with its source, and the kernels under it."""

    peaks: tuple[tuple[str, str, str], ...]
    rows: Leading[RoofRow]
    two_sided: bool


def roofline_of(result: Result) -> Roofline | None:
    """The table of a result; None where no kernel is placed under a roof, and no step looked for one."""
    if not result.roofline and not any(item.step for item in result.peaks):
        return None
    both = any(point.tree == "candidate" for point in result.roofline)
    rows = leading([_row(point, both=both) for point in result.roofline])
    return Roofline(tuple(_peak(item) for item in _in_use(result.peaks)), rows, both)


def _in_use(peaks: Sequence[PeakResult]) -> list[KnownPeak]:
    """Of several peaks of one kind the one that counts."""
    found = [(item.step, _as_peak(item)) for item in peaks if item.step]
    declared = {key_of(item.metric, item.precision): item.value for item in peaks if not item.step}
    return [item for item in Peaks(declared, found) if item.peak.metric in PEAK_DIMENSIONS]


def _as_peak(item: PeakResult) -> Peak:
    return Peak(item.metric, item.value, item.precision, item.how)


def _peak(known: KnownPeak) -> tuple[str, str, str]:
    peak = known.peak
    value = format_quantity(peak.value, PEAK_DIMENSIONS[peak.metric])
    return key_of(peak.metric, peak.precision), value, ": ".join(filter(None, (known.source, peak.how)))


def _row(point: RooflinePoint, *, both: bool) -> RoofRow:
    side = {"baseline": "before", "candidate": "after"}[point.tree] if both else ""
    attained = format_quantity(point.attained.value or 0.0, Dimension.FLOPS)
    if point.attainable is None or point.share is None:
        attainable = share = NOTHING
    else:
        attainable = format_quantity(point.attainable, Dimension.FLOPS)
        share = format_quantity(point.share, Dimension.RATIO)
    intensity = f"{significant(point.intensity)} FLOP/B"
    return RoofRow(point.benchmark, side, intensity, attained, attainable, share, point.bound or NOTHING, point.note)
