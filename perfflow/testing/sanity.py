"""Checks that every Parsed must pass, whatever files it was read from."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict

from perfflow.model.kernels import KernelFacts
from perfflow.model.memory_curve import MOST, MemoryCurve
from perfflow.model.metrics import METRICS
from perfflow.model.readings import Hotspot, Parsed


def check_sane(parsed: Parsed, own: Collection[str] = ()) -> None:
    """Raise AssertionError if a figure is impossible or a text is not one line. ``own``: metrics of the adapter."""
    require(bool(parsed.readings or parsed.hotspots or parsed.profiles or parsed.peaks), "nothing was read")
    for peak in parsed.peaks:
        require(0 < peak.value < 2.0**63, f"a peak of {peak.value}")
        require(peak.how.isprintable(), f"{peak.how!r} is not one line")
    require(f"{parsed.device}{[peak.device for peak in parsed.peaks]}".isprintable(), "a device is not one line")
    for kernel in parsed.kernels:
        _check_kernel(kernel)
    for reading in parsed.readings:
        # perfflow's own metrics are not negative. Metrics of an adapter may be.
        least = -(2.0**63) if reading.metric in set(own) - METRICS.keys() else 0.0
        for value in (reading.value, *reading.inner.values()):
            require(least <= value < 2.0**63, f"{reading.metric} is {value}")
    _check_hotspots(parsed.hotspots)
    if parsed.memory:
        _check_memory(parsed.memory)
    for cost in parsed.costs:
        require(0 < cost.count < 2.0**63, f"{cost.function} costs {cost.count}")
        require(bool(cost.function) and f"{cost.function}{cost.file}".isprintable(), f"{cost} is not one line")
    json.dumps(asdict(parsed), allow_nan=False, default=str).encode()


def _check_memory(curve: MemoryCurve) -> None:
    require(0 < len(curve.at) == len(curve.held) <= MOST, f"a curve of {len(curve.at)} and {len(curve.held)} points")
    require(list(curve.at) == sorted(curve.at) and curve.at[0] >= 0, "the times of a curve decrease")
    require(all(0 <= held < 2.0**63 for held in curve.held), "a curve has an impossible value")


def _check_kernel(kernel: KernelFacts) -> None:
    require(bool(kernel.name), "a kernel without a name")
    shares = (kernel.share, kernel.occupancy_theoretical, kernel.issued, kernel.uncoalesced)
    require(all(0 <= share <= 1 + 1e-9 for share in shares if share is not None), f"{kernel.name} has shares {shares}")
    counts = (kernel.grid, kernel.threads, kernel.registers, kernel.shared_static, kernel.shared_dynamic)
    require(all(0 <= count < 2**63 for count in counts if count is not None), f"{kernel.name} has counts {counts}")
    texts = [kernel.device, kernel.capability, *kernel.limiters, *kernel.stalls, kernel.precision]
    texts += [text for item in kernel.advice for text in (item.rule, item.text)]
    require("".join(texts).isprintable(), f"a text about {kernel.name!r} is not one line")


def _check_hotspots(hotspots: Collection[Hotspot]) -> None:
    for spot in hotspots:
        require(0 < spot.share <= 1 + 1e-9, f"{spot.location} has a share of {spot.share}")
        require(bool(spot.location) and spot.line >= 0, f"{spot} has no place")
        require(f"{spot.location}{spot.file}{spot.cause}".isprintable(), f"{spot} is not one line")
    for unit in {spot.unit for spot in hotspots}:
        whole = sum(spot.share for spot in hotspots if spot.unit == unit)
        require(whole <= 1 + 1e-6, f"the hotspots' shares of {unit} add up to {whole}")


def require(holds: bool, otherwise: str) -> None:
    """Raise AssertionError with the message ``otherwise`` unless ``holds``."""
    if not holds:
        raise AssertionError(otherwise)
