"""The position of benchmarks under the roof, if both their arithmetic and their memory traffic are known.

The rate of arithmetic divided by the rate of bytes is the intensity. The rates come from declared ``work``, from a
suite that reports both, or from a profiler that counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.gpu.roof import SpeedOfLight, bound_under
from perfflow.model.peaks import Peaks, key_of
from perfflow.model.readings import Side
from perfflow.model.result import Benchmark, PeakResult, RooflinePoint
from perfflow.model.result_samples import Bounds, Sample
from perfflow.model.roofline import Roof
from perfflow.store.record import Record
from perfflow.verdict.device import RanOn, evidence_of

_TRAFFIC = ("bandwidth", "throughput")
"""Metrics in bytes per second; measured memory traffic takes precedence over bytes that the program processed."""


def peak_results(record: Record, criteria: Criteria, peaks: Peaks) -> Iterator[PeakResult]:
    """Yield the peaks that steps measured, that the workflow declares, and that are published for the GPUs."""
    for step, peak in record.peaks():
        unit = criteria.metric(peak.metric).dimension.base_unit
        yield PeakResult(**vars(peak), unit=unit, step=step)
    for known in peaks:
        if not known.step:
            unit = criteria.metric(known.peak.metric).dimension.base_unit
            yield PeakResult(**vars(known.peak), unit=unit)


def points(record: Record, rows: Sequence[Benchmark], peaks: Peaks) -> Iterator[RooflinePoint]:
    """Yield a point for each side of every benchmark with both rates, in the order of the rows."""
    by_key, ran = {(row.name, row.metric): row for row in rows}, RanOn(record)
    for row in rows:
        if row.metric != "flops":
            continue
        traffic = next((by_key[row.name, metric] for metric in _TRAFFIC if (row.name, metric) in by_key), None)
        series = record.series[row.name, row.metric]
        for tree in ("baseline", "candidate") if traffic else ():
            flops: Sample | None = getattr(row, tree)
            moved: Sample | None = getattr(traffic, tree)
            if flops and moved and flops.value and moved.value:
                side = Side(tree)
                point = RooflinePoint(
                    benchmark=row.name,
                    tree=side.value,
                    precision=ran.precision(series, side),
                    device=ran.device(series, side),
                    intensity=flops.value / moved.value,
                    attained=Bounds(value=flops.value, low=flops.low, high=flops.high),
                )
                kernel = ran.kernel(series, side) if point.device else None
                evidence = evidence_of(kernel) if kernel else None
                yield point.model_copy(update=_under_the_roof(flops.value, point, peaks, evidence))


def _under_the_roof(
    attained: float, point: RooflinePoint, peaks: Peaks, evidence: SpeedOfLight | None
) -> dict[str, Any]:
    """Return the fields of a point that depend on the peaks, or a note about the missing peak."""
    memory, arithmetic = peaks.of("bandwidth", "", point.device), peaks.of("flops", point.precision, point.device)
    if memory is None or arithmetic is None:
        missing = ("bandwidth", "") if memory is None else ("flops", point.precision)
        return {"note": f"no peak is known for {key_of(*missing, point.device)}"}
    roof = Roof(memory.peak.value, arithmetic.peak.value)
    attainable = roof.attainable(point.intensity)
    bound, because = bound_under(roof, point.intensity, evidence)
    notes = [because] if bound == "latency" else []
    if attained > attainable:
        # The bandwidth of the memory does not limit data that stays in a cache.
        notes.append("above the roof: its data stays in a cache, or the measured peak is too low")
    if not point.precision and arithmetic.peak.precision:
        notes.append(f"the precision is not known, so the highest peak is the roof: {arithmetic.peak.precision}")
    return {
        "attainable": attainable,
        "share": attained / attainable,
        "bound": bound,
        "note": "; ".join(notes),
    }
