"""The roofline model: what a kernel could attain by its arithmetic intensity, and how far it is from that.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

from typing import Literal

from perfflow.model.later import dataclass

Bound = Literal["memory", "compute"]


@dataclass(frozen=True)
class Roof:
    """What a machine can do at most: memory bandwidth in B/s and arithmetic in FLOP/s, both above 0."""

    bandwidth: float
    flops: float

    @property
    def ridge(self) -> float:
        """The intensity in FLOP/B from which on arithmetic, and no longer memory, is the limit."""
        return self.flops / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """FLOP/s that a kernel of an intensity in FLOP/B can reach."""
        return min(self.flops, intensity * self.bandwidth)

    def bound(self, intensity: float) -> Bound:
        """Which of the two limits a kernel of an intensity in FLOP/B meets first."""
        return "memory" if intensity < self.ridge else "compute"
