"""The roofline as a table: intensity, attained and attainable performance, and bound of each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfflow.model.peaks import PEAK_DIMENSIONS, KnownPeak, Peaks, key_of
from perfflow.model.readings import Peak
from perfflow.model.result import PeakResult, Result, RooflinePoint
from perfflow.model.units import Dimension, format_quantity, significant
from perfflow.report.table import NOTHING
from perfflow.report.truncate import Truncated, truncated


@dataclass(frozen=True)
class RoofRow:
    """One side of one kernel; ``side`` is '' if nothing is compared."""

    benchmark: str
    side: str
    intensity: str
    attained: str
    attainable: str
    share: str
    bound: str
    note: str


@dataclass(frozen=True)
class Roofline:
    """The peaks that form the roof, each with its source, and the kernels under it."""

    peaks: tuple[tuple[str, str, str], ...]
    rows: Truncated[RoofRow]
    two_sided: bool


def roofline_of(result: Result) -> Roofline | None:
    """Return the table of a result, or None if no kernel is under a roof and no step measured peaks."""
    if not result.roofline and not any(item.step for item in result.peaks):
        return None
    both = any(point.tree == "candidate" for point in result.roofline)
    rows = truncated([_row(point, both=both) for point in result.roofline])
    return Roofline(tuple(_peak(item) for item in _in_use(result.peaks, result.roofline)), rows, both)


def _in_use(peaks: Sequence[PeakResult], points: Sequence[RooflinePoint]) -> list[KnownPeak]:
    """Return the peak in use of each kind; published peaks only if a kernel is compared with them."""
    found = [(item.step, _as_peak(item)) for item in peaks if item.step]
    published = [_as_peak(item) for item in peaks if not item.step and item.how]
    declared = {key_of(item.metric, item.precision): item.value for item in peaks if not item.step and not item.how}
    known = Peaks(declared, found, published)
    roofs = [
        known.of(metric, precision, point.device)
        for point in points
        for metric, precision in (("bandwidth", ""), ("flops", point.precision))
    ]
    counting = [item for item in known if item.peak.metric in PEAK_DIMENSIONS]
    return [item for item in counting if item.step or not item.peak.how or item in roofs]


def _as_peak(item: PeakResult) -> Peak:
    return Peak(item.metric, item.value, item.precision, item.how, item.device)


def _peak(known: KnownPeak) -> tuple[str, str, str]:
    peak = known.peak
    value = format_quantity(peak.value, PEAK_DIMENSIONS[peak.metric])
    # The description of a published peak begins with its source.
    sources = (known.source, peak.how) if known.step else (peak.how or known.source,)
    return key_of(peak.metric, peak.precision, peak.device), value, ": ".join(filter(None, sources))


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
