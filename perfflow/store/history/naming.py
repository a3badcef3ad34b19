"""What else a name that is none could have meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

MOST = 8


def nearest(name: str, known: Sequence[str], kind: str) -> str:
    """A hint: the nearest name, else the names there are."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"{kind}: {listed(known)}" if known else f"there are no {kind} yet"


def listed(names: Sequence[str]) -> str:
    """The first few of many names, and how many more there are."""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more
