"""Launches that Nsight Compute profiled, put together by kernel: readings, hotspots, and ``kernels.json``."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from perfflow.gpu.stalls import ranked
from perfflow.samples.readings import Hotspot, Peak, Reading, reading_of_many
from perfflow.tools.nvidia import ncu_names
from perfflow.tools.nvidia.ncu_launch import METRICS, NO_STALL, Measured
from perfflow.tools.tool_files import clean_name
from perfflow.units import Dimension, format_quantity

SOURCE = "ncu"
_KEPT = 20
_FULL = 0.999
"""A theoretical occupancy that nothing limits, but for rounding."""
_OF_ONE_KERNEL = {"kernel_time", "registers", "waves", "occupancy_theoretical"}
"""Figures that mean nothing for several kernels together."""
_EXACT = {"registers", "waves", "occupancy_theoretical", "warp_efficiency"}
"""What follows from the launch and the program alone, whatever else the GPU does."""
_LONGEST_TEXT = 2000
_LONGEST_KERNEL = 4000


@dataclass(frozen=True, slots=True)
class Kernel:
    """All launches of one kernel; ``share`` (0..1) of the time of all launches, None where no time was measured."""

    name: str
    launches: Sequence[Measured]
    share: float | None

    def median(self, metric: str) -> float | None:
        """The median over its launches of a figure, None where none has it."""
        values = self.values(metric)
        return median(values) if values else None

    def values(self, metric: str) -> list[float]:
        """A figure of every launch that has it, in the order in which they ran."""
        return [item.figures[metric] for item in self.launches if metric in item.figures]

    @property
    def longest(self) -> Measured:
        """The launch that took longest; the first where no time was measured."""
        return max(self.launches, key=lambda item: item.figures.get("kernel_time", 0.0))

    @property
    def limiters(self) -> tuple[str, ...]:
        """What keeps more blocks from a multiprocessor, () where its warps are all in use or ncu does not tell."""
        limits, theoretical = self.longest.limits, self.longest.figures.get("occupancy_theoretical")
        if not limits or (theoretical is not None and theoretical >= _FULL):
            return ()
        return tuple(what for what, blocks in limits.items() if blocks == min(limits.values()))


def gather(launches: Sequence[Measured]) -> list[Kernel]:
    """Put launches of the same kernel together, the one with the most time first."""
    names = ncu_names.short_names(item.kernel for item in launches)
    by_name: dict[str, list[Measured]] = {}
    for item in launches:
        by_name.setdefault(names[item.kernel], []).append(item)
    sums = {name: math.fsum(item.figures.get("kernel_time", 0.0) for item in own) for name, own in by_name.items()}
    whole = math.fsum(sums.values()) if all("kernel_time" in item.figures for item in launches) else 0.0
    kernels = [Kernel(name, own, sums[name] / whole if whole else None) for name, own in by_name.items()]
    return sorted(kernels, key=lambda kernel: -(kernel.share or 0.0))


def readings(kernels: Sequence[Kernel]) -> Iterator[Reading]:
    """Every figure of every kernel, each with its distribution over the launches."""
    for kernel in kernels:
        for metric in _metrics(kernel.launches):
            yield _reading(kernel, metric, kernel.name)


def together(kernels: Sequence[Kernel]) -> Iterator[Reading]:
    """The figures of one benchmark that is all of the kernels, weighted by the time of each launch."""
    launches = [item for kernel in kernels for item in kernel.launches]
    for metric in _metrics(launches):
        if len(kernels) == 1:
            yield _reading(kernels[0], metric, "")
        elif metric not in _OF_ONE_KERNEL:
            figures = [item.figures for item in launches if metric in item.figures]
            if (whole := math.fsum(each.get("kernel_time", 0.0) for each in figures)) > 0:
                yield Reading(
                    metric, math.fsum(each[metric] * each.get("kernel_time", 0.0) for each in figures) / whole
                )


def _reading(kernel: Kernel, metric: str, benchmark: str) -> Reading:
    values = kernel.values(metric)
    if metric in _EXACT or len(values) == 1:
        return Reading(metric, median(values), benchmark, exact=metric in _EXACT)
    return reading_of_many(metric, values, benchmark)


def _metrics(launches: Sequence[Measured]) -> list[str]:
    return [metric for metric in METRICS if any(metric in item.figures for item in launches)]


def hotspots(kernels: Sequence[Kernel]) -> Iterator[Hotspot]:
    """Kernels by their share of the device's time, and why the warps of the hottest one waited."""
    for kernel in kernels[:_KEPT]:
        if kernel.share:
            cause = "measured: " + ", ".join(_said_of(kernel))
            yield Hotspot(kernel.name, kernel.share, "device time", SOURCE, cause=cause)
    if kernels:
        yield from _stalls(kernels[0])


