"""Which commit a result is about."""

from __future__ import annotations

from perfflow.model.later import late_pattern
from perfflow.model.readings import Side
from perfflow.model.result import Result
from perfflow.model.tree_facts import KEPT, tree_of

_COMMIT = late_pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def revision_of(result: Result) -> str | None:
    """The full hash of the commit that was measured, None where it is not known.

    That is head's, of base and head; of a run of one tree it is that tree's. What an optimize stage kept has commits of
    its own, which nobody else knows: there it is the commit that the run began with.
    """
    baseline, candidate = (tree_of(result.trees, side) for side in Side)
    revision = (baseline if candidate.kind in ("", KEPT) else candidate).revision
    return revision if isinstance(revision, str) and _COMMIT.fullmatch(revision) else None


def has_changes(result: Result) -> bool:
    """Whether what was measured differs from that commit."""
    baseline, candidate = (tree_of(result.trees, side) for side in Side)
    return bool((baseline if candidate.kind in ("", KEPT) else candidate).dirty)
