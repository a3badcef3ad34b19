"""Which commit a result is about."""

from __future__ import annotations

import re

from perfflow.result import Result

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def revision_of(result: Result) -> str | None:
    """The full hash of the commit that was measured, None where it is not known.

    That is head's, of base and head; of a run of one tree it is that tree's. What an optimize stage kept has commits of
    its own, which nobody else knows: there it is the commit that the run began with.
    """
    candidate, baseline = result.trees.get("candidate") or {}, result.trees.get("baseline") or {}
    tree = baseline if not candidate or candidate.get("kind") == "kept" else candidate
    revision = tree.get("revision")
    return revision if isinstance(revision, str) and _COMMIT.fullmatch(revision) else None


def has_changes(result: Result) -> bool:
    """Whether what was measured differs from that commit."""
    trees = [result.trees.get(name) or {} for name in ("candidate", "baseline")]
    tree = next((tree for tree in trees if tree and tree.get("kind") != "kept"), {})
    return bool(tree.get("dirty"))
