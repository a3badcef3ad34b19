"""The user's own working tree: where it is, and which revision it is at."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any


def root_of(path: Path) -> Path | None:
    """The top of the git working tree that holds ``path``, None outside of any."""
    path = path.resolve()
    return next((folder for folder in (path, *path.parents) if (folder / ".git").exists()), None)


def describe(root: Path) -> dict[str, Any]:
    """Kind, revision and whether tracked files differ from it; just the kind where there is no git."""
    # One call for all three: starting git takes as long as a short benchmark.
    status = _git(root, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    lines = (status or "").splitlines()
    head = dict(line.split(" ", 2)[1:] for line in lines if line.startswith("# branch."))
    revision = head.get("branch.oid", "(initial)")
    if revision == "(initial)":
        return {"kind": "folder", "revision": None, "dirty": None}
    dirty = any(not line.startswith("# ") for line in lines)
    return {
        "kind": "working tree",
        "revision": revision,
        "branch": _branch(head.get("branch.head", "")),
        "dirty": dirty,
    }


def has_untracked(root: Path) -> bool:
    """Whether files are there that are neither tracked nor ignored. Takes a look at every folder."""
    return bool(_git(root, "ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory"))


def _branch(name: str) -> str:
    """What rev-parse calls it: a detached head is HEAD."""
    return "HEAD" if name == "(detached)" else name


def _git(root: Path, *arguments: str) -> str | None:
    """Run one git command that only reads; optional locks are off, so the user's index stays untouched."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
