"""Names of profiles, threads and frames in files for other viewers."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.stacks import Stack, StackProfile
from perfflow.report.sanitize import visible

CALL_PAIRS = "callers are known one level up only"
"""Note on a profile whose longer stacks are an estimate."""


def title(profile: StackProfile) -> str:
    """Return step, benchmark, side, tool and unit of a profile on one line."""
    about = [profile.step, profile.benchmark if profile.benchmark != profile.step else "", profile.side, profile.tool]
    notes = [CALL_PAIRS] if profile.is_call_pairs else []
    return visible(", ".join(filter(None, [*about, profile.unit, *notes])))


def stacks(profile: StackProfile) -> Iterator[tuple[str, dict[Stack, int]]]:
    """Yield each thread's name and its stacks, sorted by name; control characters in names are spelled out."""
    for thread, own in sorted(profile.threads.items()):
        found: dict[Stack, int] = {}
        for stack, count in own.items():
            shown = tuple(map(visible, stack))
            found[shown] = found.get(shown, 0) + count
        yield visible(thread), dict(sorted(found.items()))
