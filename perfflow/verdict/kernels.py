"""Analyse each GPU kernel: its occupancy by the model, what bounds it, and why its warps waited.

- ``judged_kernels`` analyses the kernels that a step profiled.
- ``of_kernel`` gives the evidence of GPU kernels for one condition of a rule, as text.
- ``without_decisions`` and ``on_each_gpu`` are for kernels of two sides that ran on different GPUs: they compare how
  well each uses its GPU. This never is a regression.
- ``roof_points`` gives the position of benchmarks under the roof, if both their arithmetic and their memory traffic are
  known. The rate of arithmetic divided by the rate of bytes is the intensity. The rates come from declared ``work``,
  from a suite that reports both, or from a profiler that counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.errors import UserError
from perfflow.model.gpu.devices import Bound, OnDevice, SpeedOfLight, bound_under, bound_without_roof
from perfflow.model.gpu.devices import rows as lined_up
from perfflow.model.gpu.occupancy import LaunchShape, Occupancy, OccupancyLimits, lifts, limits_of, occupancy
from perfflow.model.gpu.stalls import pressing, ranked
from perfflow.model.kernels import KernelResult, Modelled, Stall, by_benchmark
from perfflow.model.peaks import Peaks, key_of
from perfflow.model.readings import Side
from perfflow.model.result import Benchmark, Bounds, OnGpu, PeakResult, RooflinePoint, Sample
from perfflow.model.roofline import Roof
from perfflow.store.record import Record
from perfflow.verdict.device import RanOn, evidence_of

TOLERANCE = 0.02
"""Difference between the model's occupancy and the tool's, as a share of the tool's, above which a warning is given."""


def judged_kernels(record: Record, points: Sequence[RooflinePoint], peaks: Peaks) -> Iterator[KernelResult]:
    """Yield every kernel that a step profiled, on each side, in the order of the steps."""
    kernels = record.kernels()
    own = by_benchmark(kernels)
    placed: dict[tuple[str, str], RooflinePoint] = {(point.benchmark, point.tree): point for point in points}
    for found in kernels:
        # The values of a benchmark with several kernels are totals, which are not the intensity of any one kernel.
        place = (found.benchmark, found.tree)
        yield _judged(found, placed.get(place) if own.get(place) is found else None, peaks)


def _judged(found: KernelResult, point: RooflinePoint | None, peaks: Peaks) -> KernelResult:
    model, warnings = _modelled(found)
    bound, because = _bound(found, point, peaks)
    judged = {"model": model, "bound": bound, "because": because, "stalls": list(_stalls(found)), "warnings": warnings}
    return found.model_copy(update=judged)


def _modelled(facts: KernelResult) -> tuple[Modelled | None, list[str]]:
    """Return the occupancy by the model, None if it cannot be computed, and warnings."""
    lacking = [name for name in ("threads", "registers") if getattr(facts, name) is None]
    if len(lacking) == 2:
        return None, []  # the tool reports times and no launches
    if lacking or not facts.capability:
        missing = " and ".join([*lacking, *([] if facts.capability else ["compute capability"])])
        return None, [f"no occupancy model: {facts.source} does not report the {missing}"]
    try:
        limits = limits_of(facts.capability)
        modelled = occupancy(_launch(facts, limits), limits)
    except UserError as error:
        return None, [f"no occupancy model: {error.problems[0].message}"]
    shown = Modelled(
        occupancy=modelled.share,
        blocks=modelled.blocks,
        limiters=[limiter.value for limiter in modelled.limiters] if modelled.warps < limits.warps else [],
        lifts=[lift.text for lift in lifts(modelled)],
    )
    return shown, list(_doubts(facts, modelled))


