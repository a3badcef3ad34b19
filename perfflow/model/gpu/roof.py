"""Place a GPU kernel under the roofline, and find whether memory, compute or latency bounds it.

The roofline only distinguishes memory and compute. A kernel is latency-bound if both throughputs of Nsight Compute's
speed of light are under 60% (rule SOLBottleneck, SpeedOfLight.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from perfflow.model.errors import UserError
from perfflow.model.roofline import Roof

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
