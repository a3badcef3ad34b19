"""Where a GPU kernel stands under the roofline, and whether memory, arithmetic or latency holds it there.

The roofline alone knows memory and compute. That neither is near its limit, and a kernel therefore waits (latency), is
told by Nsight Compute's speed of light: both of its throughputs under 60% (rule SOLBottleneck, SpeedOfLight.py).
"""

from __future__ import annotations

import math
from typing import Literal

from perfflow.model.errors import UserError
from perfflow.model.later import dataclass
from perfflow.model.roofline import Roof

LATENCY_BELOW = 0.6
Bound = Literal["memory", "compute", "latency"]


@dataclass(frozen=True)
class SpeedOfLight:
    """What a profiler saw: throughput of the SMs and of memory as shares of their peaks, 0 to 1, and waves if known.

    In ncu these are ``sm__throughput.avg.pct_of_peak_sustained_elapsed``,
    ``gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed`` and ``launch__waves_per_multiprocessor``.
    """

    compute: float
    memory: float
    waves: float | None = None


@dataclass(frozen=True)
class Placed:
    """A kernel under a roof: FLOP/B, FLOP/s and B/s attained, FLOP/s attainable, and the share of the roof, 0 to 1.

    The share is of bandwidth left of the ridge, of arithmetic right of it. It can pass 1: published peaks hold at the
    boost clock, and caches serve bytes that memory never sees.
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
        """How many times as fast the roof would allow; infinite for a kernel that attained nothing."""
        return 1 / self.share if self.share else math.inf


def place(roof: Roof, *, flops: float, size: float, seconds: float, evidence: SpeedOfLight | None = None) -> Placed:
    """Place a kernel that did ``flops`` operations on ``size`` bytes of memory in ``seconds``.

    A copy has no operations, and a kernel that stays in registers no bytes; both at 0 have no place. Without evidence
    the bound is memory or compute, by the intensity alone. Raises UserError for numbers that cannot be.
    """
    if not (seconds > 0 and flops >= 0 and size >= 0 and flops + size > 0) or math.isinf(seconds + flops + size):
        raise UserError.of(
            f"no roofline for {flops:g} FLOP and {size:g} B in {seconds:g} s",
            "give `work:` with bytes or flops above 0, and a time above 0",
        )
    intensity = flops / size if size else math.inf
    rates = flops / seconds, size / seconds
    share = rates[1] / roof.bandwidth if roof.bound(intensity) == "memory" else rates[0] / roof.flops
    bound, because = bound_under(roof, intensity, evidence)
    return Placed(intensity, *rates, roof.attainable(intensity), share, bound, because)


def bound_under(roof: Roof, intensity: float, evidence: SpeedOfLight | None = None) -> tuple[Bound, str]:
    """What holds a kernel of an intensity in FLOP/B, and why."""
    if evidence is not None and max(evidence.compute, evidence.memory) < LATENCY_BELOW:
        return "latency", _why_it_waits(evidence)
    return roof.bound(intensity), f"{intensity:.3g} FLOP/B, where the ridge is at {roof.ridge:.3g}"


def bound_without_roof(evidence: SpeedOfLight) -> tuple[Bound, str]:
    """The same by the speed of light alone, as that rule has it: the unit whose throughput is nearer to its peak.

    Memory is all of it then, caches and shared memory too.
    """
    if max(evidence.compute, evidence.memory) < LATENCY_BELOW:
        return "latency", _why_it_waits(evidence)
    shares = f"SM {evidence.compute:.0%} and memory {evidence.memory:.0%} of their speed of light"
    return ("compute" if evidence.compute > evidence.memory else "memory"), shares


def _why_it_waits(evidence: SpeedOfLight) -> str:
    """As that rule says it: a grid that does not fill the GPU once, or else too little in flight."""
    shares = f"SM {evidence.compute:.0%} and memory {evidence.memory:.0%} of their speed of light, both under 60%"
    if evidence.waves is not None and evidence.waves < 1:
        return f"{shares}: the grid fills {evidence.waves:.2g} of a wave"
    return shares