def _launch(facts: KernelResult, limits: OccupancyLimits) -> LaunchShape:
    """Return the launch for the model. The barriers of a block follow from the number of blocks that they allow."""
    barriers = 1
    if limits.barriers and facts.barrier_blocks:
        barriers = max(1, limits.barriers // facts.barrier_blocks)
    shared = (facts.shared_static or 0) + (facts.shared_dynamic or 0)
    return LaunchShape(facts.threads or 0, facts.registers or 0, shared, barriers, facts.carveout)


def _doubts(facts: KernelResult, found: Occupancy) -> Iterator[str]:
    """Yield a warning if the model and the tool disagree, or if the launch is impossible by the model."""
    told = facts.occupancy_theoretical
    if not found.blocks:
        yield f"according to the model, no block of this launch fits an SM of compute capability {facts.capability}"
    elif told and abs(found.share - told) > TOLERANCE * told:
        yield f"the theoretical occupancy is {found.share:.1%} by the model, {told:.1%} by {facts.source}"


def _bound(facts: KernelResult, point: RooflinePoint | None, peaks: Peaks) -> tuple[Bound | None, str]:
    """Return what bounds a kernel: by its intensity under a roof, else by its speed-of-light shares."""
    evidence = evidence_of(facts)
    if point is None or point.attainable is None:
        return bound_without_roof(evidence) if evidence else (None, "")
    memory, arithmetic = peaks.of("bandwidth", "", point.device), peaks.of("flops", point.precision, point.device)
    if memory is None or arithmetic is None:
        return point.bound, ""
    bound, because = bound_under(Roof(memory.peak.value, arithmetic.peak.value), point.intensity, evidence)
    if evidence and bound != "latency":
        by_units, shares = bound_without_roof(evidence)
        # The roof does not include caches and other precisions, whose units may be the busy ones.
        because += f"; {shares}" + ("" if by_units == bound else f", which suggests {by_units}")
    return bound, because


def _stalls(facts: KernelResult) -> Iterator[Stall]:
    """Yield the reasons why warps waited, the most frequent first; harmless ones are last."""
    # Sorted, because sums of floats depend on their order, and data read back may be in another order.
    rows = ranked({stall.reason: stall.cycles for stall in sorted(facts.stalls, key=lambda stall: stall.reason)})
    urgent = pressing(rows, facts.issued) if facts.issued is not None else ()
    for row in rows:
        yield Stall(
            reason=row.stall.name,
            cycles=row.cycles,
            share=row.share,
            means=row.stall.means,
            lowers=row.stall.lowers,
            pressing=row in urgent,
        )


@dataclass(frozen=True)
class LowOccupancy:
    """A kernel whose theoretical occupancy by the model is under a share because of a limited resource.

    Neither the SMs nor memory may reach ``busy`` of their peak, because more warps bring nothing then. ``time`` is the
    least share of all kernels' time, here and below.
    """

    limiter: tuple[str, ...]
    occupancy: float
    busy: float
    time: float


@dataclass(frozen=True)
class Wasted:
    """A kernel with more than a share of needless global memory sectors, due to its access pattern."""

    uncoalesced: float
    time: float


@dataclass(frozen=True)
class Stalled:
    """A kernel whose warps wait for one of the reasons for more than a share of their time."""

    stalls: tuple[str, ...]
    waiting: float
    time: float


KernelCondition = LowOccupancy | Wasted | Stalled


def current_kernels(kernels: Iterable[KernelResult]) -> list[KernelResult]:
    """Return the latest kernels: for a kernel on both sides, that of the candidate."""
    found: dict[tuple[str, str, str], KernelResult] = {}
    for item in kernels:
        key = (item.step, item.benchmark, item.name)
        if key not in found or item.tree == "candidate":
            found[key] = item
    return list(found.values())


def of_kernel(condition: KernelCondition, kernel: KernelResult) -> Iterator[str]:
    """Yield the evidence of one kernel; nothing if the condition does not hold or its data is missing."""
    if kernel.share is None or kernel.share < condition.time:
        return
    match condition:
        case LowOccupancy():
            yield from _low(condition, kernel)
        case Wasted():
            if kernel.uncoalesced is not None and kernel.uncoalesced > condition.uncoalesced:
                wasted = f"{kernel.uncoalesced:.0%} of the global memory sectors it moves are not needed for its data"
                yield f"{_whose(kernel)}: {wasted}"
        case Stalled():
            for stall in kernel.stalls:
                if stall.reason in condition.stalls and stall.pressing and stall.share > condition.waiting:
                    issued = f", schedulers issue in {kernel.issued:.0%} of cycles" if kernel.issued is not None else ""
                    yield f"{_whose(kernel)}: {stall.share:.0%} of its warps' time is spent in {stall.reason}{issued}"


def _low(condition: LowOccupancy, item: KernelResult) -> Iterator[str]:
    model = item.model
    if model is None or item.sm_share is None or item.memory_share is None:
        return
    busy = max(item.sm_share, item.memory_share) >= condition.busy
    if not busy and model.occupancy < condition.occupancy and set(model.limiters) & set(condition.limiter):
        achieved = f", {item.occupancy:.0%} achieved" if item.occupancy is not None else ""
        lift = f"; {model.lifts[0]}" if model.lifts else ""
        possible = f"{model.occupancy:.0%} occupancy possible, limited by {' and '.join(model.limiters)}{achieved}"
        yield f"{_whose(item)}: {possible}, SM {item.sm_share:.0%} and memory {item.memory_share:.0%} busy{lift}"


def _whose(item: KernelResult) -> str:
    return f"{item.source}: {item.name} ({item.share or 0.0:.0%} of device time)"


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
    for kernel in kernels:
        by_name.setdefault((kernel.benchmark, kernel.name), []).append(kernel)
    shares = {(point.benchmark, point.tree): point.share for point in points}
    moved = {row.name: row for row in rows if row.metric == "bandwidth"}
    measured = []
    for group in by_name.values():
        if (
            len({kernel.device for kernel in group if kernel.seconds}) > 1
            and len({kernel.tree for kernel in group}) > 1
        ):
            for kernel in (kernel for kernel in group if kernel.seconds):
                share = shares.get((kernel.benchmark, kernel.tree))
                share = _of_bandwidth(kernel, moved.get(kernel.benchmark), peaks) if share is None else share
                measured.append(OnDevice(kernel.name, kernel.device, kernel.seconds or 0.0, share))
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


def roof_points(record: Record, rows: Sequence[Benchmark], peaks: Peaks) -> Iterator[RooflinePoint]:
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
