"""The user's own working tree: where it is, and which revision it is at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from perfflow.model.errors import UserError
from perfflow.trees import git
from perfflow.trees.git import Git


def root_of(path: Path) -> Path | None:
    """The top of the git working tree that holds ``path``, None outside of any. Links to folders are not followed."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 (a link in a project must not make another folder the project)
    return next((folder for folder in (path, *path.parents) if (folder / ".git").exists()), None)


def around(here: Path) -> Path | None:
    """The project that ``here`` is in: the git working tree, else the folder itself.

    None for a home folder or one above it without git: what lies in there belongs together by chance.
    """
    home = Path("~").expanduser()
    return root_of(here) or (None if here == home or here in home.parents else here)


def describe(root: Path, *, looking: bool = False) -> dict[str, Any]:
    """Kind, revision and whether tracked files differ from it; just the kind where there is no git.

    ``looking``: nothing that the project's configuration names is started, so that files which a filter changes may
    seem to differ, and git is given up on after a few seconds.
    """
    if not (root / ".git").exists():
        return _FOLDER
    try:
        # Hooks and monitors of the user's are left alone by any Git; filters are needed to compare files with commits.
        asked = git.without_filters(git.looking(root)) if looking else Git(root)
        # One call for all three: starting git takes as long as a short benchmark.
        words = ("status", "--porcelain=v2", "--branch", "--untracked-files=no", "--no-renames")
        done = asked.attempt(*words, *(("--ignore-submodules=dirty",) if looking else ()))
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
    """Whether files are there that are neither tracked nor ignored. Takes a look at every folder."""
    words = ("ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory")
    try:
        done = Git(root).attempt(*words)
    except UserError:
        return False
    return done.status == 0 and bool(done.stdout.strip())


def _branch(name: str) -> str:
    """What rev-parse calls it: a detached head is HEAD."""
    return "HEAD" if name == "(detached)" else name
