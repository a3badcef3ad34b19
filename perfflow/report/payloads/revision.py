"""The commit that a result measured."""

from __future__ import annotations

import re

from perfflow.model.readings import Side
from perfflow.model.result import Result
from perfflow.model.tree_facts import KEPT, tree_of

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def revision_of(result: Result) -> str | None:
    """Return the full hash of the measured commit, or None if it is not known.

    With base and head it is head's, with one tree that tree's. The commits of an optimize stage are not known outside
    of the run, so there it is the commit that the run began with.
    """
    baseline, candidate = (tree_of(result.trees, side) for side in Side)
    revision = (baseline if candidate.kind in ("", KEPT) else candidate).revision
    return revision if isinstance(revision, str) and _COMMIT.fullmatch(revision) else None


def has_changes(result: Result) -> bool:
    """Return whether the measured tree had uncommitted changes."""
    baseline, candidate = (tree_of(result.trees, side) for side in Side)
    return bool((baseline if candidate.kind in ("", KEPT) else candidate).dirty)
