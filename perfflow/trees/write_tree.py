"""Write a folder on disk as a tree: the current tracked files, and untracked files that are not ignored."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from perfflow.trees.git import Git, lines, names


@dataclass(frozen=True)
class Recorded:
    """The tree that was written, and the folders that it cannot contain."""

    tree: str
    left_out: tuple[str, ...]


def record(git: Git, worktree: Path, exclude: Iterable[str] = (), what: str = "record the tree") -> Recorded:
    """Update the index of ``git`` from ``worktree`` and write it as a tree.

    Deletions, modes, links, staged and unstaged changes and conflicts are recorded as they are on disk; paths under
    ``exclude`` are left out. Raises UserError if a file cannot be read or the disk is full.
    """
    # Ignore the user's assume-unchanged bits.
    git.attempt("update-index", "-q", "--really-refresh")
    unseen = [path for path in _skipped(git) if os.path.lexists(worktree / path)]
    if unseen:
        git.run("update-index", "-z", "--no-skip-worktree", "--stdin", input=lines(unseen))
    git.run("add", "--update", what=what)
    untracked = _others(git, exclude)
    files = [path for path in untracked if not path.endswith("/")]
    if files:
        # --remove: a file that was deleted meanwhile is left out instead of causing an error.
        git.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", input=lines(files), what=what)
    left_out = tuple(path for path in untracked if path.endswith("/"))
    return Recorded(git.line("write-tree", what=what), left_out)


def _others(git: Git, exclude: Iterable[str] = ()) -> list[str]:
    """Return untracked paths that are not ignored: files, and nested repositories with a trailing slash."""
    options = [f"--exclude={exactly(path)}" for path in exclude]
    return names(git.run("ls-files", "--others", "--exclude-standard", "-z", *options))


def exactly(path: str) -> str:
    """Return a line for .gitignore that matches only this path."""
    return "/" + re.sub(r"([\\*?\[\] !#])", r"\\\1", path)


def _skipped(git: Git) -> list[str]:
    """Return the paths that git skips because of a sparse checkout or the user's settings."""
    return [name[2:] for name in names(git.run("ls-files", "-t", "-z")) if name.startswith("S ")]


def copy_index(source: Path, target: Path) -> None:
    """Copy an index file with its mtime, because git rereads files that are as new as their index.

    A repository without an index file gives no copy.
    """
    try:
        number = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with os.fdopen(number, "rb") as file:
        facts = os.fstat(file.fileno())
        target.write_bytes(file.read())
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))
