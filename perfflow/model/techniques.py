"""The optimization hierarchy: techniques in the order in which they should be tried."""

from __future__ import annotations

TECHNIQUES = ("algorithm", "data-structure", "io", "memory", "concurrency", "vectorization", "compute", "caching")
"""The cheapest techniques with the largest effect come first."""
OUTSIDE = "configuration"
"""The technique outside of the hierarchy."""


def rank(technique: str) -> int:
    """Return the position of a technique in the hierarchy; techniques outside of it, and unknown ones, come last."""
    return TECHNIQUES.index(technique) if technique in TECHNIQUES else len(TECHNIQUES)
