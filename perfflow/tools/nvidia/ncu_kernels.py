"""Launches that Nsight Compute profiled, grouped by kernel: readings, hotspots, facts, and ``kernels.json``."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from perfflow.model.gpu.stalls import ranked
from perfflow.model.kernels import Advice, KernelFacts
from perfflow.model.readings import MOST_HOTSPOTS, Hotspot, Peak, Reading, reading_of_many
from perfflow.model.units import Dimension, format_quantity
from perfflow.tools.nvidia import ncu_names
from perfflow.tools.nvidia.ncu_launch import METRICS, Measured
from perfflow.tools.tool_files import clean_name

SOURCE = "ncu"
_FULL = 0.999
"""A theoretical occupancy without a limit, allowing for rounding."""
_OF_ONE_KERNEL = {"kernel_time", "registers", "waves", "occupancy_theoretical"}
"""Metrics that have no meaning for several kernels together."""
_EXACT = {"registers", "waves", "occupancy_theoretical", "warp_efficiency"}
"""Metrics that depend only on the launch and the program, not on other work of the GPU."""
_ISSUES = "selected"
"""The state of a warp that issues an instruction."""
_LONGEST_TEXT, _LONGEST_KERNEL, _LONGEST_ADVICE = 2000, 4000, 1000
_FIGURES = ("occupancy", "occupancy_theoretical", "sm_share", "memory_share", "waves")
_COUNTS = {"grid": "grid_size", "threads": "block_size", "registers": "registers", "barrier_blocks": "barriers"}
_COUNTS |= {"shared_static": "shared_memory_static", "shared_dynamic": "shared_memory_dynamic"}
_COUNTS |= {"carveout": "shared_memory_setting"}
_ADVISING = ("OPT", "WRN")
"""Kinds of rules that give advice: OPT since 2023; before that, only WRN."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """All launches of one kernel; ``share`` (0..1) of the time of all launches, None if no time was measured."""

    name: str
    launches: Sequence[Measured]
    share: float | None

    def values(self, metric: str) -> list[float]:
        """Return a metric of every launch that has it, in the order in which they ran."""
        return [item.figures[metric] for item in self.launches if metric in item.figures]

    def medians(self) -> dict[str, float]:
        """Return the median over the launches of every metric."""
        return {metric: median(values) for metric in METRICS if (values := self.values(metric))}

    @property
    def longest(self) -> Measured:
        """Return the longest launch; the first if no time was measured."""
        return max(self.launches, key=lambda item: item.figures.get("kernel_time", 0.0))

    @property
    def limiters(self) -> tuple[str, ...]:
        """Return what limits the blocks per multiprocessor; () if all warps are in use or ncu does not report it."""
        limits = self.longest.limits
        is_full = self.longest.figures.get("occupancy_theoretical", 0.0) >= _FULL
        return () if is_full else tuple(what for what, blocks in limits.items() if blocks == min(limits.values()))


def gather(launches: Sequence[Measured]) -> list[Kernel]:
    """Group launches by kernel, the kernel with the most time first."""
    names = ncu_names.short_names(item.kernel for item in launches)
    by_name: dict[str, list[Measured]] = {}
    for item in launches:
        by_name.setdefault(names[item.kernel], []).append(item)
    sums = {name: math.fsum(item.figures.get("kernel_time", 0.0) for item in own) for name, own in by_name.items()}
    whole = math.fsum(sums.values()) if all("kernel_time" in item.figures for item in launches) else 0.0
    kernels = [Kernel(name, own, sums[name] / whole if whole else None) for name, own in by_name.items()]
    return sorted(kernels, key=lambda kernel: -(kernel.share or 0.0))


def readings(kernels: Sequence[Kernel], *, whole: bool) -> Iterator[Reading]:
    """Yield every metric of every kernel, each with its distribution over the launches.

    ``whole``: all kernels are one benchmark; metrics of several kernels are weighted by the time of each launch.
    """
    if whole and len(kernels) > 1:
        yield from _weighted([item.figures for kernel in kernels for item in kernel.launches])
        return
    for kernel in kernels:
        benchmark = "" if whole else kernel.name
        for metric, middle in kernel.medians().items():
            values, is_exact = kernel.values(metric), metric in _EXACT
            if is_exact or len(values) == 1:
                yield Reading(metric, middle, benchmark, exact=is_exact)
            else:
                yield reading_of_many(metric, values, benchmark)


def _weighted(launches: Sequence[Mapping[str, float]]) -> Iterator[Reading]:
    for metric in METRICS:
        timed = [(each[metric], each.get("kernel_time", 0.0)) for each in launches if metric in each]
        if metric not in _OF_ONE_KERNEL and (whole := math.fsum(time for _, time in timed)) > 0:
            yield Reading(metric, math.fsum(value * time for value, time in timed) / whole)


def hotspots(kernels: Sequence[Kernel]) -> Iterator[Hotspot]:
    """Yield kernels by their share of device time, and the stall reasons of the hottest kernel."""
    for kernel in kernels[:MOST_HOTSPOTS]:
        if kernel.share:
            cause = "measured: " + ", ".join(_summary(kernel))
            yield Hotspot(kernel.name, kernel.share, "device time", SOURCE, cause=cause)
    hottest = kernels[0]
    # The share of each reason in all states of the warps.
    states, unit = hottest.longest.states, hottest.longest.states_unit
    for row in sorted(ranked(states), key=lambda row: -row.share):
        if row.stall.name != _ISSUES:
            place = f"{hottest.name}: {row.stall.name.replace('_', ' ')}"
            cause = f"measured: {row.cycles:.3g} of {math.fsum(states.values()):.3g} {unit}; {row.stall.means}"
            yield Hotspot(place, row.share, "stalls", SOURCE, cause=clean_name(cause))


def _summary(kernel: Kernel) -> Iterator[str]:
    """Yield the number of launches and the most important metrics of a kernel."""
    count, figures, more = len(kernel.launches), kernel.medians(), kernel.longest.more
    time = f" of {format_quantity(figures['kernel_time'], Dimension.TIME)}" if "kernel_time" in figures else ""
    yield f"{count:,} launch{'' if count == 1 else 'es'}{time}"
    if {"grid_size", "block_size"} <= more.keys():
        yield f"{more['grid_size']:.0f} blocks of {more['block_size']:.0f} threads"
    for metric, text in (("memory_share", "memory"), ("sm_share", "compute")):
        if metric in figures:
            yield f"{text} at {figures[metric]:.0%} of its peak"
    if "occupancy" in figures:
        possible = figures.get("occupancy_theoretical")
        most = f" of {possible:.0%} possible" if possible is not None else ""
        limits = f" (limit: {' and '.join(kernel.limiters)})" if kernel.limiters else ""
        yield f"occupancy {figures['occupancy']:.0%}{most}{limits}"


def write(path: Path, kernels: Sequence[Kernel]) -> None:
    """Write all data of every kernel, in base units."""
    path.write_text(json.dumps({"kernels": [_shown(kernel) for kernel in kernels]}, indent=1) + "\n", encoding="utf-8")


def _shown(kernel: Kernel) -> dict[str, Any]:
    longest = kernel.longest
    states = math.fsum(longest.states.values())
    ranked = sorted(longest.states.items(), key=lambda item: (-item[1], item[0]))
    flops, bandwidth = longest.figures.get("flops"), longest.figures.get("bandwidth")
    intensity = flops / bandwidth if flops and bandwidth else None
    return {
        "name": kernel.name,
        "kernel": _clean(longest.kernel, _LONGEST_KERNEL),
        "launches": len(kernel.launches),
        "share": kernel.share,
        "figures": kernel.medians(),
        "longest launch": {**longest.more, **longest.device, "intensity": intensity, "flops": dict(longest.flops)},
        "occupancy limits": dict(longest.limits),
        "limited by": list(kernel.limiters),
        "states": {reason: value / states for reason, value in ranked},
        "rules": [
            {"rule": rule.name, "type": rule.kind, "says": _clean(rule.text, _LONGEST_TEXT), "speedup": rule.speedup}
            for rule in longest.rules
        ],
    }


def _clean(text: str, longest: int) -> str:
    """Return at most ``longest`` characters of a text, with spaces for unprintable ones."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:longest])


