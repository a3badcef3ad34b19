"""What a profile and its frames are called in files for other viewers."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.stack_profile import StackProfile
from perfflow.model.stacks import Stack
from perfflow.report.sanitize import visible

CALL_PAIRS = "callers are known one level up only"
"""What is said of a profile whose longer stacks are an estimate."""


def title(profile: StackProfile) -> str:
    """Whose profile it is, on one line."""
    about = [profile.step, profile.benchmark if profile.benchmark != profile.step else "", profile.side, profile.tool]
    notes = [CALL_PAIRS] if profile.is_call_pairs else []
    return visible(", ".join(filter(None, [*about, profile.unit, *notes])))


def stacks(profile: StackProfile) -> Iterator[tuple[str, dict[Stack, int]]]:
    """Each thread's name and its stacks, in the order of their names, with names that do nothing but be shown."""
    for thread, own in sorted(profile.threads.items()):
        found: dict[Stack, int] = {}
        for stack, count in own.items():
            shown = tuple(map(visible, stack))
            found[shown] = found.get(shown, 0) + count
        yield visible(thread), dict(sorted(found.items()))
