"""A folder on disk → a tree: what is tracked as it stands, and what is untracked and not ignored."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from perfflow.model.later import dataclass
from perfflow.trees.git import Git, lines, names


@dataclass(frozen=True)
class Recorded:
    """The tree that was written, and the folders that it cannot hold."""

    tree: str
    left_out: tuple[str, ...]


def record(git: Git, worktree: Path, exclude: Iterable[str] = (), what: str = "record the tree") -> Recorded:
    """Bring the index of ``git`` up to ``worktree`` and write it as a tree.

    Deletions, modes, links, staged and unstaged changes and conflicts go in as they stand on disk; paths under
    ``exclude`` do not. Raises UserError where a file cannot be read or the disk is full.
    """
    # Bits that say "take it as unchanged" are for the user's own commands.
    git.attempt("update-index", "-q", "--really-refresh")
    unseen = [path for path in _skipped(git) if os.path.lexists(worktree / path)]
    if unseen:
        git.run("update-index", "-z", "--no-skip-worktree", "--stdin", input=lines(unseen))
    git.run("add", "--update", what=what)
    untracked = _others(git, exclude)
    files = [path for path in untracked if not path.endswith("/")]
    if files:
        # --remove: a file that went away meanwhile is left out instead of being an error.
        git.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", input=lines(files), what=what)
    left_out = tuple(path for path in untracked if path.endswith("/"))
    return Recorded(git.line("write-tree", what=what), left_out)


def _others(git: Git, exclude: Iterable[str] = ()) -> list[str]:
    """What is untracked and not ignored: files, and with a slash at the end repositories of their own."""
    options = [f"--exclude={exactly(path)}" for path in exclude]
    return names(git.run("ls-files", "--others", "--exclude-standard", "-z", *options))


def exactly(path: str) -> str:
    """A line of a .gitignore that means this path only."""
    return "/" + re.sub(r"([\\*?\[\] !#])", r"\\\1", path)


def _skipped(git: Git) -> list[str]:
    """Paths that a sparse checkout, or the user, told git not to look at."""
    return [name[2:] for name in names(git.run("ls-files", "-t", "-z")) if name.startswith("S ")]


def copy_index(source: Path, target: Path) -> None:
    """Copy an index file with its time: git rereads files that are as young as their index.

    An unborn repository has none, and neither gets the copy.
    """
    try:
        number = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with os.fdopen(number, "rb") as file:
        facts = os.fstat(file.fileno())
        target.write_bytes(file.read())
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))