def facts(kernels: Sequence[Kernel]) -> Iterator[KernelFacts]:
    """Yield the facts of every kernel: those of its longest launch, with the median time of all launches."""
    for kernel in kernels:
        longest = kernel.longest
        figures, more = longest.figures, longest.more
        counts = {**more, **figures, "barriers": longest.limits.get("barriers")}
        told: dict[str, Any] = {key: figures.get(key) for key in _FIGURES}
        told |= {key: round(value) for key, source in _COUNTS.items() if (value := counts.get(source)) is not None}
        moved, ideal = more.get("global_sectors"), more.get("global_sectors_ideal")
        # Informational rules (INF) and rules without text are left out.
        rules = [rule for rule in longest.rules if rule.kind in _ADVISING and rule.text]
        yield KernelFacts(
            *(kernel.name, SOURCE, longest.gpu, longest.device.get("compute_capability", ""), len(kernel.launches)),
            *(kernel.medians().get("kernel_time"), kernel.share),
            limiters=kernel.limiters,
            issued=_issued(more),
            **told,
            uncoalesced=max(0.0, 1 - ideal / moved) if moved and ideal is not None else None,
            precision=max(longest.flops, key=lambda name: longest.flops[name]) if figures.get("flops") else "",
            stalls=dict(longest.states),
            advice=tuple(
                Advice(clean_name(rule.name), _clean(rule.text, _LONGEST_ADVICE), _gain(rule.speedup)) for rule in rules
            ),
        )


