"""The user's own working tree: its root and its revision."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from perfflow.model.errors import UserError
from perfflow.trees import git
from perfflow.trees.git import Git


def root_of(path: Path) -> Path | None:
    """Return the top of the git working tree that contains ``path``, or None. Does not follow links to folders."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 (a link in a project must not make another folder the project)
    return next((folder for folder in (path, *path.parents) if (folder / ".git").exists()), None)


def around(here: Path) -> Path | None:
    """Return the project that contains ``here``: the git working tree, else the folder itself.

    None for a home folder, or one above it, without git, because its contents are unrelated.
    """
    home = Path("~").expanduser()
    return root_of(here) or (None if here == home or here in home.parents else here)


def describe(root: Path, *, inspecting: bool = False) -> dict[str, Any]:
    """Return the kind, the revision and whether tracked files differ from it; only the kind without git.

    ``inspecting``: start no program that the project's configuration names, so that files with a filter may seem to
    differ, and give up on git after a few seconds.
    """
    if not (root / ".git").exists():
        return _FOLDER
    try:
        # Git never runs the user's hooks and monitors, but it needs filters to compare files with commits.
        asked = git.without_filters(git.inspecting(root)) if inspecting else Git(root)
        # One call for all three: starting git takes as long as a short benchmark.
        words = ("status", "--porcelain=v2", "--branch", "--untracked-files=no", "--no-renames")
        done = asked.attempt(*words, *(("--ignore-submodules=dirty",) if inspecting else ()))
    except UserError:
        return _FOLDER
    lines = done.stdout.decode(errors="replace").splitlines() if done.status == 0 else []
    head = dict(line.split(" ", 2)[1:] for line in lines if line.startswith("# branch."))
    revision = head.get("branch.oid", "(initial)")
    if revision == "(initial)":
        return _FOLDER
    dirty = any(not line.startswith("# ") for line in lines)
    return {
        "kind": "working tree",
        "revision": revision,
        "branch": _branch(head.get("branch.head", "")),
        "dirty": dirty,
    }


_FOLDER = {"kind": "folder", "revision": None, "dirty": None}


def has_untracked(root: Path) -> bool:
    """Return whether there are files that are neither tracked nor ignored. Reads every folder."""
    words = ("ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory")
    try:
        done = Git(root).attempt(*words)
    except UserError:
        return False
    return done.status == 0 and bool(done.stdout.strip())


def _branch(name: str) -> str:
    """Return the branch as in rev-parse: a detached head is HEAD."""
    return "HEAD" if name == "(detached)" else name