def _said_of(kernel: Kernel) -> Iterator[str]:
    """The launches, and the figures that say most of a kernel."""
    count, time, longest = len(kernel.launches), kernel.median("kernel_time"), kernel.longest
    shown = f" of {format_quantity(time, Dimension.TIME)}" if time else ""
    yield f"{count:,} launch{'' if count == 1 else 'es'}{shown}"
    if {"grid_size", "block_size"} <= longest.more.keys():
        yield f"{longest.more['grid_size']:.0f} blocks of {longest.more['block_size']:.0f} threads"
    for metric, text in (("memory_share", "memory"), ("sm_share", "compute")):
        if (share := kernel.median(metric)) is not None:
            yield f"{text} at {share:.0%} of its peak"
    achieved, possible = kernel.median("occupancy"), kernel.median("occupancy_theoretical")
    if achieved is not None:
        most = f" of {possible:.0%} possible" if possible is not None else ""
        limits = f" (limit: {' and '.join(kernel.limiters)})" if kernel.limiters else ""
        yield f"occupancy {achieved:.0%}{most}{limits}"


def _stalls(kernel: Kernel) -> Iterator[Hotspot]:
    """Reasons for which a kernel's warps did not issue, each as a share of all that they did."""
    states = kernel.longest.states
    whole = math.fsum(states.values())
    for row in sorted(ranked(states), key=lambda row: -row.share):
        if row.stall.name != NO_STALL and row.share > 0:
            place = f"{kernel.name}: {row.stall.name.replace('_', ' ')}"
            cause = f"measured: {row.cycles:.3g} of {whole:.3g} {kernel.longest.states_unit}; {row.stall.means}"
            yield Hotspot(place, row.share, "stalls", SOURCE, cause=clean_name(cause))


def write(path: Path, kernels: Sequence[Kernel]) -> None:
    """Write all that was read of every kernel, in base units."""
    path.write_text(json.dumps({"kernels": [_shown(kernel) for kernel in kernels]}, indent=1) + "\n", encoding="utf-8")


def _shown(kernel: Kernel) -> dict[str, Any]:
    longest = kernel.longest
    states = math.fsum(longest.states.values())
    ranked = sorted(longest.states.items(), key=lambda item: (-item[1], item[0]))
    flops, bandwidth = longest.figures.get("flops"), longest.figures.get("bandwidth")
    intensity = flops / bandwidth if flops and bandwidth else None
    return {
        "name": kernel.name,
        "kernel": clean(longest.kernel, _LONGEST_KERNEL),
        "launches": len(kernel.launches),
        "share": kernel.share,
        "figures": {metric: kernel.median(metric) for metric in _metrics(kernel.launches)},
        "longest launch": {**longest.more, **longest.device, "intensity": intensity, "flops": dict(longest.flops)},
        "occupancy limits": dict(longest.limits),
        "limited by": list(kernel.limiters),
        "states": {reason: value / states for reason, value in ranked},
        "rules": [
            {"rule": rule.name, "type": rule.kind, "says": clean(rule.text, _LONGEST_TEXT), "speedup": rule.speedup}
            for rule in longest.rules
        ],
    }


def clean(text: str, longest: int) -> str:
    """A text without what no page may show, and no longer than so many characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:longest])


def peaks(kernels: Sequence[Kernel]) -> Iterator[Peak]:
    """The peaks of the GPU, as ncu knows them, at the clocks at which it ran the launch that took longest.

    Of arithmetic only in precisions that a kernel computes in: it is their roof. Nothing where there are several GPUs.
    """
    longest = kernels[0].longest
    used = {name for kernel in kernels for item in kernel.launches for name, value in item.flops.items() if value > 0}
    for name, value in longest.peaks.items() if len(_devices(kernels)) <= 1 else ():
        how = f"ncu's sustained peak of {longest.gpu} at the clock during the profile"
        if name == "bandwidth":
            yield Peak("bandwidth", value, how=how, device=longest.gpu)
        elif name in used:
            yield Peak("flops", value, name, how, longest.gpu)


def _devices(kernels: Sequence[Kernel]) -> set[str]:
    """The indices of the GPUs, as far as ncu tells."""
    return {item.device.get("device", "") for kernel in kernels for item in kernel.launches} - {""}


def warnings(kernels: Sequence[Kernel]) -> Iterator[str]:
    """Say what the figures leave out."""
    launches = [item for kernel in kernels for item in kernel.launches]
    absent = Counter(metric for item in launches for metric in item.absent)
    for metric, count in sorted(absent.items()):
        yield f"ncu could not collect {metric} of {count:,} of {len(launches):,} launches"
    if 0 < (timed := sum("kernel_time" in item.figures for item in launches)) < len(launches):
        yield f"only {timed:,} of {len(launches):,} launches have a time, so shares of device time are not told"
    if any(item.figures.get("tensor_share") and "flops" in item.figures for item in launches):
        yield "flops are those of scalar instructions: what tensor cores do is not counted in them"
    if (devices := len(_devices(kernels))) > 1:
        yield f"the launches are of {devices} GPUs, and a kernel's figures are put together"
