"""The optimization hierarchy: kinds of changes in the order in which they are worth trying."""

from __future__ import annotations

TECHNIQUES = ("algorithm", "data-structure", "io", "memory", "concurrency", "vectorization", "compute", "caching")
"""What is cheapest and moves most comes first."""
OUTSIDE = "configuration"
"""The technique that stands outside of the hierarchy."""


def rank(technique: str) -> int:
    """Where a technique stands in the hierarchy; what is outside of it, or unknown, comes after all others."""
    return TECHNIQUES.index(technique) if technique in TECHNIQUES else len(TECHNIQUES)
