"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.model.similar import nearest

MOST = 8


def suggestion(name: str, known: Sequence[str], kind: str) -> str:
    """Return a hint with the nearest name, else with all known names."""
    if near := nearest(name, known):
        return f"did you mean {near!r}?"
    return f"{kind}: {listed(known)}" if known else f"there are no {kind} yet"


def listed(names: Sequence[str]) -> str:
    """Return the first ``MOST`` names as text, and the number of further ones."""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more
