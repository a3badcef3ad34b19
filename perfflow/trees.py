"""States of the code on disk. So far the user's own working tree: where it is, and which revision it is at."""

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
    revision = _git(root, "rev-parse", "HEAD")
    if revision is None:
        return {"kind": "folder", "revision": None, "dirty": None}
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    branch = _git(root, "rev-parse", "--abbrev-ref", "HEAD")
    return {"kind": "working tree", "revision": revision, "branch": branch, "dirty": bool(changed)}


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