def _issued(more: Mapping[str, float]) -> float | None:
    """Return the share of cycles in which a scheduler issued. It equals instructions per cycle, which are at most 1."""
    if "no_eligible_share" in more:
        return max(0.0, 1 - more["no_eligible_share"])
    return min(1.0, more["issued_warps"]) if "issued_warps" in more else None


def _gain(text: str) -> float | None:
    """Return an estimated speedup in percent as a share; None for any other text."""
    found = re.fullmatch(r"(\d{1,9}(?:[.,]\d{1,9})?)%?", text.strip(), re.ASCII)
    return float(found[1].replace(",", ".")) / 100 if found else None


def peaks(kernels: Sequence[Kernel]) -> Iterator[Peak]:
    """Yield the peaks of the GPU that ncu reports, at the clocks of the longest launch.

    Peaks of arithmetic are only those of precisions that a kernel uses. Several GPUs have no peaks.
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
    """Return the indices of the GPUs, as far as ncu reports them."""
    return {item.device.get("device", "") for kernel in kernels for item in kernel.launches} - {""}


def warnings(kernels: Sequence[Kernel]) -> Iterator[str]:
    """Yield warnings about missing or incomplete metrics."""
    launches = [item for kernel in kernels for item in kernel.launches]
    absent = Counter(metric for item in launches for metric in item.absent)
    for metric, count in sorted(absent.items()):
        yield f"ncu could not collect {metric} of {count:,} of {len(launches):,} launches"
    if 0 < (timed := sum("kernel_time" in item.figures for item in launches)) < len(launches):
        yield f"only {timed:,} of {len(launches):,} launches have a time, so shares of device time are missing"
    if any(item.figures.get("tensor_share") and "flops" in item.figures for item in launches):
        yield "flops count scalar instructions only, without the work of tensor cores"
    if (devices := len(_devices(kernels))) > 1:
        yield f"the launches ran on {devices} GPUs; a kernel's figures are of all of them together"
