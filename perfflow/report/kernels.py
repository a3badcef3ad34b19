"""GPU kernels and the roofline as tables.

``kernels_of``: bound, occupancy, how to raise it, and the stall reasons of the warps. ``roofline_of``: intensity,
attained and attainable performance, and bound of each kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.model.gpu.stalls import stalls
from perfflow.model.kernels import KernelResult, Stall
from perfflow.model.peaks import PEAK_DIMENSIONS, KnownPeak, Peaks, key_of
from perfflow.model.readings import Peak
from perfflow.model.result import OnGpu, PeakResult, Result, RooflinePoint
from perfflow.model.units import Dimension, format_quantity, significant
from perfflow.report.table import NOTHING
from perfflow.report.text_table import Truncated, truncated

HOTTEST = 3
"""Kernels of each step whose stalls are shown."""
MOST_REASONS = 5
LEAST_SHARE = 0.05
"""Smallest share of a warp's time for which a stall reason is shown."""
_SIDES = {"baseline": "before", "candidate": "after"}


@dataclass(frozen=True)
class KernelRow:
    """One side of one kernel; ``side`` is '' if nothing is compared."""

    kernel: str
    side: str
    device: str
    time: str
    share: str
    bound: str
    occupancy: str
    limiter: str
    lifts: str


@dataclass(frozen=True)
class StallRow:
    """A stall reason of a kernel's warps, with its share on each profiled side."""

    kernel: str
    reason: str
    share: str
    means: str
    lowers: str


@dataclass(frozen=True)
class GpuRow:
    """A kernel on one of the GPUs that it ran on."""

    kernel: str
    device: str
    time: str
    share: str
    slower: str
    of_best: str


@dataclass(frozen=True)
class Kernels:
    """The tables of GPU kernels, and the explanation of each bound."""

    rows: Truncated[KernelRow]
    stalls: Truncated[StallRow]
    because: tuple[tuple[str, str], ...]
    pressing: tuple[tuple[str, str], ...]
    """Kernels with the stall reasons that are worth acting on."""
    two_sided: bool
    devices: tuple[str, ...]
    across: Truncated[GpuRow]
    hottest: tuple[str, ...]
    """One line per step about its kernel with the most time, for a short page."""

    @property
    def tables(self) -> dict[str, Truncated[Any]]:
        """The tables that may leave rows out, by name."""
        return {"kernels": self.rows, "stalls": self.stalls, "across": self.across}


def kernels_of(result: Result) -> Kernels | None:
    """Return the tables of a result, or None if no GPU kernel was profiled."""
    kernels = result.kernels
    if not kernels:
        return None
    both = any(item.tree == "candidate" for item in kernels)
    devices = tuple(dict.fromkeys(_device(item) for item in kernels))
    first = truncated(kernels)
    waited = list(_waited(kernels))
    return Kernels(
        rows=first.each(lambda item: _row(item, both=both)),
        stalls=truncated([row for group in waited for row in _stall_rows(group)]),
        because=tuple((_named(item, both=both), item.because) for item in first.shown if item.because)[: 2 * HOTTEST],
        pressing=tuple(_pressing(group[-1], both=both) for group in waited if _reasons(group[-1])),
        two_sided=both,
        devices=devices,
        across=truncated(result.across_gpus).each(_on_gpu),
        hottest=tuple(_in_short(kernels)),
    )


def _on_gpu(item: OnGpu) -> GpuRow:
    time = format_quantity(item.seconds, Dimension.TIME)
    return GpuRow(item.kernel, item.device, time, _percent(item.share), f"{item.slower:.2f}x", _percent(item.of_best))


def _in_short(kernels: Sequence[KernelResult]) -> Iterator[str]:
    """Yield a line for each step's slowest kernel on the side measured last: bound, occupancy, and how to raise it."""
    steps = dict.fromkeys(kernel.step for kernel in kernels)
    for step in steps:
        of_step = [kernel for kernel in kernels if kernel.step == step]
        last = [kernel for kernel in of_step if kernel.tree == of_step[-1].tree]
        kernel = max(last, key=lambda each: each.share or 0.0)
        row = _row(kernel, both=False)
        parts = [
            f"{kernel.bound} bound" if kernel.bound else "",
            f"occupancy {row.occupancy}" if kernel.occupancy else "",
        ]
        parts += [
            f"limited by {row.limiter}" if row.limiter != NOTHING else "",
            *(kernel.model.lifts[:1] if kernel.model else ()),
        ]
        if any(parts):
            yield f"{kernel.name}: {', '.join(filter(None, parts))}"


def _device(item: KernelResult) -> str:
    known = item.capability and item.capability not in item.device
    return (item.device or "a GPU") + (f" (compute capability {item.capability})" if known else "")


