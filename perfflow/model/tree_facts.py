"""Facts about a measured state of the code, stored by side in events and result.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfflow.model.plain_data import from_json
from perfflow.model.readings import Side

STORED = "stored"
"""Kind of a stored set of samples: with label, tool, version, machine."""


KEPT = "kept"
"""Kind of a tree of accepted candidates: with its branch."""


@dataclass(frozen=True)
class TreeFacts:
    """The tree of one side; '' and None for facts that a kind of tree does not have.

    ``kind`` is ``folder``, ``working tree``, ``revision``, STORED or KEPT. ``name`` is the revision as it was typed,
    ``tree`` git's hash of the files. ``overlay``: paths whose files are head's on both sides of a gate, of which
    ``replaced`` files differ from the base's own. ``built`` is when an earlier run built it, if it was not built again.
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
    overlay: tuple[str, ...] = ()
    replaced: int = 0
    built: str = ""


def are_two_revisions(trees: Mapping[str, Any]) -> bool:
    """Return whether two states of the code were compared, not two commands or two stored results."""
    found = [tree_of(trees, side) for side in Side]
    return all(tree.revision and tree.kind not in (STORED, KEPT) for tree in found)


def tree_of(trees: Mapping[str, Any], side: Side) -> TreeFacts:
    """Return the stored facts of a side; all are empty if the side does not exist."""
    return from_json(TreeFacts, trees.get(side) or {})
