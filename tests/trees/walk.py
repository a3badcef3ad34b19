"""Repeat the tree operations of a gate and an optimize stage until the process is killed.

Run as ``python -m tests.trees.walk ROOT SHARE...``; writes a line to stdout once it has begun.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from perfflow.trees.commits import commit
from perfflow.trees.patches import apply
from perfflow.trees.repository import open_repository
from perfflow.trees.slots import open_slots
from perfflow.trees.snapshots import at, snapshot

PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"


def walk(root: Path, share: list[str]) -> None:
    """Snapshot, apply, switch, edit, take and commit."""
    for turn in count():
        repository = open_repository(root)
        state = snapshot(repository)
        with open_slots(repository, share) as slots:
            slots.a.switch(at(repository, "HEAD").tree)
            slots.b.switch(apply(repository, state.tree, PATCH))
            (slots.b.path / "new").write_text(f"{turn}\n")
            (slots.b.path / "build").mkdir(exist_ok=True)
            (slots.b.path / "build" / "kept").write_text("built")
            taken = slots.b.take()
            commit(repository, taken.tree, state, f"turn {turn}")
            slots.a.switch(taken.tree)
        sys.stdout.write(f"{turn}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    walk(Path(sys.argv[1]), sys.argv[2:])