def _named(item: KernelResult, *, both: bool) -> str:
    return f"{item.name} {_SIDES[item.tree]}" if both else item.name


def _row(kernel: KernelResult, *, both: bool) -> KernelRow:
    return KernelRow(
        kernel=kernel.name,
        side=_SIDES[kernel.tree] if both else "",
        device=kernel.device or NOTHING,
        time=NOTHING if kernel.seconds is None else format_quantity(kernel.seconds, Dimension.TIME),
        share=_percent(kernel.share),
        bound=kernel.bound or NOTHING,
        occupancy=_occupancy(kernel),
        limiter=" and ".join(kernel.model.limiters if kernel.model else kernel.limiters) or NOTHING,
        lifts="; or ".join(kernel.model.lifts[:2] if kernel.model else []) or NOTHING,
    )


def _occupancy(item: KernelResult) -> str:
    """Return achieved and possible occupancy of the tool, and the occupancy of the model."""
    measured = f"{_percent(item.occupancy)} / {_percent(item.occupancy_theoretical)}"
    return f"{measured} → {_percent(item.model.occupancy)}" if item.model else measured


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.0%}"


def _waited(found: Sequence[KernelResult]) -> Iterator[list[KernelResult]]:
    """Yield the hottest kernels with stall reasons of each step, each with its sides in order."""
    by_kernel: dict[tuple[str, str, str], list[KernelResult]] = {}
    for item in found:
        if item.stalls:
            by_kernel.setdefault((item.step, item.benchmark, item.name), []).append(item)
    shown: dict[str, int] = {}
    for (step, _, _), group in sorted(by_kernel.items(), key=lambda entry: -max(item.share or 0 for item in entry[1])):
        shown[step] = shown.get(step, 0) + 1
        if shown[step] <= HOTTEST:
            yield group


def _stall_rows(group: Sequence[KernelResult]) -> Iterator[StallRow]:
    """Yield the harmful stall reasons of one kernel, ranked by the side that was measured last."""
    by_side = [{stall.reason: stall for stall in _troubles(item)} for item in group]
    ranked: Mapping[str, Stall] = {**by_side[-1], **{key: stall for side in by_side for key, stall in side.items()}}
    large = [name for name in ranked if any(_share(side, name) > LEAST_SHARE for side in by_side)]
    for name in large[:MOST_REASONS]:
        shares = " → ".join(_percent(_share(side, name)) for side in by_side)
        yield StallRow(group[-1].name, name, shares, ranked[name].means, ranked[name].lowers)


def _share(side: Mapping[str, Stall], name: str) -> float:
    return side[name].share if name in side else 0.0


def _troubles(item: KernelResult) -> list[Stall]:
    """Return the stalls without the harmless states."""
    known = stalls()
    return [stall for stall in item.stalls if stall.reason not in known or known[stall.reason].trouble]


def _reasons(item: KernelResult) -> list[str]:
    return [stall.reason for stall in item.stalls if stall.pressing]


def _pressing(item: KernelResult, *, both: bool) -> tuple[str, str]:
    issued = f", since schedulers issue in {item.issued:.0%} of cycles" if item.issued is not None else ""
    return _named(item, both=both), f"{', '.join(_reasons(item))}{issued}"


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
    rows = truncated([_roof_row(point, both=both) for point in result.roofline])
    return Roofline(tuple(_peak(item) for item in _in_use(result.peaks, result.roofline)), rows, both)


def _in_use(peaks: Sequence[PeakResult], points: Sequence[RooflinePoint]) -> list[KnownPeak]:
    """Return the peak in use of each kind; published peaks only if a kernel is compared with them."""
    measured = [(item.step, _as_peak(item)) for item in peaks if item.step]
    published = [_as_peak(item) for item in peaks if not item.step and item.how]
    declared = {key_of(item.metric, item.precision): item.value for item in peaks if not item.step and not item.how}
    known = Peaks(declared, measured, published)
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


def _roof_row(point: RooflinePoint, *, both: bool) -> RoofRow:
    side = {"baseline": "before", "candidate": "after"}[point.tree] if both else ""
    attained = format_quantity(point.attained.value or 0.0, Dimension.FLOPS)
    if point.attainable is None or point.share is None:
        attainable = share = NOTHING
    else:
        attainable = format_quantity(point.attainable, Dimension.FLOPS)
        share = format_quantity(point.share, Dimension.RATIO)
    intensity = f"{significant(point.intensity)} FLOP/B"
    return RoofRow(point.benchmark, side, intensity, attained, attainable, share, point.bound or NOTHING, point.note)
