"""GPUs: their published peaks, a kernel under the roofline, and one kernel on several GPUs.

- ``find`` looks up the published peaks of a GPU by the name that a driver reports, in a table of data. Each figure has
  a source. The table is read on first use.
- ``place`` places a kernel under the roofline, and ``bound_under`` finds whether memory, compute or latency bounds it.
  The roofline only distinguishes memory and compute. A kernel is latency-bound if both throughputs of Nsight Compute's
  speed of light are under 60% (rule SOLBottleneck, SpeedOfLight.py).
- ``rows`` compares one kernel on several GPUs: its time, and its share of each GPU's roof, which does not depend on the
  GPU's speed. Differences between GPUs are reported, but they are never regressions, because the numbers are from
  different machines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from perfflow.model.errors import UserError
from perfflow.model.roofline import Roof

TABLE = Path(__file__).parent / "data" / "devices.yaml"
PRECISIONS = ("f64", "f64_tensor", "f32", "tf32", "f16", "bf16", "f8")
"""Precisions of peaks. From tf32 on, and f64_tensor: tensor cores, dense, with f32 accumulation."""
_SCALES: Mapping[str, int] = {
    "_mhz": 10**6,
    "_gb_s": 10**9,
    "_tflops": 10**12,
    "_kib": 1024,
    "_gbit_s": 10**9,
    "_bits": 1,
}
_VENDOR = {"nvidia", "tesla", "geforce"}


@dataclass(frozen=True)
class PublishedFigure:
    """A published number in base units, and its source document."""

    value: float
    source: str


@dataclass(frozen=True)
class Device:
    """Published figures of a GPU, by name without the unit, such as ``f32`` (FLOP/s) or ``memory`` (B/s).

    Others are ``sms``, ``boost`` (1/s), ``memory_bus`` (bit), ``memory_pin`` (bit/s) and ``l2`` (B). Figures that no
    source gives are missing.
    """

    name: str
    capability: str
    reported: tuple[str, ...]
    figures: Mapping[str, PublishedFigure]

    def roof(self, precision: str) -> Roof | None:
        """Return the roof of kernels in one of ``PRECISIONS``; None if the table lacks that peak."""
        memory, flops = self.figures.get("memory"), self.figures.get(precision)
        if precision not in PRECISIONS or memory is None or flops is None:
            return None
        return Roof(memory.value, flops.value)

    def peaks(self) -> tuple[tuple[str, float, str, str], ...]:
        """Return (metric, value, precision, source) of each peak: ``bandwidth`` in B/s, ``flops`` in FLOP/s.

        ``f64_tensor`` is left out, because ``f64`` figures do not tell which cores a kernel ran on.
        """
        named = [("bandwidth", "memory", ""), *(("flops", name, name) for name in PRECISIONS if name != "f64_tensor")]
        return tuple(
            (metric, found.value, precision, f"published for {self.name}: {found.source}")
            for metric, name, precision in named
            if (found := self.figures.get(name)) is not None
        )


@cache
def devices() -> tuple[Device, ...]:
    """Return all devices of the table, in order of generation."""
    table: dict[str, Any] = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    sources = {
        name: ", ".join(part for part in (entry["title"], entry.get("read"), entry["url"]) if part)
        for name, entry in table["sources"].items()
    }
    return tuple(
        Device(
            entry["name"],
            entry["capability"],
            tuple(entry["reported"]),
            {
                name: PublishedFigure(value, sources[source])
                for source, figures in entry["figures"].items()
                for name, value in (_base(key, number) for key, number in figures.items())
            },
        )
        for entry in table["devices"]
    )


def _base(key: str, number: float) -> tuple[str, float]:
    """Return a figure's name without its unit, and its value in base units: ``memory_gb_s: 900`` → ``memory``, 9e11."""
    for unit, scale in _SCALES.items():
        if key.endswith(unit):
            return key.removesuffix(unit), float(Decimal(str(number)) * scale)
    return key, float(number)


def find(name: str) -> Device | None:
    """Return the device that a driver or a profiler reports under this name; None if the table lacks it.

    Case, separators and the words NVIDIA, Tesla and GeForce do not matter. All other words must match: a laptop GPU, a
    part of a GPU (MIG) and an A10G differ from the board whose name they begin with.
    """
    return _by_name().get(_key(name))


def device(name: str) -> Device:
    """Return the device like ``find``; raise UserError with similar names if the table lacks it."""
    found = find(name)
    if found is None:
        like = ", ".join(_alike(name))
        raise UserError.of(
            f"no peaks are known for the GPU {name!r}",
            "set measured or published ones as `peaks:` in the workflow" + (f"; the table has {like}" if like else ""),
        )
    return found


def _alike(name: str) -> list[str]:
    """Return reported names that contain all words of this one, or only words of it."""
    words = set(_key(name).split())
    known = {each: set(_key(each).split()) for entry in devices() for each in entry.reported}
    return [each for each, own in known.items() if words and (own <= words or words <= own)]


@cache
def _by_name() -> Mapping[str, Device]:
    return {_key(each): entry for entry in devices() for each in (entry.name, *entry.reported)}


def _key(name: str) -> str:
    """Return a name's words in lower case without those of the vendor."""
    words = re.split(r"[\s_-]+", re.sub(r"\((?:r|tm)\)|[®™]", "", name, flags=re.IGNORECASE).strip().lower())
    return " ".join(word for word in words if word not in _VENDOR)


