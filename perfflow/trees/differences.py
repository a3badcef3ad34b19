"""Differences between two trees: as a patch, as lines per file, and as paths for rules such as ``forbid``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from perfflow.trees.git import names
from perfflow.trees.repository import Repository

_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "-r")
"""Options that make patches independent of the user's settings."""
_HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class FileChange:
    """A changed file with the number of lines ``added`` and ``removed``, both None if it is not text."""

    path: str
    added: int | None
    removed: int | None


@dataclass(frozen=True)
class Difference:
    """A patch that turns one tree into the other, and its size; a renamed file counts as removed and added."""

    patch: bytes
    files: tuple[FileChange, ...]

    @property
    def text(self) -> str:
        """The patch as text; bytes that are not UTF-8 become replacement characters."""
        return self.patch.decode(errors="replace")

    @property
    def lines(self) -> int:
        """Number of lines added and removed in all text files."""
        return sum((file.added or 0) + (file.removed or 0) for file in self.files)


def difference(repository: Repository, old: str, new: str) -> Difference:
    """Compare two trees or commits. ``patches.apply`` can apply the ``patch``, including binary files."""
    git = repository.git()
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/")
    patch = git.run("diff-tree", *_PLAIN, *prefixes, "--patch", "--binary", "--full-index", old, new)
    counted = git.run("diff-tree", *_PLAIN, "--numstat", "-z", old, new)
    return Difference(patch, tuple(_file(entry) for entry in counted.split(b"\0") if entry))


def changed_paths(repository: Repository, old: str, new: str) -> tuple[str, ...]:
    """Return the paths that differ between two trees or commits, with both names of a renamed file."""
    return tuple(names(repository.git().run("diff-tree", *_PLAIN, "--name-only", "-z", old, new)))


def added_lines(repository: Repository, old: str, new: str) -> dict[str, set[int]]:
    """Return the numbers of the lines in ``new`` that were added or changed, by file, without files of odd names."""
    patch = repository.git().run("diff-tree", *_PLAIN, "--patch", "--unified=0", "--dst-prefix=b/", old, new)
    found: dict[str, set[int]] = {}
    path = ""
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git "):
            path = ""
        elif not path and line.startswith(b"+++ b/"):
            path = os.fsdecode(line[6:].rstrip(b"\t"))
        elif path and (hunk := _HUNK.match(line)):
            start = int(hunk[1])
            found.setdefault(path, set()).update(range(start, start + int(hunk[2] or 1)))
    return found


def _file(entry: bytes) -> FileChange:
    added, removed, path = entry.split(b"\t", 2)
    if added == b"-":
        return FileChange(os.fsdecode(path), None, None)
    return FileChange(os.fsdecode(path), int(added), int(removed))
