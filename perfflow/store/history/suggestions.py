"""Suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

MOST = 8


def nearest(name: str, known: Sequence[str], kind: str) -> str:
    """Return a hint with the nearest name, else with all known names."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"{kind}: {listed(known)}" if known else f"there are no {kind} yet"


def listed(names: Sequence[str]) -> str:
    """Return the first ``MOST`` names as text, and the number of further ones."""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more
