"""The roofline model: the attainable performance of a kernel with a given arithmetic intensity.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = Literal["memory", "compute"]


@dataclass(frozen=True)
class Roof:
    """Peak performance of a machine: memory bandwidth in B/s and arithmetic in FLOP/s, both above 0."""

    bandwidth: float
    flops: float

    @property
    def ridge(self) -> float:
        """The intensity in FLOP/B above which arithmetic is the limit instead of memory."""
        return self.flops / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """Return the FLOP/s that a kernel with an intensity in FLOP/B can reach."""
        return min(self.flops, intensity * self.bandwidth)

    def bound(self, intensity: float) -> Bound:
        """Return which of the two limits a kernel with an intensity in FLOP/B reaches first."""
        return "memory" if intensity < self.ridge else "compute"
