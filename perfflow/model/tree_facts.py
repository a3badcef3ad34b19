"""What is known of a state of the code that was measured, as events and result.json keep it by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfflow.model.later import dataclass
from perfflow.model.plain_data import from_json
from perfflow.model.readings import Side

STORED = "stored"
"""Kind of a stored set of samples: with label, tool, version, machine."""
KEPT = "kept"
"""Kind of what was kept of candidates: with the branch that holds it."""


@dataclass(frozen=True)
class TreeFacts:
    """One side's tree; '' and None where a kind of tree has no such fact.

    ``kind`` is ``folder``, ``working tree``, ``revision``, STORED or KEPT. ``name`` is the revision as it was typed,
    ``tree`` git's hash of the files.
    """

    kind: str = ""
    revision: str | None = None
    branch: str | None = None
    dirty: bool | None = None
    untracked: bool = False
    name: str = ""
    tree: str = ""
    label: str = ""
    tool: str = ""
    version: str = ""
    started: str = ""
    machine: str = ""


def tree_of(trees: Mapping[str, Any], side: Side) -> TreeFacts:
    """The facts of a side of what is stored; of one that was not there all are empty."""
    return from_json(TreeFacts, trees.get(side) or {})