LATENCY_BELOW = 0.6
Bound = Literal["memory", "compute", "latency"]


@dataclass(frozen=True)
class SpeedOfLight:
    """Measured throughput of the SMs and of memory as shares of their peaks, 0 to 1, and waves if known.

    In ncu these are ``sm__throughput.avg.pct_of_peak_sustained_elapsed``,
    ``gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed`` and ``launch__waves_per_multiprocessor``.
    """

    compute: float
    memory: float
    waves: float | None = None


@dataclass(frozen=True)
class Placed:
    """A kernel under a roof: FLOP/B, FLOP/s and B/s attained, FLOP/s attainable, and the share of the roof.

    The share is of the bandwidth left of the ridge, and of the arithmetic peak right of it. It can exceed 1: published
    peaks hold at the boost clock, and caches serve bytes that never reach memory.
    """

    intensity: float
    flops: float
    bandwidth: float
    attainable: float
    share: float
    bound: Bound
    because: str

    @property
    def headroom(self) -> float:
        """Speedup that the roof would allow; infinite for a kernel that attained nothing."""
        return 1 / self.share if self.share else math.inf


def place(roof: Roof, *, flops: float, size: float, seconds: float, evidence: SpeedOfLight | None = None) -> Placed:
    """Place a kernel that did ``flops`` operations on ``size`` bytes of memory in ``seconds``.

    ``flops`` may be 0 (a copy), or ``size`` (a kernel that uses only registers), but not both. Without evidence, the
    intensity alone decides between memory and compute. Raises UserError for impossible numbers.
    """
    if not (seconds > 0 and flops >= 0 and size >= 0 and flops + size > 0) or math.isinf(seconds + flops + size):
        raise UserError.of(
            f"no roofline for {flops:g} FLOP and {size:g} B in {seconds:g} s",
            "set `work:` with bytes or flops above 0; the time must be above 0",
        )
    intensity = flops / size if size else math.inf
    rates = flops / seconds, size / seconds
    share = rates[1] / roof.bandwidth if roof.bound(intensity) == "memory" else rates[0] / roof.flops
    bound, because = bound_under(roof, intensity, evidence)
    return Placed(intensity, *rates, roof.attainable(intensity), share, bound, because)


def bound_under(roof: Roof, intensity: float, evidence: SpeedOfLight | None = None) -> tuple[Bound, str]:
    """Return the bound of a kernel with an intensity in FLOP/B, and the reason."""
    if evidence is not None and max(evidence.compute, evidence.memory) < LATENCY_BELOW:
        return "latency", _why_it_waits(evidence)
    return roof.bound(intensity), f"{intensity:.3g} FLOP/B, where the ridge is at {roof.ridge:.3g}"


def bound_without_roof(evidence: SpeedOfLight) -> tuple[Bound, str]:
    """Return the bound by the speed of light alone, as in that rule: the unit whose throughput is nearer to its peak.

    Memory then includes caches and shared memory.
    """
    if max(evidence.compute, evidence.memory) < LATENCY_BELOW:
        return "latency", _why_it_waits(evidence)
    shares = f"SM {evidence.compute:.0%} and memory {evidence.memory:.0%} of their speed of light"
    return ("compute" if evidence.compute > evidence.memory else "memory"), shares


def _why_it_waits(evidence: SpeedOfLight) -> str:
    """Return the reason as in that rule: a grid that does not fill the GPU once, or too little work in flight."""
    shares = f"SM {evidence.compute:.0%} and memory {evidence.memory:.0%} of their speed of light, both under 60%"
    if evidence.waves is not None and evidence.waves < 1:
        return f"{shares}: the grid fills {evidence.waves:.2g} of a wave"
    return shares


@dataclass(frozen=True)
class OnDevice:
    """A kernel's time on a device in seconds, and its share of that device's roof, None without a roof."""

    kernel: str
    device: str
    seconds: float
    share: float | None = None


@dataclass(frozen=True)
class DeviceRow:
    """A row of the table. ``slower``: time / fastest time; ``of_best``: share / best share."""

    kernel: str
    device: str
    seconds: float
    share: float | None
    slower: float
    of_best: float | None


def rows(measured: Iterable[OnDevice]) -> tuple[DeviceRow, ...]:
    """Sort each kernel's devices by their share of the roof, best first; those without a roof come last, by time.

    Kernels keep their order. ``of_best`` shows how well the code fits a device compared to the one that it fits best.
    """
    by_kernel: dict[str, list[OnDevice]] = {}
    for one in measured:
        by_kernel.setdefault(one.kernel, []).append(one)
    return tuple(row for group in by_kernel.values() for row in _of_one(group))


def _of_one(group: list[OnDevice]) -> list[DeviceRow]:
    fastest = min(one.seconds for one in group)
    best = max((one.share for one in group if one.share is not None), default=0.0)
    lines = [
        DeviceRow(
            one.kernel,
            one.device,
            one.seconds,
            one.share,
            one.seconds / fastest,
            None if one.share is None or not best else one.share / best,
        )
        for one in group
    ]
    return sorted(lines, key=lambda row: (row.share is None, -(row.share or 0.0), row.seconds, row.device))
